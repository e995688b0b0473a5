//! Options, and the kinds of values and operands.

/// What a value or operand may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `any`: anything.
    Any,
    /// `local`: no colon, which would name another machine.
    Local,
    /// `null`: the null device, or `-` for the standard output.
    Null,
    /// `text`: no `@` at the beginning, which would name a file.
    Text,
    /// `format`: no `%output`, which would name a file.
    Format,
    /// `plain`: no equals sign, which would set a variable.
    Plain,
    /// `plus`: a plus sign at the beginning.
    Plus,
    /// `file`: a file that is written. No colon, which would name another machine.
    File,
    /// `into`: a directory in which files are written whose names the line does not say.
    Into,
    /// `target`: a directory into which all operands are copied.
    Target,
    /// Exactly this word.
    Word(&'static str),
}

/// A harmless option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionRule {
    /// With its dashes.
    name: &'static str,
    form: Form,
}

/// What follows the name of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Nothing.
    Flag,
    /// A value, attached or as the next argument.
    Value(Kind),
    /// An attached value, or nothing.
    Attached(Kind),
    /// Any text that is a part of the option.
    Prefix,
    /// The name is a dash; a number follows.
    Number,
}

/// What an argument with a dash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Harmless options; the next argument is the value of the last one if a kind is given.
    Harmless(Option<Kind>),
    /// At least one of them is not described.
    Unknown,
}

impl Kind {
    pub(crate) fn parse(word: &'static str) -> Self {
        match word {
            "" | "any" => Self::Any,
            "local" => Self::Local,
            "null" => Self::Null,
            "text" => Self::Text,
            "format" => Self::Format,
            "plain" => Self::Plain,
            "plus" => Self::Plus,
            "file" => Self::File,
            "into" => Self::Into,
            "target" => Self::Target,
            _ => Self::Word(word),
        }
    }

    pub(crate) fn permits(self, text: &str) -> bool {
        match self {
            Self::Any | Self::Into | Self::Target => true,
            Self::Local | Self::File => !text.contains(':'),
            Self::Null => matches!(text, "/dev/null" | "-"),
            Self::Text => !text.starts_with('@'),
            Self::Format => !text.starts_with('@') && !text.contains("%output"),
            Self::Plain => !text.contains('='),
            Self::Plus => text.starts_with('+'),
            Self::Word(word) => text == word,
        }
    }
}

impl OptionRule {
    pub(crate) fn parse(word: &'static str) -> Option<Self> {
        let rule = |name, form| Self { name, form };
        let parsed = if word == "-#" {
            rule("-", Form::Number)
        } else if let Some((name, kind)) = word.split_once('=') {
            rule(name, Form::Value(Kind::parse(kind)))
        } else if let Some((name, kind)) = word.split_once('?') {
            rule(name, Form::Attached(Kind::parse(kind)))
        } else if let Some(name) = word.strip_suffix('*') {
            rule(name, Form::Prefix)
        } else {
            rule(word, Form::Flag)
        };
        parsed.name.starts_with('-').then_some(parsed)
    }
}

/// `-10k`, which no program takes for an option with a program's name in it.
pub(crate) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or_default();
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < digits.len() && rest.len() <= 1 && rest.chars().all(char::is_alphanumeric)
}

/// An argument with a dash, as the program reads it.
pub(crate) struct Reading<'a> {
    pub(crate) found: Found,
    /// The names of its options; `-x` for each letter.
    pub(crate) names: Vec<String>,
    /// The value that is attached to the last of them.
    pub(crate) value: Option<(Kind, &'a str)>,
}

impl<'a> Reading<'a> {
    fn new(found: Found, names: Vec<String>) -> Self {
        Self { found, names, value: None }
    }

    /// Without the value, which no letter alone has.
    pub(crate) fn into_parts(self) -> (Found, Vec<String>) {
        (self.found, self.names)
    }

    /// An option with an attached value.
    fn with_value(kind: Kind, value: &'a str, names: Vec<String>) -> Self {
        let found = if kind.permits(value) { Found::Harmless(None) } else { Found::Unknown };
        Self { found, names, value: Some((kind, value)) }
    }
}

/// Finds what an argument of a program with long options of two dashes and combined letters is. An abbreviated long option
/// counts as unknown.
pub(crate) fn find<'a>(rules: &[&Vec<OptionRule>], text: &'a str) -> Reading<'a> {
    if text.starts_with("--") {
        return find_long(rules, text);
    }
    if is_digits(text) && rule(rules, "-", |form| form == Form::Number).is_some() {
        return Reading::new(Found::Harmless(None), vec!["-#".to_owned()]);
    }
    let mut names = Vec::new();
    for (at, letter) in text.char_indices().skip(1) {
        let name = format!("-{letter}");
        let Some(form) = rule(rules, &name, |form| form != Form::Number) else {
            return Reading::new(Found::Unknown, names);
        };
        names.push(name);
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        match form {
            Form::Flag | Form::Number => {}
            Form::Value(kind) if rest.is_empty() => {
                return Reading::new(Found::Harmless(Some(kind)), names);
            }
            Form::Attached(_) if rest.is_empty() => {}
            Form::Value(kind) | Form::Attached(kind) => {
                return Reading::with_value(kind, rest, names);
            }
            Form::Prefix => return Reading::new(Found::Harmless(None), names),
        }
    }
    Reading::new(Found::Harmless(None), names)
}

/// As [`find`], for a program whose long options have one dash, so that letters are not combined.
pub(crate) fn find_single<'a>(rules: &[&Vec<OptionRule>], text: &'a str) -> Reading<'a> {
    if is_digits(text) && rule(rules, "-", |form| form == Form::Number).is_some() {
        return Reading::new(Found::Harmless(None), vec!["-#".to_owned()]);
    }
    let reading = find_long(rules, text);
    if reading.found != Found::Unknown {
        return reading;
    }
    let is_prefix = |rule: &&OptionRule| {
        rule.form == Form::Prefix && text.starts_with(rule.name) && !text.starts_with("--")
    };
    match rules.iter().flat_map(|rules| rules.iter()).find(is_prefix) {
        Some(rule) => Reading::new(Found::Harmless(None), vec![rule.name.to_owned()]),
        None => Reading::new(Found::Unknown, Vec::new()),
    }
}

fn find_long<'a>(rules: &[&Vec<OptionRule>], text: &'a str) -> Reading<'a> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let names = vec![name.to_owned()];
    match (rule(rules, name, |form| !matches!(form, Form::Number | Form::Prefix)), value) {
        (Some(Form::Flag | Form::Attached(_)), None) => Reading::new(Found::Harmless(None), names),
        (Some(Form::Value(kind)), None) => Reading::new(Found::Harmless(Some(kind)), names),
        (Some(Form::Value(kind) | Form::Attached(kind)), Some(value)) => {
            Reading::with_value(kind, value, names)
        }
        _ => Reading::new(Found::Unknown, names),
    }
}

fn is_digits(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|digits| digits.bytes().all(|it| it.is_ascii_digit()))
}

fn rule(rules: &[&Vec<OptionRule>], name: &str, fits: impl Fn(Form) -> bool) -> Option<Form> {
    let mut all = rules.iter().flat_map(|rules| rules.iter());
    all.find(|rule| rule.name == name && fits(rule.form)).map(|rule| rule.form)
}
