//! An account on a network of IRC.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::checks::{check_groups, is_of_this_machine};
use super::declaration::{
    ChannelAccounts, ChannelDeclaration, ChannelOption, ChannelPeople, field, unusual,
};
use super::{
    ChannelConfig, ChatRules, DmPolicy, GroupConfig, GroupPolicy, UncertainDelivery,
    default_dm_history_limit, default_history_limit, yes,
};
use crate::config_path::ConfigPath;
use crate::validate::{Finding, finding};

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

/// Longest nickname and longest name of a channel, in bytes.
const MOST_NICK: usize = 30;
const MOST_CHANNEL: usize = 50;

impl ChannelConfig for IrcConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An account on a network of IRC",
                example: "--host irc.example.org --nick claw",
                people: ChannelPeople::Chats {
                    proof: "the name of your account at the network, which others cannot take as they can a nickname",
                    is_proof: |id| !id.contains(['!', '@']),
                },
                accounts: ChannelAccounts::One,
                fields: &[
                    field("host", ChannelOption::Host, "the server, such as irc.example.org"),
                    field("nick", ChannelOption::Nick, "the nickname"),
                    unusual("port"),
                    unusual("tls"),
                ],
                secrets: &[],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.sasl.iter().map(|sasl| &sasl.password).chain(&self.server_password).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_[]{}\\|^`".contains(c);
        let is_start = |c: char| is_plain(c) && !c.is_ascii_digit() && c != '-';
        if self.nick.len() > MOST_NICK
            || !self.nick.starts_with(is_start)
            || !self.nick.chars().all(is_plain)
        {
            findings.push(finding(
            path.clone().key("nick"),
            "this cannot be a nickname",
            format!(
                "use letters, digits, `-` and `_`, at most {MOST_NICK}, with a letter at the start"
            ),
        ));
        }
        if !self.tls && !is_of_this_machine(&self.host) {
            findings.push(finding(
                path.clone().key("tls"),
                "the password and all messages could be read on the way",
                "leave it out; false is for 127.0.0.1, ::1 and localhost",
            ));
        }
        if let Some(password) = &self.server_password
            && secrecy::ExposeSecret::expose_secret(password).contains(['\r', '\n', '\0'])
        {
            findings.push(finding(
                path.clone().key("serverPassword"),
                "a password has one line",
                "check the variable that it comes from",
            ));
        }
        let is_channel = |name: &str| {
            name.starts_with(['#', '&'])
                && name.len() <= MOST_CHANNEL
                && !name.contains([' ', ',', ':', '\u{7}'])
                && !name.contains(char::is_control)
                && *name == name.to_ascii_lowercase()
        };
        let words =
            ("expected the name of a channel in lower case, or `*`", "a name is such as \"#team\"");
        check_groups(&self.groups, path, is_channel, words, findings);
    }
}
