//! Reactions, edits, removals and polls.

use reqwest::Method;
use serde_json::{Value, json};

use super::Discord;
use super::api::ApiError;
use super::press::components;
use super::send::{UNKNOWN_MESSAGE, body_of, failure, messages, text_of};
use crate::http::encode;
use crate::{Choices, Part, Poll, SendFailure};

/// How long a poll is open, in hours (docs.discord.com, "Poll", `duration`: the default).
const POLL_HOURS: u64 = 24;

impl Discord {
    /// Adds a reaction. Others of the bot stay.
    pub(super) async fn add_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let emoji = encode(part.text.trim());
        let path = format!("{}/reactions/{emoji}/@me", path_of(part, message));
        self.api.call::<Value>(Method::PUT, &path, None).await.map(drop).map_err(failure)
    }

    pub(super) async fn edit_text(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let mut body = body_of(&text_of(&part.text)?);
        // A message keeps its buttons unless a change names others, or none.
        body["components"] = components(&part.buttons);
        let path = path_of(part, message);
        self.api.call::<Value>(Method::PATCH, &path, Some(&body)).await.map(drop).map_err(failure)
    }

    pub(super) async fn remove(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        match self.api.call::<Value>(Method::DELETE, &path_of(part, message), None).await {
            Ok(_) => Ok(()),
            // An earlier attempt succeeded.
            Err(ApiError::Refused(refused)) if refused.code == UNKNOWN_MESSAGE => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }

    pub(super) async fn ask(&self, part: &Part, poll: &Poll) -> Result<String, SendFailure> {
        let answers = poll.options.iter().map(|option| json!({"poll_media": {"text": option}}));
        let body = json!({
            "poll": {
                "question": {"text": poll.question}, "answers": answers.collect::<Vec<_>>(),
                "duration": POLL_HOURS, "allow_multiselect": poll.choices == Choices::Several,
            },
            "allowed_mentions": {"parse": []},
        });
        self.post(part, body).await
    }
}

fn path_of(part: &Part, message: &str) -> String {
    format!("{}/{}", messages(&part.target), encode(message))
}
