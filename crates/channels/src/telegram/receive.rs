//! Messages that come in: by long polling or by webhook.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::api::ApiError;
use super::update::{Message, PhotoSize, Said, Update};
use super::{CALL_TIME, TELEGRAM, Telegram, WRONG_TOKEN, is_wrong_token};
use crate::pause::{self, Pause};
use crate::{
    Arrival, Attachment, AttachmentContent, HookAnswer, HookRequest, Intake, Refusal, State,
};

/// How long the server waits for a message before it answers with an empty list.
const POLL_TIME: Duration = Duration::from_secs(25);
/// Time for the answer beyond that.
const POLL_GRACE: Duration = Duration::from_secs(15);
/// Most updates in one answer (Bot API, getUpdates).
const MOST_UPDATES: usize = 100;
/// Shortest time between two polls that find nothing, for servers that do not wait.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// Attempts to download a file before its message goes on without it.
const DOWNLOADS: u32 = 3;
/// What Telegram is asked for.
const UPDATES: [&str; 2] = ["message", "edited_message"];
/// The header with the secret of a webhook.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

#[derive(Deserialize)]
struct FilePath {
    #[serde(default)]
    file_path: Option<String>,
}

impl Telegram {
    /// Receives messages for ever, or returns if the bot cannot be used.
    pub(super) async fn receive_updates(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        while let Err(error) = self.set_up().await {
            if !self.may_go_on(&error).await {
                return;
            }
            pause.wait().await;
        }
        self.set_state(State::Working);
        if self.options.webhook.is_some() {
            return;
        }
        let mut offset = 0;
        let mut pause = Pause::new();
        loop {
            let params = json!({
                "offset": offset,
                "limit": MOST_UPDATES,
                "timeout": POLL_TIME.as_secs(),
                "allowed_updates": UPDATES,
            });
            let asked = Instant::now();
            match self.api.call::<Vec<Value>>("getUpdates", &params, POLL_TIME + POLL_GRACE).await {
                Ok(updates) => {
                    self.set_state(State::Working);
                    pause = Pause::new();
                    if updates.is_empty() {
                        tokio::time::sleep_until(asked + IDLE_PAUSE).await;
                    }
                    // The next call tells the server to forget these, so all of them must be on disk before.
                    if let Some(last) = self.take_all(updates, intake).await {
                        offset = last + 1;
                    }
                }
                Err(error) => {
                    if !self.may_go_on(&error).await {
                        return;
                    }
                    pause.wait().await;
                }
            }
        }
    }

    async fn set_up(&self) -> Result<(), ApiError> {
        self.ask_who_i_am().await?;
        let _: Value = match &self.options.webhook {
            Some(url) => {
                let params = json!({
                    "url": url,
                    "secret_token": self.webhook_secret(),
                    "allowed_updates": UPDATES,
                });
                self.api.call("setWebhook", &params, CALL_TIME).await?
            }
            // With a webhook the server refuses to be asked.
            None => self.api.call("deleteWebhook", &json!({}), CALL_TIME).await?,
        };
        Ok(())
    }

    /// Notes the failure as the state of the channel. False if only a change of the config can help.
    async fn may_go_on(&self, error: &ApiError) -> bool {
        if is_wrong_token(error) {
            self.set_state(State::Stopped(WRONG_TOKEN.to_owned()));
            return false;
        }
        let mut reason = error.to_string();
        if let ApiError::Refused(refused) = error {
            if refused.code == 409 {
                reason = "another program receives the messages of this bot; stop it, or use a bot of its own"
                    .to_owned();
            }
            if let Some(time) = refused.retry_after {
                tokio::time::sleep(time.min(pause::LONGEST)).await;
            }
        }
        self.set_state(State::Waiting(reason));
        true
    }

    /// Takes updates. The messages of a chat keep their order; chats do not wait for each other. Returns the last id.
    async fn take_all(&self, updates: Vec<Value>, intake: &dyn Intake) -> Option<i64> {
        let mut last = None;
        let mut by_chat: Vec<(i64, Vec<Said>)> = Vec::new();
        for value in updates {
            let id = value.get("update_id").and_then(Value::as_i64);
            last = last.max(id);
            match serde_json::from_value::<Update>(value) {
                Ok(update) => {
                    let Some(said) = update.said() else { continue };
                    let chat = said.message.chat.id;
                    match by_chat.iter_mut().find(|(id, _)| *id == chat) {
                        Some((_, all)) => all.push(said),
                        None => by_chat.push((chat, vec![said])),
                    }
                }
                Err(error) => tracing::error!(%error, update = id, "an update cannot be read"),
            }
        }
        let taking = by_chat.into_iter().map(async |(_, all)| {
            for said in all {
                let mut pause = Pause::new();
                while let Err(reason) = self.take(&said, intake).await {
                    tracing::warn!(%reason, "a message cannot be stored; trying again");
                    pause.wait().await;
                }
            }
        });
        join_all(taking).await;
        last
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take(&self, said: &Said, intake: &dyn Intake) -> Result<(), String> {
        let Said { message, edit } = said;
        let Some(me) = self.me() else { return Err("the bot's name is not known yet".to_owned()) };
        if message.is_from_bot() || !message.is_said() {
            return Ok(());
        }
        let chat = message.chat();
        // Ids of messages are unique in a chat of a bot.
        let source_id = format!("{}:{}:{}", me.id, chat.id, message.message_id);
        let arrival = Arrival {
            channel: TELEGRAM.to_owned(),
            account: self.options.account.clone(),
            edits: edit.map(|_| source_id.clone()),
            source_id: match edit {
                Some(update) => format!("{source_id}:edit:{update}"),
                None => source_id,
            },
            reply_id: Some(message.message_id.to_string()),
            sender: message.sender(),
            text: message.text(Some(&me)),
            attachments: self.attachments(message).await,
            mentions_me: message.mentions(&me),
            reply_to: message.quoted(),
            chat,
        };
        let source_id = arrival.source_id.clone();
        match intake.take(arrival).await {
            Ok(_) => Ok(()),
            Err(Refusal::Unusable(reason)) => {
                tracing::warn!(%reason, message = source_id, "a message cannot be used");
                Ok(())
            }
            Err(Refusal::Later(reason)) => Err(reason),
        }
    }

    async fn attachments(&self, message: &Message) -> Vec<Attachment> {
        let mut attachments = Vec::new();
        let largest = |photo: &&PhotoSize| photo.width * photo.height;
        let photo = message.photo.iter().max_by_key(largest);
        let mut files = Vec::new();
        if let Some(photo) = photo {
            let name = Some("photo.jpg".to_owned());
            files.push((&photo.file_id, name, Some("image/jpeg".to_owned()), photo.file_size));
        }
        // Telegram repeats an animation as a document.
        let document = message.document.as_ref().filter(|_| message.animation.is_none());
        let others = [
            (document, "file"),
            (message.audio.as_ref(), "audio"),
            (message.voice.as_ref(), "voice.ogg"),
            (message.video.as_ref(), "video.mp4"),
            (message.video_note.as_ref(), "video.mp4"),
            (message.animation.as_ref(), "animation.mp4"),
        ];
        for (file, name) in others {
            let Some(file) = file else { continue };
            let name = file.file_name.clone().unwrap_or_else(|| name.to_owned());
            files.push((&file.file_id, Some(name), file.mime_type.clone(), file.file_size));
        }
        for (id, name, media_type, size) in files {
            let content = self.download(id, size).await;
            attachments.push(Attachment { name, media_type, content });
        }
        attachments
    }

    async fn download(&self, id: &str, size: Option<u64>) -> AttachmentContent {
        let most = self.options.most_file_bytes;
        if let Some(size) = size.filter(|size| *size > most) {
            let reason = format!("it has {size} bytes, and at most {most} are downloaded");
            return AttachmentContent::Missing(reason);
        }
        let mut pause = Pause::new();
        let mut attempt = 1;
        loop {
            let loading = async {
                let found: FilePath =
                    self.api.call("getFile", &json!({"file_id": id}), CALL_TIME).await?;
                let path = found.file_path.unwrap_or_default();
                self.api.download(&path, most, CALL_TIME * 2).await
            };
            match loading.await {
                Ok(bytes) => return AttachmentContent::Bytes(bytes),
                Err(error @ ApiError::Refused(_)) => {
                    return AttachmentContent::Missing(error.to_string());
                }
                Err(error) if attempt >= DOWNLOADS => {
                    return AttachmentContent::Missing(error.to_string());
                }
                Err(_) => pause.wait().await,
            }
            attempt += 1;
        }
    }

    /// A request of Telegram, or of somebody who poses as it.
    pub(super) async fn receive_hook(
        &self,
        request: HookRequest,
        intake: &dyn Intake,
    ) -> HookAnswer {
        if self.options.webhook.is_none() {
            return HookAnswer::error(404, "this bot has no webhook");
        }
        let secret = request.header(SECRET_HEADER).unwrap_or_default();
        if !bool::from(secret.as_bytes().ct_eq(self.webhook_secret().as_bytes())) {
            return HookAnswer::error(401, "the secret token is missing or wrong");
        }
        if request.method != "POST" {
            return HookAnswer::error(405, "updates are posted");
        }
        let Ok(update) = serde_json::from_slice::<Update>(&request.body) else {
            // Telegram would send it again and again.
            tracing::error!("an update cannot be read");
            return HookAnswer::json(200, &json!({"ok": true}));
        };
        tracing::debug!(update = update.update_id, "an update came in");
        let Some(said) = update.said() else {
            return HookAnswer::json(200, &json!({"ok": true}));
        };
        match self.take(&said, intake).await {
            Ok(()) => HookAnswer::json(200, &json!({"ok": true})),
            Err(reason) => HookAnswer::error(503, &reason),
        }
    }
}
