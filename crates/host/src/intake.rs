//! Messages that come in.

use crate::home::make;
use crate::host::Shared;
use crate::ledger::now_ms;
use crate::rows::{AcceptedMessage, MessageState};
use crate::shared_directory::{FOR_CONTAINER, open_or_replace};
use crate::speech::is_speech;
use crate::{Folder, Host, HostError};

/// Longest id of a message, in bytes: it is part of the key of a record.
const MAX_ID: usize = 512;
/// Longest text of a message, in bytes.
const MAX_TEXT: usize = 256 * 1024;
/// Directory of a group for files that came with messages.
const ATTACHMENTS: &str = "attachments";

/// A message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// As the source names it. A second message of a chat with the same id is the same message.
    pub id: String,
    /// The chat.
    pub chat: String,
    /// Who wrote it, as the agent is shown it.
    pub sender: String,
    /// The text.
    pub text: String,
    /// When it was written, in milliseconds since the Unix epoch; now if it is absent.
    pub at_ms: Option<u64>,
    /// Whether it is for the agent.
    pub addressing: Addressing,
    /// Files that came with it, by names without anything that could be a path. They are put into the group's directory
    /// `attachments`.
    pub files: Vec<(String, Vec<u8>)>,
}

/// How it is decided whether a message is for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// By the group's rule and the text.
    ByText,
    /// It is: the channel knows.
    ToAgent,
}

/// What has become of a message. All but the last may be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is in the store and will be answered, or reported as not answered.
    ForAgent,
    /// It is in the store, and the agent sees it with the next message that is for it.
    Overheard,
    /// It was taken before.
    Known,
    /// The chat belongs to no group.
    NoGroup,
    /// It cannot be taken, and why.
    Unusable(String),
}

impl Host {
    /// Takes a message. When this returns, it may be acknowledged: it is in the store, or will never be answered.
    ///
    /// # Errors
    /// The store cannot be used. The message was not taken, or will be known when it is given again.
    pub async fn accept(&self, mut inbound: Inbound) -> Result<Accepted, HostError> {
        if let Some(problem) = unusable(&inbound) {
            return Ok(Accepted::Unusable(problem));
        }
        let groups = self.0.groups();
        let Some(group) = groups.of_chat(&inbound.chat) else {
            self.0.meet(inbound.chat, inbound.sender);
            return Ok(Accepted::NoGroup);
        };
        let is_addressed = inbound.addressing == Addressing::ToAgent
            || group.is_addressed(&inbound.text, &self.0.options.assistant);
        let shown = self.0.keep_files(&group.folder, &inbound)?;
        inbound.text.extend(shown);
        let is_spoken = inbound.files.iter().any(|(_, bytes)| is_speech(bytes));
        let guard = if is_spoken { Some(self.0.recordings.lock().await) } else { None };
        let unheard = match is_addressed && is_spoken {
            true => self.0.keep_recordings(&group.folder, &inbound)?,
            false => Vec::new(),
        };
        let state = if is_addressed { MessageState::Open } else { MessageState::Overheard };
        let key = message_key(&inbound.chat, &inbound.id);
        let row = AcceptedMessage {
            source_id: inbound.id,
            chat: inbound.chat,
            folder: group.folder.clone(),
            sender: inbound.sender,
            text: inbound.text,
            at_ms: inbound.at_ms.unwrap_or_else(now_ms),
            state,
            is_spoken,
            unheard,
        };
        let is_new = self.0.ledger.insert_message(&key, &row).await?;
        drop(guard);
        self.0.wake(&row.folder);
        self.0.listener_of(&row.folder).notify_one();
        Ok(match (is_new, is_addressed) {
            (false, _) => Accepted::Known,
            (true, true) => Accepted::ForAgent,
            (true, false) => Accepted::Overheard,
        })
    }

    /// The text of a message that was taken, by its chat and its id.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn text_of(&self, chat: &str, id: &str) -> Result<Option<String>, HostError> {
        Ok(self.0.ledger.message(&message_key(chat, id)).await?.map(|message| message.text))
    }
}

impl Shared {
    /// Puts the files of a message where the agent finds them, and says where. The same message gives the same names.
    fn keep_files(&self, folder: &Folder, inbound: &Inbound) -> Result<Vec<String>, HostError> {
        if inbound.files.is_empty() {
            return Ok(Vec::new());
        }
        let base = self.options.home.group(folder);
        make(&base)?;
        let io = |error| HostError::io("write files in", &base, error);
        let aside = (&*self.options.home.errors(), folder.as_str());
        make(aside.0)?;
        let directory = open_or_replace(&base, ATTACHMENTS, aside).map_err(io)?;
        let mut shown = Vec::new();
        for (number, (name, bytes)) in inbound.files.iter().enumerate() {
            let plain: String =
                inbound.id.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
            let name = format!("{plain}-{number}-{}", name.replace(['/', '\0'], "_"));
            directory.write(&name, bytes, FOR_CONTAINER).map_err(io)?;
            shown.push(format!("\n[the file {ATTACHMENTS}/{name} came with this message]"));
        }
        Ok(shown)
    }
}

fn message_key(chat: &str, id: &str) -> String {
    format!("{chat}\n{id}")
}

/// Why a message cannot be taken, if it cannot.
fn unusable(inbound: &Inbound) -> Option<String> {
    let Inbound { id, chat, text, .. } = inbound;
    if id.is_empty() || id.len() > MAX_ID {
        return Some(format!("its id must have 1 to {MAX_ID} bytes"));
    }
    if chat.is_empty() || chat.len() > crate::groups::MAX_JID || chat.contains('\n') {
        return Some("its chat is empty, too long, or has a line break".to_owned());
    }
    if (text.trim().is_empty() && inbound.files.is_empty()) || text.len() > MAX_TEXT {
        return Some(format!("its text must have 1 to {MAX_TEXT} bytes"));
    }
    None
}
