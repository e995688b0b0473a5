//! The values at the leaves of the config, and how they are read.
//!
//! The JSON Schema refuses everything that these functions refuse: the diagnostics are made from the schema, and a test
//! compares the two. No message here quotes a string, because it may be a secret in the wrong place.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;

use myclaw_files::tenants;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Model calls for one message unless the file says otherwise.
const DEFAULT_MAX_ITERATIONS: NonZeroU32 = NonZeroU32::new(25).unwrap();
/// How "no cap" is written.
const UNLIMITED: &str = "unlimited";

/// How often the model may be called for one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IterationCap {
    /// At most this often.
    Limited(NonZeroU32),
    /// No cap: only abort, time-out, budget and the loop detector end the turn.
    Unlimited,
}

impl IterationCap {
    /// The cap as a number; `None` when there is none.
    pub fn limit(self) -> Option<u32> {
        match self {
            Self::Limited(limit) => Some(limit.get()),
            Self::Unlimited => None,
        }
    }
}

impl Default for IterationCap {
    fn default() -> Self {
        Self::Limited(DEFAULT_MAX_ITERATIONS)
    }
}

impl From<u32> for IterationCap {
    /// Zero means no cap.
    fn from(limit: u32) -> Self {
        NonZeroU32::new(limit).map_or(Self::Unlimited, Self::Limited)
    }
}

impl fmt::Display for IterationCap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(limit) => limit.fmt(formatter),
            Self::Unlimited => formatter.write_str(UNLIMITED),
        }
    }
}

impl Serialize for IterationCap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limited(limit) => serializer.serialize_u32(limit.get()),
            Self::Unlimited => serializer.serialize_str(UNLIMITED),
        }
    }
}

impl<'de> Deserialize<'de> for IterationCap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IterationCapVisitor)
    }
}

struct IterationCapVisitor;

impl Visitor<'_> for IterationCapVisitor {
    type Value = IterationCap;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a positive integer, 0 or \"unlimited\"")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<IterationCap, E> {
        let limit = u32::try_from(value)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
        Ok(IterationCap::from(limit))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<IterationCap, E> {
        if value == UNLIMITED {
            Ok(IterationCap::Unlimited)
        } else {
            Err(E::invalid_value(Unexpected::Other("another string"), &self))
        }
    }
}

impl JsonSchema for IterationCap {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "IterationCap".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u32::MAX },
                { "type": "string", "enum": [UNLIMITED] },
            ],
        })
    }
}

/// A model, written as a string or as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ModelChoice {
    /// `provider/model`, split at the first slash; blank means no model.
    Name(String),
    /// The same as an object, with others to fall back to.
    Primary(PrimaryModel),
}

/// A model written as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct PrimaryModel {
    /// `provider/model`, split at the first slash; blank means no model.
    #[serde(default)]
    pub primary: String,
    /// Models that are tried, in this order, when the primary one cannot answer; each as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<NonBlankText>>")]
    pub fallbacks: Option<Vec<ModelName>>,
}

/// The name of a model, `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelName(#[serde(deserialize_with = "non_blank")] pub String);

impl ModelChoice {
    /// The model, trimmed; `None` if it is blank.
    pub fn primary(&self) -> Option<&str> {
        let name = match self {
            Self::Name(name) => name,
            Self::Primary(choice) => &choice.primary,
        };
        Some(name.trim()).filter(|name| !name.is_empty())
    }

    /// The fallbacks, if it sets any.
    pub fn fallbacks(&self) -> Option<&[ModelName]> {
        match self {
            Self::Name(_) => None,
            Self::Primary(choice) => choice.fallbacks.as_deref(),
        }
    }
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelChoiceVisitor)
    }
}

struct ModelChoiceVisitor;

impl<'de> Visitor<'de> for ModelChoiceVisitor {
    type Value = ModelChoice;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a model as a string or an object")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<ModelChoice, E> {
        Ok(ModelChoice::Name(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<ModelChoice, A::Error> {
        PrimaryModel::deserialize(MapAccessDeserializer::new(entries)).map(ModelChoice::Primary)
    }
}

/// A chat of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum ChatId {
    /// By number; groups have negative ones.
    Number(i64),
    /// By name, such as `@my_channel`, or a number written as a string.
    Name(
        #[serde(deserialize_with = "non_blank")]
        #[schemars(with = "NonBlankText")]
        String,
    ),
}

impl fmt::Display for ChatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Name(name) => name.fmt(formatter),
        }
    }
}

/// A form of string: its schema, its name in messages, and its check.
pub(crate) struct Format {
    /// The `pattern` in the schema.
    pub(crate) pattern: &'static str,
    /// The expected form, in words for a message.
    pub(crate) expected: &'static str,
    /// Whether a string has the shape. Must agree with the pattern.
    pub(crate) accepts: fn(&str) -> bool,
}

/// A string that is not blank.
const NON_BLANK: Format = Format {
    pattern: r"\S",
    expected: "a string that is not empty",
    accepts: |text| !text.trim().is_empty(),
};
/// An absolute URL with a host. It may have a query, which Azure needs for its version.
const BASE_URL: Format = Format {
    pattern: r"^https?://[^\s/?#]+[^\s#]*$",
    expected: "an http:// or https:// URL without a fragment (#)",
    accepts: is_base_url,
};

fn is_base_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return false;
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    !host.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c == '#')
}

/// The name of a tenant.
const TENANT: Format =
    Format { pattern: tenants::PATTERN, expected: tenants::EXPECTED, accepts: tenants::is_name };

/// Every shape that the schema uses.
pub(crate) const FORMATS: [Format; 4] = [NON_BLANK, BASE_URL, TENANT, KEY];

/// The name of a key that can be bound.
pub(crate) const KEY: Format = Format {
    pattern: "^((ctrl|alt)-[a-z]|f([1-9]|1[0-2])|shift-tab)$",
    expected: "a key such as \"ctrl-o\", \"alt-x\", \"f5\" or \"shift-tab\"",
    accepts: |text| match text.split_once('-') {
        Some(("ctrl" | "alt", key)) => matches!(key.as_bytes(), [b'a'..=b'z']),
        Some(("shift", key)) => key == "tab",
        Some(_) => false,
        None => text.strip_prefix('f').is_some_and(|number| {
            !number.starts_with('0')
                && !number.starts_with('+')
                && number.parse().is_ok_and(|number: u8| (1..=12).contains(&number))
        }),
    },
};

/// Schema of a string that is not blank.
pub(crate) struct NonBlankText;
/// Schema of a base address.
pub(crate) struct BaseUrl;
/// Schema of the name of a tenant.
pub(crate) struct TenantName;
/// Schema of the name of a key.
pub(crate) struct KeyText;
/// Schema of a secret: a plain string for editors, marked as something never to be shown.
pub(crate) struct SecretText;

macro_rules! text_schema {
    ($type:ident, $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text_schema!(NonBlankText, { "type": "string", "pattern": NON_BLANK.pattern });
text_schema!(KeyText, { "type": "string", "pattern": KEY.pattern });
text_schema!(BaseUrl, { "type": "string", "format": "uri", "pattern": BASE_URL.pattern });
text_schema!(TenantName, { "type": "string", "pattern": TENANT.pattern });
text_schema!(SecretText, { "type": "string", "pattern": NON_BLANK.pattern, "writeOnly": true });

fn text_of<'de, D: Deserializer<'de>>(
    deserializer: D,
    format: &Format,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if (format.accepts)(&text) {
        Ok(text)
    } else {
        Err(D::Error::custom(format_args!("expected {}", format.expected)))
    }
}

pub(super) fn non_blank<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_of(deserializer, &NON_BLANK)
}

pub(super) fn tenant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_of(deserializer, &TENANT)
}

pub(super) fn optional_non_blank<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    non_blank(deserializer).map(Some)
}

pub(super) fn key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_of(deserializer, &KEY)
}

pub(super) fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_of(deserializer, &BASE_URL)
}

pub(super) fn optional_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    url(deserializer).map(Some)
}

/// Reads an integer from `MIN` to `MAX`, both included.
pub(super) fn within<'de, D, T, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = u64::deserialize(deserializer)?;
    let in_range = (MIN..=MAX).contains(&number).then(|| T::try_from(number).ok()).flatten();
    in_range
        .ok_or_else(|| D::Error::custom(format_args!("expected an integer from {MIN} to {MAX}")))
}

/// Like [`within`], for a key that may be left out.
pub(super) fn optional_within<'de, D, T, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    within::<D, T, MIN, MAX>(deserializer).map(Some)
}

pub(super) fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number >= 0.0 {
        Ok(number)
    } else {
        Err(D::Error::custom("expected a number that is not negative"))
    }
}

pub(super) fn optional_not_negative<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    not_negative(deserializer).map(Some)
}

/// Reads a number from 0 to 1, for a key that may be left out.
pub(super) fn optional_share<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let is_share = (0.0..=1.0).contains(&number);
    is_share
        .then_some(Some(number))
        .ok_or_else(|| D::Error::custom("expected a number from 0 to 1"))
}

pub(super) fn non_empty_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = Vec::deserialize(deserializer)?;
    if list.is_empty() { Err(D::Error::custom("expected at least one entry")) } else { Ok(list) }
}

/// Reads a secret, and writes a mark in its place.
pub(super) mod secret {
    use std::borrow::Cow;

    use secrecy::SecretString;
    use serde::{Deserializer, Serializer};

    use crate::digest::written_secret;

    /// Replaces a secret in everything that is serialised.
    const REDACTED: &str = "[redacted]";

    pub(in crate::schema) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<SecretString, D::Error> {
        // Blanks around a key come from copying and are refused by servers with messages that nobody understands.
        super::non_blank(deserializer).map(|text| SecretString::from(text.trim()))
    }

    pub(in crate::schema) fn serialize<S: Serializer>(
        secret: &SecretString,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&written(secret))
    }

    /// What stands for a secret.
    pub(super) fn written(secret: &SecretString) -> Cow<'static, str> {
        written_secret(secret).map_or(Cow::Borrowed(REDACTED), Cow::Owned)
    }
}

/// Like [`secret`], for a key that may be left out.
pub(super) mod optional_secret {
    use secrecy::SecretString;
    use serde::{Deserializer, Serializer};

    pub(in crate::schema) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SecretString>, D::Error> {
        super::secret::deserialize(deserializer).map(Some)
    }

    pub(in crate::schema) fn serialize<S: Serializer>(
        secret: &Option<SecretString>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => serializer.serialize_some(&super::secret::written(secret)),
            None => serializer.serialize_none(),
        }
    }
}

/// Reads a map of secrets, and writes a mark in the place of each.
pub(super) mod secret_map {
    use std::collections::BTreeMap;

    use secrecy::SecretString;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Secret(#[serde(deserialize_with = "super::secret::deserialize")] SecretString);

    pub(in crate::schema) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, SecretString>, D::Error> {
        let secrets = BTreeMap::<String, Secret>::deserialize(deserializer)?;
        Ok(secrets.into_iter().map(|(name, Secret(secret))| (name, secret)).collect())
    }

    pub(in crate::schema) fn serialize<S: Serializer>(
        secrets: &BTreeMap<String, SecretString>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let written = |(name, secret)| (name, super::secret::written(secret));
        serializer.collect_map(secrets.iter().map(written))
    }
}
