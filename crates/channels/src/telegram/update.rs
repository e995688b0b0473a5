//! What Telegram delivers, in our words.

use serde::Deserialize;

use crate::taking::not_loaded;
use crate::{Attachment, Chat, ChatKind, Quoted, Sender};

/// One thing that happened. Fields that this program does not use are left out.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Update {
    pub(super) update_id: i64,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    edited_message: Option<Message>,
}

/// A message, or a later version of it.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) message: Message,
    /// The id of the update, if it is a later version.
    pub(super) edit: Option<i64>,
}

impl Update {
    /// What somebody said. A live location that moves is an edit which says nothing.
    pub(super) fn said(self) -> Option<Said> {
        let id = self.update_id;
        let edited = self.edited_message.filter(|message| message.location.is_none());
        let message = self.message.map(|message| Said { message, edit: None });
        message.or_else(|| edited.map(|message| Said { message, edit: Some(id) }))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) message_id: i64,
    message_thread_id: Option<i64>,
    is_topic_message: bool,
    from: Option<User>,
    sender_chat: Option<RawChat>,
    pub(super) chat: RawChat,
    text: Option<String>,
    caption: Option<String>,
    entities: Vec<Entity>,
    caption_entities: Vec<Entity>,
    photo: Vec<PhotoSize>,
    document: Option<File>,
    audio: Option<File>,
    voice: Option<File>,
    video: Option<File>,
    video_note: Option<File>,
    animation: Option<File>,
    sticker: Option<Sticker>,
    location: Option<Location>,
    contact: Option<Contact>,
    reply_to_message: Option<Box<Message>>,
    quote: Option<TextQuote>,
    forum_topic_created: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) id: i64,
    pub(super) is_bot: bool,
    pub(super) first_name: String,
    last_name: Option<String>,
    pub(super) username: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawChat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    kind: String,
    title: Option<String>,
    username: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Entity {
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
    length: usize,
    url: Option<String>,
    user: Option<User>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PhotoSize {
    file_id: String,
    file_size: Option<u64>,
    width: u64,
    height: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct File {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
    file_size: Option<u64>,
}

/// By what Telegram knows a file.
#[derive(Debug, Clone)]
pub(super) struct FileRef {
    pub(super) id: String,
    pub(super) size: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Sticker {
    emoji: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Location {
    latitude: f64,
    longitude: f64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Contact {
    phone_number: String,
    first_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TextQuote {
    text: String,
}

/// The bot's own account.
#[derive(Debug, Clone)]
pub(super) struct Me {
    pub(super) id: i64,
    pub(super) username: String,
}

impl User {
    fn full_name(&self) -> String {
        match &self.last_name {
            Some(last) => format!("{} {last}", self.first_name),
            None => self.first_name.clone(),
        }
    }
}

impl Message {
    pub(super) fn sender(&self) -> Sender {
        // An anonymous administrator, or a channel that writes in its group, has no account of its own.
        match (&self.sender_chat, &self.from) {
            (Some(chat), _) => Sender {
                id: chat.id.to_string(),
                name: chat.title.clone(),
                handle: chat.username.clone(),
            },
            (None, Some(user)) => Sender {
                id: user.id.to_string(),
                name: Some(user.full_name()),
                handle: user.username.clone(),
            },
            (None, None) => Sender { id: self.chat.id.to_string(), name: None, handle: None },
        }
    }

    pub(super) fn chat(&self) -> Chat {
        let is_direct = self.chat.kind == "private";
        Chat {
            id: self.chat.id.to_string(),
            kind: if is_direct { ChatKind::Direct } else { ChatKind::Group },
            // Replies outside of forums have a thread id as well, which names no place.
            thread: self
                .message_thread_id
                .filter(|_| self.is_topic_message)
                .map(|thread| thread.to_string()),
            title: self.chat.title.clone(),
        }
    }

    /// Whether people said something, as opposed to a note of the service such as "joined the group".
    pub(super) fn is_said(&self) -> bool {
        !self.text(None).is_empty() || self.has_files()
    }

    /// Its files, before they are downloaded.
    pub(super) fn files(&self) -> Vec<(FileRef, Attachment)> {
        let of = |id: &str, size, name: String, media_type| {
            let attachment = Attachment { name: Some(name), media_type, content: not_loaded() };
            (FileRef { id: id.to_owned(), size }, attachment)
        };
        let photo = self.photo.iter().max_by_key(|photo| photo.width * photo.height);
        let photo = photo.map(|photo| {
            let media_type = Some("image/jpeg".to_owned());
            of(&photo.file_id, photo.file_size, "photo.jpg".to_owned(), media_type)
        });
        // Telegram repeats an animation as a document.
        let document = self.document.as_ref().filter(|_| self.animation.is_none());
        let others = [
            (document, "file"),
            (self.audio.as_ref(), "audio"),
            (self.voice.as_ref(), "voice.ogg"),
            (self.video.as_ref(), "video.mp4"),
            (self.video_note.as_ref(), "video.mp4"),
            (self.animation.as_ref(), "animation.mp4"),
        ];
        let others = others.into_iter().filter_map(|(file, name)| {
            let file = file?;
            let name = file.file_name.clone().unwrap_or_else(|| name.to_owned());
            Some(of(&file.file_id, file.file_size, name, file.mime_type.clone()))
        });
        photo.into_iter().chain(others).collect()
    }

    fn has_files(&self) -> bool {
        let files = [
            &self.document,
            &self.audio,
            &self.voice,
            &self.video,
            &self.video_note,
            &self.animation,
        ];
        !self.photo.is_empty() || files.iter().any(|file| file.is_some())
    }

    fn entities(&self) -> &[Entity] {
        if self.text.is_some() { &self.entities } else { &self.caption_entities }
    }

    /// What it says. The bot's own name at the start, and behind a command, is left out.
    pub(super) fn text(&self, me: Option<&Me>) -> String {
        let mut text = self.text.as_ref().or(self.caption.as_ref()).cloned().unwrap_or_default();
        // From the end, so that earlier offsets stay valid.
        for entity in self.entities().iter().rev() {
            if let Some(url) = entity.url.as_ref().filter(|_| entity.kind == "text_link")
                && let Some(end) = byte_at(&text, entity.offset.saturating_add(entity.length))
            {
                text.insert_str(end, &format!(" ({url})"));
            }
        }
        if let Some(me) = me {
            let name = format!("@{}", me.username);
            let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
            if first.eq_ignore_ascii_case(&name) && !rest.trim().is_empty() {
                text = rest.trim_start().to_owned();
            } else if let Some((command, of)) = first.split_once('@')
                && command.starts_with('/')
                && of.eq_ignore_ascii_case(&me.username)
            {
                text = format!("{command} {rest}").trim_end().to_owned();
            }
        }
        let note = match (&self.sticker, &self.location, &self.contact) {
            (Some(sticker), _, _) => {
                Some(format!("[sticker {}]", sticker.emoji.as_deref().unwrap_or("without emoji")))
            }
            (_, Some(place), _) => {
                Some(format!("[location {}, {}]", place.latitude, place.longitude))
            }
            (_, _, Some(contact)) => {
                Some(format!("[contact {}, {}]", contact.first_name, contact.phone_number))
            }
            _ => None,
        };
        if let Some(note) = note {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&note);
        }
        text
    }

    /// Whether it is addressed to the bot.
    pub(super) fn mentions(&self, me: &Me) -> bool {
        let text = self.text.as_deref().or(self.caption.as_deref()).unwrap_or_default();
        let is_mine = |entity: &Entity| {
            let words = slice(text, entity.offset, entity.length).unwrap_or_default();
            let after_at = words.split_once('@').map(|(_, name)| name);
            match entity.kind.as_str() {
                "mention" => after_at.is_some_and(|name| name.eq_ignore_ascii_case(&me.username)),
                "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == me.id),
                // A command without a name is for every bot of the group that gets it.
                "bot_command" => {
                    after_at.is_none_or(|name| name.eq_ignore_ascii_case(&me.username))
                }
                _ => false,
            }
        };
        let is_reply = self
            .answered()
            .is_some_and(|message| message.from.as_ref().is_some_and(|user| user.id == me.id));
        is_reply || self.entities().iter().any(is_mine)
    }

    /// The message that it answers. In a topic every message refers to the topic's first one, which says nothing.
    fn answered(&self) -> Option<&Message> {
        self.reply_to_message.as_deref().filter(|message| message.forum_topic_created.is_none())
    }

    pub(super) fn quoted(&self) -> Option<Quoted> {
        let message = self.answered()?;
        let text =
            self.quote.as_ref().map_or_else(|| message.text(None), |quote| quote.text.clone());
        let text = if text.is_empty() { "[no text]".to_owned() } else { text };
        let sender = message.sender();
        Some(Quoted { sender: sender.name.or(sender.handle), text })
    }

    pub(super) fn is_from_bot(&self) -> bool {
        self.sender_chat.is_none() && self.from.as_ref().is_some_and(|user| user.is_bot)
    }
}

/// The byte at which a UTF-16 offset lies.
fn byte_at(text: &str, offset: usize) -> Option<usize> {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units == offset {
            return Some(at);
        }
        units += character.len_utf16();
    }
    (units == offset).then_some(text.len())
}

fn slice(text: &str, offset: usize, length: usize) -> Option<&str> {
    text.get(byte_at(text, offset)?..byte_at(text, offset.checked_add(length)?)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: serde_json::Value) -> Message {
        serde_json::from_value(value).expect("a message")
    }

    fn me() -> Me {
        Me { id: 9, username: "My_bot".to_owned() }
    }

    #[test]
    fn a_mention_is_an_entity_a_command_or_a_reply() {
        let said = |text: &str, kind: &str, offset: usize, length: usize| {
            message(json!({
                "message_id": 1, "chat": {"id": -1, "type": "group"}, "text": text,
                "entities": [{"type": kind, "offset": offset, "length": length}],
            }))
        };
        assert!(said("😀 @my_bot hi", "mention", 3, 7).mentions(&me()));
        assert!(!said("😀 @my_bot2 hi", "mention", 3, 8).mentions(&me()));
        assert!(!said("@my_bot", "url", 0, 7).mentions(&me()));
        assert!(said("/stop@My_bot", "bot_command", 0, 12).mentions(&me()));
        assert!(!said("/stop@other", "bot_command", 0, 11).mentions(&me()));
        assert!(!said("x", "mention", 7, usize::MAX).mentions(&me()));
        let reply = |root: serde_json::Value| {
            message(json!({"message_id": 2, "text": "x", "reply_to_message": root}))
        };
        let mut mine = json!({"message_id": 1, "from": {"id": 9}, "text": "said"});
        assert!(reply(mine.clone()).mentions(&me()));
        assert_eq!(reply(mine.clone()).quoted().map(|quoted| quoted.text), Some("said".to_owned()));
        mine["forum_topic_created"] = json!({"name": "topic"});
        assert!(!reply(mine.clone()).mentions(&me()));
        assert_eq!(reply(mine).quoted(), None);
    }

    #[test]
    fn the_own_name_is_left_out_and_hidden_links_are_shown() {
        let text = |text: &str| message(json!({"message_id": 1, "text": text})).text(Some(&me()));
        assert_eq!(text("@my_bot  hello"), "hello");
        assert_eq!(text("@my_bot"), "@my_bot");
        assert_eq!(text("/stop@my_bot now"), "/stop now");
        assert_eq!(text("/stop@other now"), "/stop@other now");
        let link = json!({
            "message_id": 1, "text": "😀 here it is",
            "entities": [{"type": "text_link", "offset": 3, "length": 4, "url": "https://x.y"}],
        });
        assert_eq!(message(link).text(None), "😀 here (https://x.y) it is");
    }
}
