//! Reactions, edits and removals.

use serde_json::{Value, json};

use super::api::{ApiError, Token};
use super::emoji::name_of;
use super::press::attachments;
use super::send::{ALL_UPDATES, text_of};
use super::{Slack, split};
use crate::{Part, SendFailure};

impl Slack {
    /// Adds a reaction. Others of the bot stay: Slack has any number of them.
    pub(super) async fn add_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let Some(name) = name_of(&part.text) else {
            return Err(never(
                "Slack's name of this emoji is not known; give the name, such as :eyes:",
            ));
        };
        let params = json!({"channel": part.target.chat, "timestamp": message, "name": name});
        self.change(part, "reactions.add", &params, "already_reacted").await
    }

    pub(super) async fn edit_text(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        if split(&part.text, super::MOST_UNITS).len() > 1 {
            return Err(never("the text is too long for one message of Slack"));
        }
        let text = text_of(&part.text)?;
        // Slack keeps the buttons of a message unless a change names others, or none.
        let params = json!({
            "channel": part.target.chat, "ts": message, "text": text, "parse": "none",
            "attachments": attachments(&part.buttons),
        });
        self.updates.wait(ALL_UPDATES).await;
        let sent = self.api.call::<Value>(Token::Bot, "chat.update", &params).await;
        sent.map(drop).map_err(|error| self.failure(ALL_UPDATES, error))
    }

    pub(super) async fn remove(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        // Files have ids of their own; those of messages are times.
        if message.starts_with('F') {
            return self
                .change(part, "files.delete", &json!({"file": message}), "file_deleted")
                .await;
        }
        let params = json!({"channel": part.target.chat, "ts": message});
        self.change(part, "chat.delete", &params, "message_not_found").await
    }

    /// Calls a method that changes a message. A refusal with the code `done` means that an earlier attempt succeeded.
    async fn change(
        &self,
        part: &Part,
        method: &str,
        params: &Value,
        done: &str,
    ) -> Result<(), SendFailure> {
        match self.api.call::<Value>(Token::Bot, method, params).await {
            Ok(_) => Ok(()),
            Err(ApiError::Refused(refused)) if refused.is(&[done]) => Ok(()),
            Err(error) => Err(self.failure(&part.target.chat, error)),
        }
    }
}

fn never(reason: &str) -> SendFailure {
    SendFailure::Never { reason: reason.to_owned() }
}
