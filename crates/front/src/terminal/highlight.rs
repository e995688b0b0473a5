//! Colours for code, by the grammars that the program `bat` collects. They are unpacked when the first code is shown, and
//! each grammar when its language is. [`forget`] drops them after a turn: with the expressions of one language they take 6 MB.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::Style;

/// Longer lines have no colours: no one reads them, and the grammars are slow there.
const MOST_LINE_BYTES: usize = 1_000;
/// Names of languages that are neither the name nor an ending of a grammar.
const ALIASES: [(&str, &str); 14] = [
    ("shell", "sh"),
    ("console", "sh"),
    ("shell-session", "sh"),
    ("shellsession", "sh"),
    ("javascript", "js"),
    ("jsx", "js"),
    ("typescript", "ts"),
    ("golang", "go"),
    ("c++", "cpp"),
    ("csharp", "cs"),
    ("c#", "cs"),
    ("jsonc", "json"),
    ("powershell", "ps1"),
    ("docker", "Dockerfile"),
];
/// What the parts of a scope mean; the first one that fits counts. `None` is code without a colour of its own.
const MEANINGS: [(&str, Option<Style>); 22] = [
    ("comment", Some(Style::Comment)),
    ("constant.character.escape", Some(Style::Constant)),
    ("string", Some(Style::Quoted)),
    ("punctuation.definition.string", Some(Style::Quoted)),
    ("constant", Some(Style::Constant)),
    ("entity.name.function", Some(Style::Function)),
    ("entity.name.tag", Some(Style::Keyword)),
    ("entity.name", Some(Style::Type)),
    ("entity.other.attribute-name", Some(Style::Type)),
    ("support.function", Some(Style::Function)),
    ("support.macro", Some(Style::Function)),
    ("variable.function", Some(Style::Function)),
    ("variable.language", Some(Style::Keyword)),
    ("support.type", Some(Style::Type)),
    ("support.class", Some(Style::Type)),
    ("keyword.operator", None),
    ("keyword", Some(Style::Keyword)),
    ("storage", Some(Style::Keyword)),
    ("markup.heading", Some(Style::Heading)),
    ("markup.inserted", Some(Style::Good)),
    ("markup.deleted", Some(Style::Bad)),
    ("meta.diff", Some(Style::Type)),
];

/// A part of a line, in bytes, with its style.
pub type Span = (Range<usize>, Style);

/// Reads code line by line.
#[derive(Debug, Clone)]
pub struct Highlighter {
    grammars: Arc<SyntaxSet>,
    state: ParseState,
    scopes: ScopeStack,
}

/// The grammars and what was made of them, while there is code to show.
static GRAMMARS: Mutex<Option<Arc<SyntaxSet>>> = Mutex::new(None);

fn grammars() -> Arc<SyntaxSet> {
    let mut kept = GRAMMARS.lock();
    Arc::clone(kept.get_or_insert_with(|| Arc::new(two_face::syntax::extra_newlines())))
}

/// Drops the grammars. The next code unpacks them again, in some milliseconds.
pub fn forget() {
    GRAMMARS.lock().take();
}

fn meanings() -> &'static [(Scope, Option<Style>)] {
    static SCOPES: OnceLock<Vec<(Scope, Option<Style>)>> = OnceLock::new();
    SCOPES.get_or_init(|| {
        let scope = |(name, style): (&str, _)| Some((Scope::new(name).ok()?, style));
        MEANINGS.into_iter().filter_map(scope).collect()
    })
}

impl Highlighter {
    /// For the language that the opening of a code block names, such as `rust` or `js title="x"`.
    pub fn of_language(info: &str) -> Option<Self> {
        let name = info.trim().trim_start_matches(['{', '.']);
        let name = name.split([' ', ',', ':', '{', '}']).next()?.to_ascii_lowercase();
        if name.is_empty() {
            return None;
        }
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name.as_str(), |(_, name)| *name);
        Self::of_grammar(grammars(), |grammars| grammars.find_syntax_by_token(name))
    }

    /// For a file, by its name or ending.
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        Self::of_grammar(grammars(), |grammars| {
            let found = grammars.find_syntax_by_extension(name);
            found.or_else(|| grammars.find_syntax_by_extension(&ending?.to_ascii_lowercase()))
        })
    }

    fn of_grammar(
        grammars: Arc<SyntaxSet>,
        find: impl FnOnce(&SyntaxSet) -> Option<&SyntaxReference>,
    ) -> Option<Self> {
        let found = find(&grammars).filter(|grammar| grammar.name != "Plain Text")?;
        let state = ParseState::new(found);
        Some(Self { grammars, state, scopes: ScopeStack::new() })
    }

    /// The colours of the next line, which has no line end. What has none is left out.
    pub fn line(&mut self, line: &str) -> Vec<Span> {
        if line.len() > MOST_LINE_BYTES {
            return Vec::new();
        }
        let Ok(changes) = self.state.parse_line(&format!("{line}\n"), &self.grammars) else {
            return Vec::new();
        };
        let mut spans: Vec<Span> = Vec::new();
        let mut from = 0;
        for (at, change) in &changes {
            self.put(from..(*at).min(line.len()), &mut spans);
            from = (*at).min(line.len());
            if self.scopes.apply(change).is_err() {
                break;
            }
        }
        self.put(from..line.len(), &mut spans);
        spans
    }

    fn put(&self, range: Range<usize>, spans: &mut Vec<Span>) {
        let Some(style) = self.style().filter(|_| !range.is_empty()) else { return };
        match spans.last_mut() {
            Some((last, same)) if last.end == range.start && *same == style => last.end = range.end,
            _ => spans.push((range, style)),
        }
    }

    /// What the innermost scope with a meaning says.
    fn style(&self) -> Option<Style> {
        self.scopes.as_slice().iter().rev().find_map(|scope| {
            let fits = |(prefix, _): &&(Scope, _)| prefix.is_prefix_of(*scope);
            meanings().iter().find(fits).map(|(_, style)| *style)
        })?
    }
}

/// The colours of the code blocks of a text that grows: lines that were coloured once are not read again.
#[derive(Debug, Default)]
pub struct CodeColours {
    blocks: Vec<Block>,
    next: usize,
    /// The state with which the first block continues: its beginning has been drawn and dropped.
    carried: Option<Highlighter>,
}

#[derive(Debug)]
struct Block {
    language: String,
    /// The whole lines so far.
    text: String,
    lines: Vec<Vec<Span>>,
    after: Option<Highlighter>,
}

impl CodeColours {
    /// The next block is the first of the text.
    pub fn begin(&mut self) {
        self.next = 0;
    }

    /// The colours of each line of the next block; `None` if its language is not known.
    pub fn lines(&mut self, language: &str, code: &str) -> Option<Vec<Vec<Span>>> {
        let index = self.next;
        self.next += 1;
        let is_known = self.blocks.get(index).is_some_and(|block| {
            block.language == language && code.starts_with(block.text.as_str())
        });
        if !is_known {
            let carried = self.carried.as_ref().filter(|_| index == 0).cloned();
            self.blocks.truncate(index);
            self.blocks.push(Block {
                language: language.to_owned(),
                text: String::new(),
                lines: Vec::new(),
                after: carried.or_else(|| Highlighter::of_language(language)),
            });
        }
        let block = self.blocks.get_mut(index)?;
        let highlighter = block.after.as_mut()?;
        let mut last = None;
        for line in code[block.text.len()..].split_inclusive('\n') {
            match line.strip_suffix('\n') {
                Some(text) => {
                    block.lines.push(highlighter.line(text.trim_end_matches('\r')));
                    block.text.push_str(line);
                }
                None => last = Some(highlighter.clone().line(line)),
            }
        }
        Some(block.lines.iter().cloned().chain(last).collect())
    }

    /// The blocks of another text come next. If it continues in the first block of this one, behind the whole lines, so do
    /// its colours.
    pub fn go_on(&mut self, place: Continuation) {
        self.carried = match place {
            Continuation::InFirstBlock => {
                self.blocks.first_mut().and_then(|block| block.after.take())
            }
            Continuation::Elsewhere => None,
        };
        self.blocks.clear();
    }
}

/// Where a text continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// Inside its first code block.
    InFirstBlock,
    /// Anywhere else.
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{CodeColours, Continuation, Highlighter};
    use crate::terminal::Style;

    #[test]
    fn languages_are_found_by_name_ending_and_path() {
        let languages = [
            "rust",
            "rs,ignore",
            "Python",
            "js",
            "typescript",
            "tsx",
            "sh",
            "shell",
            "bash",
            "go",
            "java",
            "c",
            "cpp",
            "c++",
            "json",
            "yaml",
            "toml",
            "html",
            "css",
            "sql",
            "dockerfile",
            "kotlin",
            "swift",
            "ruby",
            "diff",
            "{.python}",
        ];
        for language in languages {
            assert!(Highlighter::of_language(language).is_some(), "{language}");
        }
        for language in ["", "text", "unheard-of"] {
            assert!(Highlighter::of_language(language).is_none(), "{language}");
        }
        for path in ["src/main.rs", "Makefile", "a/b.PY", "Cargo.toml", "x.ts"] {
            assert!(Highlighter::of_path(path).is_some(), "{path}");
        }
        assert!(Highlighter::of_path("notes").is_none());
    }

    #[test]
    fn a_line_has_colours_for_what_it_says() {
        let mut rust = Highlighter::of_language("rust").expect("a grammar");
        let line = "let x = \"a\"; // why";
        let spans: Vec<(&str, Style)> =
            rust.line(line).into_iter().map(|(range, style)| (&line[range], style)).collect();
        assert_eq!(
            spans,
            [("let", Style::Keyword), ("\"a\"", Style::Quoted), ("// why", Style::Comment)]
        );
    }

    #[test]
    fn code_goes_on_after_the_grammars_were_dropped() {
        let mut begun = Highlighter::of_language("rust").expect("a grammar");
        begun.line("/* one");
        super::forget();
        assert_eq!(begun.line("two */"), [(0..6, Style::Comment)]);
        let mut next = Highlighter::of_language("rust").expect("a grammar again");
        assert!(!Arc::ptr_eq(&begun.grammars, &next.grammars), "the old ones are not kept");
        assert_eq!(next.line("// why"), [(0..6, Style::Comment)]);
    }

    #[test]
    fn a_block_that_grows_has_the_colours_of_the_whole() {
        let code = "/* one\ntwo */ fn f() {}\nlet s = \"x\ny\";\n";
        let whole = CodeColours::default().lines("rust", code).expect("colours");
        let mut growing = CodeColours::default();
        for end in 1..=code.len() {
            growing.begin();
            let lines = growing.lines("rust", &code[..end]).expect("colours");
            let complete = code[..end].matches('\n').count();
            assert_eq!(lines[..complete], whole[..complete], "{end}");
        }
        // The first two lines are drawn and dropped.
        let at = code.match_indices('\n').nth(1).expect("a line").0 + 1;
        let mut dropped = CodeColours::default();
        dropped.lines("rust", &code[..at]);
        dropped.go_on(Continuation::InFirstBlock);
        dropped.begin();
        assert_eq!(dropped.lines("rust", &code[at..]).expect("colours"), whole[2..]);
    }
}
