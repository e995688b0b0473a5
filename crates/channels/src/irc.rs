//! IRC: one account on one network.
//!
//! A server keeps nothing for those who are away, and confirms no message. So what is said while no connection is there is
//! lost, and after each message a PING asks whether the server has read it.

mod connection;
mod format;
mod message;
mod receive;
mod unconfirmed;

use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::shell::channel_shell;
use crate::wire::{self, ServerAddress};
use crate::{Account, AfterInterruption, Capabilities, Channel, Part, ProbeFailure, SendFailure};
use connection::{Connection, IrcError};

/// Name of the channel.
pub const IRC: &str = "irc";
/// Longest nickname, in bytes. Networks take 9 to 30.
pub const MOST_NICK: usize = 30;
/// Longest name of a channel, in bytes (RFC 2812, section 1.3).
pub const MOST_CHANNEL: usize = 50;
/// Most bytes of a text, so that its line has at most 512 with what the server puts before it, for the longest names:
/// `:nick!user@host PRIVMSG target :` and the end of the line. Users have at most 11 bytes, hosts 63.
const MOST_TEXT: usize = 512 - (1 + MOST_NICK + 1 + 11 + 1 + 63 + 9 + MOST_CHANNEL + 2 + 2);
/// Pause between two lines, and how many may go without one. Servers count two seconds for a line, and close connections
/// that are more than ten ahead (RFC 2813, section 5.8).
const LINE_PAUSE: Duration = Duration::from_secs(2);
const BURST: u32 = 4;
/// Longest wait for the server to confirm a line.
const CONFIRMATION: Duration = Duration::from_secs(60);

/// How an account is set up.
#[derive(Clone)]
pub struct IrcOptions {
    /// The account's name in the config.
    pub account: String,
    /// The server.
    pub server: ServerAddress,
    /// The nickname.
    pub nick: String,
    /// The name and the password of an account of the network (SASL PLAIN).
    pub sasl: Option<(String, SecretString)>,
    /// The password of the server, if it has one.
    pub server_password: Option<SecretString>,
    /// The channels that are joined.
    pub channels: Vec<String>,
    /// What happens to a line if it is uncertain whether the server read it.
    pub after_interruption: AfterInterruption,
}

/// An account.
pub struct Irc {
    options: IrcOptions,
    account: Account,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// Takes lines while there is a connection.
    outgoing: Option<mpsc::Sender<Outgoing>>,
    /// When the next line would go, if each had waited for those before it.
    next_line: Option<Instant>,
}

/// A line that is to be sent.
struct Outgoing {
    target: String,
    text: String,
    sent: oneshot::Sender<Result<(), SendFailure>>,
}

impl Irc {
    /// Sets up an account. Nothing is sent yet.
    pub fn new(options: IrcOptions) -> Self {
        let account = Account::new(IRC, &options.account);
        Self { options, account, memory: Mutex::default() }
    }

    /// When a line may go that is ready now.
    fn next_slot(&self) -> Instant {
        let mut memory = self.memory.lock();
        let now = Instant::now();
        let steady = memory.next_line.map_or(now, |next| next.max(now));
        memory.next_line = Some(steady + LINE_PAUSE);
        // As many may go at once.
        steady.checked_sub(LINE_PAUSE * (BURST - 1)).map_or(now, |early| early.max(now))
    }

    /// Whether a line may go that nobody misses, without delaying others.
    fn has_room(&self) -> bool {
        let is_idle = self.memory.lock().next_line.is_none_or(|next| next <= Instant::now());
        is_idle && self.next_slot() <= Instant::now()
    }

    async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        let never = |reason: &str| SendFailure::Never { reason: reason.to_owned() };
        if part.file.is_some() {
            return Err(SendFailure::unsupported());
        }
        let target = part.target.chat.clone();
        if !message::is_name(&target) || target.len() > MOST_CHANNEL {
            return Err(never("this is no name on IRC"));
        }
        let repeat = if part.is_repeat { "(again) " } else { "" };
        // [`Channel::split`] has made lines of it. A caller that did not ask it must not be able to send commands.
        let text = format!("{repeat}{}", part.text);
        let mut sent_before = false;
        for line in text.lines().flat_map(|line| format::cut(&format::clean(line), MOST_TEXT)) {
            if let Err(failure) = self.say(&target, line).await {
                let is_never = matches!(failure, SendFailure::Never { .. });
                return Err(match sent_before && !is_never {
                    // A part of it is there already.
                    true => SendFailure::Unknown { reason: format!("{failure:?}") },
                    false => failure,
                });
            }
            sent_before = true;
        }
        match sent_before {
            true => Ok(part.id.clone()),
            false => Err(never("there is no text")),
        }
    }

    async fn say(&self, target: &str, text: String) -> Result<(), SendFailure> {
        let later = || SendFailure::Later { after: None, reason: "not connected".to_owned() };
        let slot = self.next_slot();
        tokio::time::sleep_until(slot).await;
        let outgoing = self.memory.lock().outgoing.clone().ok_or_else(later)?;
        let (sent, answer) = oneshot::channel();
        let line = Outgoing { target: target.to_owned(), text, sent };
        outgoing.send(line).await.map_err(|_| later())?;
        let unknown = |reason: &str| SendFailure::Unknown { reason: reason.to_owned() };
        // A server that does not confirm it in time loses the connection.
        answer
            .await
            .unwrap_or_else(|_| Err(unknown("the connection broke after the line was sent")))
    }
}

/// What the owner does about a failure.
fn advice(error: &IrcError) -> String {
    match error {
        IrcError::Wire { error: wire, .. } => {
            format!("{error}; {}", wire::advice(wire, "channels.irc"))
        }
        IrcError::Login(_) => format!("{error}; check `sasl` of channels.irc"),
        IrcError::Refused(_) => format!("{error}; check channels.irc"),
    }
}

impl Channel for Irc {
    channel_shell! { run: receive_lines, send: send_part }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.options.after_interruption,
            most_file_bytes: None,
            actions: &[],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        format::lines(text, MOST_TEXT)
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match Connection::register(&self.options).await {
                Ok(mut connection) => {
                    let nick = connection.nick.clone();
                    connection.quit().await;
                    Ok(format!("{nick} at {}", self.options.server))
                }
                Err(error) => Err(ProbeFailure(advice(&error))),
            }
        })
    }
}
