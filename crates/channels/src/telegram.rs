//! Telegram, through the Bot API: one bot.

mod act;
mod albums;
mod api;
mod content;
mod format;
mod limits;
mod moves;
mod receive;
mod send;
mod update;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::shell::channel_shell;
use crate::split::split_rendered as split_rendered_by;
use crate::taking::MOST_WITH_FILES;
use crate::{
    Account, Action, AfterInterruption, Capabilities, Channel, Intake, ProbeFailure, utf16_units,
};
use albums::Albums;
use api::{Api, ApiError};
use limits::Limits;
use moves::Moves;
use update::{Me, User};

/// Name of the channel.
pub const TELEGRAM: &str = "telegram";
/// Address of the public server.
pub const TELEGRAM_BASE_URL: &str = "https://api.telegram.org";
/// Most UTF-16 units of a message, after its formatting is taken out (Bot API, sendMessage).
const MOST_UNITS: usize = 4_096;
/// Largest file that a bot can send (Bot API, "Sending files").
const MOST_SENT_BYTES: u64 = 50 * 1024 * 1024;
/// Largest file that a bot can download (Bot API, getFile).
const MOST_RECEIVED_BYTES: u64 = 20 * 1024 * 1024;
/// Time for a call. A longer wait does not make an answer more likely.
const CALL_TIME: Duration = Duration::from_secs(30);

/// How a bot is set up.
#[derive(Debug, Clone)]
pub struct TelegramOptions {
    /// The account's name.
    pub account: String,
    /// The token from BotFather.
    pub token: SecretString,
    /// Address of the Bot API server.
    pub base_url: String,
    /// The address at which Telegram reaches this program. Without one the bot asks for messages itself.
    pub webhook: Option<String>,
    /// What happens to a message whose sending was interrupted. Telegram can be asked neither for sent messages nor to
    /// show a message once, so this is [`AfterInterruption::Report`] or [`AfterInterruption::SendMarked`].
    pub after_interruption: AfterInterruption,
    /// Largest file that is downloaded, in bytes.
    pub most_file_bytes: u64,
    /// Time for a call that sends something.
    pub send_time: Duration,
    /// Whether a reply is shown while it is written.
    pub preview: bool,
}

impl TelegramOptions {
    /// The defaults for a bot with this token.
    pub fn new(account: impl Into<String>, token: SecretString) -> Self {
        Self {
            account: account.into(),
            token,
            base_url: TELEGRAM_BASE_URL.to_owned(),
            webhook: None,
            after_interruption: AfterInterruption::Report,
            most_file_bytes: MOST_RECEIVED_BYTES,
            send_time: CALL_TIME,
            preview: true,
        }
    }
}

/// A bot.
pub struct Telegram {
    options: TelegramOptions,
    api: Api,
    limits: Limits,
    account: Account,
    me: Mutex<Option<Me>>,
    /// Places for messages with files.
    with_files: Semaphore,
    albums: Mutex<Albums>,
    moves: Mutex<Moves>,
    /// Keeps which groups have moved.
    keeper: OnceLock<Arc<dyn Intake>>,
}

impl Telegram {
    /// Sets up a bot. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: TelegramOptions) -> Result<Self, String> {
        let api = Api::new(&options.base_url, options.token.clone())?;
        Ok(Self {
            api,
            limits: Limits::default(),
            account: Account::new(TELEGRAM, &options.account),
            options,
            me: Mutex::default(),
            with_files: Semaphore::new(MOST_WITH_FILES),
            albums: Mutex::default(),
            moves: Mutex::default(),
            keeper: OnceLock::new(),
        })
    }

    /// The bot's account, once the server has named it.
    fn me(&self) -> Option<Me> {
        self.me.lock().clone()
    }

    async fn ask_who_i_am(&self) -> Result<Me, ApiError> {
        let user: User = self.api.call("getMe", &json!({}), CALL_TIME).await?;
        let me = Me { id: user.id, username: user.username.unwrap_or(user.first_name) };
        *self.me.lock() = Some(me.clone());
        Ok(me)
    }

    /// What Telegram sends with each webhook request, so that nobody else can. Derived from the token, which only
    /// Telegram and the owner know.
    fn webhook_secret(&self) -> String {
        let token = self.options.token.expose_secret();
        let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
        let tag = hmac::sign(&key, b"myclaw webhook");
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether the server does not know the bot. It answers 404 to a token of a wrong form.
fn is_wrong_token(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused(refused) if matches!(refused.code, 401 | 404))
}

const WRONG_TOKEN: &str = "Telegram does not know the bot token; copy it again from @BotFather into botToken of the \
                           config";

impl Channel for Telegram {
    channel_shell! {
        hook: [admit_hook, receive_hook],
        send: send_part,
        change: [set_reaction, edit_text, remove],
        poll: ask,
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.options.after_interruption,
            most_file_bytes: Some(MOST_SENT_BYTES),
            actions: &[Action::React, Action::Edit, Action::Unsend, Action::Poll],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split_rendered(text, MOST_UNITS)
    }

    fn run(self: Arc<Self>, intake: Arc<dyn Intake>) -> BoxFuture<'static, ()> {
        self.keeper.get_or_init(|| Arc::clone(&intake));
        Box::pin(async move { self.receive_updates(&*intake).await })
    }

    fn has_buttons(&self) -> bool {
        true
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match self.ask_who_i_am().await {
                Ok(me) => {
                    Ok(format!("@{} (id {}) at {}", me.username, me.id, self.options.base_url))
                }
                Err(error) if is_wrong_token(&error) => Err(ProbeFailure(WRONG_TOKEN.to_owned())),
                Err(error) => Err(ProbeFailure(format!(
                    "{error}; check the network, and baseUrl if the config sets one"
                ))),
            }
        })
    }

    /// As on <https://core.telegram.org/api/links>.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let me = self.ask_who_i_am().await.ok()?;
            Some(format!("https://t.me/{}", me.username))
        })
    }
}

fn split_rendered(text: &str, limit: usize) -> Vec<String> {
    let fits = |part: &str| format::render(part).units <= MOST_UNITS;
    split_rendered_by(text, limit, utf16_units, &fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_fits_after_rendering() {
        let table = format!("| a | b |\n|---|---|\n{}", "| x | y |\n".repeat(300));
        let wide = format!("| {} | b |\n|---|---|\n{}", "w".repeat(60), "| x | y |\n".repeat(300));
        for text in ["short".to_owned(), "😀 word ".repeat(3_000), table, wide] {
            for part in split_rendered(&text, MOST_UNITS) {
                assert!(format::render(&part).units <= MOST_UNITS, "{part}");
            }
        }
        assert_eq!(split_rendered("", MOST_UNITS), [""]);
    }
}
