//! An account of e-mail.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::{
    ChatRules, DmPolicy, GroupConfig, GroupPolicy, UncertainDelivery, default_dm_history_limit,
};

/// Largest mail, in megabytes; it is in memory while it is read. Providers take 20 to 50.
const MAX_MAIL_MB: u64 = 50;
/// A mail belongs to a person.
static NO_GROUPS: BTreeMap<String, GroupConfig> = BTreeMap::new();

/// An account of e-mail.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmailConfig {
    /// The address of the account, such as `claw@example.org`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub address: String,
    /// The name that stands beside the address in its mails.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub display_name: Option<String>,
    /// The user's name at both servers. Default: the address.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub user: Option<String>,
    /// The password at both servers; many providers want one for this program alone. Preferably a reference such as
    /// `"${EMAIL_PASSWORD}"`.
    #[serde(default, with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub password: Option<SecretString>,
    /// A bearer token of OAuth 2 instead of a password (XOAUTH2). It is not renewed.
    #[serde(default, with = "values::optional_secret", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<values::SecretText>")]
    pub access_token: Option<SecretString>,
    /// The server where mails are read.
    pub imap: MailServerConfig,
    /// The server where mails are sent.
    pub smtp: MailServerConfig,
    /// The mailbox that is read.
    #[serde(default = "inbox", deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub mailbox: String,
    /// Which server verifies the sender of a mail (SPF, DKIM, DMARC).
    #[serde(default)]
    pub sender_check: SenderCheckConfig,
    /// The name of the server that checks senders: the first word of the field `Authentication-Results` in the mails that
    /// you receive.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub authserv_id: Option<String>,
    /// Which mails belong to one session.
    #[serde(default)]
    pub session_per: MailSession,
    /// What happens to a mail of which nobody knows whether it was delivered.
    #[serde(default)]
    pub uncertain: UncertainDelivery,
    /// Megabytes of the largest mail in both directions; at most 50.
    #[serde(
        default = "default_mail_mb",
        deserialize_with = "values::within::<_, _, 1, MAX_MAIL_MB>"
    )]
    #[schemars(range(min = 1, max = MAX_MAIL_MB))]
    pub media_max_mb: u64,
    /// Who may write. With `pairing`, everybody who writes gets a mail with a code.
    #[serde(default = "listed_people")]
    pub dm_policy: DmPolicy,
    /// People who may write, by address.
    #[serde(default)]
    pub allow_from: Vec<ChatId>,
    /// How many of a person's newest messages are sent to the model; 0 for all.
    #[serde(default = "default_dm_history_limit")]
    pub dm_history_limit: usize,
    /// Which tools may run for messages of this channel.
    #[serde(default)]
    pub tools: ToolRules,
}

impl EmailConfig {
    /// Who may write there, and what holds for their messages.
    pub(crate) fn chat_rules(&self) -> ChatRules<'_> {
        ChatRules {
            allowed_chat_ids: None,
            dm_policy: self.dm_policy,
            allow_from: &self.allow_from,
            group_policy: GroupPolicy::Disabled,
            groups: &NO_GROUPS,
            history_limit: self.dm_history_limit,
            dm_history_limit: self.dm_history_limit,
            tools: &self.tools,
        }
    }
}

/// A server of e-mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MailServerConfig {
    /// Its name, which its certificate must have.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub host: String,
    /// Its port. Default: the usual one for `security`.
    #[serde(
        default,
        deserialize_with = "values::optional_within::<_, _, 1, 65_535>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 65_535))]
    pub port: Option<u16>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub security: ConnectionSecurity,
}

/// How a connection is encrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ConnectionSecurity {
    /// With TLS from the start.
    #[default]
    Tls,
    /// With TLS after the command STARTTLS, which the server must offer.
    StartTls,
    /// Not at all. Only for a server on this machine.
    None,
}

/// Which server verifies the sender of a mail (SPF, DKIM, DMARC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SenderCheckConfig {
    /// The server `authservId`; mails that it did not find to be true are dropped.
    #[default]
    Required,
    /// Nobody, so everybody can write under every name.
    None,
}

/// Which mails belong to one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum MailSession {
    /// All of a person.
    #[default]
    Person,
    /// Those of a person in a thread.
    Thread,
}

fn inbox() -> String {
    "INBOX".to_owned()
}

/// The size of mails that most providers take.
fn default_mail_mb() -> u64 {
    25
}

/// Strangers get no answer: most of them are programs, and an answer tells them that somebody reads.
fn listed_people() -> DmPolicy {
    DmPolicy::Allowlist
}
