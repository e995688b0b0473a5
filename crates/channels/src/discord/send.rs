//! Messages that go out, and previews of them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::ApiError;
use super::event::User;
use super::format::render;
use super::press::components;
use super::{Discord, MOST_UNITS, split};
use crate::form::Upload;
use crate::http::encode;
use crate::split::preview;
use crate::{Live, Part, PartFile, SendFailure, Target, utf16_units};

/// "typing" is shown for ten seconds (docs.discord.com, "Trigger Typing Indicator").
const TYPING_PAUSE: Duration = Duration::from_secs(8);
/// Shortest time between two edits of a preview; more would use up the rate of the channel.
const EDIT_PAUSE: Duration = Duration::from_millis(1_500);
/// Discord shows no previews of links (docs.discord.com, "Message Flags", `SUPPRESS_EMBEDS`).
const NO_EMBEDS: u64 = 1 << 2;
/// Most characters of a nonce (docs.discord.com, "Create Message").
const NONCE: usize = 25;
/// Pause after a refusal that names none.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a refusal that only the owner can end.
const OWNER_PAUSE: Duration = Duration::from_secs(60);
/// How much earlier than the part a look begins, because clocks differ, in milliseconds.
const CLOCK_MARGIN: u64 = 30_000;
/// The first moment of Discord's ids, in milliseconds since the Unix epoch (docs.discord.com, "Reference", "Snowflakes").
const EPOCH: u64 = 1_420_070_400_000;
/// Pages of a look, of a hundred messages each.
const MOST_PAGES: usize = 20;
/// The message does not exist (docs.discord.com, "JSON Error Codes").
pub(super) const UNKNOWN_MESSAGE: u64 = 10_008;

#[derive(Deserialize)]
struct Sent {
    id: String,
}

/// A message of the past.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Past {
    id: String,
    author: User,
    content: String,
    nonce: Value,
    message_reference: Option<Reference>,
    attachments: Vec<PastFile>,
    poll: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reference {
    message_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PastFile {
    size: u64,
}

/// Where the messages of a target are.
pub(super) fn messages(target: &Target) -> String {
    let place = target.thread.as_ref().unwrap_or(&target.chat);
    format!("/channels/{}/messages", encode(place))
}

impl Discord {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        if let Some(file) = &part.file {
            return self.send_file(part, file).await;
        }
        let text = text_of(&part.text)?;
        let mut body = body_of(&text);
        if !part.buttons.is_empty() {
            body["components"] = components(&part.buttons);
        }
        let Some(preview) = &part.replaces else {
            add_place(&mut body, part.reply_to.as_deref());
            return self.post(part, body).await;
        };
        let path = format!("{}/{}", messages(&part.target), encode(preview));
        match self.api.call::<Value>(Method::PATCH, &path, Some(&body)).await {
            Ok(_) => Ok(preview.clone()),
            Err(ApiError::Refused(refused)) if refused.code == UNKNOWN_MESSAGE => {
                Err(SendFailure::NoPreview)
            }
            Err(error) => Err(failure(error)),
        }
    }

    /// Sends a message under the part's id, under which Discord takes it once for some minutes.
    pub(super) async fn post(&self, part: &Part, mut body: Value) -> Result<String, SendFailure> {
        body["nonce"] = json!(nonce(part));
        body["enforce_nonce"] = json!(true);
        let sent = self.api.call::<Sent>(Method::POST, &messages(&part.target), Some(&body)).await;
        sent.map(|sent| sent.id).map_err(failure)
    }

    async fn send_file(&self, part: &Part, file: &PartFile) -> Result<String, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let bytes = file.read().await?;
        if bytes.len() as u64 > self.options.most_file_bytes {
            return Err(never(format!(
                "the file has {} bytes, which is too much (mediaMaxMb)",
                bytes.len()
            )));
        }
        let mut body = json!({
            "attachments": [{"id": 0, "filename": file.name}], "allowed_mentions": {"parse": []},
            "nonce": nonce(part), "enforce_nonce": true,
        });
        add_place(&mut body, part.reply_to.as_deref());
        let upload = Upload { field: "files[0]", name: file.name.clone(), bytes };
        let sent = self.api.upload::<Sent>(&messages(&part.target), &body, upload).await;
        sent.map(|sent| sent.id).map_err(failure)
    }

    /// Looks for a part in its channel. Discord does not tell the nonce of old messages, so a part is known by what it
    /// says and what it refers to, a file by its size.
    pub(super) async fn find_part(&self, part: &Part) -> Result<Option<String>, SendFailure> {
        let me = self.me().await.map_err(failure)?;
        let text = text_of(&part.text).unwrap_or_default();
        let size = match &part.file {
            Some(file) => file.size().await.ok(),
            None => None,
        };
        let refers_to = |past: &Past| {
            past.message_reference.as_ref().and_then(|reference| reference.message_id.clone())
        };
        let says_it = |past: &Past| match size {
            Some(size) => past.attachments.iter().any(|file| file.size == size),
            // Discord removes white space at both ends.
            None => {
                past.content.trim() == text.trim() || past.poll["question"]["text"] == part.text
            }
        };
        let is_it = |past: &Past| {
            past.nonce == nonce(part) || says_it(past) && refers_to(past) == part.reply_to
        };
        let since = part.created_at.saturating_sub(CLOCK_MARGIN).saturating_sub(EPOCH);
        let mut after = since << 22;
        for _ in 0..MOST_PAGES {
            let path = format!("{}?after={after}&limit=100", messages(&part.target));
            let page: Vec<Past> = self.api.get(&path).await.map_err(failure)?;
            if let Some(found) = page.iter().find(|past| past.author.id == me.id && is_it(past)) {
                return Ok(Some(found.id.clone()));
            }
            match page.iter().filter_map(|past| past.id.parse().ok()).max() {
                Some(last) if last > after => after = last,
                _ => break,
            }
        }
        Ok(None)
    }
}

impl Live for Discord {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let place = target.thread.as_ref().unwrap_or(&target.chat);
            let path = format!("/channels/{}/typing", encode(place));
            if let Err(error) = self.api.call::<Value>(Method::POST, &path, None).await {
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
            let path = messages(target);
            let Some(text) = preview_of(text) else { return Ok(None) };
            if !self.options.preview || !self.api.is_free(&Method::POST, &path) {
                return Ok(None);
            }
            let mut body = body_of(&text);
            add_place(&mut body, reply_to);
            let sent = self.api.call::<Sent>(Method::POST, &path, Some(&body)).await;
            sent.map(|sent| Some(sent.id)).map_err(failure)
        })
    }

    fn edit<'a>(&'a self, target: &'a Target, id: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let path = format!("{}/{}", messages(target), encode(id));
            let Some(text) = preview_of(text) else { return };
            if !self.api.is_free(&Method::PATCH, &path) {
                return;
            }
            let sent = self.api.call::<Value>(Method::PATCH, &path, Some(&body_of(&text))).await;
            if let Err(error) = sent {
                tracing::debug!(%error, "a preview was not edited");
            }
        })
    }

    fn edit_pause(&self) -> Duration {
        EDIT_PAUSE
    }
}

fn nonce(part: &Part) -> String {
    part.id.chars().take(NONCE).collect()
}

/// A message that reaches nobody but those who read it.
pub(super) fn body_of(text: &str) -> Value {
    json!({"content": text, "allowed_mentions": {"parse": []}, "flags": NO_EMBEDS})
}

fn add_place(body: &mut Value, reply_to: Option<&str>) {
    if let Some(message) = reply_to {
        body["message_reference"] = json!({"message_id": message, "fail_if_not_exists": false});
        body["allowed_mentions"]["replied_user"] = json!(false);
    }
}

/// A text for Discord.
///
/// # Errors
/// There is nothing to see, or it is too long for one message.
pub(super) fn text_of(markdown: &str) -> Result<String, SendFailure> {
    let never = |reason: &str| SendFailure::Never { reason: reason.to_owned() };
    let text = render(markdown);
    if text.trim().is_empty() {
        return Err(never("there is no text"));
    }
    match utf16_units(&text) <= MOST_UNITS {
        true => Ok(text),
        false => Err(never("the text is too long for one message of Discord")),
    }
}

/// The beginning of a reply; `None` if there is nothing to see yet.
fn preview_of(text: &str) -> Option<String> {
    let shown = preview(text, MOST_UNITS, split, |first| {
        let text = render(first);
        let units = if text.trim().is_empty() { 0 } else { utf16_units(&text) };
        (text, units)
    });
    shown.map(|(text, _)| text)
}

/// The failure of a call, in the words of channels.
pub(super) fn failure(error: ApiError) -> SendFailure {
    let reason = error.to_string();
    let refused = match error {
        ApiError::NotSent(_) => return SendFailure::Later { after: None, reason },
        ApiError::Unknown(_) => return SendFailure::Unknown { reason },
        ApiError::Refused(refused) => refused,
    };
    match refused.status {
        429 => {
            let after = refused.retry_after.unwrap_or(SHORTEST_PAUSE);
            SendFailure::Later { after: Some(after), reason }
        }
        // The owner may mend the token; the reply is not lost until then.
        401 => SendFailure::Later { after: Some(OWNER_PAUSE), reason },
        _ => SendFailure::Never { reason },
    }
}
