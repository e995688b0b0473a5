//! The `content` of a delta: nearly always a string, at some hosts a list of typed parts. Cloudflare sends the value of a
//! structured answer itself.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::wire::json::Text;

/// The content of a delta.
#[derive(Debug, PartialEq)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// One part of a list: text, an image, or (Mistral) thinking that holds parts of its own.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Box<Content<'a>>>,
    image_url: Option<IgnoredAny>,
}

/// The kind of a piece of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prose {
    Text,
    Thinking,
}

impl Content<'_> {
    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Parts(parts) => parts.is_empty(),
        }
    }

    pub(super) fn has_images(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Parts(parts) => parts.iter().any(|part| part.image_url.is_some()),
        }
    }

    /// Passes on the pieces in order.
    pub(super) fn for_each(&self, take: &mut dyn FnMut(Prose, &str)) {
        match self {
            Self::Text(text) => take(Prose::Text, text),
            Self::Parts(parts) => {
                for part in parts {
                    if let Some(thinking) = &part.thinking {
                        thinking.for_each(&mut |_, text| take(Prose::Thinking, text));
                    }
                    if let Some(text) = &part.text {
                        take(Prose::Text, text.as_str());
                    }
                }
            }
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text or a list of content parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = items.next_element()? {
            parts.push(part);
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            object.insert(name, value);
        }
        let text = match object.get("text") {
            _ if object.is_empty() => String::new(),
            // A single part without its list.
            Some(Value::String(text)) if object.contains_key("type") => text.clone(),
            _ => Value::Object(object).to_string(),
        };
        Ok(Content::Text(Cow::Owned(text)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(value.to_string())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(value.to_string())))
    }
}
