//! Channels through which messages arrive, who may write there, and which agent answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::policy::ToolRules;
use super::values::{self, BaseUrl, ChatId, NonBlankText};

mod email;
mod irc;
mod people;

pub use email::{
    ConnectionSecurity, EmailConfig, MailServerConfig, MailSession, SenderCheckConfig,
};
pub use irc::{IrcConfig, SaslConfig};
pub use people::PersonId;

/// Largest file that a Telegram bot can download.
const MAX_MEDIA_MB: u64 = 20;
/// Largest file on Matrix; it is in memory while it is sent.
const MAX_MATRIX_MEDIA_MB: u64 = 100;
/// Name of the account that the config does not name.
pub const DEFAULT_ACCOUNT: &str = "default";

/// Declares a channel in which people write and whose messages can be edited: its own keys, and those that all such
/// channels have.
macro_rules! chat_channel {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        plain_chat_channel! {
            $(#[$about])*
            $name {
                $($own)*
                /// Whether a reply is shown while it is being written.
                #[serde(default = "yes")]
                pub preview: bool,
            }
        }
    };
}

/// Declares a channel in which people write: its own keys, and those that all such channels have.
macro_rules! plain_chat_channel {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Who may write to the bot directly.
            #[serde(default)]
            pub dm_policy: DmPolicy,
            /// People who may write to the bot directly, by id. On Telegram also by `@name`, but a name can change hands.
            #[serde(default)]
            pub allow_from: Vec<ChatId>,
            /// In which groups the bot answers.
            #[serde(default)]
            pub group_policy: GroupPolicy,
            /// The groups in which the bot answers, by id; `*` stands for every group.
            #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
            pub groups: BTreeMap<String, GroupConfig>,
            /// How many of a group's newest messages are sent to the model; 0 for all.
            #[serde(default = "default_history_limit")]
            pub history_limit: usize,
            /// How many of a direct chat's newest messages are sent to the model; 0 for all.
            #[serde(default = "default_dm_history_limit")]
            pub dm_history_limit: usize,
            /// Which tools may run for messages of this channel.
            #[serde(default)]
            pub tools: ToolRules,
        }

        impl $name {
            pub(in crate::schema) fn rules(&self) -> ChatRules<'_> {
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
    };
}

// Below the macros, which they use.
mod phone;
mod team;
mod xmpp;

pub use phone::{SignalConfig, WhatsAppAccount, WhatsAppConfig, WhatsAppNumber, WhatsAppTemplate};
pub use team::{DiscordConfig, SlackConfig};
pub use xmpp::XmppConfig;

/// Who may write in a channel, and what holds for their messages.
#[derive(Debug, Clone, Copy)]
pub struct ChatRules<'a> {
    /// The only chats that are answered, if there is such a limit.
    pub allowed_chat_ids: Option<&'a [ChatId]>,
    /// Who may write directly.
    pub dm_policy: DmPolicy,
    /// People who may write directly.
    pub allow_from: &'a [ChatId],
    /// In which groups the agent answers.
    pub group_policy: GroupPolicy,
    /// The rules of groups, by id.
    pub groups: &'a BTreeMap<String, GroupConfig>,
    /// Newest messages of a group that are sent to the model; 0 for all.
    pub history_limit: usize,
    /// The same for a direct chat.
    pub dm_history_limit: usize,
    /// Which tools may run.
    pub tools: &'a ToolRules,
}

impl ChannelsConfig {
    /// The rules of the channels in which people write, by the channel's name.
    pub fn chat_rules(&self) -> impl Iterator<Item = (&'static str, ChatRules<'_>)> {
        let telegram = self.telegram.iter().map(|telegram| {
            let allowed_chat_ids = telegram.allowed_chat_ids.as_deref();
            ("telegram", ChatRules { allowed_chat_ids, ..telegram.rules() })
        });
        telegram
            .chain(self.matrix.iter().map(|matrix| ("matrix", matrix.rules())))
            .chain(self.email.iter().map(|email| ("email", email.rules())))
            .chain(self.irc.iter().map(|irc| ("irc", irc.rules())))
            .chain(self.xmpp.iter().map(|xmpp| ("xmpp", xmpp.rules())))
            .chain(self.whatsapp.iter().map(|whatsapp| ("whatsapp", whatsapp.rules())))
            .chain(self.signal.iter().map(|signal| ("signal", signal.rules())))
            .chain(self.slack.iter().map(|slack| ("slack", slack.rules())))
            .chain(self.discord.iter().map(|discord| ("discord", discord.rules())))
    }

    /// Everything that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let telegram = self.telegram.iter().flat_map(TelegramConfig::bots);
        let webhooks = self.webhook.values().map(|webhook| &webhook.secret);
        let matrix = self.matrix.iter().map(|matrix| &matrix.access_token);
        let slack = self.slack.iter().flat_map(|slack| [&slack.app_token, &slack.bot_token]);
        let discord = self.discord.iter().map(|discord| &discord.bot_token);
        let irc = self.irc.iter().flat_map(IrcConfig::secrets);
        let whatsapp = self.whatsapp.iter().flat_map(WhatsAppConfig::secrets);
        let email = self.email.iter().flat_map(EmailConfig::secrets);
        let xmpp = self.xmpp.iter().map(|xmpp| &xmpp.password);
        telegram
            .map(|bot| bot.token)
            .chain(matrix)
            .chain(webhooks)
            .chain(email)
            .chain(slack)
            .chain(discord)
            .chain(whatsapp)
            .chain(irc)
            .chain(xmpp)
    }
}

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

/// Channels through which messages arrive.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChannelsConfig {
    /// Which session a direct message belongs to.
    pub dm_scope: DmScope,
    /// People who write through several channels: a name, and the ids of its direct chats as `channel:id`, such as
    /// `telegram:42`. Each has one session for all of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, Vec<NonBlankText>>")]
    pub identity_links: BTreeMap<String, Vec<PersonId>>,
    /// A Telegram bot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telegram: Option<TelegramConfig>,
    /// An account on Matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixConfig>,
    /// An account of e-mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<EmailConfig>,
    /// Phone numbers on WhatsApp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whatsapp: Option<WhatsAppConfig>,
    /// An account on Signal, through signal-cli.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalConfig>,
    /// An account on a network of IRC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irc: Option<IrcConfig>,
    /// An account of XMPP (Jabber).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xmpp: Option<XmppConfig>,
    /// An app in a workspace of Slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<SlackConfig>,
    /// A bot on Discord.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discord: Option<DiscordConfig>,
    /// Signed HTTP webhooks for programs, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub webhook: BTreeMap<String, WebhookConfig>,
    /// A Unix socket for scripts of this machine's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketConfig>,
}

/// Which session a direct message belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum DmScope {
    /// Each person has a session in each account of each channel.
    #[default]
    PerAccountPeer,
    /// Each person has a session in each channel, whichever account they write to.
    PerPeer,
    /// Everybody who may write shares the agent's main session, which is not sandboxed. For one person only.
    Main,
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

/// Who may write directly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DmPolicy {
    /// Those in `allowFrom`, and those whose pairing code you approved. Others get such a code.
    #[default]
    Pairing,
    /// Those in `allowFrom`.
    Allowlist,
    /// Everybody.
    Open,
    /// Nobody.
    Disabled,
}

/// In which groups the bot answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum GroupPolicy {
    /// Those in `groups`.
    #[default]
    Allowlist,
    /// Every group.
    Open,
    /// None.
    Disabled,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GroupConfig {
    /// Whether only messages that are addressed to the bot are answered: by its name, by a command, or as a reply.
    pub require_mention: bool,
    /// The only people of the group who are answered, by number or `@name`. Leave it out to answer everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_from: Option<Vec<ChatId>>,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self { require_mention: true, allow_from: None }
    }
}

/// What happens to a message of which nobody knows whether it was delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum UncertainDelivery {
    /// It is not sent again, and `myclaw channels status` shows it.
    #[default]
    Report,
    /// It is sent again, marked as a possible repeat.
    Again,
}

/// A signed HTTP webhook.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebhookConfig {
    /// Signs requests in both directions. Preferably a reference such as `"${WEBHOOK_SECRET}"`; at least 16 characters.
    #[serde(with = "values::secret")]
    #[schemars(with = "values::SecretText")]
    pub secret: SecretString,
    /// Where answers are posted.
    #[serde(deserialize_with = "values::url")]
    #[schemars(with = "BaseUrl")]
    pub url: String,
}

/// A Unix socket for scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SocketConfig {
    /// Where it is. May begin with `~`; a relative path starts at the directory of this file. Default:
    /// `gateway/socket` in the state directory.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub path: Option<String>,
}

/// Which agent answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// The agent.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub agent_id: String,
    /// The messages that it answers.
    #[serde(rename = "match")]
    pub matches: BindingMatch,
}

/// Messages, by where they come from. Everything that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BindingMatch {
    /// The channel, such as `telegram`.
    #[serde(deserialize_with = "values::non_blank")]
    #[schemars(with = "NonBlankText")]
    pub channel: String,
    /// The account of the channel. Default: every account.
    #[serde(
        default,
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub account: Option<String>,
    /// The person, in a direct chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<ChatId>,
    /// The group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ChatId>,
}

/// Groups are busy, and most messages in them are not meant for the agent.
fn default_history_limit() -> usize {
    50
}

fn default_dm_history_limit() -> usize {
    100
}

fn default_media_mb() -> u64 {
    MAX_MEDIA_MB
}

/// What homeservers usually allow.
fn default_matrix_media_mb() -> u64 {
    50
}

fn yes() -> bool {
    true
}
