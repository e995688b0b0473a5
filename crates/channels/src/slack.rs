//! Slack: one app, through Socket Mode and the Web API.

mod act;
mod api;
mod content;
mod emoji;
mod event;
mod file;
mod format;
mod press;
mod receive;
mod send;
mod thread;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::pace::Pace;
use crate::recent::Recent;
use crate::shell::channel_shell;
use crate::split::split_rendered;
use crate::{
    Account, Action, AfterInterruption, Capabilities, Channel, Intake, ProbeFailure, utf16_units,
};
use api::{Api, ApiError, Token};

/// Name of the channel.
pub const SLACK: &str = "slack";
/// Address of the public Web API.
pub const SLACK_BASE_URL: &str = "https://slack.com/api";
/// Most characters of a text (docs.slack.dev, `chat.postMessage`, "Truncating content"; `chat.update` refuses more).
const MOST_UNITS: usize = 4_000;
/// One message per second in a conversation (docs.slack.dev, "Rate limits", "Posting messages").
const POST_PAUSE: Duration = Duration::from_secs(1);
/// Calls of `chat.update` in a minute: its tier is the third (docs.slack.dev, "Rate limits").
const UPDATES: usize = 50;
const MINUTE: Duration = Duration::from_secs(60);
/// Most people of a text whose names are asked for. Further ones are shown by what is known of them.
const MOST_NAMED: usize = 20;
/// Most people whose names are remembered.
const MOST_PEOPLE: usize = 10_000;
/// Messages whose files are in memory at the same time.
const MOST_WITH_FILES: usize = 2;

/// How an app is set up.
#[derive(Debug, Clone)]
pub struct SlackOptions {
    /// The account's name in the config.
    pub account: String,
    /// The app-level token with the scope `connections:write`.
    pub app_token: SecretString,
    /// The token of the app's bot in a workspace.
    pub bot_token: SecretString,
    /// Address of the Web API.
    pub base_url: String,
    /// Largest file in both directions, in bytes.
    pub most_file_bytes: u64,
    /// Whether a reply is shown while it is written.
    pub preview: bool,
}

/// An app in a workspace.
pub struct Slack {
    options: SlackOptions,
    api: Api,
    posts: Pace,
    updates: Pace,
    account: Account,
    /// Places for messages with files.
    with_files: Semaphore,
    memory: Mutex<Memory>,
    /// Keeps which file is being sent.
    keeper: OnceLock<Arc<dyn Intake>>,
}

/// What the process knows of the workspace.
#[derive(Default)]
struct Memory {
    me: Option<Me>,
    /// Names of people by id; `None` if Slack does not tell.
    names: HashMap<String, Option<String>>,
    /// Threads whose earlier messages were read.
    threads: Recent<()>,
}

/// The bot.
#[derive(Debug, Clone, Deserialize)]
struct Me {
    user_id: String,
    user: String,
    team_id: String,
    team: String,
}

impl Slack {
    /// Sets up an app. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: SlackOptions) -> Result<Self, String> {
        let (bot, app) = (options.bot_token.clone(), options.app_token.clone());
        let api = Api::new(&options.base_url, bot, app)?;
        Ok(Self {
            api,
            posts: Pace::new(1, POST_PAUSE),
            updates: Pace::new(UPDATES, MINUTE),
            account: Account::new(SLACK, &options.account),
            options,
            with_files: Semaphore::new(MOST_WITH_FILES),
            memory: Mutex::default(),
            keeper: OnceLock::new(),
        })
    }

    /// The bot, which the server names once.
    async fn me(&self) -> Result<Me, ApiError> {
        if let Some(me) = self.memory.lock().me.clone() {
            return Ok(me);
        }
        let me: Me = self.api.call(Token::Bot, "auth.test", &json!({})).await?;
        self.memory.lock().me = Some(me.clone());
        Ok(me)
    }
}

/// What the owner has to do if Slack does not take a token.
fn wrong_token(token: Token) -> String {
    let (what, key, place) = match token {
        Token::Bot => ("bot token (xoxb-…)", "botToken", "OAuth & Permissions"),
        Token::App => ("app-level token (xapp-…)", "appToken", "Basic Information"),
    };
    format!(
        "Slack does not take the {what}; copy it again from the page {place} of your app at api.slack.com/apps into {key} \
         of the config"
    )
}

/// What the owner should know of a failure.
fn explained(token: Token, error: &ApiError) -> String {
    match error {
        ApiError::Refused(refused) if refused.is_wrong_token() => wrong_token(token),
        error => format!("{error}; check the network, and baseUrl if the config sets one"),
    }
}

impl Channel for Slack {
    channel_shell! {
        send: send_part,
        find: find_part,
        change: [add_reaction, edit_text, remove],
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // A message carries the part's id as metadata, by which it is found.
            after_interruption: AfterInterruption::Look,
            most_file_bytes: Some(self.options.most_file_bytes),
            actions: &[Action::React, Action::Edit, Action::Unsend],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_UNITS)
    }

    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        self.keeper.get_or_init(|| Arc::clone(&intake));
        Box::pin(async move { self.receive_events(&*intake).await })
    }

    fn has_buttons(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            let me = self.me().await.map_err(|error| explained(Token::Bot, &error));
            let me = me.map_err(ProbeFailure)?;
            let opened = self.socket_address().await.map_err(|error| explained(Token::App, &error));
            opened.map_err(ProbeFailure)?;
            Ok(format!("@{} ({}) in {} at {}", me.user, me.user_id, me.team, self.options.base_url))
        })
    }
}

fn split(text: &str, limit: usize) -> Vec<String> {
    let fits = |part: &str| format::units(&format::render(part)) <= MOST_UNITS;
    split_rendered(text, limit, utf16_units, &fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_fits_after_rendering() {
        let table = format!("| a | b |\n|---|---|\n{}", "| x | y |\n".repeat(300));
        for text in ["short".to_owned(), "😀 word ".repeat(3_000), "<&>".repeat(3_000), table] {
            for part in split(&text, MOST_UNITS) {
                assert!(format::units(&format::render(&part)) <= MOST_UNITS, "{part}");
            }
        }
        assert_eq!(split("", MOST_UNITS), [""]);
    }
}
