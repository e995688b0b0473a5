//! Messages that come in, and how a channel hands them over.

use std::fmt;

use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use crate::Account;
use crate::passage::Passage;
use crate::pause::Pause;

/// Separates a chat from the thread within it.
const THREAD: &str = ":thread:";
/// Why a message is dropped that holds no text, passage or file.
pub(crate) const NOTHING_SHOWN: &str = "it holds nothing that can be shown";

/// Reply to a press of a button that has no effect.
pub(crate) const NOT_YOURS: &str = "This button is not for you.";

/// A message that somebody sent through a channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Name of the channel.
    pub channel: String,
    /// The account of the channel that received it.
    pub account: String,
    /// Where it was said.
    pub chat: Chat,
    /// The channel's own id of the message, unique in the account. The same id again is the same message.
    pub source_id: String,
    /// The channel's id of the message to which an answer can refer, if there is one.
    pub reply_id: Option<String>,
    /// Who sent it.
    pub sender: Sender,
    /// What the sender wrote; may be empty if there is something else.
    pub text: String,
    /// What is in it besides that: forwards, shares, previews, polls, and earlier messages of its thread.
    pub passages: Vec<Passage>,
    /// Files and pictures, also those of the message that it answers and of what it passes on.
    pub attachments: Vec<Attachment>,
    /// Whether it is addressed to the agent: by name, by command, or as a reply to one of its messages.
    pub mentions_me: bool,
    /// The `source_id` of the message of which it is a later version, if somebody edited it.
    pub edits: Option<String>,
    /// The message that it refers to.
    pub reply_to: Option<Quoted>,
    /// The channel's id of the message that it refers to, as [`Channel::send`](crate::Channel::send) names messages.
    pub answers: Option<String>,
    /// Whether somebody pressed a button instead of writing the text, which is the command of the button. It may be any
    /// text: what a button says is checked as little as what people write.
    pub is_press: bool,
}

impl Arrival {
    /// Whether it is nothing but a text of its sender.
    pub fn is_plain(&self) -> bool {
        let is_own = |attachment: &Attachment| attachment.of == FileOf::Message;
        self.passages.iter().all(Passage::is_earlier) && !self.attachments.iter().any(is_own)
    }
}

/// Where a message was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chat {
    /// The channel's id of the chat.
    pub id: String,
    /// Another id of the same chat, which counts in the config as well: Telegram's groups get one when they grow.
    pub other_id: Option<String>,
    /// One person, or several.
    pub kind: ChatKind,
    /// The thread or topic within the chat.
    pub thread: Option<String>,
    /// The chat's name, for people.
    pub title: Option<String>,
}

/// Who is in a chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ChatKind {
    /// One person.
    #[default]
    Direct,
    /// Several people.
    Group,
}

/// Who sent a message. Names are chosen by the sender and prove nothing; only the id does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sender {
    /// The channel's id of the person.
    pub id: String,
    /// Another id of the same person, which proves as much: Signal knows people by a number and by a UUID.
    pub other_id: Option<String>,
    /// The name shown to people.
    pub name: Option<String>,
    /// The unique name of the person in the channel, without `@`.
    pub handle: Option<String>,
}

/// A message that another one refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    /// Who sent it, for people.
    pub sender: Option<String>,
    /// What it says; empty if it had only files, or if that is not known.
    pub text: String,
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The file name that the sender gave; may be anything.
    pub name: Option<String>,
    /// The media type that the sender gave; may be wrong.
    pub media_type: Option<String>,
    /// Its bytes, or the reason why they are missing.
    pub content: AttachmentContent,
    /// Which part of the message it belongs to.
    pub of: FileOf,
}

impl Attachment {
    /// Metadata of a file of the message itself; the content is downloaded later.
    pub fn new(name: Option<String>, media_type: Option<String>) -> Self {
        let content = AttachmentContent::Missing("it was not downloaded".to_owned());
        Self { name, media_type, content, of: FileOf::Message }
    }

    /// The same as a file of something else.
    #[must_use]
    pub fn of(self, of: FileOf) -> Self {
        Self { of, ..self }
    }
}

/// The part of a message that a file belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileOf {
    /// The message itself.
    #[default]
    Message,
    /// The message that it answers.
    Answered,
    /// A [`Passage`].
    Passage,
}

/// The bytes of an attachment.
#[derive(Clone, PartialEq, Eq)]
pub enum AttachmentContent {
    /// All of them.
    Bytes(Vec<u8>),
    /// It was not downloaded, for this reason.
    Missing(String),
}

impl fmt::Debug for AttachmentContent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(out, "Bytes({})", bytes.len()),
            Self::Missing(reason) => write!(out, "Missing({reason})"),
        }
    }
}

/// Where parts go: a chat, and the thread in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The channel's id of the chat.
    pub chat: String,
    /// The thread or topic within the chat.
    pub thread: Option<String>,
}

impl Target {
    /// The chat and the thread in one text, as session keys write them.
    pub fn to_text(&self) -> String {
        match &self.thread {
            Some(thread) => format!("{}{THREAD}{thread}", self.chat),
            None => self.chat.clone(),
        }
    }

    /// Reads what [`Target::to_text`] wrote.
    pub fn from_text(text: &str) -> Self {
        match text.rsplit_once(THREAD) {
            Some((chat, thread)) if !chat.is_empty() && !thread.is_empty() => {
                Self { chat: chat.to_owned(), thread: Some(thread.to_owned()) }
            }
            _ => Self { chat: text.to_owned(), thread: None },
        }
    }
}

impl Chat {
    /// Where the answer to a message of this chat goes.
    pub fn target(&self) -> Target {
        Target { chat: self.id.clone(), thread: self.thread.clone() }
    }
}

/// Takes messages from channels.
pub trait Intake: Send + Sync + 'static {
    /// Takes a message. When this returns a receipt, the message is on disk, and its source may be told so. The same
    /// message again gives the same receipt.
    ///
    /// # Errors
    /// The message is not on disk.
    fn take(&self, arrival: Arrival) -> BoxFuture<'_, Result<Receipt, Refusal>>;

    /// Whether the files of a message are wanted: it will be answered, and is not on disk yet. Its attachments need no
    /// content for this question.
    ///
    /// # Errors
    /// It cannot be told.
    fn wants_files<'a>(&'a self, arrival: &'a Arrival) -> BoxFuture<'a, Result<bool, Refusal>>;

    /// Stores a message that its channel refuses, such as one with a forged sender. It gets no answer, and the
    /// owner sees it with the reason.
    ///
    /// # Errors
    /// The message is not on disk.
    fn refuse(&self, arrival: Arrival, reason: String) -> BoxFuture<'_, Result<Receipt, Refusal>>;

    /// What a channel asked to be kept under `key`, if anything.
    ///
    /// # Errors
    /// It cannot be read.
    fn recall<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<String>, Refusal>>;

    /// Keeps a text for a channel, such as how far it has read. It is on disk when this returns. One task may use a key.
    ///
    /// # Errors
    /// It is not on disk.
    fn remember<'a>(&'a self, key: &'a str, text: &'a str) -> BoxFuture<'a, Result<(), Refusal>>;

    /// Notes that the part `part`, which the vendor had accepted, was not delivered, for this reason. It is on disk when
    /// this returns. A part that is not known is no error.
    ///
    /// # Errors
    /// It is not on disk, or the part is still being sent. The vendor has to say it again.
    fn undelivered<'a>(
        &'a self,
        part: &'a str,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), Refusal>>;
}

/// Stores a message that nobody answers, for this reason.
///
/// # Errors
/// It is not on disk, and has to be handed over again.
pub(crate) async fn store_dropped(
    intake: &dyn Intake,
    arrival: Arrival,
    reason: impl Into<String>,
) -> Result<(), String> {
    match intake.refuse(arrival, reason.into()).await {
        Ok(_) => Ok(()),
        Err(Refusal::Unusable(reason)) => {
            tracing::warn!(%reason, "a message cannot be stored");
            Ok(())
        }
        Err(Refusal::Later(reason)) => Err(reason),
    }
}

/// Where a vendor's messages say in which chat they are, and who sent them: JSON pointers, the first that fits counts.
pub(crate) struct Whereabouts {
    pub(crate) chats: &'static [&'static str],
    pub(crate) senders: &'static [&'static str],
}

/// Stores what a vendor delivered and what cannot be read, for this reason, so that the owner sees that there was something.
/// The same `raw` again is the same message.
///
/// # Errors
/// It is not on disk, and has to be handed over again.
pub(crate) async fn store_unreadable(
    intake: &dyn Intake,
    account: &Account,
    raw: &Value,
    Whereabouts { chats, senders }: &Whereabouts,
    reason: impl fmt::Display,
) -> Result<(), String> {
    let found = |pointers: &[&str]| {
        let named = pointers.iter().find_map(|pointer| raw.pointer(pointer));
        match named {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => "unknown".to_owned(),
        }
    };
    let text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
    let arrival = Arrival {
        channel: account.channel().to_owned(),
        account: account.name().to_owned(),
        chat: Chat { id: found(chats), ..Chat::default() },
        source_id: hash(text.as_bytes()),
        sender: Sender { id: found(senders), ..Sender::default() },
        text,
        ..Arrival::default()
    };
    tracing::error!(channel = account.channel(), %reason, "a message cannot be read");
    store_dropped(intake, arrival, format!("it cannot be read: {reason}")).await
}

/// The id that is given to a message without one.
pub(crate) fn hash(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hands a message over until it is on disk, because nobody says it again. One with the reason `refused` is not let through.
pub(crate) async fn take_for_sure(intake: &dyn Intake, arrival: Arrival, refused: Option<String>) {
    let mut pause = Pause::new();
    loop {
        let taken = match &refused {
            Some(reason) => intake.refuse(arrival.clone(), reason.clone()).await,
            None => intake.take(arrival.clone()).await,
        };
        match taken {
            Ok(_) => return,
            Err(Refusal::Unusable(reason)) => {
                return tracing::warn!(%reason, "a message cannot be used");
            }
            Err(Refusal::Later(reason)) => {
                tracing::warn!(%reason, "a message cannot be taken; trying again");
                pause.wait().await;
            }
        }
    }
}

/// What became of a message that is on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The id under which it is stored.
    pub id: String,
    /// Why it gets no answer; `None` if it gets one.
    pub dropped: Option<String>,
}

/// Why a message is not on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It will never be taken. The source may forget it.
    Unusable(String),
    /// It may be taken later. The source must keep it.
    Later(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(reason) | Self::Later(reason) => out.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn a_target_is_read_as_it_was_written() {
        for (chat, thread) in [("-100", None), ("-100", Some("7")), ("a:thread:b", Some("c"))] {
            let target = Target { chat: chat.to_owned(), thread: thread.map(str::to_owned) };
            assert_eq!(Target::from_text(&target.to_text()), target);
        }
        assert_eq!(Target::from_text(":thread:x").chat, ":thread:x");
    }
}
