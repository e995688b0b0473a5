//! Packages of others that the owner has approved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, BaseUrl};

/// Packages of others, which `myclaw packages` adds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PackagesConfig {
    /// The registry of `npm:NAME`. Default: `https://registry.npmjs.org`.
    #[serde(deserialize_with = "values::optional_url", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BaseUrl>")]
    pub registry: Option<String>,
    /// The names of packages that are kept and not used.
    pub disabled: Vec<String>,
}

impl PackagesConfig {
    /// Whether the package of this name is used.
    pub fn is_enabled(&self, name: &str) -> bool {
        !self.disabled.iter().any(|disabled| disabled == name)
    }
}
