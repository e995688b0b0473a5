//! Channels of teams and communities: Slack and Discord.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId};
use super::{
    ChatRules, DmPolicy, GroupConfig, GroupPolicy, default_dm_history_limit, default_history_limit,
    yes,
};

/// Largest file on Slack, which takes up to a gigabyte; it is in memory while it is sent.
const MAX_SLACK_MEDIA_MB: u64 = 100;
/// Largest file that the most boosted servers of Discord take.
const MAX_DISCORD_MEDIA_MB: u64 = 100;

chat_channel! {
    /// An app in a workspace of Slack.
    SlackConfig {
        /// The app-level token (`xapp-…`) with the scope `connections:write`. Preferably a reference such as
        /// `"${SLACK_APP_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub app_token: SecretString,
        /// The token of the app's bot (`xoxb-…`). Preferably a reference such as `"${SLACK_BOT_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub bot_token: SecretString,
        /// Address of the Web API, if it is not the public one.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub base_url: Option<String>,
        /// Megabytes of the largest file in both directions; at most 100.
        #[serde(
            default = "default_slack_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_SLACK_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_SLACK_MEDIA_MB))]
        pub media_max_mb: u64,
    }
}

chat_channel! {
    /// A bot on Discord.
    DiscordConfig {
        /// The bot's token. Preferably a reference such as `"${DISCORD_BOT_TOKEN}"`.
        #[serde(with = "values::secret")]
        #[schemars(with = "values::SecretText")]
        pub bot_token: SecretString,
        /// Address of the REST API with its version, if it is not the public one.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub base_url: Option<String>,
        /// Megabytes of the largest file in both directions; at most 100. Discord takes 10 from a bot, and more in servers
        /// that are boosted.
        #[serde(
            default = "default_discord_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_DISCORD_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_DISCORD_MEDIA_MB))]
        pub media_max_mb: u64,
    }
}

/// As on Matrix: few files are larger.
fn default_slack_media_mb() -> u64 {
    50
}

/// What Discord takes everywhere.
fn default_discord_media_mb() -> u64 {
    10
}
