//! What Telegram delivers, in our words.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::content::Loadable;
use crate::{Chat, ChatKind, FileOf, Quoted, Sender};

/// One thing that happened. Fields that this program does not use are left out.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Update {
    pub(super) update_id: i64,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    edited_message: Option<Message>,
    #[serde(default)]
    callback_query: Option<Press>,
}

/// A button that somebody pressed.
#[derive(Debug, Clone, Deserialize)]
struct Press {
    id: String,
    from: User,
    /// The message with the button. Telegram leaves out most of one that is old.
    #[serde(default)]
    message: Option<Message>,
    /// The command of the button, if the client of that person tells the truth.
    #[serde(default)]
    data: Option<String>,
}

/// A message, or a later version of it.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// Of a press: the command, as a message of the person who pressed the button.
    pub(super) message: Message,
    /// The id of the press, if somebody pressed a button of the message.
    pub(super) press: Option<String>,
    /// The id of the update, if it is a later version.
    pub(super) edit: Option<i64>,
    pub(super) update: i64,
}

impl Update {
    /// What somebody said.
    pub(super) fn said(self) -> Option<Said> {
        let id = self.update_id;
        let (message, edited) = (self.message, self.edited_message);
        let said = |message, edit| Said { message, press: None, edit, update: id };
        let pressed = self.callback_query.and_then(|press| press.said(id));
        let message = message.map(|message| said(message, None));
        message.or_else(|| edited.map(|message| said(message, Some(id)))).or(pressed)
    }
}

impl Press {
    /// What the person would have written. Nothing of the message with the button is theirs but its place.
    fn said(self, update: i64) -> Option<Said> {
        let (on, data) = (self.message?, self.data?);
        let message = Message {
            message_id: on.message_id,
            message_thread_id: on.message_thread_id,
            is_topic_message: on.is_topic_message,
            chat: on.chat,
            from: Some(self.from),
            text: Some(data),
            ..Message::default()
        };
        Some(Said { message, press: Some(self.id), edit: None, update })
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
    /// The album that it is a part of.
    pub(super) media_group_id: Option<String>,
    pub(super) migrate_to_chat_id: Option<i64>,
    pub(super) migrate_from_chat_id: Option<i64>,
    reply_to_message: Option<Box<Message>>,
    /// What is answered in another chat or topic; its fields are those of a message.
    external_reply: Option<Box<Message>>,
    quote: Option<TextQuote>,
    /// Everything else: what kind of message it is.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
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
    pub(super) title: Option<String>,
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
    pub(super) fn full_name(&self) -> String {
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
                other_id: None,
            },
            (None, Some(user)) => Sender {
                id: user.id.to_string(),
                name: Some(user.full_name()),
                handle: user.username.clone(),
                other_id: None,
            },
            (None, None) => {
                Sender { id: self.chat.id.to_string(), name: None, handle: None, other_id: None }
            }
        }
    }

    pub(super) fn chat(&self) -> Chat {
        let is_direct = self.chat.kind == "private";
        Chat {
            id: self.chat.id.to_string(),
            other_id: None,
            kind: if is_direct { ChatKind::Direct } else { ChatKind::Group },
            // Replies outside of forums have a thread id as well, which names no place.
            thread: self
                .message_thread_id
                .filter(|_| self.is_topic_message)
                .map(|thread| thread.to_string()),
            title: self.chat.title.clone(),
        }
    }

    fn entities(&self) -> &[Entity] {
        if self.text.is_some() { &self.entities } else { &self.caption_entities }
    }

    /// The text that is in it. The bot's own name at the start, and behind a command, is left out.
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
        // What is forwarded was said to somebody else.
        is_reply || (!self.is_forward() && self.entities().iter().any(is_mine))
    }

    /// The message that it answers. In a topic every message refers to the topic's first one, which says nothing.
    fn answered(&self) -> Option<&Message> {
        let is_said = |message: &&Message| !message.rest.contains_key("forum_topic_created");
        self.reply_to_message.as_deref().filter(is_said).or(self.external_reply.as_deref())
    }

    /// The files of the message that it answers.
    pub(super) fn answered_files(&self) -> Vec<Loadable> {
        let files = self.answered().map(Self::own_files).unwrap_or_default();
        files
            .into_iter()
            .map(|(file, attachment)| (file, attachment.of(FileOf::Answered)))
            .collect()
    }

    /// The id of the message of the same chat that it answers.
    pub(super) fn answered_id(&self) -> Option<String> {
        self.reply_to_message.as_ref().map(|message| message.message_id.to_string())
    }

    pub(super) fn quoted(&self) -> Option<Quoted> {
        let Some(message) = self.answered() else { return self.answered_story() };
        let quote = self.quote.as_ref().map(|quote| quote.text.clone());
        let text = quote.unwrap_or_else(|| message.described());
        let sender = match message.origin() {
            Some(author) if self.reply_to_message.is_none() => author,
            _ => {
                let sender = message.sender();
                sender.name.or(sender.handle)
            }
        };
        Some(Quoted { sender, text })
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
