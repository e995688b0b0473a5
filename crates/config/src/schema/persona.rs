//! How agents appear in chats: their identity, when a group means them, and how fast they write.

use std::time::Duration;

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// Messages of a group that are kept for the next one that is addressed to the agent.
const DEFAULT_GROUP_HISTORY: usize = 50;
/// More would be most of a model's window.
const MOST_GROUP_HISTORY: u64 = 200;
/// Longest pause between two messages of a reply, in milliseconds.
const MOST_DELAY_MS: u64 = 60_000;
/// Pauses of the mode `natural`, in milliseconds: as in OpenClaw.
const NATURAL: (u64, u64) = (800, 2_500);
/// Bytes of a compiled pattern.
const MOST_PATTERN_BYTES: usize = 1024 * 1024;

/// Who an agent is for the people who write to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct IdentityConfig {
    /// Its name. In groups it is also addressed by it, unless `groupChat.mentionPatterns` says otherwise.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub name: Option<String>,
    /// How it is, in a few words, such as `"a calm librarian"`.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub theme: Option<String>,
    /// Its emoji, which is also its reaction to messages that it has received.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub emoji: Option<String>,
}

impl IdentityConfig {
    /// This identity, where `own` sets no other.
    pub(crate) fn with(&self, own: &Self) -> Self {
        Self {
            name: own.name.clone().or_else(|| self.name.clone()),
            theme: own.theme.clone().or_else(|| self.theme.clone()),
            emoji: own.emoji.clone().or_else(|| self.emoji.clone()),
        }
    }
}

/// Which messages of a group an agent answers, and what it is shown of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GroupChatConfig {
    /// Regular expressions; a message that one of them matches is addressed to the agent. Upper and lower case are the
    /// same. Default: the name of `identity` as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mention_patterns: Option<Vec<String>>,
    /// How many of the newest messages that were not addressed to the agent it is shown with the next one that is, at most
    /// 200; 0 for none. Default: 50.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, MOST_GROUP_HISTORY>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = MOST_GROUP_HISTORY))]
    pub history_limit: Option<usize>,
}

impl GroupChatConfig {
    /// These rules, where `own` sets no others.
    pub(crate) fn with(&self, own: &Self) -> Self {
        Self {
            mention_patterns: own
                .mention_patterns
                .clone()
                .or_else(|| self.mention_patterns.clone()),
            history_limit: own.history_limit.or(self.history_limit),
        }
    }
}

/// Pauses between the messages of one reply, as a person who types would make them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HumanDelayConfig {
    /// Which pauses. Default: `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<HumanDelayMode>,
    /// For `custom`: milliseconds of the shortest pause, at most 60000. Default: 800.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, MOST_DELAY_MS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = MOST_DELAY_MS))]
    pub min_ms: Option<u64>,
    /// For `custom`: milliseconds of the longest pause, at most 60000. Default: 2500.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 0, MOST_DELAY_MS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0, max = MOST_DELAY_MS))]
    pub max_ms: Option<u64>,
}

impl HumanDelayConfig {
    /// These pauses, where `own` sets no others.
    pub(crate) fn with(&self, own: &Self) -> Self {
        Self {
            mode: own.mode.or(self.mode),
            min_ms: own.min_ms.or(self.min_ms),
            max_ms: own.max_ms.or(self.max_ms),
        }
    }

    /// The shortest and the longest pause; `None` for no pauses.
    pub fn pauses(&self) -> Option<(Duration, Duration)> {
        let (min, max) = match self.mode.unwrap_or_default() {
            HumanDelayMode::Off => return None,
            HumanDelayMode::Natural => NATURAL,
            HumanDelayMode::Custom => {
                (self.min_ms.unwrap_or(NATURAL.0), self.max_ms.unwrap_or(NATURAL.1))
            }
        };
        Some((Duration::from_millis(min), Duration::from_millis(max.max(min))))
    }
}

/// Which pauses an agent makes between the messages of one reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum HumanDelayMode {
    /// None.
    #[default]
    Off,
    /// 0.8 to 2.5 seconds.
    Natural,
    /// From `minMs` to `maxMs`.
    Custom,
}

/// How an agent appears in chats, with every default applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Persona {
    /// Who it is.
    pub identity: IdentityConfig,
    /// When a group means it.
    pub group_chat: GroupChatConfig,
    /// How fast it writes.
    pub human_delay: HumanDelayConfig,
}

impl Persona {
    /// Whether a text of a group calls the agent.
    pub fn is_called_in(&self, text: &str) -> bool {
        self.calls().any(|call| call.is_match(text))
    }

    /// The text behind the call at its start, as `hi` in `@claw hi` and `Claw, hi`. `None` if no call is there.
    pub fn called_at_start_of<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim_start();
        let found = self.calls().filter_map(|call| call.find(text));
        let end = found.filter(|call| call.start() == 0).map(|call| call.end()).max()?;
        let behind = text[end..].trim_start();
        Some(behind.strip_prefix([':', ',']).unwrap_or(behind).trim_start())
    }

    /// What calls the agent.
    fn calls(&self) -> impl Iterator<Item = Regex> {
        let patterns = match (&self.group_chat.mention_patterns, &self.identity.name) {
            (Some(patterns), _) => patterns.clone(),
            (None, Some(name)) => {
                vec![format!(r"(?:^|[^\w])@?{}(?:[^\w]|$)", regex::escape(name.trim()))]
            }
            (None, None) => Vec::new(),
        };
        // A config that was loaded has no wrong pattern in it.
        patterns.into_iter().filter_map(|text| pattern(&text).ok())
    }

    /// How many messages of a group that were not addressed to it the agent is shown.
    pub fn group_history(&self) -> usize {
        self.group_chat.history_limit.unwrap_or(DEFAULT_GROUP_HISTORY)
    }
}

/// A pattern of `mentionPatterns`.
///
/// # Errors
/// It is no regular expression, or too large.
pub(crate) fn pattern(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).case_insensitive(true).size_limit(MOST_PATTERN_BYTES).build()
}

/// What the tool `message` may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MessageToolConfig {
    /// Which sessions may write to other chats than their own. Only chats in which somebody has written to the agent can be
    /// named, and only those that `tools.sessions` lets the session reach.
    pub other_chats: OtherChats,
}

/// Which sessions may write to other chats than their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OtherChats {
    /// None.
    #[default]
    Off,
    /// The owner's main session.
    Main,
    /// Every session that has the tool.
    All,
}
