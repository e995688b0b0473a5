//! Reactions, edits, removals and polls.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Telegram;
use super::api::ApiError;
use super::format::render;
use super::send::{add_buttons, add_place, text_params};
use super::{MOST_UNITS, split_rendered};
use crate::{Choices, Part, Poll, SendFailure};

#[derive(Deserialize)]
struct SentPoll {
    message_id: i64,
}

impl Telegram {
    pub(super) async fn set_reaction(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let mut params = message_params(message)?;
        params.insert("reaction".to_owned(), json!([{"type": "emoji", "emoji": part.text}]));
        self.change(part, "setMessageReaction", params, "").await
    }

    pub(super) async fn edit_text(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        if split_rendered(&part.text, MOST_UNITS).len() > 1 {
            return Err(never("the text is too long for one message of Telegram"));
        }
        let rendered = render(&part.text);
        let html = (rendered.units > 0).then_some(rendered.html);
        let mut params = message_params(message)?;
        params.extend(text_params(html.as_deref(), &part.text));
        add_buttons(&mut params, &part.buttons);
        self.change(part, "editMessageText", params, "not modified").await
    }

    pub(super) async fn remove(&self, part: &Part, message: &str) -> Result<(), SendFailure> {
        let params = message_params(message)?;
        self.change(part, "deleteMessage", params, "message to delete not found").await
    }

    pub(super) async fn ask(&self, part: &Part, poll: &Poll) -> Result<String, SendFailure> {
        let mut params = Map::new();
        params.insert("question".to_owned(), json!(poll.question));
        let options = poll.options.iter().map(|option| json!({"text": option}));
        params.insert("options".to_owned(), options.collect());
        let is_several = poll.choices == Choices::Several;
        params.insert("allows_multiple_answers".to_owned(), json!(is_several));
        add_place(&mut params, &part.target, part.reply_to.as_deref());
        let (chat, time) = (&part.target.chat, self.options.send_time);
        self.limits.wait(chat).await;
        match self.call_in_chat::<SentPoll>(chat, "sendPoll", (params, None), time).await {
            Ok(sent) => Ok(sent.message_id.to_string()),
            Err(error) => Err(self.failure(&part.target.chat, error, false)),
        }
    }

    /// Calls a method that changes a message. A refusal with the words `done` means that an earlier attempt succeeded.
    async fn change(
        &self,
        part: &Part,
        method: &str,
        params: Map<String, Value>,
        done: &str,
    ) -> Result<(), SendFailure> {
        let (chat, time) = (&part.target.chat, self.options.send_time);
        self.limits.wait(chat).await;
        match self.call_in_chat::<Value>(chat, method, (params, None), time).await {
            Ok(_) => Ok(()),
            Err(ApiError::Refused(refused)) if !done.is_empty() && refused.says(done) => Ok(()),
            Err(error) => Err(self.failure(&part.target.chat, error, false)),
        }
    }
}

fn message_params(message: &str) -> Result<Map<String, Value>, SendFailure> {
    let id: i64 = message.parse().map_err(|_| never("it is no message of Telegram"))?;
    let mut params = Map::new();
    params.insert("message_id".to_owned(), json!(id));
    Ok(params)
}

fn never(reason: &str) -> SendFailure {
    SendFailure::Never { reason: reason.to_owned() }
}
