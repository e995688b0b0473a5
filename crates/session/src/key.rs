//! Session keys: which session a message belongs to.
//!
//! The canonical form is `agent:<agentId>:channel:<channel>:account:<accountId>:peer:<peerKind>:<peerId>`. Two other
//! forms are read and converted: `agentId:channelId:peerId:threadId`, and a bare word.

mod slug;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{base36, fnv1a_128};

/// Longest part of a key, in characters.
const MAX_PART_CHARS: usize = 128;
/// Base-36 digits of a 128-bit hash.
const HASH_DIGITS: usize = 25;
/// The agent of a key without one.
const DEFAULT_AGENT: &str = "main";
/// The account of a key without one.
const DEFAULT_ACCOUNT: &str = "default";
/// The channel of a terminal.
pub const CLI_CHANNEL: &str = "cli";
/// Replaces a channel or a peer that has no usable characters.
const UNKNOWN: &str = "unknown";
/// Separates a peer from the thread within it.
const THREAD_TAIL: &str = ":thread:";
/// Separates a peer from the number of a session that was begun anew with it.
const ANEW_TAIL: &str = ":new:";

/// Identifies a session. Always in canonical, normalised form: equal keys have equal texts and one file. A copy shares the
/// text: each event has one, and a session that works has dozens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey(Arc<str>);

/// The parts of a key. [`SessionKey::build`] normalises each part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionKeyParts {
    /// The agent that answers.
    pub agent_id: String,
    /// The kind of channel, such as `cli` or `telegram`.
    pub channel: String,
    /// The account of the channel.
    pub account_id: String,
    /// The kind of the peer.
    pub peer_kind: PeerKind,
    /// The channel's own id of the peer; a thread within it is a `:thread:<id>` tail, and a session that was begun anew
    /// has a `:new:<number>` tail.
    pub peer_id: String,
}

/// The kind of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerKind {
    /// One person. `dm` is read as the same kind.
    #[serde(alias = "dm")]
    Direct,
    /// Several people.
    Group,
    /// A channel that people subscribe to.
    Channel,
}

/// Why a text is not a session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionKeyError {
    /// The text is empty.
    #[error("a session name must not be empty; give a word such as `work`")]
    Empty,
    /// A name without a usable character, which would share a session with every other such name.
    #[error(
        "`{0}` has no letter and no digit, so it cannot name a session; give a word such as `work`"
    )]
    NothingUsable(String),
    /// A name that would be cut, and would share a session with every other name with the same beginning.
    #[error(
        "a session name has at most {MAX_PART_CHARS} characters, and this one has {0}; give a shorter one"
    )]
    TooLong(usize),
    /// It has colons but fits no form of a key.
    #[error(
        "`{0}` is not a session key; give a word such as `work`, agentId:channelId:peerId:threadId, or \
         agent:<id>:channel:<channel>:account:<id>:peer:<direct|group|channel>:<id>"
    )]
    UnknownForm(String),
}

/// The parts of the positional form, not yet normalised: `agentId:channelId:peerId:threadId`.
///
/// Missing and empty parts are `None`; a text without a colon has `raw` only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PositionalKey {
    /// First part.
    pub agent_id: Option<String>,
    /// Second part.
    pub channel_id: Option<String>,
    /// Third part.
    pub peer_id: Option<String>,
    /// Fourth part.
    pub thread_id: Option<String>,
    /// The whole text.
    pub raw: String,
}

impl SessionKey {
    /// The key of `parts`, each normalised: trimmed, lower case, white space to underscores, other unsafe characters
    /// removed. A part of more than 128 characters is cut and ends in a hash of the whole. An agent without a usable id
    /// is `main`, an account `default`, a channel or peer `unknown`.
    pub fn build(parts: &SessionKeyParts) -> Self {
        let text = format!(
            "agent:{}:channel:{}:account:{}:peer:{}:{}",
            normalise(&parts.agent_id, Colons::Remove, DEFAULT_AGENT),
            normalise(&parts.channel, Colons::Remove, UNKNOWN),
            normalise(&parts.account_id, Colons::Remove, DEFAULT_ACCOUNT),
            parts.peer_kind.as_str(),
            normalise(&parts.peer_id, Colons::Keep, UNKNOWN),
        );
        Self(text.into())
    }

    /// The session with this name in the terminal.
    pub fn for_cli(agent_id: &str, name: &str) -> Self {
        Self::build(&SessionKeyParts {
            agent_id: agent_id.to_owned(),
            channel: CLI_CHANNEL.to_owned(),
            account_id: DEFAULT_ACCOUNT.to_owned(),
            peer_kind: PeerKind::Direct,
            peer_id: name.to_owned(),
        })
    }

    /// The key of the `number`th session with the same peer. The first one is this.
    #[must_use]
    pub fn begun_anew(&self, number: u64) -> Self {
        if number <= 1 {
            return self.clone();
        }
        let mut parts = self.parts();
        parts.peer_id = format!("{}{ANEW_TAIL}{number}", parts.peer_id);
        Self::build(&parts)
    }

    /// The key of the first session with the same peer.
    #[must_use]
    pub fn first(&self) -> Self {
        let mut parts = self.parts();
        parts.peer_id = parts.peer().to_owned();
        Self::build(&parts)
    }

    /// Reads any form of key; a bare word is a terminal session of the agent `main`.
    ///
    /// # Errors
    /// The text is empty, or is a word that would not stay unique, or has colons and fits no form.
    pub fn parse(text: &str) -> Result<Self, SessionKeyError> {
        Self::parse_for_agent(DEFAULT_AGENT, text)
    }

    /// Reads any form of key. A bare word is a terminal session of the agent `agent_id`, which is also used where the
    /// positional form has no agent.
    ///
    /// # Errors
    /// The text is empty, or is a word that would not stay unique, or has colons and fits no form.
    pub fn parse_for_agent(agent_id: &str, text: &str) -> Result<Self, SessionKeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(SessionKeyError::Empty);
        }
        if !text.contains(':') {
            let length = text.chars().count();
            return match length {
                _ if !text.chars().any(char::is_alphanumeric) => {
                    Err(SessionKeyError::NothingUsable(text.to_owned()))
                }
                _ if length > MAX_PART_CHARS => Err(SessionKeyError::TooLong(length)),
                _ => Ok(Self::for_cli(agent_id, text)),
            };
        }
        split_canonical(text)
            .or_else(|| split_short(text))
            .or_else(|| PositionalKey::parse(text).to_parts(agent_id))
            .map(|parts| Self::build(&parts))
            .ok_or_else(|| SessionKeyError::UnknownForm(text.to_owned()))
    }

    /// Reads only the canonical form, which files use.
    pub(crate) fn parse_canonical(text: &str) -> Option<Self> {
        let parts = split_canonical(text)?;
        let is_normal = |part: &str| {
            let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'@' | b'+' | b'-' | b':');
            part.len() <= MAX_PART_CHARS && part.bytes().all(is_plain)
        };
        // Nearly every key in a long list is like this, and building it again would give the same text.
        let is_written_so = parts.peer_kind != PeerKind::Direct || !text.contains(":peer:dm:");
        let texts = [&parts.agent_id, &parts.channel, &parts.account_id, &parts.peer_id];
        if is_written_so && texts.into_iter().all(|part| is_normal(part)) {
            return Some(Self(text.into()));
        }
        Some(Self::build(&parts))
    }

    /// The parts of the key.
    pub fn parts(&self) -> SessionKeyParts {
        // `build` made the text, so it always has this form; the fallback keeps the whole text rather than panic.
        split_canonical(&self.0).unwrap_or_else(|| SessionKeyParts {
            agent_id: DEFAULT_AGENT.to_owned(),
            channel: UNKNOWN.to_owned(),
            account_id: DEFAULT_ACCOUNT.to_owned(),
            peer_kind: PeerKind::Direct,
            peer_id: self.0.to_string(),
        })
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as a file name without extension, at most 200 bytes. Different keys have different slugs. Only keys too
    /// long for a file name are distinguished by a hash.
    pub fn slug(&self) -> String {
        slug::encode(&self.0)
    }

    /// The key with this slug; `None` for a shortened slug (the file's header has the key then) and for anything else.
    pub(crate) fn from_slug(slug: &str) -> Option<Self> {
        Self::parse_canonical(&slug::decode(slug)?).filter(|key| key.slug() == slug)
    }

    /// True if the slug alone does not identify the key.
    pub(crate) fn has_shortened_slug(&self) -> bool {
        slug::is_shortened(&self.slug())
    }
}

impl SessionKeyParts {
    /// The id of the peer, whichever of their sessions it is.
    pub fn peer(&self) -> &str {
        let is_number =
            |tail: &str| !tail.is_empty() && tail.bytes().all(|byte| byte.is_ascii_digit());
        match self.peer_id.rsplit_once(ANEW_TAIL) {
            Some((peer, number)) if is_number(number) => peer,
            _ => &self.peer_id,
        }
    }
}

impl PositionalKey {
    /// Splits `text` at its colons. Text after a fourth colon is in `raw` only.
    pub fn parse(text: &str) -> Self {
        let raw = text.to_owned();
        if !text.contains(':') {
            return Self { raw, ..Self::default() };
        }
        let mut parts = text.split(':').map(|part| (!part.is_empty()).then(|| part.to_owned()));
        let mut next = || parts.next().flatten();
        Self { agent_id: next(), channel_id: next(), peer_id: next(), thread_id: next(), raw }
    }

    /// Converts to the parts of a canonical key: a missing agent becomes `agent_id`, the account is the default one,
    /// the peer is a person, and a thread becomes its tail. `None` if a part would be lost.
    fn to_parts(&self, agent_id: &str) -> Option<SessionKeyParts> {
        if self.raw.split(':').count() > 4
            || (self.channel_id.is_none() && self.peer_id.is_none() && self.thread_id.is_none())
        {
            return None;
        }
        let mut peer_id = self.peer_id.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        if let Some(thread) = &self.thread_id {
            peer_id.push_str(THREAD_TAIL);
            peer_id.push_str(thread);
        }
        Some(SessionKeyParts {
            agent_id: self.agent_id.clone().unwrap_or_else(|| agent_id.to_owned()),
            channel: self.channel_id.clone().unwrap_or_default(),
            account_id: DEFAULT_ACCOUNT.to_owned(),
            peer_kind: PeerKind::Direct,
            peer_id,
        })
    }
}

impl PeerKind {
    /// The kind as it is written in a key.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::Channel => "channel",
        }
    }

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "direct" | "dm" => Some(Self::Direct),
            "group" => Some(Self::Group),
            "channel" => Some(Self::Channel),
            _ => None,
        }
    }
}

/// Whether a part of a key may hold colons.
#[derive(Clone, Copy, PartialEq)]
enum Colons {
    /// Only the peer's id, which takes the rest of the key.
    Keep,
    /// All other parts, because the key could not be split again with them.
    Remove,
}

fn normalise(part: &str, colons: Colons, fallback: &str) -> String {
    let lower = part.trim().to_lowercase();
    let mut normal = String::with_capacity(lower.len());
    let mut in_white_space = false;
    for character in lower.chars() {
        if character.is_whitespace() {
            if !in_white_space {
                normal.push('_');
            }
        } else if is_safe(character) || (character == ':' && colons == Colons::Keep) {
            normal.push(character);
        }
        in_white_space = character.is_whitespace();
    }
    if normal.is_empty() {
        return fallback.to_owned();
    }
    if normal.chars().count() > MAX_PART_CHARS { shorten(&normal) } else { normal }
}

/// Cuts a part that is too long and ends it with a hash of the whole, so that different parts stay different.
fn shorten(part: &str) -> String {
    let kept: String = part.chars().take(MAX_PART_CHARS - HASH_DIGITS - 1).collect();
    format!("{kept}-{}", base36(fnv1a_128(part.as_bytes()), HASH_DIGITS))
}

/// Letters and digits of every script, so that names in different scripts stay different.
fn is_safe(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | '@' | '+' | '-')
}

/// `agent:<id>:channel:<channel>:account:<id>:peer:<kind>:<id>`; the last part takes the rest.
fn split_canonical(text: &str) -> Option<SessionKeyParts> {
    let rest = text.strip_prefix("agent:")?;
    let (agent_id, rest) = rest.split_once(':')?;
    let (channel, rest) = rest.strip_prefix("channel:")?.split_once(':')?;
    let (account_id, rest) = rest.strip_prefix("account:")?.split_once(':')?;
    let (kind, peer_id) = rest.strip_prefix("peer:")?.split_once(':')?;
    if [agent_id, channel, account_id, peer_id].iter().any(|part| part.is_empty()) {
        return None;
    }
    Some(SessionKeyParts {
        agent_id: agent_id.to_owned(),
        channel: channel.to_owned(),
        account_id: account_id.to_owned(),
        peer_kind: PeerKind::from_text(kind)?,
        peer_id: peer_id.to_owned(),
    })
}

/// `agent:<id>:main` and `agent:<id>:<channel>:<kind>:<id>`, which related programs use.
fn split_short(text: &str) -> Option<SessionKeyParts> {
    let (agent_id, rest) = text.strip_prefix("agent:")?.split_once(':')?;
    if rest == DEFAULT_AGENT {
        return Some(SessionKey::for_cli(agent_id, rest).parts());
    }
    let (channel, rest) = rest.split_once(':')?;
    let (kind, peer_id) = rest.split_once(':')?;
    if [agent_id, channel, peer_id].iter().any(|part| part.is_empty()) {
        return None;
    }
    Some(SessionKeyParts {
        agent_id: agent_id.to_owned(),
        channel: channel.to_owned(),
        account_id: DEFAULT_ACCOUNT.to_owned(),
        peer_kind: PeerKind::from_text(kind)?,
        peer_id: peer_id.to_owned(),
    })
}

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for SessionKey {
    type Err = SessionKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
