//! Messages that come in: by long polling or by webhook.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::api::ApiError;
use super::update::{FileRef, Said, Update};
use super::{CALL_TIME, TELEGRAM, Telegram, WRONG_TOKEN, is_wrong_token};
use crate::pause::{self, Pause, until_stored};
use crate::taking::{hand_over, load};
use crate::{Arrival, Attachment, AttachmentContent, HookAnswer, HookRequest, Intake, State};

/// How long the server waits for a message before it answers with an empty list.
const POLL_TIME: Duration = Duration::from_secs(25);
/// Time for the answer beyond that.
const POLL_GRACE: Duration = Duration::from_secs(15);
/// Most updates in one answer (Bot API, getUpdates).
const MOST_UPDATES: usize = 100;
/// Shortest time between two polls that find nothing, for servers that do not wait.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
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
        self.account.set(State::Working);
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
                    self.account.set(State::Working);
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
            self.account.set(State::Stopped(WRONG_TOKEN.to_owned()));
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
        self.account.set(State::Waiting(reason));
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
                until_stored(|| self.take(&said, intake)).await;
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
        let (chat, files) = (message.chat(), message.files());
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
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            mentions_me: message.mentions(&me),
            reply_to: message.quoted(),
            chat,
        };
        let loading = self.load_files(&files);
        hand_over(intake, arrival, &self.with_files, loading).await.map(drop)
    }

    async fn load_files(&self, files: &[(FileRef, Attachment)]) -> Vec<AttachmentContent> {
        let most = self.options.most_file_bytes;
        let mut contents = Vec::with_capacity(files.len());
        for (file, _) in files {
            contents.push(load(file.size, most, || self.download(&file.id, most)).await);
        }
        contents
    }

    async fn download(&self, id: &str, most: u64) -> Result<Vec<u8>, ApiError> {
        let found: FilePath = self.api.call("getFile", &json!({"file_id": id}), CALL_TIME).await?;
        let path = found.file_path.unwrap_or_default();
        self.api.download(&path, most, CALL_TIME * 2).await
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
