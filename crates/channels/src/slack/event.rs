//! What Slack delivers, in our words.

use serde::Deserialize;
use serde_json::Value;

use super::content::Share;
use crate::passage;
use crate::{Attachment, ChatKind};

/// A message of the socket. Fields that this program does not use are left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Envelope {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Names what must be acknowledged.
    pub(super) envelope_id: Option<String>,
    /// Why Slack ends the connection.
    pub(super) reason: Option<String>,
    pub(super) payload: Value,
}

/// The payload of an envelope of the type `events_api`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Callback {
    pub(super) event: Event,
}

/// Why what programs say gets no answer.
const PROGRAM: &str = "a program sent it, and programs are not answered";

/// Something that happened.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    pub(super) channel: String,
    channel_type: Option<String>,
    pub(super) user: Option<String>,
    bot_id: Option<String>,
    text: Option<String>,
    pub(super) ts: String,
    thread_ts: Option<String>,
    parent_user_id: Option<String>,
    pub(super) files: Vec<File>,
    /// What a comment on a file is about, and says.
    file: Option<File>,
    comment: Option<Comment>,
    /// What is shared, and previews of links.
    pub(super) attachments: Vec<Share>,
    pub(super) blocks: Vec<Value>,
    edited: Option<Edited>,
    message: Option<Box<Event>>,
    previous_message: Option<Box<Event>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Edited {
    ts: String,
}

/// What a person wrote below a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Comment {
    user: Option<String>,
    comment: String,
}

/// A file that came with a message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct File {
    pub(super) id: String,
    name: Option<String>,
    /// Canvases, posts and lists may have no other name.
    title: Option<String>,
    pub(super) mimetype: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) url_private: Option<String>,
    /// How the bytes can be reached, if that is unusual.
    pub(super) file_access: Option<String>,
}

impl File {
    pub(super) fn name(&self) -> Option<&str> {
        let names = [&self.name, &self.title].into_iter().flatten();
        names.map(String::as_str).find(|name| !name.is_empty())
    }

    /// Metadata of the file; the content is fetched later.
    pub(super) fn attachment(&self) -> Attachment {
        Attachment::new(self.name().map(str::to_owned), self.mimetype.clone())
    }
}

/// A message of a person, or a later version of one.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) event: Event,
    /// The time of the edit, if it is a later version.
    pub(super) edit: Option<String>,
    /// The time of the press, if somebody pressed a button of the message of this time instead of writing the text.
    pub(super) press: Option<String>,
    /// Why it gets no answer, independent of who may write.
    pub(super) dropped: Option<String>,
}

impl Event {
    /// What a person says, in this chat, about the message of this time, which may be in a thread.
    pub(super) fn of_person(
        user: String,
        text: String,
        (channel, ts, thread_ts): (String, String, Option<String>),
    ) -> Self {
        Self { user: Some(user), text: Some(text), channel, ts, thread_ts, ..Self::default() }
    }

    /// What somebody said, or what Slack notes in a chat, such as that somebody joined. Changes that Slack makes itself are
    /// no messages.
    pub(super) fn said(self) -> Option<Said> {
        let is_message = matches!(self.kind.as_str(), "message" | "app_mention");
        if !is_message || self.channel.is_empty() || self.ts.is_empty() {
            return None;
        }
        let (event, edit) = match self.subtype.as_deref() {
            Some("message_changed") => {
                let mut event = *self.message?;
                // A preview of a link changes a message as well, and has no time of an edit.
                let edit = event.edited.as_ref()?.ts.clone();
                if self.previous_message.is_some_and(|before| before.text == event.text) {
                    return None;
                }
                event.channel = self.channel;
                event.channel_type = self.channel_type;
                (event, Some(edit))
            }
            Some("file_comment") => (self.with_comment(), None),
            _ => (self, None),
        };
        let dropped = match event.subtype.as_deref() {
            Some("bot_message") => Some(PROGRAM.to_owned()),
            _ if event.bot_id.is_some() => Some(PROGRAM.to_owned()),
            None | Some("file_share" | "file_comment" | "thread_broadcast" | "me_message") => {
                event.user.is_none().then(|| "it names no sender".to_owned())
            }
            Some(kind) => Some(format!("it is a note of Slack that nobody wrote ({kind})")),
        };
        Some(Said { event, edit, press: None, dropped })
    }

    /// A comment on a file as a message of its author with that file. The event's own text says in Slack's words that
    /// somebody commented.
    fn with_comment(mut self) -> Self {
        self.files.extend(self.file.take());
        if let Some(comment) = self.comment.take() {
            self.user = comment.user.or(self.user);
            self.text = Some(comment.comment);
        }
        self
    }

    /// Direct chats have ids that begin with `D`, which counts where the type is missing (`app_mention`).
    pub(super) fn chat_kind(&self) -> ChatKind {
        let is_direct = match self.channel_type.as_deref() {
            Some(kind) => matches!(kind, "im" | "app_home"),
            None => self.channel.starts_with('D'),
        };
        if is_direct { ChatKind::Direct } else { ChatKind::Group }
    }

    /// The thread that it is a reply in. The first message of a thread names itself.
    pub(super) fn thread(&self) -> Option<&str> {
        self.thread_ts.as_deref().filter(|thread| *thread != self.ts)
    }

    /// Whether it is addressed to the bot: by its name, or as a reply in a thread that the bot began.
    pub(super) fn mentions(&self, me: &str) -> bool {
        let is_reply = self.thread().is_some() && self.parent_user_id.as_deref() == Some(me);
        let raw = self.raw_text();
        is_reply || references(&raw).any(|reference| is_user(reference, me))
    }

    /// The people that its text names, by id.
    pub(super) fn people(&self) -> Vec<String> {
        let shares = self.attachments.iter().map(Share::raw_text);
        let texts: Vec<String> = std::iter::once(self.raw_text()).chain(shares).collect();
        let all = texts.iter().flat_map(|text| references(text));
        let users = all.filter_map(|reference| reference.strip_prefix('@'));
        users.map(|user| user.split('|').next().unwrap_or(user).to_owned()).collect()
    }

    /// What it says, as people see it. The bot's own name at the start is left out.
    pub(super) fn text(&self, me: &str, name_of: &dyn Fn(&str) -> Option<String>) -> String {
        let raw = self.raw_text();
        let mut rest = raw.trim();
        if let Some(after) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'))
            && is_user(after.0, me)
            && !after.1.trim().is_empty()
        {
            rest = after.1.trim_start();
        }
        let text = plain(rest, name_of);
        // What `/me` makes.
        match self.subtype.as_deref() {
            Some("me_message") => format!("* {text}"),
            _ => text,
        }
    }

    /// Its text; of a message that has only blocks, theirs.
    fn raw_text(&self) -> String {
        let text = self.text.clone().filter(|text| !text.trim().is_empty());
        text.unwrap_or_else(|| super::content::text_of_blocks(&self.blocks))
    }
}

/// A text of Slack as people see it.
pub(super) fn plain(mut rest: &str, name_of: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let Some((reference, behind)) = after.split_once('>') else {
            text.push('<');
            rest = after;
            continue;
        };
        text.push_str(&shown(reference, name_of));
        rest = behind;
    }
    text.push_str(rest);
    // The last one makes none of the others.
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What stands between `<` and `>` in a text of Slack.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(reference, _)| reference))
}

fn is_user(reference: &str, id: &str) -> bool {
    let user = reference.strip_prefix('@').unwrap_or_default();
    !id.is_empty() && user.split('|').next() == Some(id)
}

/// A reference as people see it ("Formatting message text", "Retrieving formatted messages").
fn shown(reference: &str, name_of: &dyn Fn(&str) -> Option<String>) -> String {
    let (target, label) = match reference.split_once('|') {
        Some((target, label)) => (target, Some(label).filter(|label| !label.is_empty())),
        None => (reference, None),
    };
    let mut characters = target.chars();
    match (characters.next(), label) {
        (Some('@'), _) => {
            let id = characters.as_str();
            passage::mention(name_of(id).as_deref().or(label).unwrap_or(id))
        }
        (Some('#'), label) => format!("#{}", passage::plain(label.unwrap_or(characters.as_str()))),
        (Some('!'), Some(label)) => passage::plain(label),
        (Some('!'), None) => {
            format!("@{}", characters.as_str().split('^').next().unwrap_or_default())
        }
        (_, Some(label)) if label != target && !target.ends_with(label) => {
            format!("{label} ({target})")
        }
        _ => target.strip_prefix("mailto:").unwrap_or(target).to_owned(),
    }
}

#[cfg(test)]
mod tests;
