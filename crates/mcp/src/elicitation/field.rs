//! A field of a form: what the user is shown of it, and the value that words mean.

use regex::RegexBuilder;
use serde_json::{Map, Number, Value, json};
use url::Url;

/// Most choices of a field.
const MAX_CHOICES: usize = 200;
/// Most characters of a label or a description that are shown.
const SHOWN: usize = 2_000;
/// Most bytes of an answer.
const MAX_WORDS: usize = 16 << 10;
/// Most bytes that the pattern of a field may take in memory.
const MAX_PATTERN: usize = 256 << 10;
/// Between several choices.
const SEPARATORS: [char; 3] = [',', ';', '\n'];

/// A field of a form that a server wants to have filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name, under which its value is sent.
    pub name: String,
    /// What people call it.
    pub label: String,
    /// What the server says about it; may be empty.
    pub about: String,
    /// The value that is sent if the user gives none.
    pub default: Option<Value>,
    /// Whether it must have a value.
    pub is_required: bool,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text { least: usize, most: usize, pattern: Option<String>, format: Format },
    Number { is_whole: bool, least: Option<f64>, most: Option<f64> },
    YesNo,
    One(Vec<Choice>),
    Several { choices: Vec<Choice>, least: usize, most: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Any,
    Email,
    Uri,
    Date,
    DateTime,
}

#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: Value,
    /// What the server calls it; its value if it has no name.
    title: String,
}

impl Field {
    /// Reads a field of a form; nothing if its kind is not known.
    pub(super) fn read(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let text = |key: &str| -> String {
            schema[key].as_str().unwrap_or_default().chars().take(SHOWN).collect()
        };
        let count = |key: &str| schema[key].as_u64().and_then(|count| usize::try_from(count).ok());
        let several = || {
            let choices = choices_in(&schema["items"], "anyOf")?;
            let (least, most) = (count("minItems"), count("maxItems"));
            let least = least.unwrap_or(0).max(usize::from(is_required));
            Some(Kind::Several { choices, least, most: most.unwrap_or(usize::MAX) })
        };
        let kind = match (schema["type"].as_str(), choices_in(schema, "oneOf")) {
            (_, Some(choices)) => Kind::One(choices),
            (Some("array"), None) => several()?,
            (Some("boolean"), None) => Kind::YesNo,
            (Some(number @ ("number" | "integer")), None) => Kind::Number {
                is_whole: number == "integer",
                least: schema["minimum"].as_f64(),
                most: schema["maximum"].as_f64(),
            },
            (Some("string"), None) => Kind::Text {
                least: count("minLength").unwrap_or(0),
                most: count("maxLength").unwrap_or(usize::MAX),
                pattern: schema["pattern"].as_str().map(str::to_owned),
                format: match schema["format"].as_str() {
                    Some("email") => Format::Email,
                    Some("uri") => Format::Uri,
                    Some("date") => Format::Date,
                    Some("date-time") => Format::DateTime,
                    _ => Format::Any,
                },
            },
            _ => return None,
        };
        let label = match text("title") {
            title if title.trim().is_empty() => name.to_owned(),
            title => title,
        };
        let default = schema.get("default").filter(|value| !value.is_null()).cloned();
        let (name, about) = (name.to_owned(), text("description"));
        Some(Self { name, label, about, default, is_required, kind })
    }

    /// The only value that it may have if it has one, or that something is so.
    pub(super) fn only_value(&self) -> Option<Value> {
        match &self.kind {
            Kind::One(choices) if choices.len() == 1 => {
                choices.first().map(|one| one.value.clone())
            }
            Kind::YesNo if self.default.is_none() => Some(Value::Bool(true)),
            _ => None,
        }
    }

    /// What can be chosen, in the words that choose it.
    pub fn choices(&self) -> Vec<String> {
        match &self.kind {
            Kind::One(choices) | Kind::Several { choices, .. } => {
                choices.iter().map(|choice| choice.title.clone()).collect()
            }
            Kind::YesNo => vec!["yes".to_owned(), "no".to_owned()],
            Kind::Text { .. } | Kind::Number { .. } => Vec::new(),
        }
    }

    /// What its value must be, for people.
    pub fn rule(&self) -> String {
        match &self.kind {
            Kind::Text { least, most, pattern, format } => {
                let what = match format {
                    Format::Any => "a text",
                    Format::Email => "an e-mail address",
                    Format::Uri => "an address such as https://example.com",
                    Format::Date => "a date such as 2026-01-31",
                    Format::DateTime => "a time such as 2026-01-31T09:30:00Z",
                };
                let length = match (least, *most) {
                    (0, usize::MAX) => String::new(),
                    (0, most) => format!(", at most {most} characters"),
                    (least, usize::MAX) => format!(", at least {least} characters"),
                    (least, most) => format!(", {least} to {most} characters"),
                };
                let pattern = pattern.as_ref();
                let pattern = pattern
                    .map_or(String::new(), |pattern| format!(", which fits the pattern {pattern}"));
                format!("{what}{length}{pattern}")
            }
            Kind::Number { is_whole, least, most } => {
                let what = if *is_whole { "a whole number" } else { "a number" };
                match (least, most) {
                    (Some(least), Some(most)) => format!("{what} from {least} to {most}"),
                    (Some(least), None) => format!("{what}, at least {least}"),
                    (None, Some(most)) => format!("{what}, at most {most}"),
                    (None, None) => what.to_owned(),
                }
            }
            Kind::YesNo => "yes or no".to_owned(),
            Kind::One(choices) => format!("one of: {}", titles(choices)),
            Kind::Several { choices, least, most } => {
                let how_many = match (*least, *most) {
                    (0, usize::MAX) => "any number".to_owned(),
                    (0, most) => format!("at most {most}"),
                    (least, usize::MAX) => format!("at least {least}"),
                    (least, most) => format!("{least} to {most}"),
                };
                format!("{how_many} of these, with commas between them: {}", titles(choices))
            }
        }
    }

    /// What no words mean, for people; nothing if words are needed.
    pub fn without(&self) -> Option<String> {
        match &self.default {
            Some(Value::String(text)) => Some(format!("the default: {text}")),
            Some(Value::Array(values)) => {
                let shown = values.iter().map(shown).collect::<Vec<_>>().join(", ");
                Some(format!("the default: {shown}"))
            }
            Some(Value::Bool(is_so)) => {
                Some(format!("the default: {}", if *is_so { "yes" } else { "no" }))
            }
            Some(value) => Some(format!("the default: {value}")),
            None => (!self.is_required).then(|| "no value".to_owned()),
        }
    }

    /// The value that these words mean; nothing if the field is left out.
    ///
    /// # Errors
    /// They mean none; what is expected.
    pub fn value(&self, words: &str) -> Result<Option<Value>, String> {
        let words = words.trim();
        if words.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(value), _) => Ok(Some(value.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(format!("it needs a value: {}", self.rule())),
            };
        }
        if words.len() > MAX_WORDS {
            return Err(format!("it is longer than {} KB", MAX_WORDS >> 10));
        }
        let wrong = || format!("it must be {}", self.rule());
        match &self.kind {
            Kind::Text { least, most, pattern, format } => {
                let count = words.chars().count();
                let fits = (*least..=*most).contains(&count) && format.fits(words);
                let has_form = pattern.as_ref().is_none_or(|pattern| {
                    let read = RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build();
                    // What cannot be read here is checked by the server.
                    read.map_or(true, |pattern| pattern.is_match(words))
                });
                (fits && has_form).then(|| Some(json!(words))).ok_or_else(wrong)
            }
            Kind::Number { is_whole, least, most } => {
                let number: f64 = words.replace(',', ".").parse().map_err(|_| wrong())?;
                let fits = number.is_finite()
                    && least.is_none_or(|least| number >= least)
                    && most.is_none_or(|most| number <= most);
                let value = match words.parse::<i64>() {
                    Ok(whole) => Some(Number::from(whole)),
                    Err(_) if *is_whole => None,
                    Err(_) => Number::from_f64(number),
                };
                let value = value.filter(|_| fits).map(Value::Number);
                value.map(Some).ok_or_else(wrong)
            }
            Kind::YesNo => match words.to_lowercase().as_str() {
                "yes" | "y" | "true" | "on" => Ok(Some(Value::Bool(true))),
                "no" | "n" | "false" | "off" => Ok(Some(Value::Bool(false))),
                _ => Err(wrong()),
            },
            Kind::One(choices) => chosen(choices, words).map(Some).ok_or_else(wrong),
            Kind::Several { choices, least, most } => {
                // A choice may have a comma in its name.
                let mut values: Vec<Value> = chosen(choices, words).into_iter().collect();
                if values.is_empty() {
                    let parts = words.split(SEPARATORS).map(str::trim);
                    for part in parts.filter(|part| !part.is_empty()) {
                        let value = chosen(choices, part).ok_or_else(wrong)?;
                        if !values.contains(&value) {
                            values.push(value);
                        }
                    }
                }
                let fits = (*least..=*most).contains(&values.len());
                fits.then(|| Some(Value::Array(values))).ok_or_else(wrong)
            }
        }
    }

    /// A value of it, for people.
    pub fn shown(&self, value: &Value) -> String {
        match (&self.kind, value) {
            (Kind::YesNo, Value::Bool(is_so)) => if *is_so { "yes" } else { "no" }.to_owned(),
            (_, Value::Array(values)) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
            _ => shown(value),
        }
    }
}

impl Format {
    fn fits(self, words: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Email => words.split_once('@').is_some_and(|(name, host)| {
                let is_word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
                is_word(name) && is_word(host) && !host.contains('@')
            }),
            Self::Uri => Url::parse(words).is_ok(),
            Self::Date => words.parse::<jiff::civil::Date>().is_ok() && words.len() == 10,
            Self::DateTime => words.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

/// What a schema lets choose: `enum`, with names in `enumNames`, or a list of constants with titles under `titled`.
fn choices_in(schema: &Value, titled: &str) -> Option<Vec<Choice>> {
    let named = |value: &Value, title: Option<&str>| {
        let title = title.map(str::trim).filter(|title| !title.is_empty());
        Choice { value: value.clone(), title: title.map_or_else(|| shown(value), str::to_owned) }
    };
    let choices: Vec<Choice> = if let Some(value) = schema.get("const") {
        vec![named(value, schema["title"].as_str())]
    } else if let Some(values) = schema["enum"].as_array() {
        let name = |number: usize| schema["enumNames"].get(number).and_then(Value::as_str);
        values.iter().enumerate().map(|(number, value)| named(value, name(number))).collect()
    } else {
        let options = schema[titled].as_array()?.iter();
        let made =
            options.map(|option| Some(named(option.get("const")?, option["title"].as_str())));
        made.collect::<Option<_>>()?
    };
    (1..=MAX_CHOICES).contains(&choices.len()).then_some(choices)
}

fn chosen(choices: &[Choice], words: &str) -> Option<Value> {
    let words = words.to_lowercase();
    let is_it = |choice: &&Choice| {
        choice.title.to_lowercase() == words || shown(&choice.value).to_lowercase() == words
    };
    choices.iter().find(is_it).map(|choice| choice.value.clone())
}

fn titles(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.title.as_str()).collect::<Vec<_>>().join(", ")
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The values of fields as they are sent.
pub(super) fn size_of(values: &Map<String, Value>) -> usize {
    json!(values).to_string().len()
}
