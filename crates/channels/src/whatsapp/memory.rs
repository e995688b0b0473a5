//! What the process remembers of a number. None of it is needed for delivery.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use crate::recent::{MOST, Recent};
use crate::{Attachment, Quoted};

/// Longest text that is kept for quotes, in characters.
const MOST_CHARS: usize = 1_000;

/// The memory of a number.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The newest message of each chat that gets an answer.
    newest: HashMap<String, String>,
    /// Messages that are stored.
    stored: Recent<()>,
    /// What messages say, by their ids: WhatsApp only gives the id of the message that another one answers.
    texts: Recent<Quoted>,
    /// The files of messages, by the ids of those.
    files: Recent<(String, Attachment)>,
    /// The ids of messages of ours that Meta has spoken of, by their parts.
    confirmed: Recent<String>,
    /// Chats in which a template was sent since their last message.
    invited: HashSet<String>,
    /// Chats whose messages are being taken.
    busy: HashMap<String, Weak<tokio::sync::Mutex<()>>>,
}

impl Memory {
    /// What messages of a chat hold while they are taken, so that they stay in order.
    pub(super) fn order(&mut self, chat: &str) -> Arc<tokio::sync::Mutex<()>> {
        if let Some(order) = self.busy.get(chat).and_then(Weak::upgrade) {
            return order;
        }
        self.busy.retain(|_, order| order.strong_count() > 0);
        let order = Arc::default();
        self.busy.insert(chat.to_owned(), Arc::downgrade(&order));
        order
    }

    pub(super) fn is_stored(&self, message: &str) -> bool {
        self.stored.get(message).is_some()
    }

    pub(super) fn note_stored(&mut self, message: &str) {
        self.stored.put(message, ());
    }

    /// Notes that a message of a chat gets an answer.
    pub(super) fn note_newest(&mut self, chat: &str, message: &str) {
        self.invited.remove(chat);
        if self.newest.len() >= MOST && !self.newest.contains_key(chat) {
            self.newest.clear();
        }
        self.newest.insert(chat.to_owned(), message.to_owned());
    }

    pub(super) fn newest(&self, chat: &str) -> Option<String> {
        self.newest.get(chat).cloned()
    }

    pub(super) fn note_text(&mut self, message: &str, sender: Option<String>, text: &str) {
        let text: String = text.chars().take(MOST_CHARS).collect();
        if !text.is_empty() {
            self.texts.put(message, Quoted { sender, text });
        }
    }

    pub(super) fn note_file(&mut self, message: &str, file: Option<(String, Attachment)>) {
        if let Some(file) = file {
            self.files.put(message, file);
        }
    }

    /// What a message says, and its file with the id that WhatsApp gave it.
    pub(super) fn quoted(&self, message: &str) -> Option<(Quoted, Option<(String, Attachment)>)> {
        let (text, file) = (self.texts.get(message).cloned(), self.files.get(message).cloned());
        let silent = || file.is_some().then(|| Quoted { sender: None, text: String::new() });
        Some((text.or_else(silent)?, file))
    }

    pub(super) fn confirm(&mut self, part: &str, message: &str) {
        self.confirmed.put(part, message.to_owned());
    }

    pub(super) fn confirmed(&self, part: &str) -> Option<String> {
        self.confirmed.get(part).cloned()
    }

    /// Notes that a template is sent to a chat. False if one was, and nobody has answered.
    pub(super) fn invite(&mut self, chat: &str) -> bool {
        if self.invited.len() >= MOST {
            self.invited.clear();
        }
        self.invited.insert(chat.to_owned())
    }
}
