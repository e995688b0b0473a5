//! What a homeserver delivers, in our words.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::passage::note;
use crate::{Attachment, FileOf, Passage};

/// The kind of events that are reactions ("Event annotations and reactions" of the specification).
pub(super) const REACTION: &str = "m.reaction";

/// The answer to `/sync`, as far as this program reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sync {
    pub(super) next_batch: String,
    pub(super) rooms: Rooms,
    #[cfg(feature = "matrix-encryption")]
    #[serde(flatten)]
    pub(super) keys: KeyChanges,
}

/// What a sync says about the keys of encryption.
#[cfg(feature = "matrix-encryption")]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyChanges {
    pub(super) to_device: ToDevice,
    pub(super) device_lists: Value,
    pub(super) device_one_time_keys_count: Value,
    pub(super) device_unused_fallback_key_types: Option<Value>,
}

#[cfg(feature = "matrix-encryption")]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToDevice {
    pub(super) events: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rooms {
    pub(super) join: HashMap<String, Joined>,
    pub(super) invite: HashMap<String, Invited>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Joined {
    pub(super) timeline: Timeline,
    pub(super) state: Events,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timeline {
    pub(super) events: Vec<Event>,
    pub(super) limited: bool,
    pub(super) prev_batch: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Invited {
    pub(super) invite_state: Events,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Events {
    pub(super) events: Vec<Event>,
}

/// Something that happened in a room. Whatever has another form is read as nothing: other servers pass on what their people
/// write, and one event must not spoil the others of an answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Value")]
pub(super) struct Event {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) event_id: String,
    pub(super) sender: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state_key: Option<String>,
    pub(super) content: Value,
    /// Milliseconds since the Unix epoch, as its server says.
    origin_server_ts: u64,
    #[serde(skip_serializing_if = "Value::is_null")]
    unsigned: Value,
}

impl From<Value> for Event {
    fn from(mut event: Value) -> Self {
        let mut take = |key: &str| event.get_mut(key).map(Value::take).unwrap_or_default();
        let text = |value: Value| value.as_str().map(str::to_owned);
        Self {
            kind: text(take("type")).unwrap_or_default(),
            event_id: text(take("event_id")).unwrap_or_default(),
            sender: text(take("sender")).unwrap_or_default(),
            state_key: text(take("state_key")),
            content: take("content"),
            origin_server_ts: take("origin_server_ts").as_u64().unwrap_or_default(),
            unsigned: take("unsigned"),
        }
    }
}

/// A file of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct File<'a> {
    pub(super) address: &'a str,
    pub(super) name: &'a str,
    pub(super) media_type: Option<&'a str>,
    pub(super) bytes: Option<u64>,
    /// How it is encrypted.
    pub(super) key: Option<&'a Value>,
}

impl File<'_> {
    /// What is known of it before it is downloaded.
    pub(super) fn attachment(&self, of: FileOf) -> Attachment {
        Attachment::new(Some(self.name.to_owned()), self.media_type.map(str::to_owned)).of(of)
    }
}

impl Event {
    fn text_at(&self, pointer: &str) -> Option<&str> {
        self.content.pointer(pointer).and_then(Value::as_str)
    }

    #[cfg(feature = "matrix-encryption")]
    pub(super) fn time(&self) -> u64 {
        self.origin_server_ts
    }

    /// Whether it says that the room is encrypted.
    pub(super) fn begins_encryption(&self) -> bool {
        self.kind == "m.room.encryption" && self.state_key.as_deref() == Some("")
    }

    /// The membership of `user` that it sets.
    pub(super) fn membership_of(&self, user: &str) -> Option<&str> {
        let is_it = self.kind == "m.room.member" && self.state_key.as_deref() == Some(user);
        self.text_at("/membership").filter(|_| is_it)
    }

    /// The membership of `user` that it sets, if `user` was not in the room before.
    pub(super) fn entry_of(&self, user: &str) -> Option<&str> {
        let before = self.unsigned.pointer("/prev_content/membership").and_then(Value::as_str);
        let entered = self.membership_of(user).filter(|now| matches!(*now, "invite" | "join"));
        // Renaming the account is such an event as well.
        entered.filter(|_| before != Some("join"))
    }

    /// The message that it is a later version of.
    pub(super) fn replaces(&self) -> Option<&str> {
        let is_edit = self.text_at("/m.relates_to/rel_type") == Some("m.replace");
        self.text_at("/m.relates_to/event_id").filter(|_| is_edit)
    }

    /// The first message of the thread that it belongs to.
    pub(super) fn thread(&self) -> Option<&str> {
        let is_thread = self.text_at("/m.relates_to/rel_type") == Some("m.thread");
        self.text_at("/m.relates_to/event_id").filter(|_| is_thread)
    }

    /// The message that it answers. In a thread this may be there for old clients only.
    pub(super) fn answers(&self) -> Option<&str> {
        let falls_back = self.content.pointer("/m.relates_to/is_falling_back");
        let is_real = falls_back.and_then(Value::as_bool) != Some(true);
        self.text_at("/m.relates_to/m.in_reply_to/event_id").filter(|_| is_real)
    }

    /// What is said: of a later version, that.
    fn said(&self) -> &Value {
        match (self.replaces(), self.content.get("m.new_content")) {
            (Some(_), Some(new)) => new,
            _ => &self.content,
        }
    }

    /// Whether it is a message, as opposed to a change of the room.
    pub(super) fn is_message(&self) -> bool {
        let is_other = matches!(self.kind.as_str(), "m.sticker" | "m.room.encrypted")
            || CALLS.contains(&self.kind.as_str())
            || self.begins_live_location();
        self.kind == "m.room.message" || is_other || self.poll().is_some()
    }

    /// Whether somebody begins to share where they are (MSC3672). The places follow in events of their own.
    fn begins_live_location(&self) -> bool {
        let is_it =
            matches!(self.kind.as_str(), "m.beacon_info" | "org.matrix.msc3672.beacon_info");
        is_it && self.content.get("live").and_then(Value::as_bool) == Some(true)
    }

    fn msgtype(&self) -> &str {
        self.said().get("msgtype").and_then(Value::as_str).unwrap_or_default()
    }

    /// Why it gets no answer, independent of who may write.
    pub(super) fn is_not_said(&self) -> Option<&'static str> {
        if self.sender.is_empty() {
            return Some("it names no sender");
        }
        match (self.kind.as_str(), self.msgtype()) {
            (kind, _) if CALLS.contains(&kind) => {
                Some("it is a call, which this channel cannot take")
            }
            _ if self.begins_live_location() => {
                Some("it shares a live location, which this channel does not follow")
            }
            ("m.room.message", "m.notice") => Some("it is a notice of a program (m.notice)"),
            ("m.room.message", "m.server_notice") => Some("it is a notice of the server"),
            ("m.room.message", "m.key.verification.request") => {
                Some("it asks to verify keys, which this channel does not do")
            }
            ("m.room.message", "") => Some("it has no type, so it says nothing"),
            _ => None,
        }
    }

    /// A poll (MSC3381, and the specification since).
    fn poll(&self) -> Option<&Value> {
        let is_poll =
            matches!(self.kind.as_str(), "m.poll.start" | "org.matrix.msc3381.poll.start");
        let keys = ["m.poll", "m.poll.start", "org.matrix.msc3381.poll.start"];
        keys.into_iter().find_map(|key| self.said().get(key)).filter(|_| is_poll)
    }

    /// What is in it that is no text of its sender.
    pub(super) fn passages(&self) -> Vec<Passage> {
        let poll = self.poll().map(|poll| {
            let answers = poll.get("answers").and_then(Value::as_array).into_iter().flatten();
            let question = poll.get("question").map(extensible).unwrap_or_default();
            Passage::poll(question, answers.map(extensible))
        });
        poll.into_iter().collect()
    }

    pub(super) fn text(&self) -> String {
        let said = self.said();
        let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
        let body = text("body");
        if self.kind == "m.sticker" {
            return note("sticker", [body]);
        }
        match self.msgtype() {
            "m.image" | "m.file" | "m.audio" | "m.video" => {
                // Without a name of its own, the body is the name.
                let is_caption = !text("filename").is_empty() && text("filename") != body;
                if is_caption { body.to_owned() } else { String::new() }
            }
            "m.emote" if self.answers().is_some() => format!("* {}", without_fallback(body)),
            "m.emote" => format!("* {body}"),
            "m.location" => note("location", [text("geo_uri"), body]),
            "" | "m.text" | GALLERY if self.answers().is_some() => without_fallback(body),
            "" | "m.text" | GALLERY => body.to_owned(),
            other => format!("{} {body}", note("a message of the type", [other])),
        }
    }

    /// What it says, for those who answer it.
    pub(super) fn described(&self) -> String {
        let passages = self.passages().into_iter().map(|passage| passage.text);
        let texts = std::iter::once(self.text()).chain(passages);
        texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Its files: one, or those of a gallery (MSC4274).
    pub(super) fn files(&self) -> Vec<File<'_>> {
        let said = self.said();
        let items =
            said.get("itemtypes").and_then(Value::as_array).filter(|_| self.msgtype() == GALLERY);
        match items {
            Some(items) => items.iter().filter_map(file).collect(),
            None => file(said).into_iter().collect(),
        }
    }

    /// Whether it names `user`, by the field for that, a link, the id or the name that is shown.
    pub(super) fn mentions(&self, user: &str, name: Option<&str>) -> bool {
        let said = self.said();
        if let Some(mentions) = said.get("m.mentions").or_else(|| self.content.get("m.mentions")) {
            let named = mentions.get("user_ids").and_then(Value::as_array);
            if named.is_some_and(|all| all.iter().any(|one| one == user)) {
                return true;
            }
        }
        let body = said.get("body").and_then(Value::as_str).unwrap_or_default();
        let html = said.get("formatted_body").and_then(Value::as_str).unwrap_or_default();
        let begins = |name: &str| {
            body.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ',', ' ']))
        };
        names(body, user)
            || html.contains(&format!("https://matrix.to/#/{user}\""))
            || name.filter(|name| !name.is_empty()).is_some_and(begins)
    }
}

/// What announces a call (Voice over IP; MSC4075).
const CALLS: [&str; 5] = [
    "m.call.invite",
    "m.call.notify",
    "org.matrix.msc4075.call.notify",
    "m.rtc.notification",
    "org.matrix.msc4075.rtc.notification",
];

/// The type of messages with several files.
const GALLERY: &str = "dm.filament.gallery";

/// The file that a message or an item of a gallery has.
fn file(said: &Value) -> Option<File<'_>> {
    let text = |pointer: &str| said.pointer(pointer).and_then(Value::as_str);
    let name = text("/filename").or_else(|| text("/body")).unwrap_or("file");
    Some(File {
        address: text("/url").or_else(|| text("/file/url"))?,
        name,
        media_type: text("/info/mimetype"),
        bytes: said.pointer("/info/size").and_then(Value::as_u64),
        key: said.get("file"),
    })
}

/// The plain text of an extensible event.
fn extensible(value: &Value) -> String {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let found = text("/org.matrix.msc1767.text").or_else(|| text("/m.text/0/body"));
    found.or_else(|| text("/m.text")).or_else(|| text("/body")).unwrap_or_default().to_owned()
}

/// Whether a text holds a user's id as a word.
fn names(text: &str, user: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(user).any(|(at, _)| !text[at + user.len()..].starts_with(goes_on))
}

/// A reply without the quoted lines that older clients put before it.
fn without_fallback(body: &str) -> String {
    let mut rest = body;
    while rest.starts_with("> ") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    rest.trim_start_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(content: Value) -> Event {
        let kind = "m.room.message".to_owned();
        Event { kind, content, ..Event::default() }
    }

    #[test]
    fn a_mention_is_a_field_a_link_an_id_or_the_name_at_the_start() {
        let me = "@claw:here";
        for (content, is_mention) in [
            (json!({"body": "x", "m.mentions": {"user_ids": [me]}}), true),
            (json!({"body": "x", "m.mentions": {"user_ids": ["@other:here"]}}), false),
            (json!({"body": "hi @claw:here!"}), true),
            (json!({"body": "hi @claw:hereafter"}), false),
            (json!({"body": "Claw: hi"}), true),
            (json!({"body": "Clawfoot hi"}), false),
            (
                json!({"body": "c", "formatted_body": "<a href=\"https://matrix.to/#/@claw:here\">c</a>"}),
                true,
            ),
        ] {
            assert_eq!(event(content.clone()).mentions(me, Some("Claw")), is_mention, "{content}");
        }
    }

    #[test]
    fn texts_edits_threads_and_files_are_read() {
        let edit = event(json!({
            "msgtype": "m.text", "body": "* new", "m.new_content": {"msgtype": "m.text", "body": "new"},
            "m.relates_to": {"rel_type": "m.replace", "event_id": "$a"},
        }));
        assert_eq!(
            (edit.text().as_str(), edit.replaces(), edit.thread()),
            ("new", Some("$a"), None)
        );
        let reply = event(json!({
            "msgtype": "m.text", "body": "> <@a:b> old\n> older\n\nnew\n> kept",
            "m.relates_to": {"m.in_reply_to": {"event_id": "$a"}},
        }));
        assert_eq!((reply.text().as_str(), reply.answers()), ("new\n> kept", Some("$a")));
        let file = event(json!({
            "msgtype": "m.image", "body": "look", "filename": "a.png", "url": "mxc://s/id",
            "info": {"mimetype": "image/png", "size": 7},
        }));
        assert_eq!(file.text(), "look");
        let (address, name, media_type) = ("mxc://s/id", "a.png", Some("image/png"));
        let bytes = Some(7);
        assert_eq!(file.files(), [File { address, name, media_type, bytes, key: None }]);
        assert!(event(json!({"msgtype": "m.notice", "body": "x"})).is_not_said().is_some());
        assert!(event(json!("nonsense")).is_not_said().is_some());
    }

    #[test]
    fn every_published_kind_is_shown_or_dropped() {
        crate::kinds::check(include_str!("../../tests/data/kinds/matrix.json"), |event| {
            let event: Event = serde_json::from_value(event.clone()).expect("an event");
            if !event.is_message() {
                return Ok(None);
            }
            if let Some(reason) = event.is_not_said() {
                return Err(reason.to_owned());
            }
            let files: Vec<Attachment> =
                event.files().iter().map(|file| file.attachment(FileOf::Message)).collect();
            Ok(Some(crate::kinds::shown(&event.text(), &event.passages(), &files)))
        });
    }

    #[test]
    fn an_event_of_another_form_spoils_no_other() {
        let odd = json!([
            {"type": "m.room.message", "event_id": "$1", "sender": "@a:b", "origin_server_ts": -1, "content": 7},
            {"type": 7, "event_id": [], "sender": {}, "state_key": 1, "origin_server_ts": "now", "unsigned": 1},
            "no event", null, 7, [],
            {"type": "m.room.message", "sender": "@a:b", "content": {"msgtype": "m.text", "body": "no id"}},
            {"type": "m.room.message", "event_id": "$2", "sender": "@a:b", "origin_server_ts": 1.5,
             "content": {"msgtype": "m.text", "body": "hello"}},
        ]);
        let sync =
            json!({"next_batch": "s", "rooms": {"join": {"!r": {"timeline": {"events": odd}}}}});
        let sync: Sync = serde_json::from_value(sync).expect("a sync");
        let events = &sync.rooms.join["!r"].timeline.events;
        let said: Vec<_> = events.iter().filter(|event| event.is_message()).collect();
        assert_eq!(events.len(), 8);
        assert_eq!(
            said.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>(),
            ["$1", "", "$2"]
        );
        assert_eq!((said[0].is_not_said().is_some(), said[2].text().as_str()), (true, "hello"));
        let nameless: Event =
            json!({"type": "m.room.message", "content": {"msgtype": "m.text"}}).into();
        assert_eq!(nameless.is_not_said(), Some("it names no sender"));
    }
}
