// Colours for code in answers. It is loaded when an answer has some.

/** Longest code that is coloured, in characters. */
const LONGEST = 40_000;

const words = (text: string) => new Set(text.split(" "));
const OF_C = words(
  "abstract as async await bool boolean break case catch char class const constexpr continue crate debugger default defer delete do double dyn else enum export extends extern final finally float fn for from func function go goto if impl implements import in instanceof int interface internal is let long loop match mod move mut namespace new null nullptr of operator override package private protected pub public ref return select self short signed sizeof static struct super switch template this throw throws trait try type typedef typeof union unsafe unsigned use using val var virtual void volatile where while yield true false undefined None Some Ok Err Self string number any never readonly",
);
const OF_PYTHON = words(
  "and as assert async await break class continue def del elif else end ensure except False finally for from global if import in is lambda module next nil None nonlocal not or pass raise require rescue return self super then True try unless until when while with yield true false",
);
const OF_SHELL = words("if then else elif fi for while until do done case esac in function return local export set unset echo exit cd source true false sudo");
const OF_SQL = words(
  "select from where insert into values update set delete create table index view drop alter add primary key foreign references join left right inner outer on group by order having limit offset union all distinct as and or not null is in exists between like case when then else end begin commit rollback with returning default unique constraint",
);
const NONE = new Set<string>();

/** How a language is read: what a comment is, and its words. */
interface Grammar {
  comment: RegExp | null;
  words: Set<string>;
  ignoresCase?: boolean;
}

const C: Grammar = { comment: /\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y, words: OF_C };
const HASH = /#[^\n]*/y;
const GRAMMARS: Record<string, Grammar> = {
  python: { comment: HASH, words: OF_PYTHON },
  shell: { comment: /(?<=^|\s)#[^\n]*/y, words: OF_SHELL },
  data: { comment: /(?<=^|\s)#[^\n]*/y, words: words("true false null yes no on off") },
  json: { comment: C.comment, words: words("true false null") },
  sql: { comment: /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y, words: OF_SQL, ignoresCase: true },
  css: { comment: /\/\*[\s\S]*?(?:\*\/|$)/y, words: NONE },
  markup: { comment: /<!--[\s\S]*?(?:-->|$)/y, words: NONE },
  c: C,
};
const FAMILIES: Record<string, string> = {
  python: "py python rb ruby",
  shell: "sh bash zsh shell fish console dockerfile make makefile",
  data: "yaml yml toml ini conf",
  json: "json json5 jsonc",
  sql: "sql",
  css: "css scss less",
  markup: "html xml svg vue",
  c: "rust rs c h cpp c++ cc hpp cs c# java kotlin kt go js jsx ts tsx javascript typescript mjs swift scala php dart zig",
};

const STRING = /"(?:[^"\\\n]|\\[\s\S])*"?|'(?:[^'\\\n]|\\[\s\S])*'|`(?:[^`\\]|\\[\s\S])*`?/y;
const NUMBER = /\b(?:0[xob][\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\w*/iy;
const WORD = /[A-Za-z_$][\w$]*/y;
const TAG = /<\/?[A-Za-z][\w:-]*|\/?>/y;

/** Colours the code in `place`, each block by its language. A block of a language that is not known stays as it is. */
export function highlight(place: Element): void {
  for (const code of place.querySelectorAll('pre code[class^="language-"]')) {
    const language = code.className.slice("language-".length).toLowerCase();
    const text = code.textContent ?? "";
    if (text.length > LONGEST || code.childElementCount > 0) continue;
    const parts = language === "diff" ? ofDiff(text) : ofLanguage(text, language);
    if (parts) code.replaceChildren(...parts);
  }
}

function span(kind: string, text: string): HTMLElement {
  const made = document.createElement("span");
  made.className = `code-${kind}`;
  made.textContent = text;
  return made;
}

function ofDiff(text: string): (Node | string)[] {
  return text.split(/(?<=\n)/).map((line) => {
    if (/^(\+\+\+|---|@@)/.test(line)) return span("comment", line);
    if (line.startsWith("+")) return span("string", line);
    return line.startsWith("-") ? span("removed", line) : line;
  });
}

function ofLanguage(text: string, language: string): (Node | string)[] | null {
  const family = Object.keys(FAMILIES).find((name) => FAMILIES[name]?.split(" ").includes(language));
  const grammar = family && GRAMMARS[family];
  if (!grammar) return null;
  const parts: (Node | string)[] = [];
  let plain = "";
  let at = 0;
  const take = (pattern: RegExp | null): string => {
    if (!pattern) return "";
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? "";
  };
  const put = (kind: string, found: string) => {
    if (plain) parts.push(plain);
    plain = "";
    parts.push(span(kind, found));
    at += found.length;
  };
  while (at < text.length) {
    const comment = take(grammar.comment);
    if (comment) {
      put("comment", comment);
      continue;
    }
    const tag = family === "markup" ? take(TAG) : "";
    if (tag) {
      put("word", tag);
      continue;
    }
    const string = take(STRING);
    if (string) {
      put("string", string);
      continue;
    }
    const number = take(NUMBER);
    if (number) {
      put("number", number);
      continue;
    }
    const word = take(WORD);
    if (grammar.words.has(grammar.ignoresCase ? word.toLowerCase() : word)) {
      put("word", word);
      continue;
    }
    const next = word || text[at] || "";
    plain += next;
    at += next.length;
  }
  if (plain) parts.push(plain);
  return parts;
}
