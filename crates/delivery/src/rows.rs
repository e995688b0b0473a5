//! What the store holds: messages that came in, and the parts of replies that go out.

use myclaw_engine::ProgramRequest;
use myclaw_files::hex;
use myclaw_llm::{ImageContent, ToolCall};
use myclaw_session::EntryId;
use std::fmt;
use std::ops::Range;

use myclaw_channels::Button;
use myclaw_store::Blob;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::route::Route;

/// Hexadecimal digits of an id: 128 bits of a hash, so that nobody can choose two messages with the same id.
const ID_DIGITS: usize = 32;

/// Names a message that came in. It is derived from where it came from, so the same message has the same id however
/// often its source delivers it. The session's inbox and log use the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(String);

/// Names a part of a reply, and is the key under which a channel sends it at most once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PartId(String);

/// A message that came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Incoming {
    /// Where it came from, and where the answer goes.
    pub route: Route,
    /// The source's own id of the message.
    pub source_id: String,
    /// The key of the session that answers it.
    pub session: String,
    /// What it says.
    pub text: String,
    /// What the model is shown before it: messages of a group that were not addressed to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Where it comes from, if the channel knows.
    #[serde(flatten)]
    pub origin: Origin,
    /// Pictures that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
    /// The pictures in the store, where they are not in the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<Blob>,
    /// What the program that sent it asks for besides an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<ProgramRequest>>,
    /// The calls of that program's tools with which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Whether the answer was cut at a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Milliseconds since the Unix epoch.
    pub accepted_at: u64,
    /// Why there is the message, if nobody sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occasion: Option<Occasion>,
    /// The beginning of what the agent said to such a message; nothing if it had nothing to report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What became of it.
    pub state: MessageState,
}

/// Where a message comes from, besides its route.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    /// Who sent it, as `channel:id`, for the rules of `tools.bySender`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The same person under another id of the channel, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_sender: Option<String>,
    /// The channel's id of the message, to which an answer refers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_id: Option<String>,
    /// The files that came with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ReceivedFile>,
    /// The bytes of the text that the sender wrote, where it is not quoted line by line: they are not the program's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<Range<usize>>,
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceivedFile {
    /// The name that the sender gave, without anything that could be a path.
    pub name: String,
    /// Its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<Blob>,
    /// Key of the record with its bytes, in rows of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
}

/// Why there is a message that nobody sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Occasion {
    /// The agent is asked whether something needs attention. Its answer may be that nothing does.
    Heartbeat,
    /// A scheduled job is due.
    Job,
    /// It is the task of a sub-agent, whose session gets it first.
    Task,
    /// A sub-agent has ended.
    Result {
        /// The key of its session.
        child: String,
        /// On whose behalf it worked, as `channel:id`.
        senders: Vec<String>,
    },
    /// Another session sends it.
    Session {
        /// The key of that session.
        from: String,
        /// How many messages between sessions have led to this one, with itself.
        hops: u32,
        /// On whose behalf that session works, as `channel:id`.
        senders: Vec<String>,
    },
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum MessageState {
    /// There is no answer yet.
    Open,
    /// There is an answer, in these parts. Other messages may have the same one.
    Answered {
        /// In the order of reading.
        parts: Vec<PartId>,
    },
    /// There is no answer and there will be none. The sender gets a report instead.
    Reported {
        /// For programs: `aborted`, `queue_full`, or a class of a failed run.
        class: String,
        /// For people; what to do next.
        message: String,
        /// The report.
        parts: Vec<PartId>,
    },
    /// It was not for the agent, or not from somebody who may write.
    Dropped {
        /// Why, for the owner.
        reason: String,
        /// What the sender was told, if anything.
        parts: Vec<PartId>,
    },
}

/// A part of a reply or of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outgoing {
    /// Where it goes.
    pub route: Route,
    /// The session that said it.
    pub session: String,
    /// The messages that it answers.
    pub answers: Vec<MessageId>,
    /// Whether it is what the model said.
    pub kind: PartKind,
    /// The number of the part, from 0.
    pub part: usize,
    /// How many parts there are.
    pub parts: usize,
    /// What it says.
    pub text: String,
    /// What is offered below the text, where the channel has buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// What is done instead of sending the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<Act>,
    /// The channel's ids of other messages.
    #[serde(flatten)]
    pub refers: Refers,
    /// Milliseconds to wait before it is sent, as a person who types would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_ms: Option<u64>,
    /// Milliseconds since the Unix epoch; a later part has a later time. The parts of a route are sent in this order.
    pub created_at: u64,
    /// How far it is.
    pub state: PartState,
}

/// What a part does to a message that is there, or a poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Act {
    /// Its text, one emoji, is put under the message.
    React {
        /// The message.
        on: ActOn,
    },
    /// Its text replaces that of the message.
    Edit {
        /// The message.
        on: ActOn,
    },
    /// The message is removed.
    Unsend {
        /// The message.
        on: ActOn,
    },
    /// Its text is a question.
    Poll {
        /// The answers to choose from.
        options: Vec<String>,
        /// Whether a person may choose several.
        several: bool,
    },
}

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ActOn {
    /// One that somebody wrote, by the channel's id.
    Received(String),
    /// One that the gateway sends before, by its part.
    Sent(PartId),
}

impl Act {
    /// The message that it changes.
    pub fn on(&self) -> Option<&ActOn> {
        match self {
            Self::React { on } | Self::Edit { on } | Self::Unsend { on } => Some(on),
            Self::Poll { .. } => None,
        }
    }
}

/// The channel's ids of messages that a part has to do with, and what belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Refers {
    /// The message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The preview that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// A file of the agent's workspace, which is sent instead of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<SentFile>,
    /// The uncertain part that it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tells_of: Option<PartId>,
}

/// A file that is sent: a copy, so that it does not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentFile {
    /// The copy, in the store of files that wait to be sent.
    #[serde(alias = "path", deserialize_with = "copy_of")]
    pub blob: myclaw_session::NamedBlob,
    /// Its name for the receiver.
    pub name: String,
}

/// Rows of earlier versions have the path of the copy. Its last part is its name.
fn copy_of<'de, D: serde::Deserializer<'de>>(
    given: D,
) -> Result<myclaw_session::NamedBlob, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Kept {
        Blob(myclaw_session::NamedBlob),
        Path(String),
    }
    Ok(match Kept::deserialize(given)? {
        Kept::Blob(blob) => blob,
        Kept::Path(path) => {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            myclaw_session::NamedBlob { name, digest: None }
        }
    })
}

/// The author of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PartKind {
    /// The model.
    Reply,
    /// The gateway, which reports why there is no answer.
    Report,
}

/// How far a part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PartState {
    /// It waits.
    Queued,
    /// It is being sent. A part that is in this state at the start is uncertain.
    Sending {
        /// From 1.
        attempt: u32,
    },
    /// The channel has it.
    Sent {
        /// The channel's own id of the message.
        id: String,
    },
    /// The channel refused it for good.
    Failed {
        /// Why, for people.
        reason: String,
    },
    /// It may have been delivered, and the channel cannot say.
    Uncertain,
}

impl Incoming {
    /// A message without an answer.
    pub fn new(
        route: Route,
        source_id: String,
        session: String,
        text: String,
        accepted_at: u64,
    ) -> Self {
        let state = MessageState::Open;
        Self {
            route,
            source_id,
            session,
            text,
            context: None,
            origin: Origin::default(),
            images: Vec::new(),
            pictures: None,
            asked: None,
            calls: Vec::new(),
            is_cut: false,
            accepted_at,
            occasion: None,
            said: None,
            state,
        }
    }

    /// Everybody whose rules hold while it is worked on, as `channel:id`.
    pub(crate) fn senders(&self) -> impl Iterator<Item = &String> {
        let others = match &self.occasion {
            Some(Occasion::Result { senders, .. } | Occasion::Session { senders, .. }) => {
                &senders[..]
            }
            _ => &[],
        };
        let Origin { sender, other_sender, .. } = &self.origin;
        sender.iter().chain(other_sender).chain(others)
    }

    /// How many messages between sessions have led to it.
    pub(crate) fn hops(&self) -> u32 {
        match &self.occasion {
            Some(Occasion::Session { hops, .. }) => *hops,
            _ => 0,
        }
    }

    /// Whether it is a heartbeat.
    pub(crate) fn is_heartbeat(&self) -> bool {
        self.occasion == Some(Occasion::Heartbeat)
    }
}

impl MessageId {
    /// The id of the message that `route`'s channel and account deliver under `source_id`.
    pub fn of(route: &Route, source_id: &str) -> Self {
        Self(hash("m", &[&route.channel, &route.account, source_id]))
    }

    /// The id written as `text`; the text may name no message.
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id in the inbox and the log of the session.
    pub fn entry(&self) -> EntryId {
        EntryId::from_text(&self.0)
    }
}

impl PartId {
    /// The id of a part of what `said` says in a session to a route.
    pub fn of(session: &str, said: &str, route: &Route, part: usize) -> Self {
        let Route { channel, account, chat } = route;
        Self(hash("o", &[session, said, channel, account, chat, &part.to_string()]))
    }

    /// The id written as `text`.
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<String> for PartId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A short name for texts that together are unique. Each is preceded by its length, so that no two lists are alike.
pub(crate) fn hash(prefix: &str, texts: &[&str]) -> String {
    let joined: String = texts.iter().map(|text| format!("{}:{text}", text.len())).collect();
    let digest = digest(&SHA256, joined.as_bytes());
    format!("{prefix}{}", hex(&digest.as_ref()[..ID_DIGITS / 2]))
}

#[cfg(test)]
mod tests;
