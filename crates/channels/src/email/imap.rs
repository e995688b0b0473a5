//! A client for IMAP4rev1 (RFC 3501) with IDLE (RFC 2177): logs in, reads messages, waits for more.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;
use tokio::time::Instant;

use super::{Credentials, Login};
use crate::wire::{Security, ServerAddress, Wire, WireError};
use response::{Code, Fetch, Response, Status, StatusLine, literal_after, parse};

pub mod response;

/// Time for an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Longest line, in bytes.
const MOST_LINE: usize = 64 * 1024;
/// Longest response without the message in it, in bytes.
const MOST_RESPONSE: usize = 256 * 1024;
/// How long a server may say nothing while it waits for mail. RFC 2177 names 29 minutes; some routers forget a connection
/// after ten.
const IDLE: Duration = Duration::from_secs(9 * 60);
/// Pause between two questions to a server without IDLE.
const POLL: Duration = Duration::from_secs(30);

/// Why the mailbox cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImapError {
    /// The connection failed.
    #[error("the IMAP server {server} {error}")]
    Wire { server: String, error: WireError },
    /// The server does not accept the user with this password or token.
    #[error("the IMAP server refused the login: {0}")]
    Login(String),
    /// The server refused a command for another reason.
    #[error("the IMAP server refused {command}: {text}")]
    Refused { command: &'static str, text: String },
    /// It said something that is not IMAP, or does not offer what is needed.
    #[error("the IMAP server {0}")]
    Unusable(String),
    /// The message cannot be stored, or the position in the mailbox.
    #[error("the message cannot be stored: {0}")]
    Intake(String),
}

/// What a list of messages says of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// Its number, size and date.
    Full,
    /// Its number only, which a server knows without reading it. For a mail that it cannot parse, a server reports
    /// no size, rejects the whole FETCH, or drops the connection.
    Numbers,
}

/// A mailbox that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mailbox {
    /// Changes when the numbers of messages have no meaning any more.
    pub(super) validity: u32,
    /// The number that the next message gets.
    pub(super) next: u32,
}

/// A connection to a server.
pub(super) struct Imap {
    wire: Wire,
    server: String,
    next_tag: u32,
    capabilities: Vec<String>,
    /// Largest message that is read, in bytes.
    most_message: usize,
    /// Whether the server has said that there is something new.
    has_news: bool,
}

impl Imap {
    /// Connects and logs in.
    pub(super) async fn log_in(
        server: &ServerAddress,
        credentials: &Credentials,
        most_message: usize,
    ) -> Result<Self, ImapError> {
        let name = server.to_string();
        let failed = |error| ImapError::Wire { server: name.clone(), error };
        let wire = Wire::connect(server).await.map_err(failed)?;
        let mut imap = Self {
            wire,
            server: server.to_string(),
            next_tag: 0,
            capabilities: Vec::new(),
            most_message,
            has_news: false,
        };
        match imap.read().await? {
            Response::Status(line) if line.status == Status::Ok => {}
            Response::Status(line) if line.status == Status::Bye => {
                return Err(ImapError::Refused { command: "the connection", text: line.text });
            }
            // With PREAUTH it is unknown who is logged in.
            _ => return Err(imap.unusable("does not greet as an IMAP server does")),
        }
        if server.security == Security::StartTls {
            imap.ask("STARTTLS", "STARTTLS").await?;
            imap.wire = imap.wire.encrypt(&server.host).await.map_err(failed)?;
            // What it said before could have come from anybody.
            imap.capabilities.clear();
        }
        imap.ask("CAPABILITY", "CAPABILITY").await?;
        imap.authenticate(credentials).await?;
        imap.ask("CAPABILITY", "CAPABILITY").await?;
        Ok(imap)
    }

    fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|other| other == capability)
    }

    async fn authenticate(&mut self, credentials: &Credentials) -> Result<(), ImapError> {
        let Credentials { user, login } = credentials;
        let (command, initial) = match login {
            Login::Token(_) => ("AUTHENTICATE XOAUTH2", credentials.xoauth2()),
            Login::Password(_) if self.can("AUTH=PLAIN") => {
                ("AUTHENTICATE PLAIN", credentials.plain())
            }
            Login::Password(password) => {
                let (user, password) = (quoted(user), quoted(password.expose_secret()));
                let (Some(user), Some(password)) = (user, password) else {
                    return Err(
                        self.unusable("takes no such user or password: it offers no AUTH=PLAIN")
                    );
                };
                let line = self.ask("LOGIN", &format!("LOGIN {user} {password}")).await;
                return line.map(drop).map_err(login_failure);
            }
        };
        let tag = self.send(command).await?;
        let mut answer = Some(STANDARD.encode(initial));
        loop {
            match self.read().await? {
                // After the first answer, the server says in this way why it refuses.
                Response::Continue => {
                    let line = format!("{}\r\n", answer.take().unwrap_or_default());
                    self.write(line.as_bytes()).await?;
                }
                Response::Status(line) if line.tag.as_deref() == Some(&tag) => {
                    return done("AUTHENTICATE", line).map(drop).map_err(login_failure);
                }
                _ => {}
            }
        }
    }

    /// Opens a mailbox.
    pub(super) async fn select(&mut self, mailbox: &str) -> Result<Mailbox, ImapError> {
        let name = quoted(mailbox).ok_or_else(|| self.unusable("has no mailbox of such a name"))?;
        let (mut validity, mut next) = (None, None);
        for response in self.ask("SELECT", &format!("SELECT {name}")).await? {
            match response {
                Response::Status(StatusLine { code: Some(Code::UidValidity(number)), .. }) => {
                    validity = Some(number);
                }
                Response::Status(StatusLine { code: Some(Code::UidNext(number)), .. }) => {
                    next = Some(number);
                }
                _ => {}
            }
        }
        match (validity, next) {
            (Some(validity), Some(next)) => Ok(Mailbox { validity, next }),
            _ => Err(self.unusable("does not number its messages (UIDVALIDITY, UIDNEXT)")),
        }
    }

    /// The messages from the number `first` on, in their order.
    pub(super) async fn list(
        &mut self,
        first: u32,
        listing: Listing,
    ) -> Result<Vec<Fetch>, ImapError> {
        self.has_news = false;
        let items = match listing {
            Listing::Full => "UID RFC822.SIZE INTERNALDATE",
            Listing::Numbers => "UID",
        };
        let responses = self.ask("FETCH", &format!("UID FETCH {first}:* ({items})")).await?;
        let fetches = responses.into_iter().filter_map(|response| match response {
            // Of an empty range the server names the last message.
            Response::Fetch(fetch) if fetch.uid.is_some_and(|uid| uid >= first) => Some(fetch),
            _ => None,
        });
        let mut fetches: Vec<Fetch> = fetches.collect();
        fetches.sort_by_key(|fetch| fetch.uid);
        fetches.dedup_by_key(|fetch| fetch.uid);
        Ok(fetches)
    }

    /// At most the first `most` bytes of a message, or of its header; `None` if it is not there any more.
    pub(super) async fn fetch(
        &mut self,
        uid: u32,
        section: &'static str,
        most: usize,
    ) -> Result<Option<Vec<u8>>, ImapError> {
        let command = format!("UID FETCH {uid} (UID BODY.PEEK[{section}]<0.{most}>)");
        let responses = self.ask("FETCH", &command).await?;
        Ok(responses.into_iter().find_map(|response| match response {
            Response::Fetch(Fetch { uid: Some(of), body, .. }) if of == uid => body,
            _ => None,
        }))
    }

    /// Marks a message as read. In a mailbox that cannot be changed nothing happens.
    pub(super) async fn mark_seen(&mut self, uid: u32) -> Result<(), ImapError> {
        match self.ask("STORE", &format!("UID STORE {uid} +FLAGS.SILENT (\\Seen)")).await {
            Err(ImapError::Refused { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Waits until there may be a new message.
    pub(super) async fn wait(&mut self) -> Result<(), ImapError> {
        if self.has_news {
            return Ok(());
        }
        if !self.can("IDLE") {
            tokio::time::sleep(POLL).await;
            return self.ask("NOOP", "NOOP").await.map(drop);
        }
        let tag = self.send("IDLE").await?;
        let end = Instant::now() + IDLE;
        while !self.has_news {
            let left = end.saturating_duration_since(Instant::now());
            match self.read_within(left).await {
                Err(ImapError::Wire { error: WireError::Silent(_), .. }) => break,
                Ok(Response::Status(line)) if line.tag.as_deref() == Some(&tag) => {
                    return done("IDLE", line).map(drop);
                }
                other => other?,
            };
        }
        self.write(b"DONE\r\n").await?;
        self.answer("IDLE", &tag).await.map(drop)
    }

    /// Sends a command and gives what the server said until it was done.
    async fn ask(&mut self, name: &'static str, line: &str) -> Result<Vec<Response>, ImapError> {
        let tag = self.send(line).await?;
        self.answer(name, &tag).await
    }

    async fn answer(&mut self, name: &'static str, tag: &str) -> Result<Vec<Response>, ImapError> {
        let mut responses = Vec::new();
        loop {
            match self.read().await? {
                Response::Status(line) if line.tag.as_deref() == Some(tag) => {
                    responses.push(Response::Status(done(name, line)?));
                    return Ok(responses);
                }
                response => responses.push(response),
            }
        }
    }

    async fn send(&mut self, line: &str) -> Result<String, ImapError> {
        self.next_tag += 1;
        let tag = format!("m{}", self.next_tag);
        self.write(format!("{tag} {line}\r\n").as_bytes()).await?;
        Ok(tag)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ImapError> {
        self.wire.write(bytes, ANSWER).await.map_err(|error| self.failed(error))
    }

    async fn read(&mut self) -> Result<Response, ImapError> {
        self.read_within(ANSWER).await
    }

    /// A response whose first line comes within `limit`.
    async fn read_within(&mut self, limit: Duration) -> Result<Response, ImapError> {
        let mut bytes = Vec::new();
        let mut limit = limit;
        loop {
            let start = bytes.len();
            let read = self.wire.read_line(&mut bytes, MOST_LINE, limit).await;
            read.map_err(|error| self.failed(error))?;
            let Some(count) = literal_after(&bytes[start..]) else { break };
            let most = self.most_message + MOST_RESPONSE;
            if bytes.len().saturating_add(count) > most {
                return Err(self.failed(WireError::TooLong(most)));
            }
            // A second for each 50 KB.
            let time = ANSWER + Duration::from_secs(count as u64 / 50_000);
            let read = self.wire.read_exactly(count, &mut bytes, time).await;
            read.map_err(|error| self.failed(error))?;
            limit = ANSWER;
        }
        let response =
            parse(&bytes).ok_or_else(|| self.unusable("said something that is not IMAP"))?;
        match &response {
            Response::Exists(_) => self.has_news = true,
            Response::Capability(capabilities)
            | Response::Status(StatusLine { code: Some(Code::Capability(capabilities)), .. }) => {
                self.capabilities.clone_from(capabilities);
            }
            Response::Status(line) if line.status == Status::Bye => {
                return Err(self.failed(WireError::Broken(line.text.clone())));
            }
            _ => {}
        }
        Ok(response)
    }

    fn failed(&self, error: WireError) -> ImapError {
        ImapError::Wire { server: self.server.clone(), error }
    }

    fn unusable(&self, what: &str) -> ImapError {
        ImapError::Unusable(format!("{} {what}", self.server))
    }
}

fn done(command: &'static str, line: StatusLine) -> Result<StatusLine, ImapError> {
    match line.status {
        Status::Ok => Ok(line),
        _ => {
            let code = match &line.code {
                Some(Code::Other(code)) => format!("[{code}] "),
                _ => String::new(),
            };
            Err(ImapError::Refused { command, text: format!("{code}{}", line.text) })
        }
    }
}

/// A refused login is final, except if the server says that it is not about the password (RFC 5530).
fn login_failure(error: ImapError) -> ImapError {
    match error {
        ImapError::Refused { text, .. }
            if !["[UNAVAILABLE]", "[LIMIT]", "[INUSE]"]
                .iter()
                .any(|code| text.starts_with(code)) =>
        {
            ImapError::Login(text)
        }
        other => other,
    }
}

/// A text in quotes; `None` if it cannot be written so.
fn quoted(text: &str) -> Option<String> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_plain.then(|| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}
