//! The host of container runners.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::channels::BindingMatch;
use super::values::{self, NonBlankText};

/// The host of container runners in the gateway's process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HostConfig {
    /// Options as on the command line of `myclaw host`, such as `"--backend=sandbox"` and `"--model-socket"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Chats that groups of the host answer, instead of agents of this config.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<HostBinding>,
}

/// Which group of the host answers a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostBinding {
    /// The folder of the group; `myclaw groups add` makes it.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub folder: String,
    /// The chat: one person or one group of a channel.
    #[serde(rename = "match")]
    pub matches: BindingMatch,
}
