//! Buttons below messages, and what people do with them.

use serde_json::{Value, json};

use super::Slack;
use super::api::Token;
use super::event::{Event, Said};
use crate::arrival::NOT_YOURS;
use crate::{Button, Target};

/// Most characters of what a button says, and of its value (docs.slack.dev, "Button element").
const MOST_TEXT: usize = 75;
const MOST_VALUE: usize = 2_000;
/// Most elements of a block ("Actions block").
const MOST_BUTTONS: usize = 25;

/// Buttons as the attachments of a message. Blocks of the message itself would take the place of its text.
pub(super) fn attachments(buttons: &[Button]) -> Value {
    let fits = |button: &&Button| {
        button.command.chars().count() <= MOST_VALUE && button.text.chars().count() <= MOST_TEXT
    };
    let elements: Vec<Value> = buttons
        .iter()
        .filter(fits)
        .take(MOST_BUTTONS)
        .enumerate()
        .map(|(number, button)| {
            let text = json!({"type": "plain_text", "text": button.text, "emoji": false});
            json!({"type": "button", "action_id": format!("button{number}"), "text": text, "value": button.command})
        })
        .collect();
    match elements.is_empty() {
        true => json!([]),
        false => json!([{"blocks": [{"type": "actions", "elements": elements}]}]),
    }
}

/// The command of the button that somebody pressed, as a message of that person. `None` for everything else that people do in
/// Slack's forms, of which this program has none.
pub(super) fn said(payload: &Value) -> Option<Said> {
    let text = |pointer: &str| {
        let text = payload.pointer(pointer)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    if payload["type"] != "block_actions" {
        return None;
    }
    // Nothing of the message with the button is that person's but its place.
    let thread = text("/container/thread_ts").or_else(|| text("/message/thread_ts"));
    let place = (text("/container/channel_id")?, text("/container/message_ts")?, thread);
    let event = Event::of_person(text("/user/id")?, text("/actions/0/value")?, place);
    Some(Said { event, edit: None, press: Some(text("/actions/0/action_ts")?), dropped: None })
}

impl Slack {
    /// Tells the person who pressed a button that it has no effect. Nobody else sees that.
    pub(super) async fn refuse_press(&self, target: &Target, person: &str) {
        let mut params =
            json!({"channel": target.chat, "user": person, "text": NOT_YOURS, "parse": "none"});
        if let Some(thread) = &target.thread {
            params["thread_ts"] = json!(thread);
        }
        let told = self.api.call::<Value>(Token::Bot, "chat.postEphemeral", &params).await;
        if let Err(error) = told {
            tracing::debug!(%error, "a person is not told that a button is for somebody else");
        }
    }
}
