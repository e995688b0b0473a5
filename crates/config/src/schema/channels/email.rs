//! An account of e-mail.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::checks::is_of_this_machine;
use super::declaration::{
    ADDRESS, ChannelAccounts, ChannelDeclaration, ChannelOption, ChannelPeople, field, optional,
    secret, unusual,
};
use super::{
    ChannelConfig, ChatRules, DmPolicy, GroupConfig, GroupPolicy, UncertainDelivery,
    default_dm_history_limit,
};
use crate::config_path::ConfigPath;
use crate::validate::{Finding, finding};

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
    /// The name that stands next to the address in its mails.
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

impl ChannelConfig for EmailConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An account of e-mail",
                example: "--address claw@example.org --imap imap.example.org --smtp smtp.example.org \\\n    --authserv-id mx.example.org --allow-from you@example.org",
                people: ChannelPeople::Letters,
                accounts: ChannelAccounts::One,
                fields: &[
                    ADDRESS,
                    field(
                        "imap.host",
                        ChannelOption::Imap,
                        "the server where mails are read, such as imap.example.org",
                    ),
                    field(
                        "smtp.host",
                        ChannelOption::Smtp,
                        "the server where mails are sent, such as smtp.example.org",
                    ),
                    field(
                        "authservId",
                        ChannelOption::AuthservId,
                        "the first word of the field Authentication-Results in the mails that it receives (docs/channels/email.md)",
                    ),
                    optional("user", ChannelOption::None),
                    unusual("imap.port"),
                    unusual("imap.security"),
                    unusual("smtp.port"),
                    unusual("smtp.security"),
                ],
                secrets: &[secret(
                    "password",
                    "EMAIL_PASSWORD",
                    "It is the password of the account; many providers want one for this program alone.",
                )],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.password.iter().chain(&self.access_token).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_address = |address: &str| {
            let is_odd = |byte: u8| !byte.is_ascii_graphic() || b"<>()[]\\,;:\"".contains(&byte);
            let parts = address.split('@').collect::<Vec<_>>();
            matches!(parts[..], [local, domain] if !local.is_empty() && !domain.is_empty())
                && !address.bytes().any(is_odd)
        };
        if !is_address(&self.address) {
            findings.push(finding(
                path.clone().key("address"),
                "expected one address, without a name",
                "an address is such as \"claw@example.org\"; `displayName` is for the name",
            ));
        }
        match (&self.password, &self.access_token) {
            (None, None) => findings.push(finding(
                path.clone(),
                "there is neither `password` nor `accessToken`",
                "add one, such as password: \"${EMAIL_PASSWORD}\"",
            )),
            (Some(_), Some(_)) => findings.push(finding(
                path.clone().key("accessToken"),
                "there is a `password` as well",
                "keep one of both",
            )),
            _ => {}
        }
        if self.sender_check == SenderCheckConfig::Required && self.authserv_id.is_none() {
            findings.push(finding(
            path.clone(),
            "`authservId` is missing, so nobody can tell forged senders",
            "open a mail of this account, show its source, and use the first word of the field Authentication-Results; \
             if there is none, every sender can be forged: docs/channels/email.md says what senderCheck: \"none\" means",
        ));
        }
        check_server(&self.imap, path.clone().key("imap"), findings);
        check_server(&self.smtp, path.clone().key("smtp"), findings);
        if !self.mailbox.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            findings.push(finding(
                path.clone().key("mailbox"),
                "only names in ASCII can be used",
                "write the name as IMAP does, such as \"Entw&APw-rfe\"",
            ));
        }
    }
}

fn check_server(server: &MailServerConfig, path: ConfigPath, findings: &mut Vec<Finding>) {
    if server.security == ConnectionSecurity::None && !is_of_this_machine(&server.host) {
        findings.push(finding(
            path.clone().key("security"),
            "the password and all messages could be read on the way",
            "use \"tls\" or \"starttls\"; \"none\" is for 127.0.0.1, ::1 and localhost",
        ));
    }
    if server.host.contains("://") || server.host.contains('/') {
        findings.push(finding(
            path.key("host"),
            "expected the name of a server, not a URL",
            "a name is such as \"mail.example.org\"; `port` is for the port",
        ));
    }
}
