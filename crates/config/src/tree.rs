//! Parses JSON5 text into a tree of values, without knowledge of the keys.
//!
//! `jsonc-parser` accepts a superset of JSON5. Four more things are refused here, because each is a mistake that would
//! otherwise be read as something else: a key that occurs twice in one object, a number that is not finite, a line end
//! inside a string, and unlimited nesting.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

use crate::syntax::{self, SyntaxError};

/// Deepest nesting of objects and lists. The schema needs 6; the parser recurses, so there must be a limit.
pub(crate) const MAX_DEPTH: usize = 128;
/// Largest magnitude below which every whole number is exact as a 64-bit float.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Why text could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text is not JSON5.
    Syntax(SyntaxError),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
    /// An object has a key twice.
    DuplicateKey,
    /// Infinity, NaN, or a number beyond the range of a float.
    NotFinite,
}

/// Why text could not be parsed, and the byte offset, which is at most the length of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParseFailure {
    pub(crate) fault: Fault,
    pub(crate) offset: usize,
}

/// Reads a single JSON5 value; `None` if the text is none.
pub fn json5_value(text: &str) -> Option<Value> {
    parse(text).ok()
}

/// Reads JSON5 text without a byte order mark.
pub(crate) fn parse(text: &str) -> Result<Value, ParseFailure> {
    match parse_positions(text) {
        Ok(Some(root)) => Converter { text, depth: 0 }.value(&root),
        Ok(None) | Err(_) => Err(syntax::explain(text)),
    }
}

/// Reads the text with the position of every key and value; `None` for a text without a value.
pub(crate) fn parse_positions(
    text: &str,
) -> Result<Option<ast::Value<'_>>, jsonc_parser::errors::ParseError> {
    parse_to_ast(text, &CollectOptions::default(), &options()).map(|result| result.value)
}

/// What is accepted besides JSON.
pub(crate) fn options() -> ParseOptions {
    // Without this option `{a: 1 b: 2}` would be accepted.
    ParseOptions { allow_missing_commas: false, ..ParseOptions::default() }
}

/// Converts the parser's values into JSON values; `depth` is the number of enclosing objects and lists.
#[derive(Clone, Copy)]
struct Converter<'t> {
    text: &'t str,
    depth: usize,
}

impl Converter<'_> {
    fn value(self, value: &ast::Value<'_>) -> Result<Value, ParseFailure> {
        let fail = |fault| Err(ParseFailure { fault, offset: value.start() });
        Ok(match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
            ast::Value::StringLit(literal) => {
                self.check_string(literal.start(), literal.end())?;
                Value::String(literal.value.clone().into_owned())
            }
            ast::Value::NumberLit(literal) => match number(literal.value) {
                Some(number) => Value::Number(number),
                None => return fail(Fault::NotFinite),
            },
            ast::Value::Array(_) | ast::Value::Object(_) if self.depth == MAX_DEPTH => {
                return fail(Fault::TooDeep);
            }
            ast::Value::Array(array) => {
                let inner = Self { depth: self.depth + 1, ..self };
                let items = array.elements.iter().map(|element| inner.value(element));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            ast::Value::Object(object) => {
                let inner = Self { depth: self.depth + 1, ..self };
                let mut map = Map::with_capacity(object.properties.len());
                for property in &object.properties {
                    inner.check_key(&property.name)?;
                    let entry = inner.value(&property.value)?;
                    if map.insert(property.name.as_str().to_owned(), entry).is_some() {
                        return fail(Fault::DuplicateKey);
                    }
                }
                Value::Object(map)
            }
        })
    }

    fn check_key(self, name: &ast::ObjectPropName<'_>) -> Result<(), ParseFailure> {
        let word = match name {
            ast::ObjectPropName::String(name) => {
                return self.check_string(name.start(), name.end());
            }
            ast::ObjectPropName::Word(name) => name,
        };
        match word.value.find(|c| !syntax::is_word_character(c)) {
            None => Ok(()),
            Some(at) => Err(ParseFailure {
                fault: Fault::Syntax(SyntaxError::ExpectedColon),
                offset: word.start() + at,
            }),
        }
    }

    fn check_string(self, start: usize, end: usize) -> Result<(), ParseFailure> {
        match syntax::line_end_in_string(&self.text[start..end]) {
            None => Ok(()),
            Some(at) => Err(ParseFailure {
                fault: Fault::Syntax(SyntaxError::LineEndInString),
                offset: start + at,
            }),
        }
    }
}

/// The value of a number as JSON5 writes it; `None` where it is not finite.
fn number(literal: &str) -> Option<Number> {
    let (is_negative, digits) = match literal.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, literal.strip_prefix('+').unwrap_or(literal)),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let magnitude = match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    match magnitude {
        Some(magnitude) if !is_negative => return Some(magnitude.into()),
        Some(magnitude) => {
            if let Some(number) = 0_i64.checked_sub_unsigned(magnitude) {
                return Some(number.into());
            }
        }
        // A hexadecimal number beyond 64 bits cannot be a useful limit, port or count.
        None if hexadecimal.is_some() => return None,
        None => {}
    }
    let value: f64 = digits.parse().ok()?;
    let value = if is_negative { -value } else { value };
    // To the user `25.0` and `1e3` are whole numbers.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the guard admits only whole numbers that an i64 holds"
    )]
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER {
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests;
