//! Reads the typed config from a tree, without the leniency of serde.
//!
//! By default serde accepts a list for an object (its fields in order) and `null` for a missing key. Here only an
//! object is an object, and no key accepts `null`.

use std::cell::Cell;

use serde::Deserialize;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

use crate::Config;
use crate::config_path::ConfigPath;

/// Where a tree does not fit the types.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) path: ConfigPath,
    /// It may quote a value.
    #[cfg_attr(not(test), expect(dead_code, reason = "people are shown the place only"))]
    pub(crate) error: Error,
}

/// Reads the config.
///
/// # Errors
/// The innermost value that does not fit.
pub(crate) fn typed(tree: &Value) -> Result<Config, Misfit> {
    let misfit = Cell::new(None);
    Config::deserialize(StrictTree { value: tree, misfit: &misfit }).map_err(|error| {
        let found = misfit.get().and_then(|wanted| find(tree, wanted, &ConfigPath::default()));
        Misfit { path: found.unwrap_or_default(), error }
    })
}

/// The path of a value within a tree, which is at `path`.
fn find(tree: &Value, wanted: &Value, path: &ConfigPath) -> Option<ConfigPath> {
    if std::ptr::eq(tree, wanted) {
        return Some(path.clone());
    }
    match tree {
        Value::Object(entries) => {
            entries.iter().find_map(|(key, value)| find(value, wanted, &path.clone().key(key)))
        }
        Value::Array(items) => (items.iter().enumerate())
            .find_map(|(index, value)| find(value, wanted, &path.clone().index(index))),
        _ => None,
    }
}

/// A tree to read from. A path that grows with each value would be a second copy of the code for all types.
#[derive(Clone, Copy)]
struct StrictTree<'a> {
    value: &'a Value,
    /// The innermost value that did not fit.
    misfit: &'a Cell<Option<&'a Value>>,
}

impl<'a> StrictTree<'a> {
    fn below(self, value: &'a Value) -> Self {
        Self { value, ..self }
    }

    fn noted<T>(self, read: Result<T, Error>) -> Result<T, Error> {
        match read {
            Ok(_) => self.misfit.set(None),
            Err(_) => self.misfit.set(self.misfit.get().or(Some(self.value))),
        }
        read
    }
}

impl<'de> StrictTree<'de> {
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.noted(match self.value {
            Value::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.as_str(), self.below(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            _ => Err(Error::invalid_type(Unexpected::Other("another value"), &"an object")),
        })
    }

    fn scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.noted(match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(is_set) => visitor.visit_bool(*is_set),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            Value::Object(_) => Err(Error::invalid_type(Unexpected::Map, &visitor)),
        })
    }
}

/// Implements these methods by `scalar`.
macro_rules! scalars {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.scalar(visitor)
        }
    )*};
}

impl<'de> IntoDeserializer<'de, Error> for StrictTree<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

// Each method asks its visitor only for what a value of that kind can be. The types of the config have hundreds of visitors, and
// what is asked of one is compiled for each of them.
impl<'de> Deserializer<'de> for StrictTree<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(_) => self.object(visitor),
            Value::Array(items) => self.noted(
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(|item| self.below(item)))),
            ),
            _ => self.scalar(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.object(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.object(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => self.noted(Err(Error::invalid_type(Unexpected::Unit, &"a value"))),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        // No variant has contents.
        self.noted(match self.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            _ => Err(Error::invalid_type(Unexpected::Other("another value"), &"a string")),
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.noted(visitor.visit_newtype_struct(self))
    }

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_unit deserialize_identifier
    }

    forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit_struct seq tuple tuple_struct ignored_any
    }
}

#[cfg(test)]
mod tests;
