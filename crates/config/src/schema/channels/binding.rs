//! Which agent answers what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::values::{self, ChatId, NonBlankText};

/// Which agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// The agent.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub agent_id: String,
    /// The messages that it answers.
    #[serde(rename = "match")]
    pub matches: BindingMatch,
}

/// Messages, by where they come from. Everything that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BindingMatch {
    /// The channel, such as `telegram`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub channel: String,
    /// The account of the channel. Default: every account.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub account: Option<String>,
    /// The person, in a direct chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<ChatId>,
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ChatId>,
}
