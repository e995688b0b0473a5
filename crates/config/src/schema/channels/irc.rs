//! An account on a network of IRC.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::{
    ChatRules, DmPolicy, GroupConfig, GroupPolicy, UncertainDelivery, default_dm_history_limit,
    default_history_limit, yes,
};

/// An account on a network of IRC.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IrcConfig {
    /// The name of the server, which its certificate must have.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub host: String,
    /// Its port. Default: 6697, and without TLS 6667.
    #[serde(
        default,
        deserialize_with = "values::optional_within::<_, _, 1, 65_535>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
    /// Whether the connection is encrypted. Only a server on this machine can be used without.
    #[serde(default = "yes")]
    pub tls: bool,
    /// The nickname; at most 30 characters. While another one has it, `_` follows it.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub nick: String,
    /// The account of the network that the nickname belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sasl: Option<SaslConfig>,
    /// The password of the server, if it has one. Preferably a reference such as `"${IRC_SERVER_PASSWORD}"`.
    #[serde(default, with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub server_password: Option<SecretString>,
    /// What happens to a line of which nobody knows whether it was delivered.
    #[serde(default)]
    pub uncertain: UncertainDelivery,
    /// Who may write to the agent directly.
    #[serde(default)]
    pub dm_policy: DmPolicy,
    /// People who may write directly: by account of the network, or on networks that show none as `nick!user@host`.
    #[serde(default)]
    pub allow_from: Vec<ChatId>,
    /// In which channels the agent answers.
    #[serde(default)]
    pub group_policy: GroupPolicy,
    /// The channels that are joined, by name in lower case such as `#team`; `*` stands for the rules of all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, GroupConfig>,
    /// How many of a channel's newest messages are sent to the model; 0 for all.
    #[serde(default = "default_history_limit")]
    pub history_limit: usize,
    /// How many of a direct chat's newest messages are sent to the model; 0 for all.
    #[serde(default = "default_dm_history_limit")]
    pub dm_history_limit: usize,
    /// Which tools may run for messages of this channel.
    #[serde(default)]
    pub tools: ToolRules,
}

impl IrcConfig {
    /// Who may write there, and what holds for their messages.
    pub(crate) fn chat_rules(&self) -> ChatRules<'_> {
        ChatRules {
            allowed_chat_ids: None,
            dm_policy: self.dm_policy,
            allow_from: &self.allow_from,
            group_policy: self.group_policy,
            groups: &self.groups,
            history_limit: self.history_limit,
            dm_history_limit: self.dm_history_limit,
            tools: &self.tools,
        }
    }
}

/// An account of a network (SASL PLAIN).
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SaslConfig {
    /// Its name.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub user: String,
    /// Its password. Preferably a reference such as `"${IRC_PASSWORD}"`.
    #[serde(with = "values::secret")]
    #[schemars(with = "values::SecretText")]
    pub password: SecretString,
}
