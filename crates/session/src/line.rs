//! Converts a line's bytes into an entry. Reading is lenient where that loses nothing.

mod foreign;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{
    AboutEntry, CompactionEntry, Entry, EntryId, ForkOrigin, Meta, ReductionEntry, RefusalEntry,
    Role, SessionHeader, TranscriptMessage, UnsignedEntry,
};

/// Some editors write it at the beginning of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// An entry.
    Entry(Entry),
    /// A header, at any place.
    Header(SessionHeader),
    /// Only white space.
    Blank,
    /// Not a JSON object, or one without the fields of its type.
    Corrupt,
}

/// Reads the line that begins at `offset` of its file. `bytes` may include the line feed or not.
pub(crate) fn decode(bytes: &[u8], offset: u64) -> Line {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return Line::Blank;
    }
    if let Some(message) = decode_usual_message(bytes, offset) {
        return Line::Entry(Entry::Message(message));
    }
    match parse_object(bytes) {
        Some(object) => decode_object(object, offset),
        None => Line::Corrupt,
    }
}

/// The fields of a message as this program writes them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsualMessage<'a> {
    id: Option<Cow<'a, str>>,
    role: Role,
    content: String,
    ts: Option<u64>,
    tool_call_id: Option<String>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    r#type: Option<Cow<'a, str>>,
    /// Fields of OpenAI's protocol; such a row takes the slower path, which reads them.
    #[serde(rename = "tool_calls")]
    foreign_calls: Option<IgnoredAny>,
    #[serde(rename = "tool_call_id")]
    foreign_call_id: Option<IgnoredAny>,
}

/// Decodes a message in the usual shape, without building a tree of values. Any deviation, such as half a surrogate
/// pair in its meta, is left to the slower path.
fn decode_usual_message(bytes: &[u8], offset: u64) -> Option<TranscriptMessage> {
    if bytes.first() != Some(&b'{') || may_hold_surrogates(bytes) {
        return None;
    }
    let message: UsualMessage<'_> = serde_json::from_slice(bytes).ok()?;
    if message.r#type.is_some_and(|kind| kind != "message")
        || message.foreign_calls.is_some()
        || message.foreign_call_id.is_some()
    {
        return None;
    }
    Some(TranscriptMessage {
        id: match message.id {
            Some(text) if !text.is_empty() => EntryId::from_text(&text),
            _ => EntryId::from_place(offset),
        },
        role: message.role,
        content: message.content,
        ts: message.ts.unwrap_or(0),
        tool_call_id: message.tool_call_id,
        meta: message.meta.and_then(Meta::from_raw),
    })
}

/// True if the text has an escape that could be half of a surrogate pair.
fn may_hold_surrogates(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\\ud").is_some() || memchr::memmem::find(bytes, b"\\uD").is_some()
}

/// Parses `bytes` as a JSON object, even if an escape in it is half a surrogate pair.
pub(crate) fn parse_object(bytes: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(bytes)
        .or_else(|error| match replace_lone_surrogates(bytes) {
            Some(repaired) => serde_json::from_slice(&repaired),
            None => Err(error),
        })
        .ok()
}

/// Reads the object of a line that begins at `offset` of its file.
pub(crate) fn decode_object(mut object: Map<String, Value>, offset: u64) -> Line {
    let entry = match object.get("type").and_then(Value::as_str) {
        Some("session") => return decode_header(&object).map_or(Line::Corrupt, Line::Header),
        Some("compaction") => decode_compaction(&mut object, offset).map(Entry::Compaction),
        Some("about") => Some(Entry::About(AboutEntry {
            id: entry_id(&object, offset),
            ts: milliseconds(object.get("ts")),
            about: serde_json::from_value(Value::Object(object)).unwrap_or_default(),
        })),
        Some("reduction") => decode_reduction(&mut object, offset).map(Entry::Reduction),
        Some("refusal") => decode_refusal(&mut object, offset).map(Entry::Refusal),
        Some("unsigned") => decode_unsigned(&mut object, offset).map(Entry::Unsigned),
        None | Some("message") => return decode_message(object, offset),
        Some(_) => Some(Entry::Unknown(Value::Object(object))),
    };
    entry.map_or(Line::Corrupt, Line::Entry)
}

fn decode_header(object: &Map<String, Value>) -> Option<SessionHeader> {
    Some(SessionHeader {
        version: object.get("version").map_or(0, |version| {
            version.as_u64().map_or(u32::MAX, |number| u32::try_from(number).unwrap_or(u32::MAX))
        }),
        session_key: object.get("sessionKey")?.as_str()?.to_owned(),
        created_at: milliseconds(object.get("createdAt")),
        session_id: object.get("sessionId").and_then(Value::as_str).map(str::to_owned),
        directory: object.get("directory").and_then(Value::as_str).map(str::to_owned),
        forked_from: object
            .get("forkedFrom")
            .and_then(|origin| ForkOrigin::deserialize(origin).ok()),
        // An invalid length is replaced by one past the end of every file, so that the history is not taken for
        // shorter.
        history: object.get("history").and_then(Value::as_array).map_or_else(Vec::new, |lengths| {
            lengths.iter().map(|length| length.as_u64().unwrap_or(u64::MAX)).collect()
        }),
    })
}

fn decode_message(mut object: Map<String, Value>, offset: u64) -> Line {
    foreign::adopt(&mut object);
    let (Some(Value::String(role)), Some(Value::String(_))) =
        (object.get("role"), object.get("content"))
    else {
        return Line::Corrupt;
    };
    let Some(role) = Role::from_text(role) else {
        return Line::Entry(Entry::Unknown(Value::Object(object)));
    };
    Line::Entry(Entry::Message(TranscriptMessage {
        id: entry_id(&object, offset),
        role,
        content: take_string(&mut object, "content").unwrap_or_default(),
        ts: milliseconds(object.get("ts")),
        tool_call_id: take_string(&mut object, "toolCallId"),
        meta: match object.get_mut("meta").map(Value::take) {
            Some(Value::Object(meta)) => Some(Meta::from(meta)),
            _ => None,
        },
    }))
}

fn decode_compaction(object: &mut Map<String, Value>, offset: u64) -> Option<CompactionEntry> {
    let count = |name: &str| object.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (tokens_before, old_count, new_count) =
        (count("tokensBefore"), count("oldCount"), count("newCount"));
    Some(CompactionEntry {
        id: entry_id(object, offset),
        ts: milliseconds(object.get("ts")),
        first_kept_id: EntryId::from_text(object.get("firstKeptId")?.as_str()?),
        tokens_before,
        old_count,
        new_count,
        summary: take_string(object, "summary")?,
    })
}

fn decode_reduction(object: &mut Map<String, Value>, offset: u64) -> Option<ReductionEntry> {
    Some(ReductionEntry {
        id: entry_id(object, offset),
        ts: milliseconds(object.get("ts")),
        reason: take_string(object, "reason").unwrap_or_default(),
        messages: serde_json::from_value(object.get_mut("messages")?.take()).ok()?,
    })
}

fn decode_refusal(object: &mut Map<String, Value>, offset: u64) -> Option<RefusalEntry> {
    Some(RefusalEntry {
        id: entry_id(object, offset),
        ts: milliseconds(object.get("ts")),
        tokens: object.get("tokens")?.as_u64()?,
        model: take_string(object, "model")?,
    })
}

fn decode_unsigned(object: &mut Map<String, Value>, offset: u64) -> Option<UnsignedEntry> {
    Some(UnsignedEntry {
        id: entry_id(object, offset),
        ts: milliseconds(object.get("ts")),
        until: object.get("until")?.as_u64()?,
        model: take_string(object, "model")?,
    })
}

fn entry_id(object: &Map<String, Value>, offset: u64) -> EntryId {
    match object.get("id").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => EntryId::from_text(text),
        _ => EntryId::from_place(offset),
    }
}

fn take_string(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    match object.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A time stamp; 0 for anything else. Fractions are cut off.
pub(crate) fn milliseconds(value: Option<&Value>) -> u64 {
    value
        .and_then(|value| value.as_u64().or_else(|| value.as_f64().map(|float| float as u64)))
        .unwrap_or(0)
}

/// Replaces escapes of half a surrogate pair by the replacement character; `None` if there are none.
///
/// JavaScript writes such escapes when a text was cut in the middle of an emoji, and JSON readers refuse them. The rest
/// of the message is worth more than the half character.
fn replace_lone_surrogates(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = Vec::with_capacity(bytes.len());
    let mut found = false;
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        repaired.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let length = match (escaped_unit(rest), rest.get(6..).and_then(escaped_unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                found = true;
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => rest.len().min(2),
        };
        repaired.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    repaired.extend_from_slice(rest);
    found.then_some(repaired)
}

/// The UTF-16 unit of the `\uXXXX` escape that `bytes` begin with.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u16::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests;
