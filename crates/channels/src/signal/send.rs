//! Messages that go out.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::api::{ApiError, Delivered};
use super::{MOST_BYTES, Signal};
use crate::form::media_type;
use crate::markup::{Style, render};
use crate::{Live, Part, PartFile, SendFailure, State, Target, utf16_units};

/// What is put before a message that may have been delivered before.
const REPEAT: &str = "(possible repeat) ";
/// The indicator is shown for 15 seconds (`signal-cli sendTyping`).
const TYPING_PAUSE: Duration = Duration::from_secs(10);
/// Pause after a refusal that only the owner can end.
const OWNER_PAUSE: Duration = Duration::from_secs(60);

/// The method or the account is not known to this daemon.
const NO_METHOD: i64 = -32_601;
const WRONG_PARAMS: i64 = -32_602;
/// signal-cli failed within.
const INTERNAL: i64 = -32_603;
/// The network failed while it was sending.
const NETWORK: i64 = -3;
/// Signal's servers want a pause.
const LIMIT: i64 = -5;

impl Signal {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        let mut params = match &part.file {
            Some(file) => self.file_params(part, file).await?,
            None => text_params(&part.text, part.is_repeat)?,
        };
        params.extend(receiver(&part.target));
        if let Some((message, time, author)) = part.reply_to.as_deref().and_then(read_id) {
            let text = self.texts().get(message).cloned().unwrap_or_default();
            params.insert("quoteTimestamp".to_owned(), json!(time));
            params.insert("quoteAuthor".to_owned(), json!(author));
            params.insert("quoteMessage".to_owned(), json!(text));
        }
        let id = self.send_call("send", params).await?;
        self.texts().put(&id, part.text.clone());
        Ok(id)
    }

    pub(super) async fn set_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let (_, time, author) = read_id(message).ok_or_else(no_message)?;
        let mut params = receiver(&part.target);
        params.insert("emoji".to_owned(), json!(part.text));
        params.insert("targetAuthor".to_owned(), json!(author));
        params.insert("targetTimestamp".to_owned(), json!(time));
        self.send_call("sendReaction", params).await.map(drop)
    }

    pub(super) async fn edit_text(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let (_, time, _) = read_id(message).ok_or_else(no_message)?;
        if part.text.len() > MOST_BYTES {
            let reason = format!("the text has more than {MOST_BYTES} bytes; send a new message");
            return Err(SendFailure::Never { reason });
        }
        let mut params = text_params(&part.text, false)?;
        params.extend(receiver(&part.target));
        params.insert("editTimestamp".to_owned(), json!(time));
        self.send_call("send", params).await.map(drop)
    }

    pub(super) async fn remove(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let (_, time, _) = read_id(message).ok_or_else(no_message)?;
        let mut params = receiver(&part.target);
        params.insert("targetTimestamp".to_owned(), json!(time));
        self.send_call("remoteDelete", params).await.map(drop)
    }

    /// Calls a method that sends something; gives the id of the message.
    async fn send_call(
        &self,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<String, SendFailure> {
        let answer = match self.api.call(method, params).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.failure(error)),
        };
        let results = answer["results"].clone();
        let results: Vec<Delivered> = serde_json::from_value(results).unwrap_or_default();
        if let Some(failure) = failure_of(&results) {
            return Err(failure);
        }
        match answer["timestamp"].as_u64() {
            Some(time) => Ok(format!("{time}:{}", self.options.number)),
            None => Err(SendFailure::Unknown { reason: "signal-cli gave no timestamp".to_owned() }),
        }
    }

    /// What a failed call means for the part.
    fn failure(&self, error: ApiError) -> SendFailure {
        let reason = error.to_string();
        let refused = match error {
            ApiError::NotSent(_) => return SendFailure::Later { after: None, reason },
            ApiError::Unknown(_) => return SendFailure::Unknown { reason },
            ApiError::Refused(refused) => refused,
        };
        if let Some(failure) = failure_of(&refused.results) {
            return failure;
        }
        match refused.code {
            LIMIT => SendFailure::Later { after: None, reason },
            NETWORK | INTERNAL => SendFailure::Unknown { reason },
            // The owner may mend the daemon; the reply is not lost until then.
            NO_METHOD | WRONG_PARAMS => {
                self.account.set(State::Waiting(reason.clone()));
                SendFailure::Later { after: Some(OWNER_PAUSE), reason }
            }
            _ => SendFailure::Never { reason },
        }
    }

    async fn file_params(
        &self,
        part: &Part,
        file: &PartFile,
    ) -> Result<Map<String, Value>, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let bytes = file.read().await?;
        let most = self.options.most_file_bytes;
        if bytes.len() as u64 > most {
            return Err(never(format!("the file has more than {most} bytes (mediaMaxMb)")));
        }
        // The daemon may run as another user, who cannot read the file.
        let (kind, data) = (media_type(&file.name), STANDARD.encode(bytes));
        let name = utf8_percent_encode(&file.name, NON_ALPHANUMERIC);
        let mut params = Map::new();
        let attachment = format!("data:{kind};filename={name};base64,{data}");
        params.insert("attachments".to_owned(), json!([attachment]));
        if part.is_repeat {
            params.insert("message".to_owned(), json!(REPEAT.trim()));
        }
        Ok(params)
    }
}

/// Why nobody got a message, if nobody did. In a group, somebody without an account spoils nothing.
fn failure_of(results: &[Delivered]) -> Option<SendFailure> {
    if results.iter().any(|result| result.outcome == "SUCCESS") {
        return None;
    }
    let Delivered { outcome, retry_after_seconds } = results.first()?;
    let after = retry_after_seconds.map(Duration::from_secs);
    Some(match outcome.as_str() {
        "RATE_LIMIT_FAILURE" => {
            let reason = "Signal wants a pause, or a proof that this is no robot (`signal-cli submitRateLimitChallenge`)";
            SendFailure::Later { after, reason: reason.to_owned() }
        }
        "NETWORK_FAILURE" | "INVALID_PRE_KEY_FAILURE" => SendFailure::Later {
            after,
            reason: format!("signal-cli could not send it ({outcome})"),
        },
        "UNREGISTERED_FAILURE" => {
            SendFailure::Never { reason: "the person has no account on Signal any more".to_owned() }
        }
        "IDENTITY_FAILURE" => {
            let reason = "the person's safety number has changed; check it, and accept it with `signal-cli trust`";
            SendFailure::Never { reason: reason.to_owned() }
        }
        other => SendFailure::Unknown { reason: format!("signal-cli answered {other}") },
    })
}

fn text_params(text: &str, is_repeat: bool) -> Result<Map<String, Value>, SendFailure> {
    let styled = render(text);
    let mark = if is_repeat { REPEAT } else { "" };
    if styled.text.trim().is_empty() {
        return Err(SendFailure::Never { reason: "there is no text".to_owned() });
    }
    let styles = styled.spans.iter().map(|span| {
        let name = match span.style {
            Style::Bold => "BOLD",
            Style::Italic => "ITALIC",
            Style::Strike => "STRIKETHROUGH",
            Style::Code | Style::CodeBlock => "MONOSPACE",
        };
        // In UTF-16 units.
        let start = utf16_units(mark) + utf16_units(&styled.text[..span.start]);
        let length = utf16_units(&styled.text[span.start..span.end]);
        format!("{start}:{length}:{name}")
    });
    let styles: Vec<String> = styles.collect();
    let mut params = Map::new();
    if !styles.is_empty() {
        params.insert("textStyles".to_owned(), json!(styles));
    }
    params.insert("message".to_owned(), json!(format!("{mark}{}", styled.text)));
    Ok(params)
}

/// Names a person by number or id, or a group.
pub(super) fn receiver(target: &Target) -> Map<String, Value> {
    let chat = &target.chat;
    let is_number =
        chat.strip_prefix('+').is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()));
    let is_id = chat.len() == 36 && chat.bytes().filter(|byte| *byte == b'-').count() == 4;
    let mut params = Map::new();
    match is_number || is_id {
        true => params.insert("recipient".to_owned(), json!([chat])),
        false => params.insert("groupId".to_owned(), json!(chat)),
    };
    params
}

/// Reads an id: itself, its time and its author.
fn read_id(id: &str) -> Option<(&str, u64, &str)> {
    let (time, author) = id.split_once(':')?;
    Some((id, time.parse().ok()?, author))
}

fn no_message() -> SendFailure {
    SendFailure::Never { reason: "it is no message of Signal".to_owned() }
}

impl Live for Signal {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.api.call("sendTyping", receiver(target)).await {
                tracing::debug!(%error, "typing is not shown");
            }
        })
    }

    fn typing_pause(&self) -> Duration {
        TYPING_PAUSE
    }
}
