//! Messages that go out, and previews of them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{ApiError, Token};
use super::event::File;
use super::format::{escape, render, units};
use super::press::attachments;
use super::{MOST_UNITS, Slack, split};
use crate::split::preview;
use crate::{Live, Part, SendFailure, Target};

/// The status of a thread is shown for two minutes (docs.slack.dev, `assistant.threads.setStatus`).
const STATUS_PAUSE: Duration = Duration::from_secs(90);
/// What people see after the bot's name while it works.
const STATUS: &str = "is typing…";
/// Shortest time between two edits of a preview; more would use up the rate of `chat.update`.
const EDIT_PAUSE: Duration = Duration::from_secs(2);
/// Updates of a minute that previews leave to answers.
const KEPT_UPDATES: usize = 15;
/// The rate of `chat.update` holds for the whole workspace.
pub(super) const ALL_UPDATES: &str = "";
/// Pause after a refusal that names none.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Pause after a refusal that only the owner can end.
const OWNER_PAUSE: Duration = Duration::from_secs(60);
/// Names the metadata of a message. Slack allows letters, digits and `_`.
const METADATA: &str = "myclaw_part";
/// How much earlier than the part a look begins, because clocks differ.
const CLOCK_MARGIN: u64 = 5 * 60;
/// Messages of a page of a look.
const PAGE: usize = 200;
/// Pages of a look. No part waits while its chat gets more messages than these hold.
const MOST_PAGES: usize = 50;

#[derive(Deserialize)]
struct Sent {
    ts: String,
}

/// Messages of a conversation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    messages: Vec<Past>,
    has_more: bool,
    response_metadata: PageMetadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    next_cursor: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Past {
    user: String,
    ts: String,
    metadata: Value,
    files: Vec<File>,
}

impl Slack {
    pub(super) async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        if let Some(file) = &part.file {
            return self.send_file(part, file).await;
        }
        let chat = &part.target.chat;
        let text = text_of(&part.text)?;
        let mut more = json!({
            "metadata": {"event_type": METADATA, "event_payload": {"part": part.id}},
        });
        if !part.buttons.is_empty() {
            more["attachments"] = attachments(&part.buttons);
        }
        if let Some(preview) = &part.replaces {
            self.updates.wait(ALL_UPDATES).await;
            let mut params = json!({"channel": chat, "ts": preview, "text": text, "parse": "none"});
            add(&mut params, more);
            let sent = self.api.call::<Value>(Token::Bot, "chat.update", &params).await;
            return match sent {
                Ok(_) => Ok(preview.clone()),
                Err(ApiError::Refused(refused))
                    if refused.is(&[
                        "message_not_found",
                        "cant_update_message",
                        "edit_window_closed",
                    ]) =>
                {
                    Err(SendFailure::NoPreview)
                }
                Err(error) => Err(self.failure(ALL_UPDATES, error)),
            };
        }
        self.posts.wait(chat).await;
        self.post(&part.target, &text, more).await
    }

    /// Posts a text in mrkdwn, with these further fields.
    async fn post(&self, target: &Target, text: &str, more: Value) -> Result<String, SendFailure> {
        // Slack fetches no addresses that a model has written.
        let mut params = json!({
            "channel": target.chat, "text": text, "parse": "none",
            "unfurl_links": false, "unfurl_media": false,
        });
        if let Some(thread) = &target.thread {
            params["thread_ts"] = json!(thread);
        }
        add(&mut params, more);
        let sent = self.api.call::<Sent>(Token::Bot, "chat.postMessage", &params).await;
        sent.map(|sent| sent.ts).map_err(|error| self.failure(&target.chat, error))
    }

    /// Looks for a part in its conversation: for a message with its metadata, or for the file that was noted for it.
    pub(super) async fn find_part(&self, part: &Part) -> Result<Option<String>, SendFailure> {
        let me = self.me().await.map_err(|error| self.failure(&part.target.chat, error))?;
        let noted = match &part.file {
            Some(_) => Some(self.noted_file(part).await?),
            None => None,
        };
        let is_it = |past: &Past| match &noted {
            None => past.metadata["event_payload"]["part"] == part.id,
            Some(noted) => past.files.iter().any(|file| Some(&file.id) == noted.as_ref()),
        };
        let oldest = (part.created_at / 1_000).saturating_sub(CLOCK_MARGIN);
        let mut params = json!({
            "channel": part.target.chat, "oldest": format!("{oldest}.000000"), "limit": PAGE,
            "include_all_metadata": true,
        });
        let method = match &part.target.thread {
            Some(thread) => {
                params["ts"] = json!(thread);
                "conversations.replies"
            }
            None => "conversations.history",
        };
        for _ in 0..MOST_PAGES {
            let page = self.api.call::<Page>(Token::Bot, method, &params).await;
            let page = page.map_err(|error| self.failure(&part.target.chat, error))?;
            let mut own = page.messages.iter().filter(|past| past.user == me.user_id);
            if let Some(found) = own.find(|past| is_it(past)) {
                return Ok(Some(noted.clone().flatten().unwrap_or_else(|| found.ts.clone())));
            }
            let cursor = page.response_metadata.next_cursor;
            if !page.has_more || cursor.is_empty() {
                break;
            }
            params["cursor"] = json!(cursor);
        }
        Ok(None)
    }

    /// The failure of a call, in the words of channels. `key` names the rate that the call counts for.
    pub(super) fn failure(&self, key: &str, error: ApiError) -> SendFailure {
        let reason = error.to_string();
        let refused = match error {
            ApiError::NotSent(_) => return SendFailure::Later { after: None, reason },
            ApiError::Unknown(_) => return SendFailure::Unknown { reason },
            ApiError::Refused(refused) => refused,
        };
        if refused.is_too_many() {
            let after = refused.retry_after.unwrap_or(SHORTEST_PAUSE);
            let pace = if key == ALL_UPDATES { &self.updates } else { &self.posts };
            pace.pause(key, after);
            return SendFailure::Later { after: Some(after), reason };
        }
        // The owner may mend the token or the scopes; the reply is not lost until then.
        if refused.is_wrong_token() || refused.is(&["missing_scope", "not_in_channel"]) {
            return SendFailure::Later { after: Some(OWNER_PAUSE), reason };
        }
        SendFailure::Never { reason }
    }
}

impl Live for Slack {
    fn typing<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // Slack shows it in threads only.
            let Some(thread) = &target.thread else { return };
            let params = json!({"channel_id": target.chat, "thread_ts": thread, "status": STATUS});
            let shown =
                self.api.call::<Value>(Token::Bot, "assistant.threads.setStatus", &params).await;
            if let Err(error) = shown {
                tracing::debug!(%error, "typing is not shown");
            }
        })
    }

    fn typing_pause(&self) -> Duration {
        STATUS_PAUSE
    }

    fn begin<'a>(
        &'a self,
        target: &'a Target,
        _reply_to: Option<&'a str>,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, SendFailure>> {
        Box::pin(async move {
            let Some(text) = preview_of(text) else { return Ok(None) };
            if !self.options.preview || !self.posts.try_now(&target.chat, 0) {
                return Ok(None);
            }
            self.post(target, &text, Value::Null).await.map(Some)
        })
    }

    fn edit<'a>(&'a self, target: &'a Target, id: &'a str, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(text) = preview_of(text) else { return };
            if !self.updates.try_now(ALL_UPDATES, KEPT_UPDATES) {
                return;
            }
            let params = json!({"channel": target.chat, "ts": id, "text": text, "parse": "none"});
            let sent = self.api.call::<Value>(Token::Bot, "chat.update", &params).await;
            if let Err(error) = sent {
                // This also notes how long Slack wants quiet.
                let failure = self.failure(ALL_UPDATES, error);
                tracing::debug!(?failure, "a preview was not edited");
            }
        })
    }

    fn edit_pause(&self) -> Duration {
        EDIT_PAUSE
    }
}

/// Adds the fields of `more`.
fn add(params: &mut Value, more: Value) {
    if let (Value::Object(params), Value::Object(more)) = (params, more) {
        params.extend(more);
    }
}

/// A text in mrkdwn.
///
/// # Errors
/// There is nothing to see, or it is too long for one message.
pub(super) fn text_of(markdown: &str) -> Result<String, SendFailure> {
    let never = |reason: &str| SendFailure::Never { reason: reason.to_owned() };
    if markdown.trim().is_empty() {
        return Err(never("there is no text"));
    }
    let rendered = render(markdown);
    // A message of nothing but marks has no visible text, which Slack refuses.
    let text = if rendered.trim().is_empty() { escape(markdown) } else { rendered };
    match units(&text) <= MOST_UNITS {
        true => Ok(text),
        false => Err(never("the text is too long for one message of Slack")),
    }
}

/// The beginning of a reply; `None` if there is nothing to see yet.
fn preview_of(text: &str) -> Option<String> {
    let shown = preview(text, MOST_UNITS, split, |first| {
        let text = render(first);
        let units = units(&text);
        (text, units)
    });
    shown.map(|(text, _)| text)
}
