//! The fields of a request that may be left out where a host refuses them: they make the answer no other, only freer,
//! cheaper to count, or without a hint. What the messages say, which tools there are, which call is forced and which form the
//! answer has is never left out.

mod fields;

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

pub(crate) use fields::OptionalField;
use fields::{IfRefused, Spelling};

use crate::Api;

/// The words with which hosts say that they do not take a field, in small letters.
const REFUSALS: [&str; 41] = [
    "unsupported",
    "not supported",
    "not support",
    "n't support",
    "only supported",
    "unrecognized",
    "unrecognised",
    "not recognized",
    "not recognised",
    "unknown field",
    "unknown parameter",
    "unknown param",
    "unknown name",
    "unknown argument",
    "unknown key",
    "unknown option",
    "unknown property",
    "unknown request",
    "unexpected field",
    "unexpected parameter",
    "unexpected keyword",
    "unexpected property",
    "unexpected argument",
    "not permitted",
    "not allowed",
    "extra inputs",
    "extra fields",
    "extraneous key",
    "additional properties",
    "not a valid field",
    "not a valid parameter",
    "invalid field",
    "cannot find field",
    "deprecated",
    "cannot be used",
    "cannot both be",
    "cannot be disabled",
    "not enabled",
    "not implemented",
    "incompatible with",
    "no endpoints found that",
];

/// The words with which hosts refuse the value of a field that they know.
const REFUSED_VALUES: [&str; 4] =
    ["invalid value", "supported values", "must be one of", "invalid tool_choice"];

/// Behind these words hosts name fields that they do take, or say how to be asked otherwise.
const ADVICE: [&str; 9] = [
    "expected one of",
    "did you mean",
    "instead",
    "to drop these",
    "supported parameters are",
    "supported fields",
    "valid fields",
    "valid parameters",
    "permitted keys",
];

/// The arrays of a request whose items are never left out.
const ARRAYS: [&str; 5] = ["messages", "tools", "input", "contents", "system"];

/// What a refusal says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The field that the host names in a member of the error of its own.
    pub(crate) field: Option<String>,
    /// What it says, for people.
    pub(crate) words: String,
}

/// The fields of `body`, a request of this format, that the host does not take, as far as they may be left out.
pub(crate) fn refused(api: Api, body: &[u8], refusal: &Refusal) -> Vec<&'static OptionalField> {
    let text = refusal.words.to_lowercase();
    let text =
        ADVICE.iter().filter_map(|words| text.find(words)).min().map_or(&*text, |end| &text[..end]);
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let (refuses_field, refuses_value) = (says(&REFUSALS), says(&REFUSED_VALUES));
    if !refuses_field && !refuses_value {
        return Vec::new();
    }
    let fields = OptionalField::of(api);
    let named: Vec<&OptionalField> = match &refusal.field {
        Some(field) => {
            let field = field.to_lowercase();
            let field = field.trim_start_matches("body.");
            fields.iter().filter(|known| known.names().any(|name| name == field)).collect()
        }
        None if names_an_item(text) => Vec::new(),
        None => named_in(text, fields),
    };
    let Ok(body) = serde_json::from_slice::<Members<'_>>(body) else { return Vec::new() };
    let mut refused = named;
    refused.retain(|field| (refuses_field || field.has_values) && field.may_go(&body));
    if says(&["cannot both be"]) && refused.len() > 1 {
        // One of the two is enough.
        refused.drain(..refused.len() - 1);
    }
    refused
}

/// Whether the text names an item of an array, such as `messages.1.thinking`, `messages[0]` or `'messages', 0`.
fn names_an_item(text: &str) -> bool {
    ARRAYS.iter().any(|array| {
        text.match_indices(array).any(|(start, _)| {
            let rest = text[start + array.len()..]
                .trim_start_matches(['\'', '"', ',', '.', '[', '(', ' ']);
            rest.starts_with(|c: char| c.is_ascii_digit())
                && rest.len() < text.len() - start - array.len()
        })
    })
}

/// The fields that the text names. Where the name of one is part of the name of another, the longer one counts.
fn named_in(text: &str, fields: &'static [OptionalField]) -> Vec<&'static OptionalField> {
    let mut found: Vec<(Range<usize>, &OptionalField)> = Vec::new();
    for field in fields {
        for spelling in field.spellings {
            let name = spelling.text();
            let places = text.match_indices(name).map(|(start, _)| start..start + name.len());
            found.extend(
                places.filter(|place| spelling.stands_at(text, place)).map(|place| (place, field)),
            );
        }
    }
    let is_part = |place: &Range<usize>| {
        found.iter().any(|(other, _)| {
            other.start <= place.start && place.end <= other.end && other.len() > place.len()
        })
    };
    let mut named: Vec<&OptionalField> = Vec::new();
    for (place, field) in &found {
        if !is_part(place) && !named.iter().any(|known| std::ptr::eq(*known, *field)) {
            named.push(field);
        }
    }
    named
}

impl Spelling {
    /// Whether what stands in `text` at `place` is this name, and not a part of a longer one.
    fn stands_at(self, text: &str, place: &Range<usize>) -> bool {
        let before = text[..place.start].chars().next_back();
        let mut after = text[place.end..].chars();
        let (next, second) = (after.next(), after.next());
        let is_word =
            |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let goes_on = next == Some('.') && is_word(second);
        if is_word(before) || is_word(next) || goes_on {
            return false;
        }
        match self {
            Self::Name(_) => true,
            Self::Word(_) => {
                let lead = text[..place.start].trim_end_matches(' ');
                matches!(before, Some('\'' | '"' | '`' | '[' | '('))
                    || [":", "parameter", "field", "argument", "body.", "property", "option"]
                        .iter()
                        .any(|words| lead.ends_with(words))
            }
        }
    }
}

/// The members of an object, as they were written.
type Members<'a> = BTreeMap<String, &'a RawValue>;

impl OptionalField {
    /// Whether `body` has the field with a value that may be left out.
    fn may_go(&self, body: &Members<'_>) -> bool {
        self.value(body).is_some_and(|value| match self.if_refused {
            IfRefused::LeaveOutIf(values) => values.contains(&value.as_str()),
            IfRefused::LeaveOut | IfRefused::Rename(_) => true,
        })
    }

    /// The value of the field, without white space.
    fn value(&self, body: &Members<'_>) -> Option<String> {
        let first = body.get(self.path[0])?;
        match self.path {
            [_, inner] => {
                let members = serde_json::from_str::<Members<'_>>(first.get()).ok()?;
                members.get(*inner).map(|value| value.get().to_owned())
            }
            _ => Some(first.get().to_owned()),
        }
    }
}

/// `body` without these fields.
pub(crate) fn without(body: &Bytes, fields: &[&OptionalField]) -> Bytes {
    let Ok(mut members) = serde_json::from_slice::<Members<'_>>(body) else { return body.clone() };
    // What is left of an object of which a field is left out.
    let mut rests: Vec<(&str, Box<RawValue>)> = Vec::new();
    for field in fields {
        if !field.may_go(&members) {
            continue;
        }
        match (field.path, field.if_refused) {
            ([outer, inner], _) => {
                let rest = rests.iter().rposition(|(name, _)| name == outer);
                let from = rest.map_or_else(
                    || members[*outer].get().to_owned(),
                    |rest| rests.remove(rest).1.get().to_owned(),
                );
                let Ok(mut object) = serde_json::from_str::<Members<'_>>(&from) else { continue };
                object.remove(*inner);
                if let Ok(object) = serde_json::value::to_raw_value(&object) {
                    rests.push((outer, object));
                }
            }
            ([name], IfRefused::Rename(other)) => {
                let value = members.remove(*name);
                let refuses_both = fields.iter().any(|field| field.path == [other]);
                if let Some(value) = value.filter(|_| !refuses_both) {
                    members.insert(other.to_owned(), value);
                }
            }
            ([name, ..], _) => {
                members.remove(*name);
            }
            ([], _) => {}
        }
    }
    for (name, rest) in &rests {
        match rest.get() == "{}" {
            true => members.remove(*name),
            false => members.insert((*name).to_owned(), rest),
        };
    }
    serde_json::to_vec(&members).map_or_else(|_| body.clone(), Bytes::from)
}
