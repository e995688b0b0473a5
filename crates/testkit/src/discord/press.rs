//! Buttons below messages of the bot, and people who press them.

use serde_json::{Value, json};

use super::{BOT, DiscordMessage, DiscordServer};

impl DiscordMessage {
    /// The commands of its buttons.
    pub fn buttons(&self) -> Vec<String> {
        let rows = self.body["components"].as_array().cloned().unwrap_or_default();
        let buttons =
            rows.iter().flat_map(|row| row["components"].as_array().cloned().unwrap_or_default());
        buttons.map(|it| it["custom_id"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl DiscordServer {
    /// Somebody presses the button of a message whose command begins so. Gives the id of the press.
    ///
    /// # Panics
    /// The message has no such button.
    pub fn press(&self, person: &str, message: &DiscordMessage, command: &str) -> String {
        let found = message.buttons().into_iter().find(|it| it.starts_with(command));
        let found = found.unwrap_or_else(|| panic!("no button {command}: {message:?}"));
        self.press_with(person, message, &found)
    }

    /// Somebody presses a button below a message that stands for this command. Gives the id of the press.
    pub fn press_with(&self, person: &str, message: &DiscordMessage, command: &str) -> String {
        let id = self.lock().snowflake();
        let user = json!({"id": person, "username": format!("user{person}"), "global_name": null});
        let mut press = json!({
            "id": id, "application_id": BOT, "type": 3, "token": format!("tokenOf{id}"), "version": 1,
            "data": {"id": 2, "component_type": 2, "custom_id": command}, "channel_id": message.channel,
            "channel": {"id": message.channel, "type": 1}, "locale": "en-GB", "entitlements": [],
            "message": {
                "id": message.id, "channel_id": message.channel, "type": 0, "content": message.text(),
                "author": {"id": BOT, "username": "claw", "bot": true},
            },
        });
        // Direct chats of this server have such ids.
        if message.channel.starts_with('5') {
            press["user"] = user;
        } else {
            press["guild_id"] = json!("1");
            press["member"] = json!({"user": user, "nick": null, "roles": [], "permissions": "0"});
        }
        self.happen("INTERACTION_CREATE", &press);
        id
    }

    /// The answers to a press.
    pub fn answers_to(&self, press: &str) -> Vec<Value> {
        let name = format!("POST interaction {press}");
        self.calls().into_iter().filter(|(call, _)| *call == name).map(|(_, body)| body).collect()
    }
}

/// What the reference says of components: those of the bot are rows of buttons.
pub(super) fn check(components: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("components: {what} of {components}"));
    let rows = match components {
        Value::Null => return Ok(()),
        Value::Array(rows) if rows.len() <= 5 => rows,
        _ => return wrong("no list"),
    };
    let mut ids = Vec::new();
    for row in rows {
        let buttons = row["components"].as_array().map(Vec::as_slice).unwrap_or_default();
        if row["type"] != 1 || !(1..=5).contains(&buttons.len()) {
            return wrong("a row");
        }
        for button in buttons {
            let length =
                |key: &str| button[key].as_str().map_or(usize::MAX, |it| it.chars().count());
            let is_styled = button["style"].as_u64().is_some_and(|style| (1..=4).contains(&style));
            let fits = length("label") <= 80 && (1..=100).contains(&length("custom_id"));
            if button["type"] != 2 || !is_styled || !fits || ids.contains(&&button["custom_id"]) {
                return wrong("a button");
            }
            ids.push(&button["custom_id"]);
        }
    }
    Ok(())
}

/// What the reference says of an answer to an interaction.
pub(super) fn check_answer(body: &Value) -> Result<(), String> {
    let is_empty = body.as_object().is_some_and(|body| body.len() == 1);
    match body["type"].as_u64() {
        Some(6) if is_empty => Ok(()),
        // The bot says something to one person only.
        Some(4) if body["data"]["content"].is_string() && body["data"]["flags"] == 64 => Ok(()),
        _ => Err(format!("the answer {body}")),
    }
}
