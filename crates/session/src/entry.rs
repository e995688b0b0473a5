//! The entries of a session log.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AboutEntry, EntryId, ForkOrigin, Meta};

/// Highest version of the format that this program reads.
///
/// It is raised only for changes that an older program would misread. A new entry type does not raise it, because older
/// programs keep and skip the types that they do not know.
pub const FORMAT_VERSION: u32 = myclaw_files::formats::LOG.newest;
/// Version of a log that holds the whole session.
pub(crate) const WHOLE_VERSION: u32 = 1;
/// Version of a log that begins in other files ([`SessionHeader::history`]): an older program would miss that part.
pub(crate) const FORK_VERSION: u32 = 2;

/// One line of a log after its header.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message or a tool result.
    Message(TranscriptMessage),
    /// A summary that replaces the messages before it.
    Compaction(CompactionEntry),
    /// The title and labels that the owner gave the session.
    About(AboutEntry),
    /// From here on, only parts of some messages are sent.
    Reduction(ReductionEntry),
    /// A model refused a request as too long.
    Refusal(RefusalEntry),
    /// A model rejected the signatures of earlier thoughts.
    Unsigned(UnsignedEntry),
    /// An object whose type (or role) this version does not know. It is kept in the file and otherwise skipped.
    Unknown(Value),
}

/// One message, in the row shape that transcripts have had from the beginning.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptMessage {
    /// Unique within the session.
    pub id: EntryId,
    /// The role of the author.
    pub role: Role,
    /// The text of the message. Content that is not text is in `meta`.
    pub content: String,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// In a tool result: the id of the call that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Anything else that the writer needs back, such as `contentBlocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or the program on behalf of a person.
    User,
    /// A model.
    Assistant,
    /// The program itself.
    System,
    /// A tool that returned a result.
    Tool,
}

/// A summary that replaces the messages before [`CompactionEntry::first_kept_id`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "compaction", rename_all = "camelCase")]
pub struct CompactionEntry {
    /// Unique within the session.
    pub id: EntryId,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// The summary of the replaced messages.
    pub summary: String,
    /// The first message that is still sent unchanged. If it is the entry's own id, no earlier message is sent.
    pub first_kept_id: EntryId,
    /// Tokens of the context before the compaction.
    pub tokens_before: u64,
    /// Messages of the context before the compaction.
    pub old_count: u64,
    /// Messages of the context after the compaction.
    pub new_count: u64,
}

/// From here on, only parts of some messages are sent. The messages in the log do not change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "reduction", rename_all = "camelCase")]
pub struct ReductionEntry {
    /// Unique within the session.
    pub id: EntryId,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// The reason, as a word: `pruning` or `overflow`. Later versions may add more.
    pub reason: String,
    /// The messages, and how much of each is still sent. A later entry about the same message replaces this one.
    pub messages: Vec<Reduction>,
}

/// A model refused a request as too long. It is recorded so that the next run does not send a request of this size
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "refusal", rename_all = "camelCase")]
pub struct RefusalEntry {
    /// Unique within the session.
    pub id: EntryId,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// `provider/model`.
    pub model: String,
    /// Estimated tokens of the smallest request that it refused.
    pub tokens: u64,
}

/// A model rejected the signatures of the thoughts that were written up to a moment. It is recorded so that the next run
/// leaves them out at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "unsigned", rename_all = "camelCase")]
pub struct UnsignedEntry {
    /// Unique within the session.
    pub id: EntryId,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// `provider/model`.
    pub model: String,
    /// When the newest of the messages was written, in milliseconds since the Unix epoch.
    pub until: u64,
}

impl ReductionEntry {
    /// The reason of reductions that pruning made.
    pub const PRUNING: &'static str = "pruning";
}

/// The part of one message that is still sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduction {
    /// The message.
    pub id: EntryId,
    /// Characters of its text that remain at the beginning.
    #[serde(default)]
    pub head: usize,
    /// Characters of its text that remain at the end. If both `head` and `tail` are 0, the message's pictures are
    /// removed too.
    #[serde(default)]
    pub tail: usize,
}

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "session", rename_all = "camelCase")]
pub struct SessionHeader {
    /// Version of the format; 0 in logs written before there was a version number.
    pub version: u32,
    /// The session's key: a [`crate::SessionKey`] as text.
    pub session_key: String,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    /// A UUID (version 4) by which programs identify the session; `None` in logs written before there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The directory that the session works in, if not its agent's workspace; absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// In a fork: where it branched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkOrigin>,
    /// In a fork: how many bytes of each of its history files belong to it, the oldest file first. Such a file may be
    /// longer, because the log that it belongs to has grown since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<u64>,
}

/// A new UUID of version 4.
pub(crate) fn new_session_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

impl SessionHeader {
    /// The header of a log that holds the whole session.
    pub fn new(session_key: impl Into<String>, created_at: u64) -> Self {
        Self {
            version: WHOLE_VERSION,
            session_key: session_key.into(),
            created_at,
            session_id: None,
            directory: None,
            forked_from: None,
            history: Vec::new(),
        }
    }

    /// The header of a new log, with a new id.
    pub(crate) fn of_new_log(session_key: impl Into<String>, created_at: u64) -> Self {
        Self { session_id: Some(new_session_id()), ..Self::new(session_key, created_at) }
    }

    /// The same for a session that works in `directory`. A path that is not UTF-8 is not kept.
    pub(crate) fn in_directory(self, directory: Option<&Path>) -> Self {
        Self { directory: directory.and_then(Path::to_str).map(str::to_owned), ..self }
    }

    /// The header for a file that holds all entries itself, as an export of a fork does.
    #[must_use]
    pub fn without_history(self) -> Self {
        if self.history.is_empty() {
            return self;
        }
        Self { version: WHOLE_VERSION, history: Vec::new(), ..self }
    }
}

impl Role {
    /// The role as it is written in a log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
        }
    }

    /// The role written as `text`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        match text {
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "system" => Some(Self::System),
            "tool" => Some(Self::Tool),
            _ => None,
        }
    }
}

impl TranscriptMessage {
    /// A message of plain text with a new id.
    pub fn new(role: Role, content: impl Into<String>, ts: u64) -> Self {
        Self {
            id: EntryId::generate(),
            role,
            content: content.into(),
            ts,
            tool_call_id: None,
            meta: None,
        }
    }
}

impl Entry {
    /// The id, if this type of entry has one.
    pub fn id(&self) -> Option<EntryId> {
        match self {
            Self::Message(message) => Some(message.id),
            Self::Compaction(compaction) => Some(compaction.id),
            Self::About(about) => Some(about.id),
            Self::Reduction(reduction) => Some(reduction.id),
            Self::Refusal(refusal) => Some(refusal.id),
            Self::Unsigned(unsigned) => Some(unsigned.id),
            Self::Unknown(_) => None,
        }
    }

    /// When the entry was made, in milliseconds since the Unix epoch, if it has a time.
    pub fn ts(&self) -> Option<u64> {
        match self {
            Self::Message(message) => Some(message.ts),
            Self::Compaction(compaction) => Some(compaction.ts),
            Self::About(about) => Some(about.ts),
            Self::Reduction(reduction) => Some(reduction.ts),
            Self::Refusal(refusal) => Some(refusal.ts),
            Self::Unsigned(unsigned) => Some(unsigned.ts),
            Self::Unknown(value) => value.get("ts").and_then(Value::as_u64),
        }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Message(message) => message.serialize(serializer),
            Self::Compaction(compaction) => compaction.serialize(serializer),
            Self::About(about) => about.serialize(serializer),
            Self::Reduction(reduction) => reduction.serialize(serializer),
            Self::Refusal(refusal) => refusal.serialize(serializer),
            Self::Unsigned(unsigned) => unsigned.serialize(serializer),
            Self::Unknown(value) => value.serialize(serializer),
        }
    }
}

impl From<TranscriptMessage> for Entry {
    fn from(message: TranscriptMessage) -> Self {
        Self::Message(message)
    }
}

impl From<CompactionEntry> for Entry {
    fn from(compaction: CompactionEntry) -> Self {
        Self::Compaction(compaction)
    }
}

impl From<ReductionEntry> for Entry {
    fn from(reduction: ReductionEntry) -> Self {
        Self::Reduction(reduction)
    }
}
