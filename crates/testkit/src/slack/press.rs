//! Buttons below messages of the bot, and people who press them.

use serde_json::{Value, json};

use super::{BOT, SlackMessage, SlackServer};

impl SlackMessage {
    /// The commands of its buttons.
    pub fn buttons(&self) -> Vec<String> {
        let attachments = self.params["attachments"].as_str().unwrap_or("[]");
        let attachments: Value = serde_json::from_str(attachments).unwrap_or_default();
        let elements = attachments[0]["blocks"][0]["elements"].as_array().cloned();
        let values = elements.unwrap_or_default().into_iter();
        values.map(|it| it["value"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl SlackServer {
    /// Somebody presses the button of a message whose command begins so.
    ///
    /// # Panics
    /// The message has no such button.
    pub fn press(&self, person: &str, message: &SlackMessage, command: &str) {
        let found = message.buttons().into_iter().find(|it| it.starts_with(command));
        let found = found.unwrap_or_else(|| panic!("no button {command}: {message:?}"));
        self.press_with(person, message, &found);
    }

    /// Somebody presses a button below a message that stands for this command.
    pub fn press_with(&self, person: &str, message: &SlackMessage, command: &str) {
        let (channel, thread) = (&message.params["channel"], &message.params["thread_ts"]);
        let at = self.lock().time();
        let mut on = json!({
            "type": "message", "user": BOT, "bot_id": "B1", "ts": message.ts, "text": message.text(), "team": "T1",
        });
        let mut container = json!({
            "type": "message_attachment", "message_ts": message.ts, "attachment_id": 1, "channel_id": channel,
            "is_ephemeral": false, "is_app_unfurl": false,
        });
        if thread.is_string() {
            on["thread_ts"] = thread.clone();
            container["thread_ts"] = thread.clone();
        }
        self.interact(json!({
            "type": "block_actions", "team": {"id": "T1", "domain": "x"}, "api_app_id": "A1", "token": "x",
            "user": {"id": person, "username": "x", "name": "x", "team_id": "T1"}, "container": container,
            "trigger_id": "1.2.x", "channel": {"id": channel, "name": "directmessage"}, "message": on,
            "response_url": "https://hooks.slack.com/actions/T1/1/x", "state": {"values": {}},
            "enterprise": null, "is_enterprise_install": false,
            "actions": [{
                "type": "button", "action_id": "button0", "block_id": "x", "value": command, "action_ts": at,
                "text": {"type": "plain_text", "text": "x", "emoji": false},
            }],
        }));
    }

    /// Delivers what somebody did in a form.
    pub fn interact(&self, payload: Value) {
        self.lock().queue("interactive", payload);
    }

    /// What people were told whom nobody else sees it: the channel, the person and the text.
    pub fn whispers(&self) -> Vec<(String, String, String)> {
        let calls = self.calls().into_iter().filter(|(method, _)| method == "chat.postEphemeral");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls.map(|(_, it)| (text(&it["channel"]), text(&it["user"]), text(&it["text"]))).collect()
    }
}

/// What the reference says of attachments: those of the bot hold nothing but a block of buttons.
pub(super) fn check(attachments: &str) -> Result<(), String> {
    let attachments: Value =
        serde_json::from_str(attachments).map_err(|error| format!("attachments: {error}"))?;
    let wrong = |what: &str| Err(format!("invalid_attachments: {what} of {attachments}"));
    let Some(list) = attachments.as_array() else { return wrong("no list") };
    for attachment in list {
        let block = &attachment["blocks"][0];
        let elements = block["elements"].as_array().map(Vec::as_slice).unwrap_or_default();
        if block["type"] != "actions" || !(1..=25).contains(&elements.len()) {
            return wrong("blocks");
        }
        let length = |text: &Value| text.as_str().map_or(usize::MAX, |text| text.chars().count());
        let mut ids = Vec::new();
        for element in elements {
            let keys = element.as_object().into_iter().flat_map(|it| it.keys());
            let known = ["type", "action_id", "text", "value", "style", "url", "confirm"];
            let is_known = keys.into_iter().all(|key| known.contains(&key.as_str()));
            let is_plain = element["text"]["type"] == "plain_text";
            let fits = length(&element["text"]["text"]) <= 75 && length(&element["value"]) <= 2_000;
            let id = element["action_id"].as_str().unwrap_or_default();
            if element["type"] != "button" || !is_known || !is_plain || !fits || ids.contains(&id) {
                return wrong("elements");
            }
            ids.push(id);
        }
    }
    Ok(())
}
