//! What messages say.

use ring::digest::{SHA256, digest};

use super::content;
use super::session::Mark;
use super::xml::{Element, ns};
use super::{Purpose, Refused, Said, XMPP, Xmpp, jid};
use crate::mention::{names, without_name};
use crate::{Arrival, Attachment, AttachmentContent, Chat, ChatKind, FileOf, Quoted, Sender};

/// Namespaces of encrypted messages.
const ENCRYPTED: [&str; 3] = [ns::OMEMO, ns::OMEMO_2, ns::OPENPGP];

/// A message of somebody.
pub(super) struct Heard {
    pub(super) arrival: Arrival,
    /// Addresses of files.
    pub(super) files: Vec<String>,
    /// Why it is not let through.
    pub(super) refused: Option<String>,
    pub(super) mark: Option<Mark>,
}

/// What a stanza of a message is.
pub(super) enum Reading {
    Message(Box<Heard>),
    /// A message of this account came back.
    Bounce {
        id: String,
        refused: Refused,
    },
    Nothing,
}

/// Who said something, and where.
struct Origin {
    chat: Chat,
    sender: Sender,
    /// The name of this account there.
    nick: Option<String>,
    refused: Option<String>,
}

impl Xmpp {
    /// Reads a message, also one from an archive.
    pub(super) fn read_message(&self, stanza: &Element) -> Reading {
        let from = stanza.attribute("from").unwrap_or_default();
        let is_own_server = from.is_empty() || jid::bare(from) == self.me();
        if stanza.attribute("type") == Some("error") {
            let id = stanza.attribute("id").unwrap_or_default().to_owned();
            // Only a recipient of a message can refuse it.
            let is_own = |said: &Said| said.sender.is_none().then_some(());
            return match self.said(&jid::bare(from), &id, is_own) {
                Some(()) => Reading::Bounce { id, refused: Refused::of(stanza) },
                None => Reading::Nothing,
            };
        }
        if let Some(result) = stanza.get("result", ns::MAM) {
            let archive = if is_own_server { self.me() } else { jid::bare(from) };
            return self.read_past(result, &archive);
        }
        // Copies of what other clients of the account receive and send were not asked for, so they are forged.
        let is_copy = |child: &Element| {
            child.namespace == ns::CARBONS && ["received", "sent"].contains(&child.name.as_str())
        };
        if is_own_server || stanza.children.iter().any(is_copy) {
            return Reading::Nothing;
        }
        let archive = match stanza.attribute("type") {
            Some("groupchat") => jid::bare(from),
            _ => self.me(),
        };
        // Somebody else's id of this archive proves nothing, and an archive that is not there gives none.
        let is_kept = self.has_archive(&archive);
        let id = stanza.children.iter().find(|child| {
            let by = child.attribute("by").map(jid::bare);
            child.is("stanza-id", ns::IDS) && by.as_deref() == Some(archive.as_str())
        });
        let id = id.and_then(|id| id.attribute("id")).filter(|_| is_kept);
        let mark = id.map(|id| Mark { archive, id: id.to_owned(), is_past: false });
        if mark.is_some() && self.was_stored(stanza) && !self.has_read_own_archive() {
            // The archive tells whether it was said before the first start; the server's offline store does not.
            return Reading::Nothing;
        }
        self.read_said(stanza, mark)
    }

    /// Whether the server stored a direct message before it delivered it (XEP-0203).
    fn was_stored(&self, message: &Element) -> bool {
        let server = jid::domain(&self.options.address);
        let delay = message.get("delay", ns::DELAY).and_then(|delay| delay.attribute("from"));
        message.attribute("type") != Some("groupchat")
            && delay.is_some_and(|from| jid::domain(from).eq_ignore_ascii_case(server))
    }

    fn has_read_own_archive(&self) -> bool {
        self.memory.lock().read_archives.contains(&self.me())
    }

    /// Reads what an archive says.
    fn read_past(&self, result: &Element, archive: &str) -> Reading {
        let forwarded = result.get("forwarded", ns::FORWARD);
        let message = forwarded.and_then(|forwarded| forwarded.get("message", ns::CLIENT));
        let (Some(message), Some(id)) = (message, result.attribute("id")) else {
            return Reading::Nothing;
        };
        let query = result.attribute("queryid").unwrap_or_default();
        let mut memory = self.memory.lock();
        let query = memory.queries.get_mut(query).filter(|query| query.archive == archive);
        match query.map(|query| &mut query.purpose) {
            Some(Purpose::CatchUp) => {}
            Some(Purpose::Look(found)) => {
                found.extend(message.attribute("id").map(str::to_owned));
                return Reading::Nothing;
            }
            Some(Purpose::End) | None => return Reading::Nothing,
        }
        drop(memory);
        let is_of_room = message.attribute("type") == Some("groupchat");
        if is_of_room == (archive == self.me()) {
            return Reading::Nothing;
        }
        let mark = Mark { archive: archive.to_owned(), id: id.to_owned(), is_past: true };
        self.read_said(message, Some(mark))
    }

    fn read_said(&self, message: &Element, mark: Option<Mark>) -> Reading {
        let is_past = mark.as_ref().is_some_and(|mark| mark.is_past);
        let Some(origin) = self.origin_of(message, is_past) else {
            if let Some(mark) = &mark {
                self.note_own(message, mark);
            }
            return Reading::Nothing;
        };
        let own_files = content::files_of(message);
        let text = content::said(message, text_of(message), &own_files);
        let passages = content::passages(message);
        let is_empty = text.trim().is_empty() && own_files.is_empty() && passages.is_empty();
        let refused = if is_encrypted(message) {
            Some("it is encrypted between people, which this channel cannot read".to_owned())
        } else if is_empty {
            // Typing, receipts and the like are no messages.
            let Some(reason) = content::unanswered(message) else { return Reading::Nothing };
            Some(reason)
        } else {
            origin.refused
        };
        let Origin { chat, sender, nick, .. } = origin;
        let own_id = own_id(message);
        let source_id = match &mark {
            Some(mark) => mark.id.clone(),
            None => fingerprint(&sender.id, own_id.unwrap_or_default(), &text),
        };
        // In a room, the room's id of a message is what others refer to.
        let reply_id = match chat.kind {
            ChatKind::Group => mark.as_ref().map(|mark| mark.id.as_str()).or(own_id),
            ChatKind::Direct => own_id,
        };
        let reply_id = reply_id.map(str::to_owned);
        let edits = self.edited(message, &chat.id, &sender.id);
        let answers = self.answered_id(message, &chat);
        let answered = self.answered(message, &chat.id);
        let is_reply_to_me = answered.as_ref().is_some_and(|(sender, ..)| sender.is_none());
        let mentions_me = chat.kind == ChatKind::Direct
            || is_reply_to_me
            || nick.iter().chain([&self.options.nick]).any(|nick| names(&text, nick))
            || text.to_lowercase().contains(&self.me());
        for id in own_id.into_iter().chain(reply_id.as_deref()) {
            let files = own_files.clone();
            self.note_said(&chat.id, id, &source_id, (Some(&sender.id), &text, files));
        }
        let text = match &nick {
            Some(nick) => without_name(&text, nick).to_owned(),
            None => text,
        };
        let answered_files = answered.as_ref().map(|(.., files)| files.clone()).unwrap_or_default();
        // What is not known may be from before a restart.
        let reply_to = match answered {
            Some((sender, text, _)) => {
                Some(Quoted { sender: sender.or_else(|| Some(self.options.nick.clone())), text })
            }
            None => message
                .get("reply", ns::REPLY)
                .map(|_| Quoted { sender: None, text: String::new() }),
        };
        let own = own_files.iter().map(|file| attachment(file));
        let others = answered_files.iter().map(|file| attachment(file).of(FileOf::Answered));
        let attachments = own.chain(others).collect();
        let files = own_files.iter().chain(&answered_files).cloned().collect();
        let arrival = Arrival {
            channel: XMPP.to_owned(),
            account: self.options.account.clone(),
            chat,
            source_id,
            reply_id,
            sender,
            text,
            passages,
            attachments,
            mentions_me,
            edits,
            reply_to,
            answers,
            ..Arrival::default()
        };
        Reading::Message(Box::new(Heard { arrival, files, refused, mark }))
    }

    /// The source id of the message of `sender` that this one corrects.
    fn edited(&self, message: &Element, chat: &str, sender: &str) -> Option<String> {
        let id = message.get("replace", ns::CORRECT)?.attribute("id")?;
        self.said(chat, id, |said| {
            (said.sender.as_deref() == Some(sender)).then(|| said.source_id.clone())
        })
    }

    /// Who said the message that this one answers, its text, and its files. The sender is `None` if it was this account.
    fn answered(
        &self,
        message: &Element,
        chat: &str,
    ) -> Option<(Option<String>, String, Vec<String>)> {
        let id = message.get("reply", ns::REPLY)?.attribute("id")?;
        self.said(chat, id, |said| {
            Some((said.sender.clone(), said.text.clone(), said.files.clone()))
        })
    }

    /// The id of the message that it answers. A room gives messages ids of its own, and showed those of this account.
    fn answered_id(&self, message: &Element, chat: &Chat) -> Option<String> {
        let id = message.get("reply", ns::REPLY)?.attribute("id")?;
        let own = |said: &Said| said.sender.is_none().then(|| said.source_id.clone());
        let of_room = match chat.kind {
            ChatKind::Group => self.said(&chat.id, id, own),
            ChatKind::Direct => None,
        };
        Some(of_room.unwrap_or_else(|| id.to_owned()))
    }

    /// Who said a message; `None` if it was this account, or nobody.
    fn origin_of(&self, message: &Element, is_past: bool) -> Option<Origin> {
        let from = message.attribute("from")?;
        let place = jid::bare(from);
        let memory = self.memory.lock();
        let room = memory.rooms.get(&place);
        if message.attribute("type") == Some("groupchat") {
            let (room, nick) = (room?, jid::resource(from)?);
            let person = match is_past {
                true => room.person_in(message),
                false => room.person(nick).map(str::to_owned),
            };
            let is_me = person.as_deref() == Some(self.me().as_str());
            if is_me || (person.is_none() && nick == room.nick) || (!is_past && nick == room.nick) {
                return None;
            }
            let id = person.unwrap_or_else(|| format!("{place}/{nick}"));
            return Some(Origin {
                chat: Chat {
                    id: place.clone(),
                    other_id: None,
                    kind: ChatKind::Group,
                    thread: None,
                    title: Some(jid::local(&place).to_owned()),
                },
                sender: Sender { id, name: Some(nick.to_owned()), handle: None, other_id: None },
                nick: Some(room.nick.clone()),
                refused: None,
            });
        }
        if place == self.me() {
            return None;
        }
        let (id, name, refused) = match room {
            // Behind a nickname can be anybody, and tomorrow somebody else.
            Some(_) => (
                format!("{place}/{}", jid::resource(from)?),
                jid::resource(from)?.to_owned(),
                Some("it came through a room, where a nickname proves nothing; people write to the account itself".to_owned()),
            ),
            None => {
                let is_headline = message.attribute("type") == Some("headline");
                let refused =
                    is_headline.then(|| "it is a headline, which asks for no answer".to_owned());
                (place.clone(), jid::local(&place).to_owned(), refused)
            }
        };
        Some(Origin {
            chat: Chat { id: id.clone(), ..Chat::default() },
            sender: Sender { id, name: Some(name), handle: None, other_id: None },
            nick: None,
            refused,
        })
    }

    /// Notes under which id a room shows a message of this account.
    fn note_own(&self, message: &Element, mark: &Mark) {
        if let Some(id) = own_id(message).filter(|_| mark.archive != self.me()) {
            let text = text_of(message);
            self.note_said(&mark.archive, &mark.id, id, (None, &text, Vec::new()));
            self.note_said(&mark.archive, id, &mark.id, (None, &text, Vec::new()));
        }
    }

    pub(super) fn note_said(
        &self,
        chat: &str,
        id: &str,
        source_id: &str,
        (sender, text, files): (Option<&str>, &str, Vec<String>),
    ) {
        let said = Said {
            source_id: source_id.to_owned(),
            sender: sender.map(str::to_owned),
            text: text.to_owned(),
            files,
        };
        self.memory.lock().said.put(&format!("{chat} {id}"), said);
    }

    /// What is known of a message.
    pub(super) fn said<T>(
        &self,
        chat: &str,
        id: &str,
        read: impl Fn(&Said) -> Option<T>,
    ) -> Option<T> {
        self.memory.lock().said.get(&format!("{chat} {id}")).and_then(read)
    }

    /// Downloads files.
    pub(super) async fn load_files(&self, addresses: &[String]) -> Vec<AttachmentContent> {
        let most = usize::try_from(self.options.most_file_bytes).unwrap_or(usize::MAX);
        let mut contents = Vec::with_capacity(addresses.len());
        for address in addresses {
            let fetched = match address.starts_with("aesgcm:") {
                true => Err("it is encrypted between people".to_owned()),
                false => (self.options.fetch)(address.clone(), most).await,
            };
            contents
                .push(fetched.map_or_else(AttachmentContent::Missing, AttachmentContent::Bytes));
        }
        contents
    }
}

/// A file, before it is downloaded.
fn attachment(address: &str) -> Attachment {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    let name = name
        .map(|name| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned());
    Attachment::new(name, None)
}

fn is_encrypted(message: &Element) -> bool {
    message.children.iter().any(|child| ENCRYPTED.contains(&child.namespace.as_str()))
}

/// The id that the sender gave.
fn own_id(message: &Element) -> Option<&str> {
    let origin = message.get("origin-id", ns::IDS).and_then(|origin| origin.attribute("id"));
    message.attribute("id").or(origin).filter(|id| !id.is_empty())
}

/// The text, without what repeats the message that it answers (XEP-0428).
fn text_of(message: &Element) -> String {
    let Some(body) = message.get("body", ns::CLIENT) else { return String::new() };
    let is_quote = |child: &&Element| {
        child.is("fallback", ns::FALLBACK) && child.attribute("for") == Some(ns::REPLY)
    };
    let quoted = message
        .children
        .iter()
        .find(is_quote)
        .filter(|_| message.get("reply", ns::REPLY).is_some());
    let range = quoted.and_then(|fallback| fallback.get("body", ns::FALLBACK));
    let number = |name| range?.attribute(name)?.parse::<usize>().ok();
    match (number("start"), number("end")) {
        (Some(start), Some(end)) if start < end => {
            let kept = |at: &usize| *at < start || *at >= end;
            let kept = body.text.chars().enumerate().filter(|(at, _)| kept(at));
            kept.map(|(_, character)| character).collect()
        }
        _ => body.text.clone(),
    }
}

/// Names a message where no archive does. Some clients use an id again for another message.
fn fingerprint(sender: &str, id: &str, text: &str) -> String {
    if id.is_empty() {
        return uuid::Uuid::new_v4().to_string();
    }
    let digest = digest(&SHA256, format!("{sender}\n{id}\n{text}").as_bytes());
    digest.as_ref().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
