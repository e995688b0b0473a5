//! The places in a pattern that take a value, and what counts as one.

use super::tokens::Token;

/// Most words that an unquoted text may have; longer ones are quoted.
const MAX_TEXT_WORDS: usize = 12;

/// Words that may stand before the name of a folder or file.
const DETERMINERS: &[&str] =
    &["the", "my", "this", "your", "our", "a", "that", "all", "current", "working", "whole"];

/// Words for the folder that the tools work in anyway.
const WORKSPACE_WORDS: &[&str] = &["workspace", "here", "everything", "everywhere"];

/// Words that stand for that folder behind a determiner; alone they may be a folder's name.
const DETERMINED_WORKSPACE_WORDS: &[&str] =
    &["folder", "directory", "project", "repository", "repo", "files"];

/// Words that say that a name is a folder's.
const FOLDER_WORDS: &[&str] = &["folder", "directory", "dir", "subfolder", "subdirectory", "path"];

/// What people call files of a kind, and the names such files have.
const KINDS: &[(&str, &str)] = &[
    ("markdown", "*.md"),
    ("rust", "*.rs"),
    ("python", "*.py"),
    ("javascript", "*.js"),
    ("typescript", "*.ts"),
    ("shell", "*.sh"),
    ("text", "*.txt"),
    ("json", "*.json"),
    ("toml", "*.toml"),
    ("yaml", "*.{yml,yaml}"),
    ("html", "*.html"),
    ("css", "*.css"),
    ("csv", "*.csv"),
    ("image", "*.{png,jpg,jpeg,gif,webp}"),
];

/// Numbers that are commonly written as words.
const NUMBER_WORDS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// A folder or a word for the workspace.
    Folder,
    /// A folder whose name has no extension, where a file could be meant as well.
    PlainFolder,
    /// A folder that is called one, or a word for the workspace.
    SaidFolder,
    /// A file: quoted, called one, or looking like a path.
    File,
    /// A file whose name has an extension.
    FileWithExtension,
    /// A file name or a pattern of names.
    Glob,
    /// One name or pattern, whatever it looks like.
    Name,
    /// A word for a kind of file.
    Kind,
    /// How a name ends, such as `.rs`.
    Extension,
    /// A text: quoted, or a few words.
    Text,
    /// A text of one word.
    Word,
    /// A quoted text.
    Quoted,
    /// Two line numbers, such as `10-20`.
    Range,
    /// A number.
    Number,
    /// All the rest of the message as it stands.
    Rest,
}

/// What the slots of a pattern took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Captures {
    /// A folder or file; `None` for the workspace.
    pub(super) path: Option<String>,
    /// A name or a pattern of names.
    pub(super) glob: Option<String>,
    /// A text to look for, a command, a content.
    pub(super) text: Option<String>,
    /// Whether `text` ran to the end of the message because nothing said where it ends.
    pub(super) is_open_ended: bool,
    /// Numbers in their order.
    pub(super) numbers: Vec<u64>,
}

/// One way in which a slot can be filled.
pub(super) struct Reading {
    /// Tokens it takes.
    pub(super) length: usize,
    pub(super) value: Value,
}

/// What a slot was filled with.
pub(super) enum Value {
    Workspace,
    Path(String),
    Glob(String),
    Text(String),
    Rest(String),
    Numbers(Vec<u64>),
}

impl Value {
    pub(super) fn store(self, captures: &mut Captures) {
        match self {
            Self::Workspace => captures.path = None,
            Self::Path(path) => captures.path = Some(path),
            Self::Glob(glob) => captures.glob = Some(glob),
            Self::Text(text) => captures.text = Some(text),
            Self::Rest(text) => {
                captures.text = Some(text);
                captures.is_open_ended = true;
            }
            Self::Numbers(numbers) => captures.numbers.extend(numbers),
        }
    }
}

impl Slot {
    /// The slot of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "folder" => Self::Folder,
            "plain-folder" => Self::PlainFolder,
            "said-folder" => Self::SaidFolder,
            "file" => Self::File,
            "file.ext" => Self::FileWithExtension,
            "glob" => Self::Glob,
            "name" => Self::Name,
            "kind" => Self::Kind,
            "extension" => Self::Extension,
            "text" => Self::Text,
            "word" => Self::Word,
            "quoted" => Self::Quoted,
            "range" => Self::Range,
            "number" => Self::Number,
            "rest" => Self::Rest,
            _ => return None,
        })
    }

    /// Every way in which the slot can be filled from the start of `tokens`, the likeliest first.
    pub(super) fn readings(self, message: &str, tokens: &[Token<'_>]) -> Vec<Reading> {
        let Some(first) = tokens.first() else { return Vec::new() };
        let text = first.text.as_ref();
        match self {
            Self::Folder | Self::PlainFolder | Self::SaidFolder => self.folders(tokens),
            Self::File | Self::FileWithExtension => self.files(tokens),
            Self::Glob => one(is_name_like(first).then(|| Value::Glob(text.to_owned()))),
            Self::Name => one((!text.trim().is_empty()).then(|| Value::Glob(any_name_with(text)))),
            Self::Kind => one(kind_of_file(text).map(|glob| Value::Glob(glob.to_owned()))),
            Self::Extension => {
                one(Some(Value::Glob(format!("*.{}", text.trim_start_matches(['*', '.'])))))
            }
            Self::Text => texts(message, tokens),
            Self::Word => one(Some(Value::Text(text.to_owned()))),
            Self::Quoted => one(first.is_quoted().then(|| Value::Text(text.to_owned()))),
            Self::Range => one(range(text).map(|(from, to)| Value::Numbers(vec![from, to]))),
            Self::Number => one(number(text).map(|number| Value::Numbers(vec![number]))),
            Self::Rest => rest(message, tokens),
        }
    }

    fn folders(self, tokens: &[Token<'_>]) -> Vec<Reading> {
        let determined = leading(tokens, DETERMINERS);
        let Some(noun) = tokens.get(determined) else { return Vec::new() };
        let is_called = |token: Option<&Token<'_>>| {
            token.is_some_and(|token| FOLDER_WORDS.iter().any(|word| token.is_word(word)))
        };
        let mut readings = Vec::new();
        let is_one_of = |words: &[&str]| words.iter().any(|word| noun.is_word(word));
        if is_one_of(WORKSPACE_WORDS) || (determined > 0 && is_one_of(DETERMINED_WORKSPACE_WORDS)) {
            readings.push(Reading { length: determined + 1, value: Value::Workspace });
        }
        if is_called(Some(noun)) {
            readings.extend(path_at(tokens, determined + 1, determined + 2));
        }
        if is_called(tokens.get(determined + 1)) {
            readings.extend(path_at(tokens, determined, determined + 2));
        }
        let allowed = match self {
            Self::SaidFolder => false,
            Self::PlainFolder => noun.is_quoted() || extension(&noun.text).is_none(),
            _ => true,
        };
        if allowed {
            readings.extend(path_at(tokens, determined, determined + 1));
        }
        readings
    }

    fn files(self, tokens: &[Token<'_>]) -> Vec<Reading> {
        let determined = leading(tokens, DETERMINERS);
        let says_file = tokens.get(determined).is_some_and(|token| token.is_word("file"));
        let at = determined + usize::from(says_file);
        let Some(name) = tokens.get(at) else { return Vec::new() };
        let says_file_behind = tokens.get(at + 1).is_some_and(|token| token.is_word("file"));
        let fits = match self {
            Self::FileWithExtension => extension(&name.text).is_some(),
            _ => says_file || says_file_behind || name.is_quoted() || looks_like_path(&name.text),
        };
        if !fits {
            return Vec::new();
        }
        let behind = at + 1 + usize::from(says_file_behind);
        path_at(tokens, at, behind).into_iter().collect()
    }
}

fn one(value: Option<Value>) -> Vec<Reading> {
    value.map(|value| Reading { length: 1, value }).into_iter().collect()
}

fn path_at(tokens: &[Token<'_>], at: usize, length: usize) -> Option<Reading> {
    let token = tokens.get(at)?;
    (!token.text.is_empty())
        .then(|| Reading { length, value: Value::Path(token.text.clone().into_owned()) })
}

/// How many of the first tokens are among `words`.
fn leading(tokens: &[Token<'_>], words: &[&str]) -> usize {
    tokens.iter().take_while(|token| words.iter().any(|word| token.is_word(word))).count()
}

/// A quoted text is one; unquoted, the fewest words that let the rest of the pattern fit.
fn texts(message: &str, tokens: &[Token<'_>]) -> Vec<Reading> {
    if let Some(first) = tokens.first().filter(|token| token.is_quoted()) {
        return one((!first.text.is_empty()).then(|| Value::Text(first.text.clone().into_owned())));
    }
    let words = tokens.iter().take(MAX_TEXT_WORDS).take_while(|token| !token.is_quoted());
    words
        .enumerate()
        .map(|(index, last)| {
            // The sentence's marks inside the text are kept, those behind its last word are not.
            let start = tokens[0].start;
            let end = message[last.start..last.end]
                .find(last.text.as_ref())
                .map_or(last.end, |offset| last.start + offset + last.text.len());
            Reading { length: index + 1, value: Value::Text(message[start..end].to_owned()) }
        })
        .collect()
}

/// The message from the first token on, or what is in the quotes if that is all there is.
fn rest(message: &str, tokens: &[Token<'_>]) -> Vec<Reading> {
    let value = match tokens {
        [only] if only.is_quoted() => Value::Text(only.text.clone().into_owned()),
        [first, .., last] => Value::Rest(message[first.start..last.end].to_owned()),
        [only] => Value::Rest(message[only.start..only.end].to_owned()),
        [] => return Vec::new(),
    };
    vec![Reading { length: tokens.len(), value }]
}

fn kind_of_file(word: &str) -> Option<&'static str> {
    KINDS.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(word)).map(|(_, glob)| *glob)
}

/// Whether it reads as a file's name even without the word `file`.
fn is_name_like(token: &Token<'_>) -> bool {
    let text = token.text.as_ref();
    let has_space = text.chars().any(char::is_whitespace);
    !has_space && (text.contains(['*', '?', '/']) || extension(text).is_some())
}

/// A bare word stands for every name that holds it.
fn any_name_with(name: &str) -> String {
    if name.contains(['*', '?', '[', '.', '/']) { name.to_owned() } else { format!("*{name}*") }
}

/// What stands behind the last point of a path's last part, where that looks like an extension.
fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, extension) = name.rsplit_once('.')?;
    (!extension.is_empty() && extension.chars().all(char::is_alphanumeric)).then_some(extension)
}

/// `docs/a`, `.gitignore`, `notes_1`, and names in capitals such as `Makefile`.
fn looks_like_path(text: &str) -> bool {
    text.contains(['.', '/', '\\', '_', '~']) || text.chars().next().is_some_and(char::is_uppercase)
}

fn range(text: &str) -> Option<(u64, u64)> {
    let separator =
        ["..", "-", "–", "—", ":"].into_iter().find(|separator| text.contains(separator))?;
    let (from, to) = text.split_once(separator)?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

fn number(text: &str) -> Option<u64> {
    let as_word = || {
        let position = NUMBER_WORDS.iter().position(|word| word.eq_ignore_ascii_case(text))?;
        u64::try_from(position + 1).ok()
    };
    text.parse().ok().or_else(as_word)
}
