//! Messages that go out, and previews of them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::api::{ApiError, encode};
use super::format::render;
use super::press::add_buttons;
use super::{CALL_TIME, MOST_BYTES, Matrix, OWNER_PAUSE, encryption};
use crate::form::media_type;
use crate::split::preview;
use crate::{Live, Part, PartFile, PartKind, SendFailure, Target, split};

/// How long the server shows that somebody types.
const TYPING_TIME: Duration = Duration::from_secs(12);
/// Shortest time between two edits of a preview. Each is an event of the room, and servers limit their rate.
const EDIT_PAUSE: Duration = Duration::from_secs(3);
/// Most bytes of a text with tags. Beyond that, clients show the text without them.
const MOST_HTML: usize = 24_000;
/// Pause after a refusal that names none.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
pub(super) struct Sent {
    event_id: String,
}

impl Matrix {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        let mut content = match &part.file {
            Some(file) => self.file_content(&part.target.chat, file).await?,
            None if part.text.trim().is_empty() => {
                return Err(SendFailure::Never { reason: "there is no text".to_owned() });
            }
            None => text_content(&part.text, part.kind),
        };
        match &part.replaces {
            Some(preview) => content = edit_of(preview, &content),
            None => add_place(&mut content, &part.target, part.reply_to.as_deref()),
        }
        let has_buttons = !part.buttons.is_empty() && !self.is_encrypted(&part.target.chat).await?;
        if has_buttons {
            add_buttons(&mut content, &part.buttons);
        }
        let sent = self.put(&part.target.chat, &part.id, content).await?;
        if has_buttons {
            self.show_buttons(part, &sent).await;
        }
        Ok(sent)
    }

    pub(super) async fn put(
        &self,
        room: &str,
        id: &str,
        content: Map<String, Value>,
    ) -> Result<String, SendFailure> {
        self.put_event(room, "m.room.message", id, content).await
    }

    /// Sends an event of a type under the transaction id `id`.
    pub(super) async fn put_event(
        &self,
        room: &str,
        kind: &str,
        id: &str,
        content: Map<String, Value>,
    ) -> Result<String, SendFailure> {
        let (kind, content) = match self.is_encrypted(room).await? {
            true => ("m.room.encrypted", self.encrypt(room, kind, content).await?),
            false => (kind, content),
        };
        let sent = self.put_plain(room, kind, id, &Value::Object(content)).await;
        sent.map(|sent| sent.event_id).map_err(|error| self.failure(error))
    }

    /// Sends an event as it is.
    pub(super) async fn put_plain(
        &self,
        room: &str,
        kind: &str,
        id: &str,
        content: &Value,
    ) -> Result<Sent, ApiError> {
        let (room, id) = (encode(room), encode(id));
        self.api.put(&format!("/_matrix/client/v3/rooms/{room}/send/{kind}/{id}"), content).await
    }

    /// Whether a room is encrypted. The server is asked each time until it is: it may have become so just now.
    async fn is_encrypted(&self, room: &str) -> Result<bool, SendFailure> {
        if self.knows_encryption(room).await {
            return Ok(true);
        }
        let path = format!("/_matrix/client/v3/rooms/{}/state/m.room.encryption", encode(room));
        match self.api.get::<Value>(&path, &[], CALL_TIME).await {
            Ok(content) => {
                self.note_encryption(room, &content).await;
                Ok(true)
            }
            Err(ApiError::Refused(refused)) if refused.status == 404 => Ok(false),
            Err(error) => Err(self.failure(error)),
        }
    }

    async fn file_content(
        &self,
        room: &str,
        file: &PartFile,
    ) -> Result<Map<String, Value>, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let size = file.size().await?;
        if size > self.options.most_file_bytes {
            return Err(never(format!(
                "the file has {size} bytes, which is too much (mediaMaxMb)"
            )));
        }
        let bytes = file.read().await?;
        let media_type = media_type(&file.name);
        // A second upload costs space, and nobody sees it.
        let (uploaded, key) = if self.is_encrypted(room).await? {
            let (bytes, key) = encryption::encrypt_file(&bytes).map_err(never)?;
            // The server knows neither name nor type.
            (self.api.upload("file", "application/octet-stream", bytes).await, Some(key))
        } else {
            (self.api.upload(&file.name, media_type, bytes).await, None)
        };
        let address = uploaded.map_err(|error| match error {
            ApiError::Refused(refused) if refused.status == 413 => {
                never("the homeserver refuses a file of this size".to_owned())
            }
            error => self.failure(error),
        })?;
        let kind = match media_type.split('/').next() {
            _ if file.is_picture => "m.image",
            Some("audio") => "m.audio",
            _ => "m.file",
        };
        let mut content = object(json!({
            "msgtype": kind, "body": file.name, "filename": file.name,
            "info": {"mimetype": media_type, "size": size},
        }));
        // Clients show it as a voice note (MSC3245); those that do not know it play the file.
        if media_type == "audio/ogg" {
            content.insert("org.matrix.msc3245.voice".to_owned(), json!({}));
        }
        match key {
            Some(mut key) => {
                key.insert("url".to_owned(), json!(address));
                content.insert("file".to_owned(), Value::Object(key))
            }
            None => content.insert("url".to_owned(), json!(address)),
        };
        Ok(content)
    }

    /// The failure of a call, in the words of channels. The server takes a transaction id once, so nothing is uncertain.
    pub(super) fn failure(&self, error: ApiError) -> SendFailure {
        let reason = error.to_string();
        let ApiError::Refused(refused) = error else {
            return SendFailure::Later { after: None, reason };
        };
        match refused.status {
            429 => {
                let after = refused.retry_after.unwrap_or(SHORTEST_PAUSE);
                self.be_quiet(after);
                SendFailure::Later { after: Some(after), reason }
            }
            // The owner may mend the token; the reply is not lost until then.
            401 => SendFailure::Later { after: Some(OWNER_PAUSE), reason },
            408 => SendFailure::Later { after: None, reason },
            _ => SendFailure::Never { reason },
        }
    }
}

impl Live for Matrix {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok(me) = self.me().await else { return };
            let (room, me) = (encode(&target.chat), encode(&me.id));
            let path = format!("/_matrix/client/v3/rooms/{room}/typing/{me}");
            let body = json!({"typing": true, "timeout": TYPING_TIME.as_millis() as u64});
            if let Err(error) = self.api.put::<Value>(&path, &body).await {
                tracing::debug!(%error, "typing is not shown");
            }
        })
    }

    fn typing_pause(&self) -> Duration {
        TYPING_TIME - Duration::from_secs(4)
    }

    fn begin<'a>(
        &'a self,
        target: &'a Target,
        reply_to: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async move {
            let Some(mut content) = preview_of(text) else { return Ok(None) };
            if !self.options.preview || self.is_quiet() {
                return Ok(None);
            }
            add_place(&mut content, target, reply_to);
            let id = uuid::Uuid::new_v4().to_string();
            self.put(&target.chat, &id, content).await.map(Some)
        })
    }

    fn edit<'a>(&'a self, target: &'a Target, id: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(content) = preview_of(text) else { return };
            if self.is_quiet() {
                return;
            }
            let transaction = uuid::Uuid::new_v4().to_string();
            let content = edit_of(id, &content);
            // A failure also notes how long the server wants quiet.
            if let Err(failure) = self.put(&target.chat, &transaction, content).await {
                tracing::debug!(?failure, "a preview was not edited");
            }
        })
    }

    fn edit_pause(&self) -> Duration {
        EDIT_PAUSE
    }
}

fn preview_of(text: &str) -> Option<Map<String, Value>> {
    let cut = |text: &str, limit| split(text, limit, str::len);
    let shown = preview(text, MOST_BYTES, cut, |first| (first.to_owned(), first.trim().len()));
    shown.map(|(text, _)| text_content(&text, PartKind::Reply))
}

pub(super) fn text_content(text: &str, kind: PartKind) -> Map<String, Value> {
    // Programs do not answer notices, so two of them cannot talk forever about a failure.
    let kind = match kind {
        PartKind::Reply => "m.text",
        PartKind::Report => "m.notice",
    };
    let mut content = object(json!({"msgtype": kind, "body": text, "m.mentions": {}}));
    let html = render(text);
    if html.len() <= MOST_HTML {
        content.insert("format".to_owned(), json!("org.matrix.custom.html"));
        content.insert("formatted_body".to_owned(), json!(html));
    }
    content
}

/// What puts `content` in the place of the message `id`. Clients that know no edits show the text with a star.
pub(super) fn edit_of(id: &str, content: &Map<String, Value>) -> Map<String, Value> {
    let body = content.get("body").and_then(Value::as_str).unwrap_or_default();
    object(json!({
        "msgtype": content.get("msgtype"), "body": format!("* {body}"), "m.mentions": {},
        "m.new_content": content,
        "m.relates_to": {"rel_type": "m.replace", "event_id": id},
    }))
}

fn add_place(content: &mut Map<String, Value>, target: &Target, reply_to: Option<&str>) {
    let relation = match (&target.thread, reply_to) {
        (Some(thread), _) => json!({
            "rel_type": "m.thread", "event_id": thread, "is_falling_back": reply_to.is_none(),
            "m.in_reply_to": {"event_id": reply_to.unwrap_or(thread)},
        }),
        (None, Some(message)) => json!({"m.in_reply_to": {"event_id": message}}),
        (None, None) => return,
    };
    content.insert("m.relates_to".to_owned(), relation);
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
