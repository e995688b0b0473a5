//! Messages that go out, and previews of them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::api::{ApiError, Refused};
use super::format::{escape, render};
use super::{CALL_TIME, MOST_SENT_BYTES, MOST_UNITS, Telegram, split_rendered};
use crate::form::{Upload, media_type};
use crate::split::preview;
use crate::{Button, Live, Part, PartFile, SendFailure, Target, utf16_units};

/// What is put before a message that may have been delivered before.
const REPEAT: &str = "(possible repeat) ";
/// A chat action is shown for five seconds (Bot API, sendChatAction).
const TYPING_PAUSE: Duration = Duration::from_secs(4);
/// Shortest time between two edits of a preview; more would use up the chat's rate.
const EDIT_PAUSE: Duration = Duration::from_millis(1_500);
/// Pictures above this size are sent as files (Bot API, sendPhoto).
const MOST_PICTURE_BYTES: usize = 10 * 1024 * 1024;
/// What the server says about a topic that is closed or removed.
const GONE: [&str; 3] = ["thread not found", "topic_closed", "topic_deleted"];
/// The number of the topic that every forum has.
const GENERAL_TOPIC: i64 = 1;
/// Longest command of a button (Bot API, InlineKeyboardButton).
const MOST_COMMAND_BYTES: usize = 64;
/// Buttons side by side, so that their texts can be read on a phone.
const BUTTONS_IN_ROW: usize = 2;
/// Shortest pause after the server has refused a request because there were too many.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct SentMessage {
    message_id: i64,
}

impl Telegram {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        if let Some(file) = &part.file {
            return self.send_file(part, file).await;
        }
        if part.text.trim().is_empty() {
            return Err(SendFailure::Never { reason: "there is no text".to_owned() });
        }
        let mark = if part.is_repeat { REPEAT } else { "" };
        let plain = format!("{mark}{}", part.text);
        let rendered = render(&part.text);
        // A message of nothing but marks has no visible text, which Telegram refuses.
        let is_visible = rendered.units > 0 && rendered.units + utf16_units(mark) <= MOST_UNITS;
        let html = is_visible.then(|| format!("{}{}", escape(mark), rendered.html));
        self.limits.wait(&part.target.chat).await;
        match self.send_text(part, html.as_deref(), &plain).await {
            Err(ApiError::Refused(refused)) if html.is_some() && refused.says("can't parse") => {
                tracing::warn!(reason = %refused.description, "sending a message without formatting");
                self.send_text(part, None, &plain).await
            }
            sent => sent,
        }
        .map_err(|error| self.failure(&part.target.chat, error, part.replaces.is_some()))
    }

    /// Sends a text, or puts it in the place of a preview.
    async fn send_text(
        &self,
        part: &Part,
        html: Option<&str>,
        plain: &str,
    ) -> Result<String, ApiError> {
        let Some(preview) = &part.replaces else {
            let mut params = text_params(html, plain);
            add_buttons(&mut params, &part.buttons);
            return self.post(&part.target, part.reply_to.as_deref(), params).await;
        };
        let mut params = text_params(html, plain);
        add_buttons(&mut params, &part.buttons);
        params.insert("message_id".to_owned(), json!(preview.parse::<i64>().unwrap_or_default()));
        let (chat, time) = (&part.target.chat, self.options.send_time);
        match self.call_in_chat::<Value>(chat, "editMessageText", (params, None), time).await {
            Ok(_) => Ok(preview.clone()),
            // It was delivered by an earlier attempt.
            Err(ApiError::Refused(refused)) if refused.says("not modified") => Ok(preview.clone()),
            Err(error) => Err(error),
        }
    }

    async fn post(
        &self,
        target: &Target,
        reply_to: Option<&str>,
        mut params: Map<String, Value>,
    ) -> Result<String, ApiError> {
        add_place(&mut params, target, reply_to);
        let time = self.options.send_time;
        let sent: SentMessage =
            self.call_in_chat(&target.chat, "sendMessage", (params, None), time).await?;
        Ok(sent.message_id.to_string())
    }

    /// Calls a method for a chat, with a file if there is one. It follows a group that has moved; and where a topic is
    /// closed or gone, what is sent is better in the group than nowhere.
    pub(super) async fn call_in_chat<T: DeserializeOwned>(
        &self,
        chat: &str,
        method: &str,
        (mut params, file): (Map<String, Value>, Option<Upload>),
        time: Duration,
    ) -> Result<T, ApiError> {
        let id = chat.parse::<i64>().ok();
        let known = id.and_then(|id| self.move_of(id)).map(|(_, new)| json!(new));
        params.insert("chat_id".to_owned(), known.unwrap_or_else(|| chat_id(chat)));
        loop {
            let called = match &file {
                Some(file) => {
                    self.api.upload::<T>(method, &texts(&params), file.clone(), time).await
                }
                None => self.api.call::<T>(method, &Value::Object(params.clone()), time).await,
            };
            match called {
                Err(ApiError::Refused(Refused { moved_to: Some(new), .. }))
                    if params.get("chat_id") != Some(&json!(new)) =>
                {
                    if let Some(old) = id {
                        self.note_move(old, new, None).await;
                    }
                    params.insert("chat_id".to_owned(), json!(new));
                }
                Err(ApiError::Refused(refused))
                    if GONE.iter().any(|words| refused.says(words))
                        && params.remove("message_thread_id").is_some() => {}
                called => return called,
            }
        }
    }

    async fn send_file(&self, part: &Part, file: &PartFile) -> Result<String, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let size = file.size().await?;
        if size > MOST_SENT_BYTES {
            return Err(never(format!(
                "the file has {size} bytes, and a bot sends at most {MOST_SENT_BYTES}"
            )));
        }
        let bytes = file.read().await?;
        // Ogg is shown as a voice note, two more formats with a player (Bot API, sendVoice and sendAudio).
        let (method, field) = match media_type(&file.name) {
            _ if file.is_picture && bytes.len() <= MOST_PICTURE_BYTES => ("sendPhoto", "photo"),
            "audio/ogg" => ("sendVoice", "voice"),
            "audio/mpeg" | "audio/mp4" => ("sendAudio", "audio"),
            _ => ("sendDocument", "document"),
        };
        let mut params = Map::new();
        if part.is_repeat {
            params.insert("caption".to_owned(), json!(REPEAT.trim()));
        }
        add_place(&mut params, &part.target, part.reply_to.as_deref());
        let chat = &part.target.chat;
        self.limits.wait(chat).await;
        // A second for each 100 KB.
        let time = self.options.send_time + Duration::from_secs(size / 100_000);
        let upload = |field| Some(Upload { field, name: file.name.clone(), bytes: bytes.clone() });
        let with = |field| (params.clone(), upload(field));
        let sent = match self.call_in_chat::<SentMessage>(chat, method, with(field), time).await {
            // A picture or a sound of unusual form is a file for Telegram.
            Err(ApiError::Refused(refused)) if method != "sendDocument" && refused.code == 400 => {
                self.call_in_chat(chat, "sendDocument", with("document"), time).await
            }
            sent => sent,
        };
        match sent {
            Ok(sent) => Ok(sent.message_id.to_string()),
            Err(error) => Err(self.failure(&part.target.chat, error, false)),
        }
    }

    /// What a failed call means for the part.
    pub(super) fn failure(&self, chat: &str, error: ApiError, is_edit: bool) -> SendFailure {
        let refused = match error {
            ApiError::NotSent(reason) => return SendFailure::Later { after: None, reason },
            ApiError::Unknown(reason) => return SendFailure::Unknown { reason },
            ApiError::Refused(refused) => refused,
        };
        let reason = format!("Telegram refused ({}): {}", refused.code, refused.description);
        if refused.code == 429 {
            let after = refused.retry_after.unwrap_or(SHORTEST_PAUSE);
            self.limits.pause(chat, after);
            return SendFailure::Later { after: Some(after), reason };
        }
        if is_edit && refused.code == 400 {
            return SendFailure::NoPreview;
        }
        match refused.code {
            // The owner may mend the token; the reply is not lost until then.
            401 | 404 => SendFailure::Later { after: Some(Duration::from_secs(60)), reason },
            _ => SendFailure::Never { reason },
        }
    }
}

impl Live for Telegram {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut params = Map::new();
            params.insert("action".to_owned(), json!("typing"));
            if let Some(thread) = target.thread.as_ref().and_then(|id| id.parse::<i64>().ok()) {
                params.insert("message_thread_id".to_owned(), json!(thread));
            }
            if let Err(error) = self
                .call_in_chat::<Value>(&target.chat, "sendChatAction", (params, None), CALL_TIME)
                .await
            {
                tracing::debug!(%error, "typing is not shown");
            }
        })
    }

    fn typing_pause(&self) -> Duration {
        TYPING_PAUSE
    }

    fn begin<'a>(
        &'a self,
        target: &'a Target,
        reply_to: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async move {
            let Some((html, plain)) = preview_of(text) else { return Ok(None) };
            if !self.options.preview || !self.limits.try_now(&target.chat) {
                return Ok(None);
            }
            match self.post(target, reply_to, text_params(Some(&html), &plain)).await {
                Ok(id) => Ok(Some(id)),
                Err(error) => Err(self.failure(&target.chat, error, false)),
            }
        })
    }

    fn edit<'a>(&'a self, target: &'a Target, id: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some((html, plain)) = preview_of(text) else { return };
            if !self.limits.try_now(&target.chat) {
                return;
            }
            let mut params = text_params(Some(&html), &plain);
            params.insert("message_id".to_owned(), json!(id.parse::<i64>().unwrap_or_default()));
            if let Err(error) = self
                .call_in_chat::<Value>(&target.chat, "editMessageText", (params, None), CALL_TIME)
                .await
            {
                // This also notes how long the server wants quiet.
                let failure = self.failure(&target.chat, error, true);
                tracing::debug!(?failure, "a preview was not edited");
            }
        })
    }

    fn edit_pause(&self) -> Duration {
        EDIT_PAUSE
    }
}

/// The beginning of a reply as HTML and as plain text; `None` if there is nothing to see yet.
fn preview_of(text: &str) -> Option<(String, String)> {
    preview(text, MOST_UNITS, split_rendered, |first| {
        let rendered = render(first);
        (rendered.html, rendered.units)
    })
}

pub(super) fn text_params(html: Option<&str>, plain: &str) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("text".to_owned(), json!(html.unwrap_or(plain)));
    if html.is_some() {
        params.insert("parse_mode".to_owned(), json!("HTML"));
    }
    params.insert("link_preview_options".to_owned(), json!({"is_disabled": true}));
    params
}

/// Adds buttons below a text. A change of a message without buttons takes away those that it had.
pub(super) fn add_buttons(params: &mut Map<String, Value>, buttons: &[Button]) {
    let fits = |button: &&Button| button.command.len() <= MOST_COMMAND_BYTES;
    let keys: Vec<Value> = buttons
        .iter()
        .filter(fits)
        .map(|button| json!({"text": button.text, "callback_data": button.command}))
        .collect();
    if !keys.is_empty() {
        let rows: Vec<&[Value]> = keys.chunks(BUTTONS_IN_ROW).collect();
        params.insert("reply_markup".to_owned(), json!({"inline_keyboard": rows}));
    }
}

pub(super) fn add_place(params: &mut Map<String, Value>, target: &Target, reply_to: Option<&str>) {
    let thread = target.thread.as_ref().and_then(|id| id.parse::<i64>().ok());
    // Telegram does not find the general topic by its number.
    if let Some(thread) = thread.filter(|thread| *thread != GENERAL_TOPIC) {
        params.insert("message_thread_id".to_owned(), json!(thread));
    }
    if let Some(message) = reply_to.and_then(|id| id.parse::<i64>().ok()) {
        let reply = json!({"message_id": message, "allow_sending_without_reply": true});
        params.insert("reply_parameters".to_owned(), reply);
    }
}

/// Parameters as the fields of a form.
fn texts(params: &Map<String, Value>) -> Vec<(&str, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    params.iter().map(|(name, value)| (name.as_str(), text(value))).collect()
}

/// Ids are numbers; `@name` names a public group.
fn chat_id(chat: &str) -> Value {
    chat.parse::<i64>().map_or_else(|_| json!(chat), |id| json!(id))
}
