//! Parses a call's JSON arguments into a tool's own struct.

use myclaw_engine::{ToolAliases, ToolError};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Reads the arguments of a call, also by their other names. A `null` counts as an argument that was not given: models
/// often fill optional arguments that way.
///
/// # Errors
/// [`ToolError::Failed`] that says which argument is missing or wrong.
pub fn parse_arguments<T: DeserializeOwned>(
    aliases: ToolAliases,
    arguments: Map<String, Value>,
) -> Result<T, ToolError> {
    let mut arguments = aliases.rename(arguments);
    arguments.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        ToolError::Failed(format!("the arguments do not fit: {error}. Correct them and call again"))
    })
}

/// Takes a whole number, also as `3.0` or `"3"`. For `#[serde(default, deserialize_with = "lenient_u64")]`.
pub fn lenient_u64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    whole_number(&value)
        .map(Some)
        .ok_or_else(|| D::Error::custom(format!("expected a whole number, got {value}")))
}

/// Takes a flag, also as `"true"` or `"false"`. For `#[serde(default, deserialize_with = "lenient_bool")]`.
pub(crate) fn lenient_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(flag) => Ok(flag),
        Value::String(text) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
        Value::String(text) if text.trim().eq_ignore_ascii_case("false") => Ok(false),
        other => Err(D::Error::custom(format!("expected true or false, got {other}"))),
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    /// Largest whole number below which every one has its own `f64`.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = |number: f64| {
        (number.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&number)).then_some(number as u64)
    };
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(exact)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
