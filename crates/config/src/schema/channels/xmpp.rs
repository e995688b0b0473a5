//! An account of XMPP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, ChatId, NonBlankText};
use super::{
    ChatRules, ConnectionSecurity, DmPolicy, GroupConfig, GroupPolicy, default_dm_history_limit,
    default_history_limit,
};

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
