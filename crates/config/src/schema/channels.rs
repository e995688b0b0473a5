//! Channels through which messages arrive, who may write there, and which agent answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::policy::ToolRules;
use super::values::{self, BaseUrl, ChatId, NonBlankText};
use crate::config_path::ConfigPath;
use crate::validate::Finding;

mod binding;
mod email;
mod irc;
mod people;

pub use binding::{Binding, BindingMatch};
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

/// What the config says of a channel, whichever it is. The types of all channels have it, next to what checks them.
pub(crate) trait ChannelConfig {
    /// Who may write there, if people do.
    fn rules(&self) -> Option<ChatRules<'_>> {
        None
    }

    /// Everything that must not be shown.
    fn secrets(&self) -> Vec<&SecretString> {
        Vec::new()
    }

    /// The names of its accounts.
    fn accounts(&self) -> Vec<&str> {
        vec![DEFAULT_ACCOUNT]
    }

    /// The names of its accounts where the config does not name it.
    fn accounts_if_absent() -> Vec<&'static str>
    where
        Self: Sized,
    {
        vec![DEFAULT_ACCOUNT]
    }

    /// The mistakes in it that its type does not exclude. It stands at `path`.
    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>);

    /// Whether the config does not name it.
    fn is_absent(&self) -> bool {
        false
    }
}

/// A channel that the config may leave out.
impl<T: ChannelConfig> ChannelConfig for Option<T> {
    fn rules(&self) -> Option<ChatRules<'_>> {
        self.as_ref()?.rules()
    }

    fn secrets(&self) -> Vec<&SecretString> {
        self.as_ref().map(T::secrets).unwrap_or_default()
    }

    fn check(&self, path: &ConfigPath, findings: &mut Vec<Finding>) {
        self.iter().for_each(|channel| channel.check(path, findings));
    }

    fn accounts(&self) -> Vec<&str> {
        match self {
            Some(channel) => channel.accounts(),
            None => T::accounts_if_absent(),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// Declares the channels: their keys in the config, which are their names, and their types.
macro_rules! channels {
    ($($(#[$about:meta])* $name:ident: $config:ty,)*) => {
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
            $(
                $(#[$about])*
                #[serde(skip_serializing_if = "ChannelConfig::is_absent")]
                pub $name: $config,
            )*
        }

        impl ChannelsConfig {
            /// The names of all channels.
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// All channels, by name.
            pub(crate) fn all(&self) -> Vec<(&'static str, &dyn ChannelConfig)> {
                vec![$((stringify!($name), &self.$name as &dyn ChannelConfig)),*]
            }
        }
    };
}

channels! {
    /// A Telegram bot.
    telegram: Option<TelegramConfig>,
    /// An account on Matrix.
    matrix: Option<MatrixConfig>,
    /// An account of e-mail.
    email: Option<EmailConfig>,
    /// Phone numbers on WhatsApp.
    whatsapp: Option<WhatsAppConfig>,
    /// An account on Signal, through signal-cli.
    signal: Option<SignalConfig>,
    /// An account on a network of IRC.
    irc: Option<IrcConfig>,
    /// An account of XMPP (Jabber).
    xmpp: Option<XmppConfig>,
    /// An app in a workspace of Slack.
    slack: Option<SlackConfig>,
    /// A bot on Discord.
    discord: Option<DiscordConfig>,
    /// Signed HTTP webhooks for programs, by name.
    webhook: BTreeMap<String, WebhookConfig>,
    /// A Unix socket for scripts of this machine's user.
    socket: Option<SocketConfig>,
}

impl ChannelsConfig {
    /// The rules of the channels in which people write, by the channel's name.
    pub fn chat_rules(&self) -> impl Iterator<Item = (&'static str, ChatRules<'_>)> {
        self.all().into_iter().filter_map(|(name, channel)| Some((name, channel.rules()?)))
    }

    /// Everything that must not be shown.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        self.all().into_iter().flat_map(|(_, channel)| channel.secrets())
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
