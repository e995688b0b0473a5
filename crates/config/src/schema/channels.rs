//! Channels through which messages arrive, who may write there, and which agent answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::policy::ToolRules;
use super::values::{ChatId, NonBlankText};
use crate::config_path::ConfigPath;
use crate::validate::Finding;

mod binding;
mod checks;
mod declaration;
mod email;
mod irc;
mod people;

pub use binding::{Binding, BindingMatch};
pub use email::*;
pub use irc::*;
pub use people::PersonId;

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
mod matrix;
mod phone;
mod programs;
mod team;
mod telegram;
mod xmpp;

pub(crate) use checks::is_everybody;
pub use declaration::{
    ChannelAccounts, ChannelDeclaration, ChannelField, ChannelOption, ChannelPeople, ChannelSecret,
    plain_value,
};
pub use matrix::*;
pub use phone::*;
pub use programs::*;
pub use team::*;
pub use telegram::*;
pub use xmpp::*;

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
    /// What is known of it before it is set up.
    fn declaration() -> ChannelDeclaration
    where
        Self: Sized;

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
    fn declaration() -> ChannelDeclaration {
        T::declaration()
    }

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

            /// What is known of all channels before they are set up, by name.
            pub fn declared() -> Vec<(&'static str, ChannelDeclaration)> {
                vec![$((stringify!($name), <$config as ChannelConfig>::declaration())),*]
            }

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

/// Groups are busy, and most messages in them are not meant for the agent.
fn default_history_limit() -> usize {
    50
}

fn default_dm_history_limit() -> usize {
    100
}

fn yes() -> bool {
    true
}
