//! Discord: one bot, through the Gateway and the REST API.

mod act;
mod api;
mod content;
mod event;
mod format;
mod place;
mod press;
mod receive;
mod send;
mod session;
mod thread;

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::recent::Recent;
use crate::shell::channel_shell;
use crate::split::split_rendered;
use crate::taking::MOST_WITH_FILES;
use crate::{Account, Action, AfterInterruption, Capabilities, Channel, ProbeFailure, utf16_units};
use api::{Api, ApiError};
use event::Place;

/// Name of the channel.
pub const DISCORD: &str = "discord";
/// Address of the public API. The version is part of it.
pub const DISCORD_BASE_URL: &str = "https://discord.com/api/v10";
/// Most characters of a message (docs.discord.com, "Create Message", `content`). It does not say how it counts, so this is
/// for UTF-16 units, of which there are never fewer.
const MOST_UNITS: usize = 2_000;

/// How a bot is set up.
#[derive(Debug, Clone)]
pub struct DiscordOptions {
    /// The account's name in the config.
    pub account: String,
    /// The bot's token.
    pub token: SecretString,
    /// Address of the API.
    pub base_url: String,
    /// Largest file in both directions, in bytes.
    pub most_file_bytes: u64,
    /// Whether a reply is shown while it is written.
    pub preview: bool,
}

/// A bot.
pub struct Discord {
    options: DiscordOptions,
    api: Api,
    account: Account,
    /// Places for messages with files.
    with_files: Semaphore,
    memory: Mutex<Memory>,
}

/// What the process knows of the server.
#[derive(Default)]
struct Memory {
    me: Option<Me>,
    /// Channels of servers, by id.
    places: HashMap<String, Place>,
    /// The bot's own roles by server, where it has one.
    roles: HashMap<String, Option<String>>,
    /// Threads whose earlier messages were read.
    threads: Recent<()>,
}

/// The bot's own account.
#[derive(Debug, Clone, Deserialize)]
struct Me {
    id: String,
    username: String,
}

impl Discord {
    /// Sets up a bot. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: DiscordOptions) -> Result<Self, String> {
        let api = Api::new(&options.base_url, options.token.clone())?;
        Ok(Self {
            api,
            account: Account::new(DISCORD, &options.account),
            options,
            with_files: Semaphore::new(MOST_WITH_FILES),
            memory: Mutex::default(),
        })
    }

    /// The bot, which the server names once.
    async fn me(&self) -> Result<Me, ApiError> {
        if let Some(me) = self.memory.lock().me.clone() {
            return Ok(me);
        }
        let me: Me = self.api.get("/users/@me").await?;
        self.memory.lock().me = Some(me.clone());
        Ok(me)
    }
}

const WRONG_TOKEN: &str = "Discord does not take the bot token; reset it on the page Bot of your application at \
                           discord.com/developers/applications, and put the new one into botToken of the config";
const WRONG_INTENTS: &str = "Discord refuses the bot the content of messages; switch on \"Message Content Intent\" on the \
                             page Bot of your application at discord.com/developers/applications, and restart the gateway";

impl Channel for Discord {
    channel_shell! {
        run: receive_events,
        send: send_part,
        find: find_part,
        change: [add_reaction, edit_text, remove],
        poll: ask,
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // Discord takes a nonce once, but forgets it after some minutes.
            after_interruption: AfterInterruption::Look,
            most_file_bytes: Some(self.options.most_file_bytes),
            actions: &[Action::React, Action::Edit, Action::Unsend, Action::Poll],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_UNITS)
    }

    fn has_buttons(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match self.me().await {
                Ok(me) => Ok(format!("{} ({}) at {}", me.username, me.id, self.options.base_url)),
                Err(ApiError::Refused(refused)) if refused.status == 401 => {
                    Err(ProbeFailure(WRONG_TOKEN.to_owned()))
                }
                Err(error) => Err(ProbeFailure(format!(
                    "{error}; check the network, and baseUrl if the config sets one"
                ))),
            }
        })
    }
}

fn split(text: &str, limit: usize) -> Vec<String> {
    let fits = |part: &str| utf16_units(&format::render(part)) <= MOST_UNITS;
    split_rendered(text, limit, utf16_units, &fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_fits_after_rendering() {
        let table = format!("| a | b |\n|---|---|\n{}", "| x | yyyyyyyy |\n".repeat(300));
        for text in ["short".to_owned(), "😀 word ".repeat(3_000), table] {
            for part in split(&text, MOST_UNITS) {
                assert!(utf16_units(&format::render(&part)) <= MOST_UNITS, "{part}");
            }
        }
    }
}
