//! What Meta posts: messages, and what became of ours.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde::Deserialize as _;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::api::ApiError;
use super::payload::{Change, Message, Payload, Said, Status};
use super::send::reason_of;
use super::{WHATSAPP, WRONG_TOKEN, WhatsApp, is_wrong_token};
use crate::arrival::{Whereabouts, store_dropped, store_unreadable};
use crate::pause::Pause;
use crate::signature::{is_signature, is_signed};
use crate::taking::{hand_over, load};
use crate::{
    Arrival, Attachment, AttachmentContent, ChatKind, FileOf, HookAnswer, HookRequest, Intake,
    Quoted, State,
};

/// The header with the signature of the body.
const SIGNATURE_HEADER: &str = "x-hub-signature-256";
/// Where a message, or what was posted, names who wrote: the chat has their id.
const WHEREABOUTS: Whereabouts = Whereabouts { chats: SENDERS, senders: SENDERS };
const SENDERS: &[&str] = &["/from", "/messages/0/from", "/entry/0/changes/0/value/messages/0/from"];
/// Longest challenge of Meta that is repeated, in bytes.
const MOST_CHALLENGE: usize = 256;

/// What was posted for a number, and where to say that it is stored.
#[derive(Debug)]
pub(super) struct PostedMessages {
    said: Said,
    done: oneshot::Sender<Result<(), String>>,
}

impl WhatsApp {
    /// A request of Meta, or of somebody who poses as it.
    pub(super) async fn receive_hook(
        &self,
        request: HookRequest,
        intake: &dyn Intake,
    ) -> HookAnswer {
        match self.admit_hook(&request) {
            Ok(()) => self.receive_post(&request, intake).await,
            Err(answer) => answer,
        }
    }

    /// Answers what the head decides: all but what is posted with something that looks like a signature.
    pub(super) fn admit_hook(&self, head: &HookRequest) -> Result<(), HookAnswer> {
        match head.method.as_str() {
            "GET" => Err(self.verify(head)),
            "POST" if !head.header(SIGNATURE_HEADER).is_some_and(is_signature) => {
                Err(HookAnswer::error(401, "the signature is missing or wrong"))
            }
            "POST" => Ok(()),
            _ => Err(HookAnswer::error(405, "Meta asks with GET and posts with POST")),
        }
    }

    /// Shows Meta that the owner of the app is also that of this gateway.
    fn verify(&self, request: &HookRequest) -> HookAnswer {
        let presented = request.parameter("hub.verify_token").unwrap_or_default();
        let expected = self.options.verify_token.expose_secret();
        let is_right = bool::from(presented.as_bytes().ct_eq(expected.as_bytes()));
        if !is_right || request.parameter("hub.mode").as_deref() != Some("subscribe") {
            return HookAnswer::error(403, "hub.mode or hub.verify_token is wrong");
        }
        let challenge = request.parameter("hub.challenge").unwrap_or_default();
        if challenge.len() > MOST_CHALLENGE
            || !challenge.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return HookAnswer::error(400, "hub.challenge is no short word");
        }
        HookAnswer::text(200, challenge)
    }

    async fn receive_post(&self, request: &HookRequest, intake: &dyn Intake) -> HookAnswer {
        let signature = request.header(SIGNATURE_HEADER).unwrap_or_default();
        if !is_signed(&self.options.app_secret, signature, &request.body) {
            let account = &self.options.account;
            tracing::warn!(
                channel = WHATSAPP,
                account,
                "a request with a wrong signature was refused"
            );
            return HookAnswer::error(401, "the signature is missing or wrong");
        }
        let thanks = HookAnswer::json(200, &json!({}));
        let raw = serde_json::from_slice(&request.body);
        let raw = raw.unwrap_or_else(|_| String::from_utf8_lossy(&request.body).into());
        // What is stored need not be posted again. Meta would post it for a week.
        let payload = match Payload::deserialize(&raw) {
            Ok(payload) => payload,
            Err(error) => {
                return match self.drop_unreadable(&raw, error, intake).await {
                    Ok(()) => thanks,
                    Err(reason) => HookAnswer::error(503, &reason),
                };
            }
        };
        let changes = payload.entry.into_iter().flat_map(|entry| entry.changes);
        let (mut stored, mut waiting) = (Vec::new(), Vec::new());
        for Change { value, .. } in changes.filter(|change| change.field == "messages") {
            let said = match Said::deserialize(&value) {
                Ok(said) => said,
                Err(error) => {
                    stored.push(self.drop_unreadable(&value, error, intake).await);
                    continue;
                }
            };
            for error in &said.errors {
                tracing::warn!(
                    channel = WHATSAPP,
                    code = error.code,
                    reason = error.reason(),
                    "Meta reports a failure"
                );
            }
            let number = &said.metadata.phone_number_id;
            let Some(sender) = self.app.numbers().get(number).cloned() else {
                let reason = format!("it is for the number {number}, which is not in the config");
                for message in &said.messages {
                    stored.push(self.drop_unreadable(message, &reason, intake).await);
                }
                continue;
            };
            waiting.push(enqueue(&sender, said));
        }
        for one in waiting {
            stored.push(one.await);
        }
        match stored.into_iter().collect() {
            Ok(()) => thanks,
            Err(reason) => HookAnswer::error(503, &reason),
        }
    }

    /// Stores what cannot be read.
    ///
    /// # Errors
    /// It has to be posted again.
    async fn drop_unreadable(
        &self,
        raw: &Value,
        reason: impl fmt::Display,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        store_unreadable(intake, &self.account, raw, &WHEREABOUTS, reason).await
    }

    /// Takes what is posted, forever. A request whose sender has gone is taken all the same.
    pub(super) async fn take_jobs(self: Arc<Self>, intake: Arc<dyn Intake>) {
        let mut jobs = self.jobs.lock().await;
        let checking = self.check();
        tokio::pin!(checking);
        let mut is_checked = false;
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                job = jobs.recv() => {
                    let Some(PostedMessages { said, done }) = job else { return };
                    let (this, intake) = (Arc::clone(&self), Arc::clone(&intake));
                    tasks.spawn(async move {
                        // Nobody may wait any more.
                        let _ = done.send(this.take_said(said, &*intake).await);
                    });
                }
                Some(_) = tasks.join_next() => {}
                () = &mut checking, if !is_checked => is_checked = true,
            }
        }
    }

    /// Asks until the vendor knows the number.
    async fn check(&self) {
        let mut pause = Pause::new();
        loop {
            match self.api.number().await {
                Ok(_) => return self.account.set(State::Working),
                Err(error) => self.note_failure(&error),
            }
            pause.wait().await;
        }
    }

    /// Makes a failure that concerns the whole account its state.
    pub(super) fn note_failure(&self, error: &ApiError) {
        let is_working = self.account.state() == State::Working;
        if is_wrong_token(error) {
            self.account.set(State::Waiting(WRONG_TOKEN.to_owned()));
        } else if !is_working {
            self.account.set(State::Waiting(error.to_string()));
        }
    }

    async fn take_said(&self, mut said: Said, intake: &dyn Intake) -> Result<(), String> {
        let (messages, statuses) =
            (std::mem::take(&mut said.messages), std::mem::take(&mut said.statuses));
        for message in messages {
            match Message::deserialize(&message) {
                Ok(read) if read.id.is_empty() => {
                    self.drop_unreadable(&message, "it has no id", intake).await?;
                }
                Ok(read) => self.take(&read, &said, intake).await?,
                Err(error) => self.drop_unreadable(&message, error, intake).await?,
            }
        }
        for status in statuses {
            match serde_json::from_value::<Status>(status) {
                Ok(status) => self.heed(&status, intake).await?,
                Err(error) => {
                    tracing::error!(channel = WHATSAPP, %error, "a status cannot be read")
                }
            }
        }
        Ok(())
    }

    /// Takes a message.
    ///
    /// # Errors
    /// It has to be posted again.
    async fn take(
        &self,
        message: &Message,
        said: &Said,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        let person = message.person().unwrap_or("unknown");
        let chat = message.chat(person);
        let order = self.memory().order(&chat.id);
        let _in_order = order.lock().await;
        // A repetition that came while the file was loaded.
        if self.memory().is_stored(&message.id) {
            return Ok(());
        }
        let sender = message.sender(person, &said.contacts);
        let (text, passages) = message.content();
        let file = message.file().map(|(media, name)| {
            let attachment = Attachment::new(Some(name), media.mime_type.clone());
            (media.id.clone(), attachment.of(message.file_of()))
        });
        let answered = &message.context;
        let known = answered.id.as_ref().map(|id| self.memory().quoted(id));
        let answered_file = known.clone().and_then(|known| known?.1);
        let answered_file =
            answered_file.map(|(id, attachment)| (id, attachment.of(FileOf::Answered)));
        let files: Vec<(String, Attachment)> = file.iter().cloned().chain(answered_file).collect();
        let own = said.metadata.display_phone_number.trim_start_matches('+');
        let is_answer_to_me = answered.from.as_ref().is_some_and(|from| from == own);
        let name = sender.name.clone().unwrap_or_else(|| sender.id.clone());
        let chat_id = chat.id.clone();
        let arrival = Arrival {
            channel: WHATSAPP.to_owned(),
            account: self.options.account.clone(),
            mentions_me: chat.kind == ChatKind::Direct || is_answer_to_me,
            chat,
            source_id: message.id.clone(),
            reply_id: Some(message.id.clone()),
            sender,
            text: text.clone(),
            passages,
            attachments: files.iter().map(|(_, attachment)| attachment.clone()).collect(),
            edits: None,
            // WhatsApp gives only the id of what is answered. It may be from before a restart.
            reply_to: known.map(|known| {
                let unknown = || Quoted { sender: answered.from.clone(), text: String::new() };
                known.map_or_else(unknown, |(quoted, _)| quoted)
            }),
            answers: answered.id.clone(),
            ..Arrival::default()
        };
        let nobody = || message.person().is_none().then(|| "it names no sender".to_owned());
        if let Some(reason) = message.is_not_said().or_else(nobody) {
            return store_dropped(intake, arrival, reason).await;
        }
        let described = match text.is_empty() {
            true => message.said(),
            false => text,
        };
        let loading = async {
            let mut contents = Vec::with_capacity(files.len());
            for (id, _) in &files {
                contents.push(self.load_file(id).await);
            }
            contents
        };
        if let Some(receipt) = hand_over(intake, arrival, &self.with_files, loading).await? {
            let mut memory = self.memory();
            memory.note_stored(&message.id);
            if receipt.dropped.is_none() {
                memory.note_text(&message.id, Some(name), &described);
                memory.note_file(&message.id, file);
                memory.note_newest(&chat_id, &message.id);
            }
        }
        Ok(())
    }

    async fn load_file(&self, id: &str) -> AttachmentContent {
        let most = self.options.most_file_bytes;
        let download = async || {
            let loaded = self.api.download(id, most).await;
            loaded.inspect_err(|error| {
                if matches!(error, ApiError::Refused(_)) {
                    self.note_failure(error);
                }
            })
        };
        load(None, most, download).await
    }

    /// Takes the news about a message of ours.
    ///
    /// # Errors
    /// It has to be posted again.
    async fn heed(&self, status: &Status, intake: &dyn Intake) -> Result<(), String> {
        let Some(part) = &status.biz_opaque_callback_data else { return Ok(()) };
        if status.status != "failed" {
            self.memory().confirm(part, &status.id);
            self.heard.notify_waiters();
            return Ok(());
        }
        let error = status.errors.first().cloned().unwrap_or_default();
        let reason = reason_of(error.code, error.reason());
        if let Err(refusal) = intake.undelivered(part, &reason).await {
            return Err(refusal.to_string());
        }
        self.after_closed_window(error.code, &status.recipient_id).await;
        Ok(())
    }
}

/// Gives what was posted to its number. The result says whether it is stored.
fn enqueue(
    number: &mpsc::Sender<PostedMessages>,
    said: Said,
) -> impl Future<Output = Result<(), String>> + use<> {
    let (done, stored) = oneshot::channel();
    let sent = number.try_send(PostedMessages { said, done });
    async move {
        sent.map_err(|_| {
            "too much is waiting, or the channel is closed; post it again".to_owned()
        })?;
        stored.await.unwrap_or_else(|_| Err("the channel was closed; post it again".to_owned()))
    }
}
