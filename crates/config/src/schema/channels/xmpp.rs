//! An account of XMPP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::checks::{check_groups, is_of_this_machine};
use super::declaration::{
    ADDRESS, ChannelAccounts, ChannelDeclaration, ChannelOption, chats, optional, secret, unusual,
};
use super::{
    ChannelConfig, ChatRules, ConnectionSecurity, DmPolicy, GroupConfig, GroupPolicy,
    default_dm_history_limit, default_history_limit,
};
use crate::config_path::ConfigPath;
use crate::validate::{Finding, finding};

/// Largest file; it is in memory while it is sent.
const MAX_MEDIA_MB: u64 = 100;

plain_chat_channel! {
    /// An account of XMPP (Jabber).
    XmppConfig {
        /// The address of the account, such as `claw@example.org`.
        #[serde(deserialize_with = "values::non_blank")]
        #[schemars(with = "NonBlankText")]
        pub address: String,
        /// Its password. Preferably a reference such as `"${XMPP_PASSWORD}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub password: SecretString,
        /// The name of the server. Default: the domain of the address.
        #[serde(
            default,
            deserialize_with = "values::optional_non_blank",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<NonBlankText>")]
        pub host: Option<String>,
        /// Its port. Default: 5222, and with `security: "tls"` 5223.
        #[serde(
            default,
            deserialize_with = "values::optional_within::<_, _, 1, 65_535>",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(range(min = 1, max = 65_535))]
        pub port: Option<u16>,
        /// How the connection is encrypted. The certificate must have the domain of the address.
        #[serde(default = "starttls")]
        pub security: ConnectionSecurity,
        /// The name in rooms. Default: what stands before the `@` of the address. While another one has it, `_` follows it.
        #[serde(
            default,
            deserialize_with = "values::optional_non_blank",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<NonBlankText>")]
        pub nick: Option<String>,
        /// Megabytes of the largest file in both directions; at most 100.
        #[serde(
            default = "default_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_MEDIA_MB))]
        pub media_max_mb: u64,
    }
}

fn starttls() -> ConnectionSecurity {
    ConnectionSecurity::StartTls
}

fn default_media_mb() -> u64 {
    20
}

impl ChannelConfig for XmppConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An account of XMPP (Jabber)",
                example: "--address claw@example.org --allow-from you@example.org",
                people: chats("such as \"xmpp:me@example.org\""),
                accounts: ChannelAccounts::One,
                fields: &[
                    ADDRESS,
                    optional("host", ChannelOption::Host),
                    optional("nick", ChannelOption::Nick),
                    unusual("port"),
                    unusual("security"),
                ],
                secrets: &[secret(
                    "password",
                    "XMPP_PASSWORD",
                    "It is the password of the account.",
                )],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.password]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let is_address = |address: &str| {
            let is_odd = |c: char| c.is_control() || c.is_whitespace() || "/\"&'<>".contains(c);
            let parts = address.split('@').collect::<Vec<_>>();
            matches!(parts[..], [local, domain] if !local.is_empty() && !domain.is_empty())
                && !address.contains(is_odd)
        };
        if !is_address(&self.address) {
            findings.push(finding(
                path.clone().key("address"),
                "expected an address without a resource",
                "an address is such as \"claw@example.org\"",
            ));
        }
        let domain = self.address.split('@').next_back().unwrap_or_default();
        let host = self.host.as_deref().unwrap_or(domain);
        if self.security == ConnectionSecurity::None && !is_of_this_machine(host) {
            findings.push(finding(
                path.clone().key("security"),
                "the password and all messages could be read on the way",
                "use \"starttls\" or \"tls\"; \"none\" is for 127.0.0.1, ::1 and localhost",
            ));
        }
        if host.contains(['/', ':']) && host.parse::<std::net::IpAddr>().is_err() {
            findings.push(finding(
                path.clone().key("host"),
                "expected the name of a server, not a URL",
                "a name is such as \"xmpp.example.org\"; `port` is for the port",
            ));
        }
        let is_room = |name: &str| is_address(name) && *name == name.to_lowercase();
        let words = (
            "expected the address of a room in lower case, or `*`",
            "an address is such as \"team@rooms.example.org\"",
        );
        check_groups(&self.groups, path, is_room, words, findings);
    }
}
