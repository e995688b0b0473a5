//! Channels of teams and communities: Slack and Discord.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId};
use super::checks::{check_groups, check_url};
use super::declaration::{BASE_URL, ChannelAccounts, ChannelDeclaration, chats, numbered, secret};
use super::{
    ChannelConfig, ChatRules, DmPolicy, GroupConfig, GroupPolicy, default_dm_history_limit,
    default_history_limit, yes,
};
use crate::config_path::ConfigPath;
use crate::validate::{Finding, finding};

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

impl ChannelConfig for SlackConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "An app in a workspace of Slack",
                example: "--allow-from U0123ABCD",
                people: chats("the id of your account, such as \"slack:U012AB3CD\""),
                accounts: ChannelAccounts::One,
                fields: &[BASE_URL],
                secrets: &[
                    secret(
                        "botToken",
                        "SLACK_BOT_TOKEN",
                        "Install the app in your workspace; the page OAuth & Permissions shows the token of its bot.",
                    ),
                    secret(
                        "appToken",
                        "SLACK_APP_TOKEN",
                        "Make an app at api.slack.com/apps (docs/channels/slack.md has a manifest), and generate an app-level token with the scope connections:write under Basic Information.",
                    ),
                ],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.app_token, &self.bot_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        for (key, token, wrong, start) in [
            ("appToken", &self.app_token, "xoxb-", "xapp-"),
            ("botToken", &self.bot_token, "xapp-", "xoxb-"),
        ] {
            if token.expose_secret().starts_with(wrong) {
                findings.push(finding(
                    path.clone().key(key),
                    format!("this is the app's other token: it begins with `{wrong}`"),
                    format!("a token for {key} begins with `{start}`"),
                ));
            }
        }
        let words = (
            "expected the id of a channel, which begins with `C` or `G`, or `*`",
            "Slack shows the id at the end of the channel's details; names of channels can change",
        );
        check_groups(&self.groups, path, |name| name.starts_with(['C', 'G']), words, findings);
    }
}

impl ChannelConfig for DiscordConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "A bot on Discord",
                example: "--allow-from 80351110224678912",
                people: numbered("the number of your account"),
                accounts: ChannelAccounts::One,
                fields: &[BASE_URL],
                secrets: &[secret(
                    "botToken",
                    "DISCORD_BOT_TOKEN",
                    "Make an application at discord.com/developers/applications (docs/channels/discord.md); its page Bot gives you a token, and there \"Message Content Intent\" has to be switched on.",
                )],
            }
        }
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        Some(self.chat_rules())
    }

    fn secrets(&self) -> Vec<&SecretString> {
        vec![&self.bot_token]
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        check_url(self.base_url.as_deref(), path.clone().key("baseUrl"), findings);
        let words = (
            "expected the id of a channel, which is a number, or `*`",
            "switch on the developer mode of Discord; \"Copy Channel ID\" is in a channel's menu then",
        );
        check_groups(&self.groups, path, |name| name.parse::<u64>().is_ok(), words, findings);
    }
}
