//! One fact, and the line of Markdown that it is.
//!
//! ```text
//! - Allergic to peanuts. <!-- k3f9q; 2026-11-29; from owner; in agent:main:cli:direct:main row 01k8…; after web_fetch -->
//! - ~~Lives in Bonn.~~ until 2026-11-29, now x7p2a <!-- a1b2c; 2026-10-02; from owner -->
//! ```
//!
//! What stands in the comment is not shown where Markdown is displayed. A person may change or delete all of it: a line
//! without a comment is a fact as well, and its id is made of its text.

use std::fmt;

use ring::digest::{SHA256, digest};
use serde::{Serialize, Serializer};

/// Most characters of a fact. A longer text is a note of its own.
pub const MOST_FACT_CHARS: usize = 400;
/// Characters of an id.
const ID_CHARS: usize = 5;
/// What begins or ends a part of a line.
const SIGNS: [&str; 3] = ["<!--", "-->", "~~"];
/// Begins the note about an older fact.
const UNTIL: &str = " until ";
/// Begins the id of the newer fact in it.
const NOW: &str = ", now ";
/// The fields of a comment.
const FROM: &str = "from ";
const IN: &str = "in ";
const ROW: &str = " row ";
const AFTER: &str = "after ";
const LEARNED: &str = "learned";

/// Names a fact in its file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FactId(String);

impl FactId {
    /// An id that depends on nothing but `seed`.
    pub(crate) fn of(seed: &str) -> Self {
        const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let digest = digest(&SHA256, seed.as_bytes());
        let digits = digest.as_ref().iter().take(ID_CHARS);
        Self(digits.map(|byte| char::from(DIGITS[usize::from(byte % 32)])).collect())
    }

    /// The id written as `text`; `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let is_id = text.len() == ID_CHARS && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then_some(Self(text))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Serialize for FactId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Where a fact comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FactOrigin {
    /// The day, such as `2026-11-29`.
    pub date: String,
    /// Who said it: `owner`, or `channel:id`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub person: String,
    /// The key of the session.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// The id of the message in its log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub row: String,
    /// The tools that read text of others in the same turn, before the fact was written. It may be from there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Whether the agent learned it by itself, when a session was summarised or ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_learned: bool,
}

/// When a fact stopped to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Until {
    /// The day.
    pub date: String,
    /// The fact that holds instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<FactId>,
}

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// Unique in its file, unless a person has copied a line.
    pub id: FactId,
    /// The fact, on one line.
    pub text: String,
    /// Where it comes from; `None` for a line that a person wrote.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub origin: Option<FactOrigin>,
    /// Set if it holds no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

impl Fact {
    /// The fact of a line; `None` for a line that is none.
    pub fn read(line: &str) -> Option<Self> {
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?;
        let (said, comment) = match item.rsplit_once("<!--") {
            Some((said, comment)) => (said, comment.trim_end().strip_suffix("-->")?),
            None => (item, ""),
        };
        let (text, until) = read_until(said.trim());
        if text.is_empty() {
            return None;
        }
        let mut fields = comment.split(';').map(str::trim).filter(|field| !field.is_empty());
        let id = fields.next().and_then(FactId::read);
        let origin = id.is_some().then(|| read_origin(fields));
        let id = id.unwrap_or_else(|| FactId::of(text));
        Some(Self { id, text: text.to_owned(), origin, until })
    }

    /// Whether it holds.
    pub fn is_current(&self) -> bool {
        self.until.is_none()
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        let mut line = match &self.until {
            None => format!("- {}", self.text),
            Some(Until { date, now: None }) => format!("- ~~{}~~{UNTIL}{date}", self.text),
            Some(Until { date, now: Some(now) }) => {
                format!("- ~~{}~~{UNTIL}{date}{NOW}{now}", self.text)
            }
        };
        if let Some(origin) = &self.origin {
            line.push_str(&format!(" <!-- {}", self.id));
            for field in fields_of(origin) {
                line.push_str("; ");
                line.push_str(&field);
            }
            line.push_str(" -->");
        }
        line
    }
}

/// Text as a fact: on one line, and nothing in it ends the line's comment or begins one.
pub(crate) fn as_fact(text: &str) -> String {
    let mut words = text.to_owned();
    // What stands around a removed sign may be one itself.
    while let Some(sign) = SIGNS.iter().find(|sign| words.contains(**sign)) {
        words = words.replace(*sign, "");
    }
    let line: String = words
        .split(|sign: char| sign.is_whitespace() || sign.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    line.trim_start_matches(['-', '*', ' ']).to_owned()
}

/// A digest of the words of a fact, which does not say what they are.
pub fn digest_of_fact(text: &str) -> String {
    let beginning: String = as_fact(text).chars().take(MOST_FACT_CHARS).collect();
    let text = beginning.trim_end().to_lowercase();
    let digest = digest(&SHA256, text.trim_end_matches('.').as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn fields_of(origin: &FactOrigin) -> Vec<String> {
    let FactOrigin { date, person, session, row, after, is_learned } = origin;
    // Names of others, which must not end a field or the comment.
    let plain = |text: &str| text.replace([';', '\n', '<', '>'], "_");
    let mut fields = vec![plain(date)];
    if !person.is_empty() {
        fields.push(format!("{FROM}{}", plain(person)));
    }
    match (session.is_empty(), row.is_empty()) {
        (true, _) => {}
        (false, true) => fields.push(format!("{IN}{}", plain(session))),
        (false, false) => fields.push(format!("{IN}{}{ROW}{}", plain(session), plain(row))),
    }
    if !after.is_empty() {
        fields.push(format!("{AFTER}{}", plain(&after.join(", "))));
    }
    if *is_learned {
        fields.push(LEARNED.to_owned());
    }
    fields.retain(|field| !field.is_empty());
    fields
}

fn read_origin<'a>(fields: impl Iterator<Item = &'a str>) -> FactOrigin {
    let mut origin = FactOrigin::default();
    for field in fields {
        if let Some(person) = field.strip_prefix(FROM) {
            origin.person = person.to_owned();
        } else if let Some(place) = field.strip_prefix(IN) {
            let (session, row) = place.split_once(ROW).unwrap_or((place, ""));
            (origin.session, origin.row) = (session.to_owned(), row.to_owned());
        } else if let Some(tools) = field.strip_prefix(AFTER) {
            origin.after = tools.split(',').map(|tool| tool.trim().to_owned()).collect();
        } else if field == LEARNED {
            origin.is_learned = true;
        } else if origin.date.is_empty() {
            origin.date = field.to_owned();
        }
    }
    origin
}

/// The text of a line's fact, and since when it holds no more. A person may strike a line without a word.
fn read_until(said: &str) -> (&str, Option<Until>) {
    let Some((text, rest)) = said.strip_prefix("~~").and_then(|struck| struck.rsplit_once("~~"))
    else {
        return (said, None);
    };
    let note = rest.trim().strip_prefix(UNTIL.trim()).unwrap_or_default().trim();
    let (date, now) = match note.split_once(NOW) {
        Some((date, now)) => (date, FactId::read(now)),
        None => (note, None),
    };
    (text.trim(), Some(Until { date: date.to_owned(), now }))
}

#[cfg(test)]
mod tests;
