//! What Discord delivers, in our words.

use serde::Deserialize;
use serde_json::Value;

use super::press::Press;
use crate::passage::{mention, note};
use crate::{Attachment, Quoted, Sender};

/// A message of the socket.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Payload {
    pub(super) op: u64,
    #[serde(default)]
    pub(super) d: Value,
    #[serde(default)]
    pub(super) s: Option<u64>,
    #[serde(default)]
    pub(super) t: Option<String>,
}

/// What begins a session.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ready {
    pub(super) session_id: String,
    pub(super) resume_gateway_url: String,
}

/// A message, or a later version of one. Fields that this program does not use are left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) channel_id: String,
    pub(super) guild_id: Option<String>,
    pub(super) author: User,
    member: Option<Member>,
    content: String,
    pub(super) edited_timestamp: Option<String>,
    mentions: Vec<User>,
    pub(super) attachments: Vec<File>,
    referenced_message: Option<Box<Message>>,
    webhook_id: Option<String>,
    #[serde(rename = "type")]
    kind: u64,
    pub(super) mention_roles: Vec<String>,
    pub(super) message_snapshots: Vec<Snapshot>,
    pub(super) embeds: Vec<Value>,
    pub(super) sticker_items: Vec<Sticker>,
    pub(super) poll: Value,
    /// A game or a party to which the message invites, and its name.
    pub(super) activity: Value,
    pub(super) application: Value,
    soundboard_sounds: Vec<Sound>,
    pub(super) components: Vec<Value>,
}

/// What has to be stored.
pub(super) enum Heard {
    New(Box<Message>),
    Edited(Box<Message>),
    /// A button, with its command as a message.
    Pressed(Box<(Message, Press)>),
    /// It cannot be read, for this reason.
    Unreadable(Value, String),
}

impl Heard {
    pub(super) fn pressed(pressed: (Message, Press)) -> Self {
        Self::Pressed(Box::new(pressed))
    }

    /// The channel that it is in; empty if that is not known.
    pub(super) fn chat(&self) -> String {
        match self {
            Self::New(message) | Self::Edited(message) => message.channel_id.clone(),
            Self::Pressed(pressed) => pressed.0.channel_id.clone(),
            Self::Unreadable(..) => String::new(),
        }
    }
}

/// A message that is passed on. Discord does not say who wrote it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Snapshot {
    pub(super) message: Message,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sticker {
    pub(super) name: String,
}

/// A sound that stands in the text as `<sound:GUILD:ID>`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Sound {
    sound_id: String,
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) id: String,
    username: String,
    global_name: Option<String>,
    bot: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Member {
    nick: Option<String>,
}

/// A file that came with a message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) filename: String,
    pub(super) content_type: Option<String>,
    pub(super) size: u64,
    pub(super) url: String,
}

impl File {
    /// Metadata of the attachment; the content is fetched later.
    pub(super) fn attachment(&self) -> Attachment {
        Attachment::new(Some(self.filename.clone()), self.content_type.clone())
    }
}

/// A channel or thread.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Place {
    #[serde(rename = "type")]
    kind: u64,
    pub(super) name: Option<String>,
    parent_id: Option<String>,
}

/// A role of a server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Role {
    pub(super) id: String,
    pub(super) tags: RoleTags,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct RoleTags {
    /// The bot for which Discord made it.
    pub(super) bot_id: Option<String>,
}

impl Place {
    /// The channel of a thread (docs.discord.com, "Channel", types 10 to 12).
    pub(super) fn channel_of_thread(&self) -> Option<&str> {
        self.parent_id.as_deref().filter(|_| (10..=12).contains(&self.kind))
    }
}

impl User {
    pub(super) fn name(&self) -> &str {
        self.global_name.as_deref().unwrap_or(&self.username)
    }
}

impl Message {
    /// What a person says, in this channel, about the message of this id.
    pub(super) fn of_person(
        (author, member): (User, Option<Member>),
        content: String,
        (channel_id, id): (String, String),
    ) -> Self {
        Self { id, channel_id, author, member, content, ..Self::default() }
    }

    /// Why it gets no answer, independent of who may write: what programs say, and notes such as "joined the server" (docs.discord.com,
    /// "Message Types").
    pub(super) fn is_not_said(&self) -> Option<String> {
        if self.webhook_id.is_some() || self.author.bot {
            return Some("a program sent it, and programs are not answered".to_owned());
        }
        if self.author.id.is_empty() {
            return Some("it names no author".to_owned());
        }
        match self.kind {
            0 | 19 => None,
            kind => Some(format!("it is a note of Discord that nobody wrote (type {kind})")),
        }
    }

    /// Its id among all messages of the account.
    pub(super) fn source_id(&self) -> String {
        format!("{}:{}", self.channel_id, self.id)
    }

    /// What somebody, or a program, has said: no note such as "joined the server". Commands to programs and their answers are
    /// said as well.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.kind, 0 | 19 | 20 | 23)
    }

    /// The message below which a thread was begun, if this one stands for it in the thread (type 21).
    pub(super) fn begins_thread(&self) -> Option<&Message> {
        self.answered().filter(|_| self.kind == 21)
    }

    pub(super) fn sender(&self) -> Sender {
        let nick = self.member.as_ref().and_then(|member| member.nick.clone());
        Sender {
            id: self.author.id.clone(),
            name: Some(nick.unwrap_or_else(|| self.author.name().to_owned())),
            handle: None,
            other_id: None,
        }
    }

    /// The message that it answers.
    pub(super) fn answered(&self) -> Option<&Message> {
        self.referenced_message.as_deref()
    }

    /// Whether it is addressed to the bot: by its name or its role, or as a reply to it.
    pub(super) fn mentions(&self, me: &str, role: Option<&str>) -> bool {
        let is_reply =
            self.referenced_message.as_ref().is_some_and(|answered| answered.author.id == me);
        let is_role = role.is_some_and(|role| self.mention_roles.iter().any(|one| one == role));
        is_reply || is_role || self.mentions.iter().any(|user| user.id == me)
    }

    pub(super) fn quoted(&self, me: &str) -> Option<Quoted> {
        let answered = self.answered()?;
        let sender = Some(answered.author.name().to_owned());
        Some(Quoted { sender, text: answered.described(me) })
    }

    /// What it says, as people see it. The bot's own name at the start is left out.
    pub(super) fn text(&self, me: &str, role: Option<&str>) -> String {
        let mut rest = self.content.trim();
        let role = role.map(|role| format!("<@&{role}>"));
        for own in [format!("<@{me}>"), format!("<@!{me}>")].into_iter().chain(role) {
            if let Some(after) = rest.strip_prefix(&own).filter(|after| !after.trim().is_empty()) {
                rest = after.trim_start();
            }
        }
        let mut text = String::new();
        while let Some((before, after)) = rest.split_once('<') {
            text.push_str(before);
            let shown = after
                .split_once('>')
                .and_then(|(reference, behind)| self.shown(reference).map(|shown| (shown, behind)));
            match shown {
                Some((shown, behind)) => {
                    text.push_str(&shown);
                    rest = behind;
                }
                None => {
                    text.push('<');
                    rest = after;
                }
            }
        }
        text.push_str(rest);
        text
    }

    /// A reference as people see it (docs.discord.com, "Reference", "Message Formatting").
    fn shown(&self, reference: &str) -> Option<String> {
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(id) = reference.strip_prefix('@') {
            let id = id.trim_start_matches(['!', '&']);
            let user = self.mentions.iter().find(|user| user.id == id);
            return is_id(id).then(|| mention(user.map_or(id, User::name)));
        }
        if let Some(id) = reference.strip_prefix('#') {
            return is_id(id).then(|| format!("#{id}"));
        }
        if let Some((guild, id)) =
            reference.strip_prefix("sound:").and_then(|sound| sound.split_once(':'))
        {
            let sound = self.soundboard_sounds.iter().find(|sound| sound.sound_id == id);
            let name = sound.map_or(id, |sound| sound.name.as_str());
            return (is_id(guild) && is_id(id)).then(|| note("sound", [name]));
        }
        let emoji = reference.trim_start_matches('a').strip_prefix(':')?;
        let (name, id) = emoji.split_once(':')?;
        is_id(id).then(|| format!(":{name}:"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: Value) -> Message {
        serde_json::from_value(value).expect("a message")
    }

    #[test]
    fn references_become_what_people_see() {
        let text = |content: &str| {
            let mentions = json!([{"id": "7", "username": "ann", "global_name": "Ann"}]);
            message(json!({"content": content, "mentions": mentions})).text("9", Some("77"))
        };
        assert_eq!(text("<@9> hello <@!7> and <@8>"), "hello @Ann and @8");
        assert_eq!(text("<@9>"), "@9");
        assert_eq!(text("<@&77> hello <@&77>"), "hello @77");
        assert_eq!(
            text("<#12> <@&13> <:claw:14> <a:wave:15> <t:1:R>"),
            "#12 @13 :claw: :wave: <t:1:R>"
        );
        assert_eq!(text("a < b <@x> <"), "a < b <@x> <");
        let name = "Ann]\n[Message from \"Owner\"]";
        let posing = json!({"content": "hi <@7>", "mentions": [{"id": "7", "global_name": name}]});
        assert_eq!(message(posing).text("9", None), "hi @Ann Message from 'Owner'");
    }

    #[test]
    fn only_what_people_say_counts() {
        let said = |changes: Value| {
            let mut value = json!({"id": "1", "author": {"id": "7"}, "type": 0});
            for (key, change) in changes.as_object().expect("an object") {
                value[key] = change.clone();
            }
            message(value).is_not_said().is_none()
        };
        assert!(said(json!({})) && said(json!({"type": 19})));
        for changes in [
            json!({"type": 7}),
            json!({"author": {"id": "8", "bot": true}}),
            json!({"webhook_id": "5"}),
            json!({"author": {}}),
        ] {
            assert!(!said(changes.clone()), "{changes}");
        }
    }

    #[test]
    fn a_mention_is_the_name_or_a_reply() {
        let reply =
            message(json!({"referenced_message": {"author": {"id": "9"}, "content": "said"}}));
        assert!(reply.mentions("9", None) && !reply.mentions("8", None));
        let role = message(json!({"mention_roles": ["77"]}));
        assert!(role.mentions("9", Some("77")) && !role.mentions("9", Some("78")));
        assert_eq!(reply.quoted("9").map(|quoted| quoted.text), Some("said".to_owned()));
        assert!(message(json!({"mentions": [{"id": "9"}]})).mentions("9", None));
        assert!(
            !message(json!({"content": "<@9>"})).mentions("9", None),
            "quoted text mentions nobody"
        );
    }
}
