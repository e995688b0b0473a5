//! What a message holds besides its text: files, and the many other kinds that Telegram knows (Bot API, "Message").

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::update::{Me, Message, RawChat, User};
use crate::form::file_name;
use crate::passage::note;
use crate::{Attachment, FileOf, Passage, PassageKind, Quoted};

/// Fields of a message that say nothing of what is in it.
const ABOUT: &[&str] = &[
    "author_signature",
    "business_connection_id",
    "date",
    "direct_messages_topic",
    "edit_date",
    "effect_id",
    "ephemeral_message_id",
    "forward_date",
    "forward_from",
    "forward_from_chat",
    "forward_from_message_id",
    "forward_origin",
    "forward_sender_name",
    "forward_signature",
    "guest_bot_caller_chat",
    "guest_bot_caller_user",
    "guest_query_id",
    "has_media_spoiler",
    "has_protected_content",
    "is_automatic_forward",
    "is_from_offline",
    "is_paid_post",
    "link_preview_options",
    "origin",
    "paid_star_count",
    "receiver_user",
    "reply_markup",
    "reply_to_checklist_task_id",
    "reply_to_poll_option_id",
    "reply_to_story",
    "sender_boost_count",
    "sender_business_bot",
    "sender_tag",
    "show_caption_above_media",
    "suggested_post_info",
    "via_bot",
    // Files, which are attached.
    "animation",
    "audio",
    "document",
    "photo",
    "video",
    "video_note",
    "voice",
];

/// Notes of the service, which nobody wrote.
const SERVICE: &[&str] = &[
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "left_chat_member",
    "managed_bot_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_members",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "pinned_message",
    "poll_option_added",
    "poll_option_deleted",
    "proximity_alert_triggered",
    "refunded_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "write_access_allowed",
    "new_chat_participant",
];

/// A file, and how it is shown before it is downloaded.
pub(super) type Loadable = (FileRef, Attachment);

/// By what Telegram knows a file.
#[derive(Debug, Clone)]
pub(super) struct FileRef {
    pub(super) id: String,
    pub(super) size: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct File {
    file_id: String,
    file_name: Option<String>,
    mime_type: Option<String>,
    file_size: Option<u64>,
    width: u64,
    height: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Origin {
    sender_user: Option<User>,
    sender_user_name: Option<String>,
    sender_chat: Option<RawChat>,
    chat: Option<RawChat>,
}

impl Message {
    fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_value(self.rest.get(name)?.clone()).ok()
    }

    pub(super) fn is_forward(&self) -> bool {
        self.rest.contains_key("forward_origin") || self.rest.contains_key("forward_date")
    }

    /// The author of what it is taken from, if it is a forward or something of another chat. `Some(None)` if Telegram does
    /// not name them.
    pub(super) fn origin(&self) -> Option<Option<String>> {
        let origin = self.field::<Origin>("forward_origin").or_else(|| self.field("origin"));
        let Origin { sender_user, sender_user_name, sender_chat, chat } = match origin {
            Some(origin) => origin,
            // Servers before version 7.0 of the Bot API.
            None if self.is_forward() => Origin {
                sender_user: self.field("forward_from"),
                sender_user_name: self.field("forward_sender_name"),
                sender_chat: None,
                chat: self.field("forward_from_chat"),
            },
            None => return None,
        };
        let user = sender_user.map(|user| user.full_name()).or(sender_user_name);
        Some(user.or_else(|| sender_chat.or(chat)?.title))
    }

    /// What its sender says with it, and what of it is no text of theirs.
    pub(super) fn content(&self, me: &Me) -> (String, Vec<Passage>) {
        let mut passages = self.structures();
        match self.origin() {
            Some(author) if self.is_forward() => {
                let text = joined(self.text(None), self.note());
                passages.insert(0, Passage::new(PassageKind::Forward, author, text));
                (String::new(), passages)
            }
            _ => (joined(self.text(Some(me)), self.note()), passages),
        }
    }

    /// What it says, for those who answer it.
    pub(super) fn described(&self) -> String {
        let structures = self.structures().into_iter().map(|passage| passage.text);
        let service = self.service().map(|kind| format!("[a note of Telegram: {kind}]"));
        structures
            .chain(service)
            .fold(joined(self.text(None), self.note()), |text, more| joined(text, Some(more)))
    }

    /// The kind of note of the service that it is.
    pub(super) fn service(&self) -> Option<&'static str> {
        if self.migrate_to_chat_id.or(self.migrate_from_chat_id).is_some() {
            return Some("the group has become a supergroup");
        }
        SERVICE.iter().copied().find(|kind| self.rest.contains_key(*kind))
    }

    /// Whether it is a live location, whose later versions say only that it has moved.
    pub(super) fn is_live_location(&self) -> bool {
        self.rest.contains_key("location")
    }

    /// The story that it answers. Bots cannot see stories.
    pub(super) fn answered_story(&self) -> Option<Quoted> {
        let story = self.rest.get("reply_to_story")?;
        let name = |key: &str| story.pointer(&format!("/chat/{key}")).and_then(Value::as_str);
        let sender = name("title").or_else(|| name("first_name")).map(str::to_owned);
        Some(Quoted { sender, text: "[a story]".to_owned() })
    }

    /// One line about what is in it besides text, files and longer things.
    fn note(&self) -> Option<String> {
        let (kind, value) = self.rest.iter().find(|(kind, _)| {
            let kind = kind.as_str();
            let is_structure = matches!(kind, "poll" | "checklist" | "paid_media");
            let is_place = kind == "location" && self.rest.contains_key("venue");
            !ABOUT.contains(&kind) && !SERVICE.contains(&kind) && !is_structure && !is_place
        })?;
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let number = |pointer: &str| value.pointer(pointer).unwrap_or(&Value::Null).to_string();
        Some(match kind.as_str() {
            "sticker" => note("sticker", [text("/emoji").unwrap_or("without emoji")]),
            "location" => {
                let live = if value.get("live_period").is_some() { "live " } else { "" };
                let at = format!("{}, {}", number("/latitude"), number("/longitude"));
                note(&format!("{live}location"), [at.as_str()])
            }
            "venue" => {
                let (latitude, longitude) = ("/location/latitude", "/location/longitude");
                let at = format!("{}, {}", number(latitude), number(longitude));
                let [title, address] = ["/title", "/address"].map(|part| text(part).unwrap_or(""));
                note("place", [title, address, at.as_str()])
            }
            "contact" => {
                let names = [text("/first_name"), text("/last_name")].into_iter().flatten();
                let name = names.collect::<Vec<_>>().join(" ");
                note("contact", [name.as_str(), text("/phone_number").unwrap_or_default()])
            }
            "dice" => {
                let shown =
                    format!("{} shows {}", text("/emoji").unwrap_or("🎲"), number("/value"));
                note("dice", [shown.as_str()])
            }
            "game" => note("game", [text("/title").unwrap_or_default()]),
            "story" => {
                let of = text("/chat/title").or_else(|| text("/chat/first_name"));
                note("story, which bots cannot see, of", [of.unwrap_or("somebody")])
            }
            other => note(&format!("{}:", other.replace('_', " ")), [value.to_string().as_str()]),
        })
    }

    /// Polls, checklists and media for money.
    fn structures(&self) -> Vec<Passage> {
        let mut passages = Vec::new();
        if let Some(poll) = self.rest.get("poll") {
            let options = items(poll, "options").map(|option| words(option, "text").to_owned());
            passages.push(Passage::poll(words(poll, "question").to_owned(), options));
        }
        if let Some(list) = self.rest.get("checklist") {
            let tasks = items(list, "tasks").map(|task| {
                let is_done = task.get("completion_date").and_then(Value::as_i64).unwrap_or(0) != 0;
                format!("- [{}] {}", if is_done { "x" } else { " " }, words(task, "text"))
            });
            let lines = std::iter::once(words(list, "title").to_owned()).chain(tasks);
            passages.push(Passage::new(
                PassageKind::Checklist,
                None,
                lines.collect::<Vec<_>>().join("\n"),
            ));
        }
        if let Some(paid) = self.rest.get("paid_media") {
            let stars = paid.get("star_count").unwrap_or(&Value::Null);
            let text = format!(
                "{} pictures or videos for {stars} stars",
                items(paid, "paid_media").count()
            );
            passages.push(Passage::new(PassageKind::PaidMedia, None, text));
        }
        passages
    }

    /// Its files, before they are downloaded.
    pub(super) fn files(&self) -> Vec<Loadable> {
        let of = if self.is_forward() { FileOf::Passage } else { FileOf::Message };
        self.own_files().into_iter().map(|(file, attachment)| (file, attachment.of(of))).collect()
    }

    /// The picture of a sticker; of one that moves, in formats that no model reads, the small picture that Telegram makes of it.
    fn sticker(&self) -> Option<Loadable> {
        let Sticker { file, is_animated, is_video, thumbnail } = self.field("sticker")?;
        let picture = if is_animated || is_video { thumbnail? } else { file };
        let is_known = !picture.file_id.is_empty();
        is_known.then(|| {
            let media_type = Some("image/webp".to_owned());
            loadable(File { mime_type: media_type, ..picture }, "sticker.webp")
        })
    }

    pub(super) fn own_files(&self) -> Vec<Loadable> {
        let mut files: Vec<Loadable> = photo(self.rest.get("photo")).into_iter().collect();
        // Telegram repeats an animation as a document.
        let is_animation = self.rest.contains_key("animation");
        for (kind, name) in [
            ("document", "file"),
            ("audio", "audio"),
            ("voice", "voice.ogg"),
            ("video", "video.mp4"),
            ("video_note", "video_note.mp4"),
            ("animation", "animation.mp4"),
        ] {
            if kind != "document" || !is_animation {
                files.extend(self.field(kind).map(|file| loadable(file, name)));
            }
        }
        files.extend(self.sticker());
        for media in
            self.rest.get("paid_media").into_iter().flat_map(|paid| items(paid, "paid_media"))
        {
            files.extend(photo(media.get("photo")));
            let video =
                media.get("video").and_then(|video| serde_json::from_value(video.clone()).ok());
            files.extend(video.map(|file| loadable(file, "video.mp4")));
        }
        files
    }
}

/// A sticker (Bot API, "Sticker").
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sticker {
    #[serde(flatten)]
    file: File,
    is_animated: bool,
    is_video: bool,
    #[serde(alias = "thumb")]
    thumbnail: Option<File>,
}

/// The largest of the sizes of a photo.
fn photo(sizes: Option<&Value>) -> Option<Loadable> {
    let sizes: Vec<File> = serde_json::from_value(sizes?.clone()).ok()?;
    let largest = sizes.into_iter().max_by_key(|size| size.width * size.height)?;
    Some(loadable(File { mime_type: Some("image/jpeg".to_owned()), ..largest }, "photo.jpg"))
}

fn loadable(file: File, usual: &str) -> Loadable {
    let given = file.file_name.filter(|name| !name.is_empty());
    let name = given.unwrap_or_else(|| match usual.contains('.') {
        true => usual.to_owned(),
        false => file_name(usual, file.mime_type.as_deref()),
    });
    let file_ref = FileRef { id: file.file_id, size: file.file_size };
    (file_ref, Attachment::new(Some(name), file.mime_type))
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn words<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A text with a line behind it.
fn joined(mut text: String, more: Option<String>) -> String {
    let Some(more) = more else { return text };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&more);
    text
}

#[cfg(test)]
mod tests;
