//! An account on Matrix.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId};
use super::checks::{check_groups, check_url};
use super::declaration::{
    ChannelAccounts, ChannelDeclaration, ChannelOption, chats, field, secret,
};
use super::{
    ChannelConfig, ChatRules, DmPolicy, GroupConfig, GroupPolicy, default_dm_history_limit,
    default_history_limit, yes,
};
use crate::config_path::ConfigPath;
use crate::validate::Finding;

/// Largest file; it is in memory while it is sent.
const MAX_MATRIX_MEDIA_MB: u64 = 100;

chat_channel! {
    /// An account on Matrix.
    MatrixConfig {
        /// Address of the account's homeserver.
        #[serde(deserialize_with = "values::url")]
        #[schemars(with = "BaseUrl")]
        pub homeserver_url: String,
        /// The access token of a device that no other program uses. Preferably a reference such as
        /// `"${MATRIX_ACCESS_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub access_token: SecretString,
        /// Whether the account joins rooms in which it may answer: those in `groups`, and those to which somebody invites
        /// it who may write directly or ask to.
        #[serde(default = "yes")]
        pub auto_join: bool,
        /// Megabytes of the largest file in both directions; at most 100.
        #[serde(
            default = "default_matrix_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_MATRIX_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_MATRIX_MEDIA_MB))]
        pub media_max_mb: u64,
    }
}

impl ChannelConfig for MatrixConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An account on Matrix",
                example: "--url https://matrix.example.org --allow-from @you:example.org",
                people: chats("such as \"matrix:@me:example.org\""),
                accounts: ChannelAccounts::One,
                fields: &[field(
                    "homeserverUrl",
                    ChannelOption::Url,
                    "the address of the homeserver, such as https://matrix.example.org",
                )],
                secrets: &[secret(
                    "accessToken",
                    "MATRIX_ACCESS_TOKEN",
                    "Make an account for the agent, and log in with it once; docs/channels/matrix.md has the command.",
                )],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.access_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let url = Some(self.homeserver_url.as_str());
        check_url(url, path.clone().key("homeserverUrl"), findings);
        let words = (
            "expected the id of a room, which begins with `!`, or `*`",
            "`myclaw channels status` shows the ids of rooms whose messages were dropped; \
                 an address such as #room:example.org can be moved to another room",
        );
        check_groups(&self.groups, path, |name| name.starts_with('!'), words, findings);
    }
}

/// What homeservers usually allow.
fn default_matrix_media_mb() -> u64 {
    50
}
