//! What signal-cli delivers, in our words.

use serde::Deserialize;

use crate::form::file_name;
use crate::mention::without_name;
use crate::taking::not_loaded;
use crate::{Attachment, Chat, ChatKind, Quoted, Sender};

/// An event of the stream. Fields that this program does not use are left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) envelope: Envelope,
}

/// A message with its sender. Receipts, typing, calls and what other devices of the account have sent have no data
/// message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Envelope {
    source_number: Option<String>,
    source_uuid: Option<String>,
    source_name: Option<String>,
    data_message: Option<Data>,
    edit_message: Option<Edit>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Edit {
    target_sent_timestamp: u64,
    data_message: Data,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data {
    /// Milliseconds since 1970; with the sender it is the id of the message.
    pub(super) timestamp: u64,
    message: Option<String>,
    group_info: Option<Group>,
    quote: Option<Quote>,
    mentions: Vec<Mention>,
    pub(super) attachments: Vec<File>,
    sticker: Option<Sticker>,
    contacts: Vec<Card>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Group {
    group_id: String,
    group_name: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Quote {
    author_number: Option<String>,
    author_uuid: Option<String>,
    text: Option<String>,
}

/// The place of a name in the text, in UTF-16 units. One character stands there instead.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Mention {
    name: Option<String>,
    number: Option<String>,
    uuid: Option<String>,
    start: usize,
    length: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct File {
    pub(super) id: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) filename: Option<String>,
    pub(super) size: Option<u64>,
}

impl File {
    /// It, before it is downloaded.
    pub(super) fn attachment(&self) -> Attachment {
        let given = self.filename.clone().filter(|name| !name.is_empty());
        let name = given.unwrap_or_else(|| file_name("file", self.content_type.as_deref()));
        Attachment {
            name: Some(name),
            media_type: self.content_type.clone(),
            content: not_loaded(),
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Sticker {
    emoji: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Card {
    name: CardName,
    phone: Vec<CardPhone>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct CardName {
    display: Option<String>,
    given: Option<String>,
    family: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct CardPhone {
    value: Option<String>,
}

/// What somebody said.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) data: Data,
    /// The time of the message of which it is a later version.
    pub(super) edits: Option<u64>,
    pub(super) sender: Sender,
}

impl Envelope {
    /// What somebody else than the account `own` said. Reactions, removals and changes of groups say nothing.
    pub(super) fn said(self, own: &str) -> Option<Said> {
        let (data, edits) = match (self.data_message, self.edit_message) {
            (Some(data), _) => (data, None),
            (None, Some(edit)) => (edit.data_message, Some(edit.target_sent_timestamp)),
            (None, None) => return None,
        };
        let is_own =
            [&self.source_number, &self.source_uuid].into_iter().flatten().any(|id| id == own);
        let id = self.source_number.or(self.source_uuid).filter(|id| !id.is_empty())?;
        if is_own || (data.attachments.is_empty() && data.text().is_empty()) {
            return None;
        }
        let name = self.source_name.filter(|name| !name.is_empty());
        Some(Said { data, edits, sender: Sender { id, name, handle: None } })
    }
}

impl Said {
    pub(super) fn chat(&self) -> Chat {
        match &self.data.group_info {
            Some(group) => Chat {
                id: group.group_id.clone(),
                kind: ChatKind::Group,
                thread: None,
                title: group.group_name.clone(),
            },
            None => Chat {
                id: self.sender.id.clone(),
                kind: ChatKind::Direct,
                thread: None,
                title: None,
            },
        }
    }
}

impl Data {
    /// The text, with the names of the people that it mentions.
    pub(super) fn text(&self) -> String {
        let mut units: Vec<u16> =
            self.message.as_deref().unwrap_or_default().encode_utf16().collect();
        let mut mentions: Vec<&Mention> = self.mentions.iter().collect();
        // From the end, so that the places before it stay right.
        mentions.sort_by_key(|mention| std::cmp::Reverse(mention.start));
        for mention in mentions {
            let end = mention.start.saturating_add(mention.length);
            if end <= units.len() {
                units.splice(mention.start..end, format!("@{}", mention.shown()).encode_utf16());
            }
        }
        let mut lines = vec![String::from_utf16_lossy(&units)];
        if let Some(sticker) = &self.sticker {
            lines.push(format!("[sticker {}]", sticker.emoji.as_deref().unwrap_or_default()));
        }
        lines.extend(self.contacts.iter().map(Card::said));
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }

    /// [`Data::text`] without the name of `own` at the start.
    pub(super) fn text_for(&self, own: &str) -> String {
        let text = self.text();
        let is_first = |it: &&Mention| it.start == 0 && is_either(own, &it.number, &it.uuid);
        match self.mentions.iter().find(is_first) {
            Some(mention) => without_name(&text, mention.shown()).to_owned(),
            None => text,
        }
    }

    /// Whether it mentions `own`, or answers it.
    pub(super) fn mentions(&self, own: &str) -> bool {
        let is_answer = |it: &Quote| is_either(own, &it.author_number, &it.author_uuid);
        self.mentions.iter().any(|mention| is_either(own, &mention.number, &mention.uuid))
            || self.quote.as_ref().is_some_and(is_answer)
    }

    pub(super) fn quoted(&self) -> Option<Quoted> {
        let quote = self.quote.as_ref()?;
        let text = quote.text.clone().filter(|text| !text.is_empty())?;
        let sender = quote.author_number.clone().or_else(|| quote.author_uuid.clone());
        Some(Quoted { sender, text })
    }
}

impl Mention {
    /// The name that people see.
    fn shown(&self) -> &str {
        self.name.as_deref().or(self.number.as_deref()).unwrap_or("somebody")
    }
}

fn is_either(own: &str, number: &Option<String>, uuid: &Option<String>) -> bool {
    [number, uuid].into_iter().flatten().any(|id| id == own)
}

impl Card {
    fn said(&self) -> String {
        let CardName { display, given, family } = &self.name;
        let full = [given, family].into_iter().flatten().map(String::as_str).collect::<Vec<_>>();
        let name = display.clone().unwrap_or_else(|| full.join(" "));
        let phones = self.phone.iter().filter_map(|phone| phone.value.as_deref());
        format!("[contact: {name}, {}]", phones.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    #[test]
    fn mentions_and_own_messages_are_recognised() {
        let event = |text: &str| serde_json::from_str::<Event>(text).unwrap_or_default().envelope;
        let said = event(
            r#"{"envelope": {"sourceNumber": "+1", "sourceUuid": "u", "sourceName": "Ann", "timestamp": 7,
                "dataMessage": {"timestamp": 7, "message": "🙂 \ufffc and \ufffc!", "groupInfo": {"groupId": "g="},
                "mentions": [{"name": "Bob", "number": "+2", "start": 3, "length": 1},
                             {"name": "Claw", "number": "+9", "start": 9, "length": 1}]}}}"#,
        );
        let said = said.said("+9");
        let shown =
            said.as_ref().map(|said| (said.data.text(), said.data.mentions("+9"), said.chat().id));
        assert_eq!(shown, Some(("🙂 @Bob and @Claw!".to_owned(), true, "g=".to_owned())));
        let addressed = |own: &str| {
            let said = event(
                r#"{"envelope": {"sourceNumber": "+1", "dataMessage": {"message": "\ufffc !stop",
                    "mentions": [{"name": "My Claw", "number": "+9", "start": 0, "length": 1}]}}}"#,
            );
            said.said("+8").map(|said| said.data.text_for(own))
        };
        assert_eq!(addressed("+9"), Some("!stop".to_owned()));
        assert_eq!(addressed("+8"), Some("@My Claw !stop".to_owned()));
        for nothing in [
            r#"{"envelope": {"sourceNumber": "+1", "receiptMessage": {"isRead": true}}}"#,
            r#"{"envelope": {"sourceNumber": "+1", "dataMessage": {"message": null, "reaction": {"emoji": "x"}}}}"#,
            r#"{"envelope": {"sourceNumber": "+9", "dataMessage": {"message": "mine"}}}"#,
            r#"{"envelope": {"sourceNumber": "+9", "syncMessage": {"sentMessage": {"message": "mine"}}}}"#,
            r#"{"envelope": {"sourceUuid": "", "dataMessage": {"message": "nobody"}}}"#,
        ] {
            assert!(event(nothing).said("+9").is_none(), "{nothing}");
        }
    }
}
