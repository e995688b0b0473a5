//! A connection: registration, with an account of the network if there is one.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;

use super::message::Line;
use super::{IrcOptions, MOST_NICK};
use crate::wire::{Security, Wire, WireError};

/// Time for the whole registration. Servers look up names first.
const REGISTRATION: Duration = Duration::from_secs(60);
/// Time to send a line.
const SEND: Duration = Duration::from_secs(30);
/// Time for the server to close a connection that was left.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Longest line, in bytes: 512, and 8,191 of tags.
const MOST_LINE: usize = 512 + 8_191;
/// Most names that are tried while others have them.
const MOST_NICKS: usize = 4;
/// Extensions that are used if the server has them.
const WANTED: [&str; 3] = ["account-tag", "message-tags", "sasl"];
/// Most bytes of a message of SASL in one line.
const SASL_CHUNK: usize = 400;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IrcError {
    /// It failed.
    #[error("the IRC server {server} {error}")]
    Wire { server: String, error: WireError },
    /// The server does not accept the account of the network.
    #[error("the IRC server refused the login: {0}")]
    Login(String),
    /// It does not accept this client.
    #[error("the IRC server refused: {0}")]
    Refused(String),
}

impl IrcError {
    /// Whether only the owner can mend it, here or at the network.
    pub(super) fn is_for_owner(&self) -> bool {
        matches!(self, Self::Login(_) | Self::Refused(_))
    }
}

/// A connection that is registered.
pub(super) struct Connection {
    wire: Wire,
    server: String,
    /// The nickname that the server gave.
    pub(super) nick: String,
    /// Whether somebody else had the nickname of the config.
    pub(super) was_taken: bool,
    /// The channels that it was thrown out of.
    pub(super) kicked: HashSet<String>,
    /// The channels where it is not, with the reason.
    pub(super) absent: BTreeMap<String, String>,
}

impl Connection {
    /// Connects and registers.
    pub(super) async fn register(options: &IrcOptions) -> Result<Self, IrcError> {
        let server = options.server.to_string();
        if options.server.security == Security::StartTls {
            return Err(IrcError::Refused("STARTTLS is not used on IRC".to_owned()));
        }
        let failed = |error| IrcError::Wire { server: server.clone(), error };
        let wire = Wire::connect(&options.server).await.map_err(failed)?;
        let nick = options.nick.clone();
        let mut connection = Self {
            wire,
            server: server.clone(),
            nick,
            was_taken: false,
            kicked: HashSet::new(),
            absent: BTreeMap::new(),
        };
        let registering = connection.introduce(options);
        match tokio::time::timeout(REGISTRATION, registering).await {
            Ok(done) => done.map(|()| connection),
            Err(_) => Err(failed(WireError::Silent(REGISTRATION))),
        }
    }

    async fn introduce(&mut self, options: &IrcOptions) -> Result<(), IrcError> {
        self.send("CAP LS 302").await?;
        if let Some(password) = &options.server_password {
            self.send(&format!("PASS :{}", password.expose_secret())).await?;
        }
        self.send(&format!("NICK {}", options.nick)).await?;
        self.send(&format!("USER {} 0 * :MyClaw", user_of(&options.nick))).await?;
        let (mut offered, mut tried) = (Vec::new(), 1);
        loop {
            let line = self.read(REGISTRATION).await?;
            match line.command.as_str() {
                "PING" => self.send(&format!("PONG :{}", line.last())).await?,
                "CAP" => self.negotiate(options, &line, &mut offered).await?,
                "AUTHENTICATE" => self.authenticate(options).await?,
                "903" => self.send("CAP END").await?,
                "902" | "904" | "905" | "906" | "907" | "908" => {
                    return Err(IrcError::Login(line.last().to_owned()));
                }
                // Another one has this name.
                "433" | "436" | "437" if tried < MOST_NICKS => {
                    tried += 1;
                    self.was_taken = true;
                    let from = self.nick.len().min(MOST_NICK - 1);
                    self.nick = format!("{}_", &self.nick[..from]);
                    self.send(&format!("NICK {}", self.nick)).await?;
                }
                "432" | "433" | "436" | "437" | "461" | "463" | "464" | "465" => {
                    return Err(IrcError::Refused(line.last().to_owned()));
                }
                "ERROR" => {
                    return Err(self.failed(WireError::Broken(line.last().to_owned())));
                }
                "001" => {
                    self.nick = line.parameter(0).to_owned();
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    async fn negotiate(
        &mut self,
        options: &IrcOptions,
        line: &Line,
        offered: &mut Vec<String>,
    ) -> Result<(), IrcError> {
        match line.parameter(1).to_ascii_uppercase().as_str() {
            "LS" => {
                let names = line.last().split_ascii_whitespace();
                offered.extend(names.map(|name| name.split('=').next().unwrap_or(name).to_owned()));
                if line.parameter(2) == "*" {
                    return Ok(());
                }
                let is_wanted = |name: &&str| {
                    offered.iter().any(|other| other == *name)
                        && (**name != *"sasl" || options.sasl.is_some())
                };
                let wanted: Vec<&str> =
                    WANTED.iter().filter(|name| is_wanted(name)).copied().collect();
                if options.sasl.is_some() && !wanted.contains(&"sasl") {
                    return Err(IrcError::Login("it offers no SASL".to_owned()));
                }
                match wanted.is_empty() {
                    true => self.send("CAP END").await,
                    false => self.send(&format!("CAP REQ :{}", wanted.join(" "))).await,
                }
            }
            "ACK" if options.sasl.is_some() => self.send("AUTHENTICATE PLAIN").await,
            "NAK" if options.sasl.is_some() => Err(IrcError::Login("it refuses SASL".to_owned())),
            "ACK" | "NAK" => self.send("CAP END").await,
            _ => Ok(()),
        }
    }

    async fn authenticate(&mut self, options: &IrcOptions) -> Result<(), IrcError> {
        let Some((user, password)) = &options.sasl else { return Ok(()) };
        let message = STANDARD.encode(format!("\0{user}\0{}", password.expose_secret()));
        let mut rest = message.as_str();
        loop {
            let (chunk, after) = rest.split_at(rest.len().min(SASL_CHUNK));
            let is_last = chunk.len() < SASL_CHUNK;
            self.send(&format!("AUTHENTICATE {}", if chunk.is_empty() { "+" } else { chunk }))
                .await?;
            if is_last {
                return Ok(());
            }
            rest = after;
        }
    }

    /// Sends a line, which must have no end of one in it.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), IrcError> {
        let sent = self.wire.write(format!("{line}\r\n").as_bytes(), SEND).await;
        sent.map_err(|error| self.failed(error))
    }

    /// The next line. A call that is dropped loses nothing.
    pub(super) async fn read(&mut self, limit: Duration) -> Result<Line, IrcError> {
        loop {
            let mut bytes = Vec::new();
            let read = self.wire.read_line(&mut bytes, MOST_LINE, limit).await;
            read.map_err(|error| self.failed(error))?;
            if let Some(line) = Line::read(&bytes) {
                return Ok(line);
            }
        }
    }

    /// Leaves, and waits for the server to close the connection: until then the nickname is taken.
    pub(super) async fn quit(&mut self) {
        if self.send("QUIT").await.is_ok() {
            let closing = async { while self.read(LAST_WORDS).await.is_ok() {} };
            let _ = tokio::time::timeout(LAST_WORDS, closing).await;
        }
    }

    /// What is not as the config says.
    pub(super) fn trouble(&self, wanted: &str) -> Option<String> {
        let nick = (self.was_taken && self.nick != wanted).then(|| {
            let nick = &self.nick;
            format!("the nickname is {nick}, because somebody else has {wanted}; it is tried again each minute")
        });
        let absent =
            self.absent.iter().map(|(channel, reason)| format!("not in {channel}: {reason}"));
        let all: Vec<String> = nick.into_iter().chain(absent).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    pub(super) fn failed(&self, error: WireError) -> IrcError {
        IrcError::Wire { server: self.server.clone(), error }
    }
}

/// A name of a user, which servers want in letters and digits.
fn user_of(nick: &str) -> String {
    let user: String = nick.chars().filter(char::is_ascii_alphanumeric).take(9).collect();
    if user.is_empty() { "myclaw".to_owned() } else { user }
}
