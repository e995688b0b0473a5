//! Messages that go out.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::FENCES;
use super::api::ApiError;
use super::{MOST_UNITS, WHATSAPP, WhatsApp, is_wrong_token};
use crate::form::{UNKNOWN_TYPE, media_type};
use crate::marks::marked;
use crate::{Live, Part, PartFile, SendFailure, State, Target, utf16_units};

/// What is put before a message that may have been delivered before.
pub(super) const REPEAT: &str = "(possible repeat) ";
/// How long Meta is given to say what became of a message whose request got no answer.
const NEWS_TIME: Duration = Duration::from_secs(10);
/// The indicator is shown for 25 seconds ("Typing indicators").
const TYPING_PAUSE: Duration = Duration::from_secs(20);
/// Pause after a refusal that only the owner can end.
const OWNER_PAUSE: Duration = Duration::from_secs(60);
/// Pause after too many messages to one person: one in 6 seconds is allowed ("Throughput", pair rate).
const PAIR_PAUSE: Duration = Duration::from_secs(6);

/// The 24 hours after a person's last message are over.
const CLOSED_WINDOW: u32 = 131_047;
/// Too many messages to one person.
const PAIR_RATE: u32 = 131_056;

#[derive(Deserialize)]
struct Sent {
    messages: Vec<SentMessage>,
}

#[derive(Deserialize)]
struct SentMessage {
    id: String,
}

impl WhatsApp {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        let mut body = match &part.file {
            Some(file) => self.file_message(part, file).await?,
            None => text_message(part)?,
        };
        address(&mut body, &part.target.chat);
        if let Some(message) = &part.reply_to {
            body.insert("context".to_owned(), json!({"message_id": message}));
        }
        // Comes back with each status of the message.
        body.insert("biz_opaque_callback_data".to_owned(), json!(part.id));
        let sent = match self.post(&body.into()).await {
            Err(ApiError::Unknown(reason)) => self.news_of(&part.id).await.ok_or(reason),
            Ok(id) => Ok(id),
            Err(error) => return Err(self.failure(&part.target.chat, error).await),
        };
        match sent {
            Ok(id) => {
                self.account.set(State::Working);
                self.memory().note_text(&id, None, &part.text);
                Ok(id)
            }
            Err(reason) => Err(SendFailure::Unknown { reason }),
        }
    }

    pub(super) async fn set_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let mut body = Map::new();
        body.insert("type".to_owned(), json!("reaction"));
        body.insert("reaction".to_owned(), json!({"message_id": message, "emoji": part.text}));
        address(&mut body, &part.target.chat);
        match self.post(&body.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(&part.target.chat, error).await),
        }
    }

    async fn post(&self, body: &Value) -> Result<String, ApiError> {
        let sent: Sent = self.api.post(body).await?;
        let first = sent.messages.into_iter().next();
        let missing = || ApiError::Unknown("the answer names no message".to_owned());
        first.map(|message| message.id).ok_or_else(missing)
    }

    /// The id of the message that a part became, if Meta says so soon: its statuses name the part.
    async fn news_of(&self, part: &str) -> Option<String> {
        let hearing = async {
            loop {
                let heard = self.heard.notified();
                tokio::pin!(heard);
                // From here on, nothing is missed.
                heard.as_mut().enable();
                if let Some(id) = self.memory().confirmed(part) {
                    return id;
                }
                heard.await;
            }
        };
        tokio::time::timeout(NEWS_TIME, hearing).await.ok()
    }

    /// Stores a file at the vendor, and makes the message that shows it.
    async fn file_message(
        &self,
        part: &Part,
        file: &PartFile,
    ) -> Result<Map<String, Value>, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let bytes = file.read().await?;
        let is_text = || std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
        let media_type = match media_type(&file.name) {
            // It shows texts of any kind as long as they are called so.
            UNKNOWN_TYPE | "application/json" if is_text() => "text/plain",
            known => known,
        };
        let (kind, most_mb) = kind_of(media_type).ok_or_else(|| {
            never(
                "WhatsApp takes no files of this type; it takes JPEG, PNG, MP4, MP3, OGG, PDF, Office documents and \
                 texts"
                    .to_owned(),
            )
        })?;
        if bytes.len() as u64 > most_mb * 1024 * 1024 {
            return Err(never(format!(
                "the file is larger than {most_mb} MB, which WhatsApp allows"
            )));
        }
        // To store it twice does no harm.
        let stored = self.api.upload(&file.name, media_type, &bytes).await;
        let id = match stored {
            Ok(id) => id,
            Err(ApiError::Unknown(reason)) => {
                return Err(SendFailure::Later { after: None, reason });
            }
            Err(error) => return Err(self.failure(&part.target.chat, error).await),
        };
        let mut shown = Map::new();
        shown.insert("id".to_owned(), json!(id));
        if kind == "document" {
            shown.insert("filename".to_owned(), json!(file.name));
        }
        if part.is_repeat && kind != "audio" {
            shown.insert("caption".to_owned(), json!(REPEAT.trim()));
        }
        let mut body = Map::new();
        body.insert("type".to_owned(), json!(kind));
        body.insert(kind.to_owned(), shown.into());
        Ok(body)
    }

    /// What a failed call means for the part.
    async fn failure(&self, chat: &str, error: ApiError) -> SendFailure {
        self.note_failure(&error);
        let is_wrong_token = is_wrong_token(&error);
        let text = error.to_string();
        let refused = match error {
            ApiError::NotSent(_) => return SendFailure::Later { after: None, reason: text },
            ApiError::Unknown(_) => return SendFailure::Unknown { reason: text },
            ApiError::Refused(refused) => refused,
        };
        let reason = match refused.code {
            CLOSED_WINDOW => reason_of(refused.code, &refused.reason),
            _ => text,
        };
        if is_wrong_token {
            // The owner may mend the token; the reply is not lost until then.
            return SendFailure::Later { after: Some(OWNER_PAUSE), reason };
        }
        let after = refused.retry_after;
        match (refused.code, refused.status) {
            (PAIR_RATE, _) => SendFailure::Later { after: after.or(Some(PAIR_PAUSE)), reason },
            // Limits of the app, the account, the number and spam; and outages in which nothing is sent.
            (4 | 80_007 | 130_429 | 131_048 | 133_016, _)
            | (2 | 131_000 | 131_016, _)
            | (_, 429) => SendFailure::Later { after, reason },
            (code, _) => {
                self.after_closed_window(code, chat).await;
                SendFailure::Never { reason }
            }
        }
    }

    /// Sends the template of the config, once until somebody answers, if a reply came too late.
    pub(super) async fn after_closed_window(&self, code: u32, chat: &str) {
        let Some(template) = &self.options.template else { return };
        if code != CLOSED_WINDOW || !self.memory().invite(chat) {
            return;
        }
        let mut body = Map::new();
        let language = json!({"code": template.language});
        body.insert("type".to_owned(), json!("template"));
        body.insert("template".to_owned(), json!({"name": template.name, "language": language}));
        address(&mut body, chat);
        if let Err(error) = self.post(&body.into()).await {
            tracing::warn!(channel = WHATSAPP, chat, %error, "the template cannot be sent");
        }
    }
}

fn text_message(part: &Part) -> Result<Map<String, Value>, SendFailure> {
    let never = |reason: &str| SendFailure::Never { reason: reason.to_owned() };
    let mark = if part.is_repeat { REPEAT } else { "" };
    let mut text = format!("{mark}{}", marked(&part.text, FENCES));
    if utf16_units(&text) > MOST_UNITS {
        text = format!("{mark}{}", part.text);
    }
    if text.trim().is_empty() {
        return Err(never("there is no text"));
    }
    let mut body = Map::new();
    body.insert("type".to_owned(), json!("text"));
    body.insert("text".to_owned(), json!({"preview_url": false, "body": text}));
    Ok(body)
}

/// Names the receiver: a phone number, the id of a person who hides theirs, or a group.
fn address(body: &mut Map<String, Value>, chat: &str) {
    let is_number = chat.bytes().all(|byte| byte.is_ascii_digit());
    // A person's id is a country, a dot and more; ids of groups have no dot ("Business-scoped user IDs", "Group
    // messaging").
    let (kind, field) = match chat.contains('.') {
        _ if is_number => ("individual", "to"),
        true => ("individual", "recipient"),
        false => ("group", "to"),
    };
    body.insert("messaging_product".to_owned(), json!("whatsapp"));
    body.insert("recipient_type".to_owned(), json!(kind));
    body.insert(field.to_owned(), json!(chat));
}

/// The type of message for a media type, and the most megabytes ("Supported media types").
fn kind_of(media_type: &str) -> Option<(&'static str, u64)> {
    Some(match media_type {
        "image/jpeg" | "image/png" => ("image", 5),
        "audio/aac" | "audio/amr" | "audio/mpeg" | "audio/mp4" | "audio/ogg" => ("audio", 16),
        "video/mp4" | "video/3gpp" => ("video", 16),
        "text/plain" => ("document", 100),
        other if other.starts_with("application/vnd.") => ("document", 100),
        "application/pdf" | "application/msword" => ("document", 100),
        _ => return None,
    })
}

/// Why a message was not delivered, for the owner.
pub(super) fn reason_of(code: u32, said: &str) -> String {
    match code {
        CLOSED_WINDOW => format!(
            "the window has closed: more than 24 hours have passed since the person's last message, and WhatsApp delivers \
             only approved templates then (code {code}). Once they write again, the agent can repeat it: its session has \
             the answer"
        ),
        _ => format!("WhatsApp did not deliver it (code {code}): {said}"),
    }
}

impl Live for WhatsApp {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let newest = self.memory().newest(&target.chat);
            let Some(message) = newest else { return };
            // This also marks the message as read.
            let body = json!({
                "messaging_product": "whatsapp", "status": "read", "message_id": message,
                "typing_indicator": {"type": "text"},
            });
            if let Err(error) = self.api.post::<Value>(&body).await {
                tracing::debug!(%error, "typing is not shown");
            }
        })
    }

    fn typing_pause(&self) -> Duration {
        TYPING_PAUSE
    }
}
