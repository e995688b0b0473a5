// Where formulas are in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. They become code, which `math.ts` draws.

import type { MarkedExtension, Tokens } from "marked";

/** Whole lines of a formula. It has no empty line. */
const BLOCK = /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[^$]){1,5000}?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S]){1,5000}?)\\\])[ \t]*(?:\n|$)/;
const BLOCK_START = /^ {0,3}(?:\$\$|\\\[)/m;
const INLINE = /^(?:\$\$([^$\n]{1,2000}?)\$\$|\\\(([\s\S]{1,2000}?)\\\)|\\\[([\s\S]{1,2000}?)\\\]|\$(?![\s$])((?:\\.|[^$\\\n]){1,1000}?)(?<!\s)\$(?![\w$]))/;
const INLINE_START = /\$|\\[([]/;
/** What only a formula has. Without it, what has spaces between two signs is an amount of money. */
const SIGN = /[\\^_={}<>+]/;

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

export const formulas: MarkedExtension = {
  extensions: [
    {
      name: "formulaBlock",
      level: "block",
      start: (source) => source.match(BLOCK_START)?.index,
      tokenizer(source) {
        const found = BLOCK.exec(source);
        const text = (found?.[1] ?? found?.[2])?.trim();
        if (found && text) return { type: "formulaBlock", raw: found[0], text };
      },
      renderer: (token: Tokens.Generic) => `<pre><code class="language-math">${escaped(token.text)}</code></pre>\n`,
    },
    {
      name: "formula",
      level: "inline",
      start: (source) => source.match(INLINE_START)?.index,
      tokenizer(source) {
        const found = INLINE.exec(source);
        if (!found) return;
        const [raw, ...texts] = found;
        const text = texts.find((one) => one !== undefined)?.trim();
        if (!text || (texts[3] !== undefined && /\s/.test(text) && !SIGN.test(text))) return;
        return { type: "formula", raw, text };
      },
      renderer: (token: Tokens.Generic) => `<code class="language-math">${escaped(token.text)}</code>`,
    },
  ],
};
