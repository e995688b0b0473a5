//! Bots on Telegram.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::super::policy::ToolRules;
use super::super::values::{self, BaseUrl, ChatId};
use super::checks::{check_groups, check_names, check_people, check_url};
use super::declaration::{BASE_URL, ChannelAccounts, ChannelDeclaration, numbered, secret};
use super::{
    ChannelConfig, ChatRules, DEFAULT_ACCOUNT, DmPolicy, GroupConfig, GroupPolicy,
    UncertainDelivery, default_dm_history_limit, default_history_limit, yes,
};
use crate::config_path::ConfigPath;
use crate::locate::Target;
use crate::validate::{Finding, finding};

/// Largest file that a bot can download.
const MAX_MEDIA_MB: u64 = 20;

/// An account of [`TelegramConfig`].
#[derive(Debug, Clone, Copy)]
pub struct TelegramBot<'a> {
    /// The account's name.
    pub account: &'a str,
    /// The bot's token.
    pub token: &'a SecretString,
    /// Where Telegram reaches the gateway.
    pub webhook_url: Option<&'a str>,
}

impl TelegramConfig {
    /// All bots, that without a name of its own first.
    pub fn bots(&self) -> impl Iterator<Item = TelegramBot<'_>> {
        let first = self.bot_token.iter().map(|token| TelegramBot {
            account: DEFAULT_ACCOUNT,
            token,
            webhook_url: self.webhook_url.as_deref(),
        });
        let others = self.accounts.iter().map(|(account, bot)| TelegramBot {
            account,
            token: &bot.bot_token,
            webhook_url: bot.webhook_url.as_deref(),
        });
        first.chain(others)
    }
}

chat_channel! {
    /// A Telegram bot.
    TelegramConfig {
        /// The bot's token from BotFather. Preferably a reference such as `"${TELEGRAM_BOT_TOKEN}"`. Without one there is
        /// no such bot, and the other keys hold for the bots in `accounts`.
        #[serde(
            default,
            with = "values::optional_secret",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<values::SecretText>")]
        pub bot_token: Option<SecretString>,
        /// Address of the Bot API server, if it is not the public one.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub base_url: Option<String>,
        /// The public address at which Telegram reaches the path `/hooks/telegram/default` of the gateway. Leave it out
        /// to let the bot ask for messages itself.
        #[serde(
            default,
            deserialize_with = "values::optional_url",
            skip_serializing_if = "Option::is_none"
        )]
        #[schemars(with = "Option<BaseUrl>")]
        pub webhook_url: Option<String>,
        /// The only chats that the bot answers, by number. A person or group in it needs no other permission. Leave it
        /// out to set no limit here; an empty list admits nobody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub allowed_chat_ids: Option<Vec<ChatId>>,
        /// What happens to a message of which nobody knows whether it was delivered.
        #[serde(default)]
        pub uncertain: UncertainDelivery,
        /// Megabytes of the largest file that is downloaded; at most 20.
        #[serde(
            default = "default_media_mb",
            deserialize_with = "values::within::<_, _, 1, MAX_MEDIA_MB>"
        )]
        #[schemars(range(min = 1, max = MAX_MEDIA_MB))]
        pub media_max_mb: u64,
        /// Further bots, by the name of the account. The other keys of `channels.telegram` hold for them as well.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub accounts: BTreeMap<String, TelegramAccount>,
    }
}

/// A further bot.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TelegramAccount {
    /// The bot's token from BotFather.
    #[serde(with = "values::secret")]
    #[schemars(with = "values::SecretText")]
    pub bot_token: SecretString,
    /// As `channels.telegram.webhookUrl`, for the path `/hooks/telegram/NAME`.
    #[serde(
        default,
        deserialize_with = "values::optional_url",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<BaseUrl>")]
    pub webhook_url: Option<String>,
}

impl ChannelConfig for TelegramConfig {
    fn declaration() -> ChannelDeclaration {
        const {
            ChannelDeclaration {
                about: "A Telegram bot",
                example: "--allow-from 42",
                people: numbered("the number of your account, which the bot tells you at /status"),
                accounts: ChannelAccounts::Further,
                fields: &[BASE_URL],
                secrets: &[secret(
                    "botToken",
                    "TELEGRAM_BOT_TOKEN",
                    "Talk with @BotFather on Telegram to make a bot; it gives you a token.",
                )],
            }
        }
    }

    fn accounts_if_absent() -> Vec<&'static str> {
        Vec::new()
    }

    fn rules(&self) -> Option<ChatRules<'_>> {
        let allowed_chat_ids = self.allowed_chat_ids.as_deref();
        Some(ChatRules { allowed_chat_ids, ..self.chat_rules() })
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.bots().map(|bot| bot.token).collect()
    }

    fn accounts(&self) -> Vec<&str> {
        self.bots().map(|bot| bot.account).collect()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        let urls = [("baseUrl", &self.base_url), ("webhookUrl", &self.webhook_url)];
        for (key, url) in urls {
            check_url(url.as_deref(), path.clone().key(key), findings);
        }
        let is_person = |name: &str| name.starts_with('@') || name.parse::<u64>().is_ok();
        check_people(&self.allow_from, path, is_person, findings, |name| {
            let bare = name.rsplit(':').next().unwrap_or(name);
            match bare.parse::<u64>() {
                Ok(number) => format!("write {number}"),
                Err(_) => {
                    "write the number that `myclaw pairing list` shows, or `@name`".to_owned()
                }
            }
        });
        let accounts = path.clone().key("accounts");
        check_names(self.accounts.keys(), &accounts, findings);
        for (name, account) in &self.accounts {
            let account_path = accounts.clone().key(name);
            if name == DEFAULT_ACCOUNT {
                findings.push(Finding {
                    target: Target::Key,
                    ..finding(
                        account_path.clone(),
                        "the account `default` is that of channels.telegram.botToken",
                        "choose another name",
                    )
                });
            }
            check_url(account.webhook_url.as_deref(), account_path.key("webhookUrl"), findings);
        }
        let words = (
            "expected the number of a group, or `*`",
            "`myclaw channels status` shows the numbers of groups whose messages were dropped",
        );
        check_groups(&self.groups, path, |name| name.parse::<i64>().is_ok(), words, findings);
    }
}

fn default_media_mb() -> u64 {
    MAX_MEDIA_MB
}
