//! Messages that come in: by long polling or by webhook.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use super::albums::{self, Waiting};
use super::api::ApiError;
use super::content::Loadable;
use super::update::{Message, Said, Update};
use super::{CALL_TIME, TELEGRAM, Telegram, WRONG_TOKEN, is_wrong_token};
use crate::arrival::{NOT_YOURS, NOTHING_SHOWN, Whereabouts, store_dropped, store_unreadable};
use crate::pause::{self, Pause, until_stored};
use crate::taking::{hand_over, load};
use crate::{Arrival, AttachmentContent, Chat, HookAnswer, HookRequest, Intake, State};

/// How long the server waits for a message before it answers with an empty list.
const POLL_TIME: Duration = Duration::from_secs(25);
/// Time for the answer beyond that.
const POLL_GRACE: Duration = Duration::from_secs(15);
/// Most updates in one answer (Bot API, getUpdates).
const MOST_UPDATES: usize = 100;
/// Shortest time between two polls that find nothing, for servers that do not wait.
const IDLE_PAUSE: Duration = Duration::from_secs(1);
/// What Telegram is asked for.
const UPDATES: [&str; 3] = ["message", "edited_message", "callback_query"];
/// Where an update names its chat and its sender.
const WHEREABOUTS: Whereabouts = Whereabouts {
    chats: &["/message/chat/id", "/edited_message/chat/id"],
    senders: &["/message/from/id", "/edited_message/from/id"],
};
/// The header with the secret of a webhook.
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

#[derive(Deserialize)]
struct FilePath {
    #[serde(default)]
    file_path: Option<String>,
}

impl Telegram {
    /// Receives messages forever, or returns if the bot cannot be used.
    pub(super) async fn receive_updates(&self, intake: &dyn Intake) {
        let mut pause = Pause::new();
        while let Err(error) = self.set_up(intake).await {
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
        let mut waiting = Waiting::default();
        loop {
            let params = json!({
                "offset": offset,
                "limit": MOST_UPDATES,
                "timeout": if waiting.is_empty() { POLL_TIME.as_secs() } else { 0 },
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
                    if let Some(next) = self.take_all(updates, &mut waiting, intake).await {
                        offset = next;
                    }
                    if !waiting.is_empty() {
                        tokio::time::sleep(albums::LOOK).await;
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

    async fn set_up(&self, intake: &dyn Intake) -> Result<(), ApiError> {
        self.recall_moves(intake).await.map_err(ApiError::NotSent)?;
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

    /// Takes updates. The messages of a chat keep their order; chats do not wait for each other. An album whose parts may
    /// not all be there waits, and so does what came behind it in its chat. Returns the first id that is not taken.
    async fn take_all(
        &self,
        updates: Vec<Value>,
        waiting: &mut Waiting,
        intake: &dyn Intake,
    ) -> Option<i64> {
        let mut next = None;
        let mut by_chat: Vec<(i64, Vec<Vec<Said>>)> = Vec::new();
        for value in updates {
            let id = value.get("update_id").and_then(Value::as_i64);
            next = next.max(id.map(|id| id + 1));
            match Update::deserialize(&value) {
                Ok(update) => {
                    let Some(said) = update.said() else { continue };
                    self.note_move_of(&said.message, intake).await;
                    let chat = said.message.chat.id;
                    match by_chat.iter_mut().find(|(id, _)| *id == chat) {
                        Some((_, all)) => albums::add(all, said),
                        None => by_chat.push((chat, vec![vec![said]])),
                    }
                }
                Err(error) => until_stored(|| self.drop_unreadable(&value, &error, intake)).await,
            }
        }
        waiting.begin();
        for (_, all) in &mut by_chat {
            let ready = all.iter().position(|together| !waiting.is_whole(together));
            for left in all.drain(ready.unwrap_or(all.len())..) {
                next = next.min(left.iter().map(|said| Some(said.update)).min().unwrap_or(next));
            }
        }
        waiting.end();
        let taking = by_chat.into_iter().map(async |(_, all)| {
            for together in all {
                until_stored(|| self.take(&together, intake)).await;
            }
        });
        join_all(taking).await;
        next
    }

    /// Takes a message, or the messages of an album as one.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn take(&self, together: &[Said], intake: &dyn Intake) -> Result<(), String> {
        let Some(Said { message, edit, press, .. }) = together.first() else { return Ok(()) };
        let Some(me) = self.me() else { return Err("the bot's name is not known yet".to_owned()) };
        let parts: Vec<&Message> = together.iter().map(|said| &said.message).collect();
        // Ids of messages are unique in a chat of a bot.
        let id_of = |part: &Message| format!("{}:{}:{}", me.id, part.chat.id, part.message_id);
        let source_id = match press {
            Some(press) => format!("{}:press:{press}", me.id),
            None => self.albums().known(&id_of(message)).unwrap_or_else(|| id_of(message)),
        };
        if edit.is_none() && press.is_none() && source_id != id_of(message) {
            // A part of an album that is stored, and comes again.
            return Ok(());
        }
        let mut files: Vec<Loadable> = parts.iter().flat_map(|part| part.files()).collect();
        files.extend(parts.iter().flat_map(|part| part.answered_files()));
        let (text, passages) = albums::joined(parts.iter().map(|part| part.content(&me)));
        let arrival = Arrival {
            channel: TELEGRAM.to_owned(),
            account: self.options.account.clone(),
            edits: edit.map(|_| source_id.clone()),
            source_id: match edit {
                Some(update) => format!("{source_id}:edit:{update}"),
                None => source_id.clone(),
            },
            reply_id: Some(message.message_id.to_string()),
            sender: message.sender(),
            text,
            passages,
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            mentions_me: press.is_some() || parts.iter().any(|part| part.mentions(&me)),
            reply_to: parts.iter().find_map(|part| part.quoted()),
            answers: parts.iter().find_map(|part| part.answered_id()),
            is_press: press.is_some(),
            chat: self.chat_of(message),
        };
        if let Some(reason) = nobody_answers(message, edit.is_some(), &arrival) {
            return store_dropped(intake, arrival, reason).await;
        }
        let loading = self.load_files(&files);
        let receipt = hand_over(intake, arrival, &self.with_files, loading).await?;
        if let Some(press) = press {
            let is_taken = receipt.is_some_and(|receipt| receipt.dropped.is_none());
            self.end_press(press, is_taken).await;
        }
        if parts.len() > 1 {
            self.albums().note(parts.iter().map(|part| id_of(part)), &source_id);
        }
        Ok(())
    }

    /// Tells the person who pressed a button that this has come. Until then the button looks busy.
    async fn end_press(&self, press: &str, is_taken: bool) {
        let mut params = json!({"callback_query_id": press});
        if !is_taken {
            params["text"] = json!(NOT_YOURS);
        }
        if let Err(error) = self.api.call::<Value>("answerCallbackQuery", &params, CALL_TIME).await
        {
            // Telegram refuses it after some time, and then nobody waits for it.
            tracing::debug!(%error, "a press is not confirmed");
        }
    }

    /// Stores an update that cannot be read.
    ///
    /// # Errors
    /// It has to be tried again.
    async fn drop_unreadable(
        &self,
        raw: &Value,
        error: &serde_json::Error,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        store_unreadable(intake, &self.account, raw, &WHEREABOUTS, error).await
    }

    /// The chat of a message. A group that has become a supergroup stays the chat that it was.
    fn chat_of(&self, message: &Message) -> Chat {
        let mut chat = message.chat();
        if let Some((old, new)) = self.move_of(message.chat.id) {
            (chat.id, chat.other_id) = (old.to_string(), Some(new.to_string()));
        }
        chat
    }

    async fn load_files(&self, files: &[Loadable]) -> Vec<AttachmentContent> {
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

    /// Whether a request has the secret, which is in a header.
    pub(super) fn admit_hook(&self, head: &HookRequest) -> Result<(), HookAnswer> {
        if self.options.webhook.is_none() {
            return Err(HookAnswer::error(404, "this bot has no webhook"));
        }
        let secret = head.header(SECRET_HEADER).unwrap_or_default();
        if !bool::from(secret.as_bytes().ct_eq(self.webhook_secret().as_bytes())) {
            return Err(HookAnswer::error(401, "the secret token is missing or wrong"));
        }
        if head.method != "POST" {
            return Err(HookAnswer::error(405, "updates are posted"));
        }
        Ok(())
    }

    /// A request of Telegram, or of somebody who poses as it.
    pub(super) async fn receive_hook(
        &self,
        request: HookRequest,
        intake: &dyn Intake,
    ) -> HookAnswer {
        if let Err(answer) = self.admit_hook(&request) {
            return answer;
        }
        let raw = serde_json::from_slice(&request.body);
        let raw = raw.unwrap_or_else(|_| String::from_utf8_lossy(&request.body).into());
        let update = match Update::deserialize(&raw) {
            Ok(update) => update,
            // Once it is stored, Telegram need not send it again.
            Err(error) => {
                return match self.drop_unreadable(&raw, &error, intake).await {
                    Ok(()) => HookAnswer::json(200, &json!({"ok": true})),
                    Err(reason) => HookAnswer::error(503, &reason),
                };
            }
        };
        tracing::debug!(update = update.update_id, "an update came in");
        let Some(said) = update.said() else {
            return HookAnswer::json(200, &json!({"ok": true}));
        };
        self.note_move_of(&said.message, intake).await;
        let taken = match self.album_of(said).await {
            Ok(Some(together)) => {
                let taken = self.take(&together.parts, intake).await;
                together.done(taken.clone());
                taken
            }
            Ok(None) => Ok(()),
            Err(reason) => Err(reason),
        };
        match taken {
            Ok(()) => HookAnswer::json(200, &json!({"ok": true})),
            Err(reason) => HookAnswer::error(503, &reason),
        }
    }
}

/// Why a message gets no answer, independent of who may write.
pub(super) fn nobody_answers(
    message: &Message,
    is_edit: bool,
    arrival: &Arrival,
) -> Option<String> {
    if message.is_from_bot() {
        return Some("another bot sent it, and bots are not answered".to_owned());
    }
    if is_edit && message.is_live_location() {
        return Some("it is a live location that moves".to_owned());
    }
    if let Some(kind) = message.service() {
        return Some(format!("it is a note of Telegram that nobody wrote ({kind})"));
    }
    let is_empty = arrival.text.is_empty() && arrival.is_plain();
    is_empty.then(|| NOTHING_SHOWN.to_owned())
}
