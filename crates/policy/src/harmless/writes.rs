//! The files that a call may write. What is said about them is judged as if a tool for files wrote them: see
//! [`crate::WrittenAs`].

use std::path::Path;

use super::{Argument, Kind, Origin};

/// What of a call is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Writes {
    operands: Operands,
    /// It writes files with names that the line does not say, in the directory in which it runs.
    here: bool,
    /// With one of these options it does not.
    pub(super) unless: Vec<&'static str>,
    pub(super) makes_links: bool,
}

/// Which operands are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Operands {
    #[default]
    All,
    None,
    First,
    /// The last one, or a file in it that is named like one of the others. If there is only one, a file named like it.
    Last,
    /// Each, and each without its last ending.
    Stem,
}

/// Something that a call may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) path: WrittenPath,
    pub(crate) form: Form,
}

/// A path as the line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenPath {
    pub(crate) text: String,
    /// The shell makes another text of it.
    pub(crate) is_expanded: bool,
}

/// How it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing is known of the program: it may write it.
    Perhaps,
    /// It is a file.
    File,
    /// It is a copy of one of these, or a directory for copies of them.
    Copies(Vec<WrittenPath>),
    /// It is a directory in which files are written whose names are not known.
    Unnamed,
}

/// What was read of a call.
#[derive(Debug, Default)]
pub(super) struct Noted<'a> {
    pub(super) operands: Vec<Argument<'a>>,
    pub(super) arguments: Vec<Argument<'a>>,
    /// An option is among them that an entry spells out, and that no description names.
    pub(super) is_beyond: bool,
    /// Values of options that are written, and who decided about them.
    values: Vec<(Kind, &'a str, Origin)>,
}

impl Writes {
    pub(super) const ALL: Self =
        Self { operands: Operands::All, here: false, unless: Vec::new(), makes_links: false };

    /// Takes a word of the directive `writes`.
    pub(super) fn directive(&mut self, word: &str) -> Option<()> {
        match word {
            "none" => self.operands = Operands::None,
            "first" => self.operands = Operands::First,
            "last" => self.operands = Operands::Last,
            "stem" => self.operands = Operands::Stem,
            "here" => self.here = true,
            _ => return None,
        }
        Some(())
    }
}

impl<'a> Noted<'a> {
    /// Notes the value of an option.
    pub(super) fn value(&mut self, kind: Kind, text: &'a str, origin: Origin) {
        if matches!(kind, Kind::File | Kind::Into | Kind::Target) {
            self.values.push((kind, text, origin));
        }
    }

    /// What a call may write whose options say nothing.
    pub(super) fn anything(&self, writes: &Writes) -> Vec<Written> {
        match writes.operands {
            Operands::None if !self.is_beyond => Vec::new(),
            _ => anything(&self.arguments),
        }
    }

    /// What the call may write. `seen` are the names of its options.
    pub(super) fn written(&self, writes: &Writes, seen: &[String]) -> Vec<Written> {
        let is_open = |origin: Origin| origin != Origin::Spelled;
        let mut written = Vec::new();
        let named = |kind| self.values.iter().filter(move |(other, ..)| *other == kind);
        for (_, text, _) in named(Kind::File).filter(|(.., origin)| is_open(*origin)) {
            written.push(Written::literal(text, Form::File));
        }
        for (_, text, _) in named(Kind::Into).filter(|(.., origin)| is_open(*origin)) {
            written.push(Written::literal(text, Form::Unnamed));
        }
        let open = || self.operands.iter().filter(|operand| is_open(operand.origin));
        match (writes.operands, named(Kind::Target).next()) {
            (Operands::None, _) => {}
            (_, Some((_, target, _))) => {
                written.push(Written::literal(target, copies(&self.operands)));
            }
            (Operands::All, None) => written.extend(open().map(Written::file)),
            (Operands::First, None) => {
                let first = self.operands.first().filter(|operand| is_open(operand.origin));
                written.extend(first.map(Written::file));
            }
            (Operands::Stem, None) => {
                for operand in open() {
                    written.push(Written::file(operand));
                    written.extend(stem(operand));
                }
            }
            (Operands::Last, None) => match self.operands.split_last() {
                Some((only, [])) => {
                    written.push(Written::literal(".", copies(std::slice::from_ref(only))));
                }
                Some((last, others)) if is_open(last.origin) => {
                    written.push(Written { path: last.path(), form: copies(others) });
                }
                _ => {}
            },
        }
        let is_elsewhere = named(Kind::Into).next().is_some()
            || writes.unless.iter().any(|option| seen.iter().any(|seen| seen == option));
        if writes.here && !is_elsewhere {
            written.push(Written::literal(".", Form::Unnamed));
        }
        written
    }
}

impl Written {
    fn literal(text: &str, form: Form) -> Self {
        Self { path: WrittenPath { text: text.to_owned(), is_expanded: false }, form }
    }

    fn file(operand: &Argument<'_>) -> Self {
        Self { path: operand.path(), form: Form::File }
    }
}

impl Argument<'_> {
    fn path(&self) -> WrittenPath {
        let is_expanded = matches!(self.origin, Origin::Several | Origin::Expanded);
        WrittenPath { text: self.text.to_owned(), is_expanded }
    }
}

fn copies(operands: &[Argument<'_>]) -> Form {
    Form::Copies(operands.iter().map(Argument::path).collect())
}

/// The file that is left when a program takes the ending away.
fn stem(operand: &Argument<'_>) -> Option<Written> {
    let path = Path::new(operand.text);
    let stem = path.with_file_name(path.file_stem()?);
    let mut written = Written::file(operand);
    stem.to_str()?.clone_into(&mut written.path.text);
    Some(written)
}

/// Everything in the arguments that may be the name of a file: each as a whole, its parts between `=`, `,`, `:` and `|`, and
/// what follows the letter of an option.
pub(crate) fn anything(arguments: &[Argument<'_>]) -> Vec<Written> {
    let mut written = Vec::new();
    for argument in arguments.iter().filter(|argument| argument.origin != Origin::Spelled) {
        let whole = argument.path();
        let mut texts = vec![argument.text];
        texts.extend(argument.text.split_once('=').map(|(_, value)| value));
        texts.extend(argument.text.split(['=', ',', ':', '|']));
        let letter = argument.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        texts.extend(letter.and_then(|rest| rest.get(1..)));
        texts.retain(|text| !text.is_empty() && *text != "-");
        texts.dedup();
        for text in texts {
            let is_expanded = whole.is_expanded && text.contains(['$', '~', '*', '?', '[']);
            let path = WrittenPath { text: text.to_owned(), is_expanded };
            written.push(Written { path, form: Form::Perhaps });
        }
    }
    written
}
