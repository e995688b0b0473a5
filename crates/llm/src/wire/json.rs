//! Reads JSON of servers that do not always follow the standard, and copies as little as possible.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{ErrorClass, ModelError};

/// A string that borrows from the JSON text if it has no escapes. `Option<Cow<str>>` alone never borrows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text of a field; empty where the field is missing.
pub(crate) fn text<'t>(field: &'t Option<Text<'_>>) -> &'t str {
    field.as_ref().map_or("", Text::as_str)
}

/// Reads a string; `None` for any other kind of value.
pub(crate) fn lenient_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Option<Cow<'de, str>>;
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("anything")
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Some(Cow::Borrowed(text)))
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Some(Cow::Owned(text.to_owned())))
        }
        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Some(Cow::Owned(number.to_string())))
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(None)
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(
            self,
            mut items: A,
        ) -> Result<Self::Value, A::Error> {
            while items.next_element::<serde::de::IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// Reads one event. Half an emoji (a surrogate escape without its other half) becomes a replacement character;
/// `repaired` is where the repaired text lives then.
///
/// # Errors
/// It is not JSON of that shape.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    data: &'a str,
    repaired: &'a mut String,
) -> Result<T, ModelError> {
    serde_json::from_str(data).or_else(|error| {
        if !replace_lone_surrogates(data, repaired) {
            return Err(unreadable(&error));
        }
        serde_json::from_str(repaired).map_err(|error| unreadable(&error))
    })
}

/// Reads a secondary value, such as counters, whose unexpected shape must not fail the message.
pub(crate) fn optional<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// Whether there is a value other than `null`.
pub(crate) fn is_present(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() != "null")
}

/// A fragment of arguments as text: the content of a string, or the JSON of an object.
pub(crate) fn fragment(raw: &RawValue) -> Cow<'_, str> {
    match raw.get() {
        "null" => Cow::Borrowed(""),
        text if text.starts_with('"') => {
            serde_json::from_str::<Text<'_>>(text).map_or(Cow::Borrowed(""), |text| text.0)
        }
        text => Cow::Borrowed(text),
    }
}

/// Writes `text` to `out` with every lone surrogate escape replaced; returns whether there was one.
fn replace_lone_surrogates(text: &str, out: &mut String) -> bool {
    out.clear();
    let mut rest = text;
    let mut found = false;
    while let Some(offset) = rest.find('\\') {
        let escape = &rest[offset..];
        out.push_str(&rest[..offset]);
        let length = match surrogate(escape) {
            Some(0xD800..=0xDBFF)
                if matches!(escape.get(6..).and_then(surrogate), Some(0xDC00..=0xDFFF)) =>
            {
                12
            }
            Some(_) => {
                found = true;
                out.push_str("\\uFFFD");
                rest = &escape[6..];
                continue;
            }
            None => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    out.push_str(rest);
    found
}

/// The surrogate that an escape such as `\ud83d` at the start of `text` denotes.
fn surrogate(text: &str) -> Option<u32> {
    let code = u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&code).then_some(code)
}

fn unreadable(error: &serde_json::Error) -> ModelError {
    ModelError::new(
        ErrorClass::Timeout,
        format!("the answer holds an event that cannot be read: {error}"),
    )
}

#[cfg(test)]
mod tests;
