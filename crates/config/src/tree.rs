//! JSON5 text to a tree of values, before anything is known about what the keys mean.
//!
//! Stricter than a JSON5 reader has to be: a key that stands twice, a number that is not finite and nesting without end
//! are refused, for each is a mistake that would otherwise be taken for something else.

use std::cell::Cell;
use std::fmt;

use json5::ErrorCode;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deepest nesting of objects and lists. The schema needs 6; the reader recurses, so there must be a limit.
pub(crate) const MAX_DEPTH: usize = 128;
/// Largest magnitude below which every whole number is exact as a 64-bit float.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Why text is no tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// The text is not JSON5; without a code, a number or an escape is malformed.
    Syntax(Option<ErrorCode>),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// An object has a key twice.
    DuplicateKey,
    /// Infinity, NaN, or a number beyond the range of a float.
    NotFinite,
}

/// Why text is no tree, and where that was noticed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ParseFailure {
    pub(crate) fault: Fault,
    /// `None` stands for the end of the text.
    pub(crate) position: Option<json5::Position>,
}

/// Reads JSON5 text without a byte order mark.
pub(crate) fn parse(text: &str) -> Result<Value, ParseFailure> {
    let fault = Cell::new(None);
    let mut deserializer = json5::Deserializer::from_str(text);
    let tree =
        TreeReader { depth: 0, fault: &fault }.deserialize(&mut deserializer).map_err(|error| {
            ParseFailure {
                fault: fault.get().unwrap_or(Fault::Syntax(error.code())),
                position: error.position(),
            }
        })?;
    expect_end(&mut deserializer)?;
    Ok(tree)
}

/// Nothing but blanks and comments may follow. Asking for another value must fail, and does so at once.
fn expect_end(deserializer: &mut json5::Deserializer<'_>) -> Result<(), ParseFailure> {
    match deserializer.deserialize_any(NoValue) {
        Err(error) if error.code() == Some(ErrorCode::EofParsingValue) => Ok(()),
        Err(error) if error.code() == Some(ErrorCode::EofParsingComment) => {
            Err(ParseFailure { fault: Fault::Syntax(error.code()), position: error.position() })
        }
        Err(error) => Err(ParseFailure {
            fault: Fault::Syntax(Some(ErrorCode::TrailingCharacters)),
            position: error.position(),
        }),
        Ok(()) => Ok(()),
    }
}

/// Refuses whatever it is given.
struct NoValue;

impl Visitor<'_> for NoValue {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the end of the file")
    }
}

/// Reads one value; `depth` objects and lists are around it.
#[derive(Clone, Copy)]
struct TreeReader<'a> {
    depth: usize,
    fault: &'a Cell<Option<Fault>>,
}

impl TreeReader<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            Err(self.fail(Fault::TooDeep))
        } else {
            Ok(Self { depth: self.depth + 1, ..self })
        }
    }

    fn fail<E: serde::de::Error>(self, fault: Fault) -> E {
        self.fault.set(Some(fault));
        E::custom(format_args!("{fault:?}"))
    }
}

impl<'de> DeserializeSeed<'de> for TreeReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeReader<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        // `25.0` and `1e3` are whole numbers to the person who writes them.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the guard admits only whole numbers that an i64 holds"
        )]
        if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER {
            return Ok(Value::Number((value as i64).into()));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| self.fail(Fault::NotFinite))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(self.fail(Fault::DuplicateKey));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests;
