//! A signed HTTP webhook in both directions, for programs.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use reqwest::Client;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use crate::http::{self, Failure};
use crate::signature::{self, SIGNATURE_HEADER, TIME_HEADER};
use crate::{
    Account, AfterInterruption, Arrival, Capabilities, Channel, Chat, HookAnswer, HookRequest,
    Intake, Part, ProbeFailure, Refusal, SendFailure, Sender, State,
};

/// Name of the channel.
pub const WEBHOOK: &str = "webhook";
/// Time for the program to take an answer.
const SEND_TIME: Duration = Duration::from_secs(30);
/// Most bytes of its answer that are read.
const MOST_ANSWER: usize = 64 * 1024;
/// Largest file, in bytes. It travels in the body, in base64.
const MOST_FILE_BYTES: u64 = 8 * 1024 * 1024;
/// The chat of a message that names none.
const DEFAULT_CHAT: &str = "default";
/// Longest name of a chat or a person, in bytes.
const MOST_NAME: usize = 128;

/// How a webhook is set up.
#[derive(Debug, Clone)]
pub struct WebhookOptions {
    /// The account's name, which is the last part of the address.
    pub account: String,
    /// Signs both directions.
    pub secret: SecretString,
    /// Where answers go.
    pub url: String,
}

/// A webhook.
pub struct Webhook {
    options: WebhookOptions,
    client: Client,
    account: Account,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `id` and `text`")]
struct Body {
    id: String,
    text: String,
    #[serde(default)]
    chat: Option<String>,
    #[serde(default)]
    sender: Option<BodySender>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `id`")]
struct BodySender {
    id: String,
    #[serde(default)]
    name: Option<String>,
}

impl Webhook {
    /// Sets up a webhook. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: WebhookOptions) -> Result<Self, String> {
        let client = http::client(&options.url)?;
        let account = Account::new(WEBHOOK, &options.account);
        account.set(State::Working);
        Ok(Self { options, client, account })
    }

    async fn take(&self, request: HookRequest, intake: &dyn Intake) -> HookAnswer {
        if let Err(answer) = self.admit(&request) {
            return answer;
        }
        let (time, tag) = (request.header(TIME_HEADER), request.header(SIGNATURE_HEADER));
        if let Err(why) = signature::check(&self.options.secret, time, tag, &request.body) {
            return HookAnswer::error(401, &why);
        }
        let body: Body = match serde_json::from_slice(&request.body) {
            Ok(body) => body,
            Err(error) => {
                return HookAnswer::error(
                    400,
                    &format!("not a message: {error}; docs/channels/webhook.md has the fields"),
                );
            }
        };
        let chat = body.chat.unwrap_or_else(|| DEFAULT_CHAT.to_owned());
        let sender = body.sender.map_or_else(
            || Sender {
                id: self.options.account.clone(),
                name: None,
                handle: None,
                other_id: None,
            },
            |sender| Sender { id: sender.id, name: sender.name, handle: None, other_id: None },
        );
        for (what, name) in [("chat", &chat), ("sender.id", &sender.id)] {
            if name.is_empty() || name.len() > MOST_NAME {
                return HookAnswer::error(400, &format!("{what} needs 1 to {MOST_NAME} bytes"));
            }
        }
        let arrival = Arrival {
            channel: WEBHOOK.to_owned(),
            account: self.options.account.clone(),
            chat: Chat { id: chat, ..Chat::default() },
            reply_id: Some(body.id.clone()),
            source_id: body.id,
            sender,
            text: body.text,
            attachments: Vec::new(),
            mentions_me: true,
            edits: None,
            reply_to: None,
            passages: Vec::new(),
            ..Arrival::default()
        };
        match intake.take(arrival).await {
            Ok(receipt) => {
                HookAnswer::json(202, &json!({"messageId": receipt.id, "dropped": receipt.dropped}))
            }
            Err(Refusal::Unusable(reason)) => HookAnswer::error(400, &reason),
            Err(Refusal::Later(reason)) => HookAnswer::error(503, &reason),
        }
    }

    async fn post(&self, part: &Part) -> Result<String, SendFailure> {
        let mut body = json!({
            "id": part.id,
            "chat": part.target.to_text(),
            "replyTo": part.reply_to,
            "answers": part.answers,
            "kind": part.kind.as_str(),
            "part": part.number,
            "parts": part.count,
            "text": part.text,
        });
        if let Some(file) = &part.file {
            let bytes = file.read().await?;
            body["file"] = json!({"name": file.name, "data": STANDARD.encode(bytes)});
        }
        let body = body.to_string();
        let time = signature::now();
        let sent = self
            .client
            .post(&self.options.url)
            .header("content-type", "application/json")
            .header("idempotency-key", &part.id)
            .header(TIME_HEADER, time.to_string())
            .header(SIGNATURE_HEADER, signature::sign(&self.options.secret, time, body.as_bytes()))
            .body(body);
        let answer = match http::exchange(sent, MOST_ANSWER, SEND_TIME).await {
            Ok(answer) => answer,
            Err(Failure::NotSent(reason) | Failure::Unknown(reason)) => {
                return Err(SendFailure::Later { after: None, reason });
            }
            // Nobody reads it.
            Err(Failure::TooLong(_)) => return Ok(part.id.clone()),
        };
        let (status, after) = (answer.status, answer.retry_after());
        let reason = format!("the program at url answered {status}");
        match status {
            200..=299 => Ok(part.id.clone()),
            408 | 425 | 429 | 500..=599 => Err(SendFailure::Later { after, reason }),
            _ => Err(SendFailure::Never { reason }),
        }
    }
}

impl Channel for Webhook {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        // The header says which parts are the same.
        Capabilities {
            after_interruption: AfterInterruption::SendAgain,
            most_file_bytes: Some(MOST_FILE_BYTES),
            actions: &[],
        }
    }

    fn admit(&self, head: &HookRequest) -> Result<(), HookAnswer> {
        if head.method != "POST" {
            return Err(HookAnswer::error(405, "messages are posted"));
        }
        let (time, tag) = (head.header(TIME_HEADER), head.header(SIGNATURE_HEADER));
        signature::check_head(time, tag).map_err(|why| HookAnswer::error(401, &why))
    }

    fn receive<'a>(
        &'a self,
        request: HookRequest,
        intake: &'a dyn Intake,
    ) -> BoxFuture<'a, HookAnswer> {
        Box::pin(self.take(request, intake))
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async move {
            let sent = self.post(part).await;
            let state = match &sent {
                Err(SendFailure::Later { reason, .. }) => State::Waiting(reason.clone()),
                _ => State::Working,
            };
            self.account.set(state);
            sent
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            let asking = self.client.head(&self.options.url);
            match http::exchange(asking, MOST_ANSWER, SEND_TIME).await {
                // Whatever it thinks of this method, it is there.
                Ok(answer) => Ok(format!("the program at url answers ({})", answer.status)),
                Err(Failure::TooLong(_)) => Ok("the program at url answers".to_owned()),
                Err(Failure::NotSent(reason) | Failure::Unknown(reason)) => {
                    Err(ProbeFailure(format!(
                        "the program at url does not answer: {reason}; start it, or correct url in the config"
                    )))
                }
            }
        })
    }
}
