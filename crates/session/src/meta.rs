//! The data of a row besides its text.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A JSON object, kept as its text: a long log is read for its last rows, and most of their data is never used. Two
/// values are equal if the objects are.
#[derive(Debug, Clone)]
pub struct Meta(Box<RawValue>);

impl Meta {
    /// Wraps an object that is on one line, as written in a row; `None` if the value is not an object.
    pub(crate) fn from_raw(raw: &RawValue) -> Option<Self> {
        raw.get().starts_with('{').then(|| Self(raw.to_owned()))
    }

    /// The object's JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The object as the caller's own type; `None` if it does not have that shape.
    pub fn read<'a, T: serde::Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_str(self.0.get()).ok()
    }

    /// One field as the caller's own type; `None` if it is missing or does not have that shape.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.to_object()
            .get_mut(name)
            .map(Value::take)
            .and_then(|value| serde_json::from_value(value).ok())
    }

    /// The whole object.
    pub fn to_object(&self) -> Map<String, Value> {
        self.read().unwrap_or_default()
    }
}

impl From<Map<String, Value>> for Meta {
    fn from(object: Map<String, Value>) -> Self {
        let text = Value::Object(object).to_string();
        // The text of a value is always JSON, so the fallback is never used.
        Self(RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() || self.to_object() == other.to_object()
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
