//! Buttons below messages, and what people do with them.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Discord;
use super::event::{Member, Message, User};
use crate::Button;
use crate::arrival::NOT_YOURS;
use crate::http::encode;

/// Most characters of what a button says, and of its id (docs.discord.com, "Component Reference", "Button").
const MOST_TEXT: usize = 80;
const MOST_ID: usize = 100;
/// Most buttons of a row, and most rows ("Action Row", and "Legacy Message Component Behavior").
const BUTTONS_IN_ROW: usize = 5;
const MOST_ROWS: usize = 5;
/// The kinds of components: a row, and a button ("Component Types"). The button is a grey one ("Button Styles").
const ROW: u64 = 1;
const BUTTON: u64 = 2;
const GREY: u64 = 2;
/// The kind of interactions with components ("Interaction Type").
const COMPONENT: u64 = 3;
/// What answers an interaction ("Interaction Callback Type"): a message, and that nothing changes for now.
const MESSAGE: u64 = 4;
const NOTHING_YET: u64 = 6;
/// Only the person who pressed the button sees the message ("Message Flags", `EPHEMERAL`).
const FOR_ONE: u64 = 1 << 6;

/// Something that a person did with a message or a command of the bot.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Interaction {
    id: String,
    /// Allows answers to it for some minutes.
    token: String,
    #[serde(rename = "type")]
    kind: u64,
    data: Data,
    channel_id: Option<String>,
    guild_id: Option<String>,
    /// Who did it in a server, and who did it elsewhere.
    member: Option<ServerMember>,
    user: Option<User>,
    /// What it was done with.
    message: Option<Message>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Data {
    component_type: u64,
    /// The command of the button.
    custom_id: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ServerMember {
    user: User,
    #[serde(flatten)]
    member: Member,
}

/// A button that somebody pressed.
#[derive(Debug, Clone)]
pub(super) struct Press {
    pub(super) id: String,
    token: String,
}

impl Interaction {
    /// The command of a pressed button, as a message of the person who pressed it. Nothing of the message with the button is
    /// that person's but its place. `None` for everything else that people do, of which this program offers nothing.
    pub(super) fn pressed(self) -> Option<(Message, Press)> {
        if (self.kind, self.data.component_type) != (COMPONENT, BUTTON) {
            return None;
        }
        let (author, member) = match (self.member, self.user) {
            (Some(in_server), _) => (in_server.user, Some(in_server.member)),
            (None, user) => (user?, None),
        };
        let (channel, guild_id, text) = (self.channel_id?, self.guild_id, self.data.custom_id);
        let on = self.message?.id;
        let mut message = Message::of_person((author, member), text, (channel, on));
        message.guild_id = guild_id;
        Some((message, Press { id: self.id, token: self.token }))
    }
}

/// Buttons as the components of a message.
pub(super) fn components(buttons: &[Button]) -> Value {
    let fits = |button: &&Button| {
        button.command.chars().count() <= MOST_ID && button.text.chars().count() <= MOST_TEXT
    };
    let buttons: Vec<Value> = buttons
        .iter()
        .filter(fits)
        .map(|button| {
            json!({"type": BUTTON, "style": GREY, "label": button.text, "custom_id": button.command})
        })
        .collect();
    let rows = buttons.chunks(BUTTONS_IN_ROW).take(MOST_ROWS);
    rows.map(|row| json!({"type": ROW, "components": row})).collect()
}

impl Discord {
    /// Tells the person who pressed a button that this has come, or that it has no effect. Without it, the app says after
    /// three seconds that the interaction failed.
    pub(super) async fn end_press(&self, press: &Press, is_taken: bool) {
        let answer = match is_taken {
            true => json!({"type": NOTHING_YET}),
            false => json!({"type": MESSAGE, "data": {"content": NOT_YOURS, "flags": FOR_ONE}}),
        };
        let path = format!("/interactions/{}/{}/callback", encode(&press.id), encode(&press.token));
        if let Err(error) = self.api.call::<Value>(Method::POST, &path, Some(&answer)).await {
            // After three seconds nobody waits for it.
            tracing::debug!(%error, "a press is not confirmed");
        }
    }
}
