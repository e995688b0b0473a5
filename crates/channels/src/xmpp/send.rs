//! Messages that go out.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::xml::{Element, ns};
use super::{Done, Xmpp, jid};
use crate::marks::marked;
use crate::{Live, Part, SendFailure, Target};

/// What stands around blocks of code.
const FENCES: [&str; 2] = ["```\n", "\n```"];
/// How often it is said that an answer is being made. Clients show it for half a minute.
const TYPING_PAUSE: Duration = Duration::from_secs(20);

impl Xmpp {
    /// Whether a chat is one of the rooms.
    pub(super) fn is_room(&self, chat: &str) -> bool {
        self.options.rooms.iter().any(|room| room == chat)
    }

    /// A message to a chat, without an id.
    fn message_to(&self, chat: &str) -> Element {
        let kind = if self.is_room(chat) { "groupchat" } else { "chat" };
        Element::new("message", ns::CLIENT).with("to", chat).with("type", kind)
    }

    /// A message under the id of a part, by which it is found again.
    pub(super) fn message_of(&self, part: &Part) -> Element {
        self.message_to(&part.target.chat)
            .with("id", &part.id)
            .child(Element::new("origin-id", ns::IDS).with("id", &part.id))
    }

    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        self.check_chat(&part.target.chat)?;
        let (text, message) = match &part.file {
            Some(file) => {
                let address = self.upload(file).await?;
                let url = Element::new("url", ns::OOB).say(&address);
                let oob = Element::new("x", ns::OOB).child(url);
                (address, self.message_of(part).child(oob))
            }
            None => (text_of(part)?, self.message_of(part)),
        };
        let mut message = message
            .child(Element::new("body", ns::CLIENT).say(&text))
            .child(Element::new("active", ns::CHAT_STATES));
        if let Some(answered) = &part.reply_to {
            message = message.child(Element::new("reply", ns::REPLY).with("id", answered));
        }
        self.deliver(&part.target.chat, message).await?;
        Ok(part.id.clone())
    }

    pub(super) async fn send_reaction(&self, part: &Part, id: &str) -> Result<(), SendFailure> {
        let reaction = Element::new("reaction", ns::REACTIONS).say(part.text.trim());
        let reactions = Element::new("reactions", ns::REACTIONS).with("id", id).child(reaction);
        let message = self.message_of(part).child(reactions);
        self.deliver(&part.target.chat, message.child(Element::new("store", ns::HINTS))).await
    }

    pub(super) async fn send_correction(&self, part: &Part, id: &str) -> Result<(), SendFailure> {
        let message = self
            .message_of(part)
            .child(Element::new("body", ns::CLIENT).say(&text_of(part)?))
            .child(Element::new("replace", ns::CORRECT).with("id", id));
        self.deliver(&part.target.chat, message).await
    }

    pub(super) async fn send_retraction(&self, part: &Part, id: &str) -> Result<(), SendFailure> {
        let chat = &part.target.chat;
        // A room names its messages itself, and told this name when it showed the message.
        let id = match self.is_room(chat) {
            true => self.said(chat, id, |said| Some(said.source_id.clone())),
            false => Some(id.to_owned()),
        };
        let id = id.ok_or_else(|| never("the room's id of the message is not known any more"))?;
        let message = self
            .message_of(part)
            .child(Element::new("retract", ns::RETRACT).with("id", &id))
            .child(Element::new("fallback", ns::FALLBACK).with("for", ns::RETRACT))
            .child(Element::new("body", ns::CLIENT).say("This message was withdrawn."))
            .child(Element::new("store", ns::HINTS));
        self.deliver(chat, message).await
    }

    fn check_chat(&self, chat: &str) -> Result<(), SendFailure> {
        if !jid::is_address(chat) {
            return Err(never("this is no address of XMPP, such as ann@example.org"));
        }
        let later = |reason: &str| SendFailure::Later { after: None, reason: reason.to_owned() };
        let memory = self.memory.lock();
        if memory.outgoing.is_none() || !memory.is_present {
            return Err(later("not connected"));
        }
        match memory.rooms.get(chat).map_or(!self.is_room(chat), |room| room.is_joined) {
            true => Ok(()),
            false => Err(later("the room is not joined")),
        }
    }

    /// Sends a message until the server has it.
    async fn deliver(&self, chat: &str, message: Element) -> Result<(), SendFailure> {
        self.check_chat(chat)?;
        self.pace.wait(chat).await;
        let id = message.attribute("id").unwrap_or_default();
        let text = message.get("body", ns::CLIENT).map_or("", |body| body.text.as_str());
        self.note_said(chat, id, id, (None, text, Vec::new()));
        let (sender, delivered) = oneshot::channel();
        if !self.put(message, Done::Delivered(sender)).await {
            let reason = "not connected".to_owned();
            return Err(SendFailure::Later { after: None, reason });
        }
        // Another connection may continue the session, so there is no limit for this.
        delivered.await.unwrap_or_else(|_| {
            let reason = "the session ended before the server had acknowledged it".to_owned();
            Err(SendFailure::Unknown { reason })
        })
    }
}

fn never(reason: &str) -> SendFailure {
    SendFailure::Never { reason: reason.to_owned() }
}

/// The text of a part, with the marks of XEP-0393.
fn text_of(part: &Part) -> Result<String, SendFailure> {
    let text = marked(&part.text, FENCES);
    match (text.trim().is_empty(), part.text.trim().is_empty()) {
        (_, true) => Err(never("there is no text")),
        // A message of nothing but marks.
        (true, false) => Ok(part.text.clone()),
        (false, false) => Ok(text),
    }
}

impl Live for Xmpp {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.check_chat(&target.chat).is_err() {
                return;
            }
            let message = self
                .message_to(&target.chat)
                .child(Element::new("composing", ns::CHAT_STATES))
                .child(Element::new("no-store", ns::HINTS));
            self.put(message, Done::Nobody).await;
        })
    }

    fn typing_pause(&self) -> Duration {
        TYPING_PAUSE
    }
}
