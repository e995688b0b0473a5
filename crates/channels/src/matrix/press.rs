//! Buttons below messages. Matrix has none, so they are reactions that the account adds to its own message: who taps one adds the
//! same reaction.
//!
//! What each stands for is in the message itself, so it is known after a restart too. In an encrypted room there are none: the
//! servers could write a reaction in the name of somebody, because reactions are not encrypted.

use serde_json::{Map, Value, json};

use super::event::{Event, REACTION};
use super::{Matrix, Me};
use crate::taking::hand_over;
use crate::{Button, Intake, Part};

/// Where a message says what its reactions stand for. Clients leave alone what they do not know.
const BUTTONS: &str = "io.myclaw.buttons";

/// Says in a message what its reactions stand for.
pub(super) fn add_buttons(content: &mut Map<String, Value>, buttons: &[Button]) {
    let commands = buttons.iter().map(|button| (button.text.clone(), json!(button.command)));
    content.insert(BUTTONS.to_owned(), Value::Object(commands.collect()));
}

/// Adds a reaction to an event.
pub(super) fn reaction(event: &str, key: &str) -> Map<String, Value> {
    let relation = json!({"rel_type": "m.annotation", "event_id": event, "key": key});
    Map::from_iter([("m.relates_to".to_owned(), relation)])
}

impl Matrix {
    /// Shows the buttons of a part below its message. The text says all that they do, so a failure costs nothing.
    pub(super) async fn show_buttons(&self, part: &Part, message: &str) {
        for (number, button) in part.buttons.iter().enumerate() {
            let (id, content) = (format!("{} {number}", part.id), reaction(message, &button.text));
            if let Err(error) = self.put_event(&part.target.chat, REACTION, &id, content).await {
                tracing::warn!(?error, "a button is not shown");
            }
        }
    }

    /// Takes the reaction of a person to a message with buttons as the command of one. Others say nothing to the agent.
    ///
    /// # Errors
    /// It has to be tried again.
    pub(super) async fn take_press(
        &self,
        room: &str,
        event: &Event,
        me: &Me,
        intake: &dyn Intake,
    ) -> Result<(), String> {
        let at = |name: &str| event.content["m.relates_to"][name].as_str();
        let (Some("m.annotation"), Some(id), Some(key)) =
            (at("rel_type"), at("event_id"), at("key"))
        else {
            return Ok(());
        };
        if self.knows_encryption(room).await {
            return Ok(());
        }
        let message = self.event(room, id).await.filter(|message| message.sender == me.id);
        let Some(message) = message else { return Ok(()) };
        // Some clients add a mark that asks for the colourful form of an emoji.
        let commands = &message.content[BUTTONS];
        let command = commands.get(key).or_else(|| commands.get(key.trim_end_matches('\u{fe0f}')));
        let Some(command) = command.and_then(Value::as_str) else { return Ok(()) };
        let mut said = event.clone();
        said.content = json!({"msgtype": "m.text", "body": command});
        if let Some(thread) = message.thread() {
            said.content["m.relates_to"] = json!({"rel_type": "m.thread", "event_id": thread});
        }
        let (mut arrival, _) = self.arrival(room, &said, Some(&message), me).await?;
        arrival.is_press = true;
        arrival.reply_id = Some(id.to_owned());
        arrival.answers = Some(id.to_owned());
        hand_over(intake, arrival, &self.with_files, async { Vec::new() }).await.map(drop)
    }
}
