//! E-mail: one account, with IMAP to receive and SMTP to send.

mod authenticity;
mod automatic;
mod calendar;
mod compose;
mod flat;
mod imap;
mod incoming;
mod quote;
mod receive;
mod smtp;

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};

use crate::shell::channel_shell;
use crate::wire::{ServerAddress, advice};
use crate::{
    Account, AfterInterruption, Capabilities, Channel, Part, ProbeFailure, SendFailure, State,
    Target, split,
};
use compose::Thread;
use imap::{Imap, ImapError};
use smtp::{Smtp, SmtpError};

pub use imap::response as imap_response;

/// Name of the channel.
pub const EMAIL: &str = "email";
/// Most bytes of a text. Longer answers are several mails.
const MOST_TEXT: usize = 500_000;
/// Most correspondents whose newest thread is remembered.
const MOST_THREADS: usize = 1_000;

/// How a user shows who it is.
#[derive(Clone)]
pub enum Login {
    /// With a password.
    Password(SecretString),
    /// With a bearer token of OAuth 2 (XOAUTH2).
    Token(SecretString),
}

/// A user, for both servers.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The proof.
    pub login: Login,
}

impl Credentials {
    fn secret(&self) -> &str {
        match &self.login {
            Login::Password(secret) | Login::Token(secret) => secret.expose_secret(),
        }
    }

    /// The message of the mechanism PLAIN (RFC 4616).
    fn plain(&self) -> String {
        format!("\0{}\0{}", self.user, self.secret())
    }

    /// The message of the mechanism XOAUTH2, which Google and Microsoft document.
    fn xoauth2(&self) -> String {
        format!("user={}\x01auth=Bearer {}\x01\x01", self.user, self.secret())
    }
}

/// Which server checks that the sender of a mail is not forged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SenderCheck {
    /// The server with this name, in the field `Authentication-Results` (RFC 8601).
    By(String),
    /// Nobody: every name is believed.
    Nobody,
}

/// Which mails are one chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailChat {
    /// All of a person.
    Person,
    /// Those of a person in a thread.
    Thread,
}

/// How an account is set up.
#[derive(Clone)]
pub struct EmailOptions {
    /// The account's name in the config.
    pub account: String,
    /// Its own address.
    pub address: String,
    /// The name that people see.
    pub display_name: Option<String>,
    /// Where mails are read.
    pub imap: ServerAddress,
    /// Where mails are sent.
    pub smtp: ServerAddress,
    /// Logs in at both.
    pub credentials: Credentials,
    /// The mailbox that is read.
    pub mailbox: String,
    /// Who checks senders.
    pub sender_check: SenderCheck,
    /// Which mails are one chat.
    pub chat: MailChat,
    /// Largest mail in both directions, in bytes.
    pub most_bytes: u64,
    /// What happens to a mail if it is uncertain whether the server took it.
    pub after_interruption: AfterInterruption,
}

/// An account.
pub struct Email {
    options: EmailOptions,
    account: Account,
    /// Whether mails are received, and why the SMTP server refused the login, if it did.
    service: Mutex<(State, Option<String>)>,
    /// What the answers to the newest mails refer to. The first part of an answer names it; the others follow.
    threads: Mutex<HashMap<Target, Thread>>,
}

impl Email {
    /// Sets up an account. Nothing is sent yet.
    pub fn new(options: EmailOptions) -> Self {
        let account = Account::new(EMAIL, &options.account);
        Self { options, account, service: Mutex::default(), threads: Mutex::default() }
    }

    fn most_bytes(&self) -> usize {
        usize::try_from(self.options.most_bytes).unwrap_or(usize::MAX)
    }

    async fn imap(&self) -> Result<Imap, ImapError> {
        let EmailOptions { imap, credentials, .. } = &self.options;
        Imap::log_in(imap, credentials, self.most_bytes()).await
    }

    async fn smtp(&self) -> Result<Smtp, SmtpError> {
        let smtp = Smtp::log_in(&self.options.smtp, &self.options.credentials).await;
        let refusal = match &smtp {
            Ok(_) => None,
            Err(error @ SmtpError::Login(_)) => Some(format!("{error}; {WRONG_PASSWORD}")),
            // A connection failure says nothing about the credentials.
            Err(_) => return smtp,
        };
        self.set_service(|(_, refused)| *refused = refusal);
        smtp
    }

    /// The account works if it receives and the SMTP server takes the login.
    fn set_service(&self, change: impl FnOnce(&mut (State, Option<String>))) {
        let mut service = self.service.lock();
        change(&mut service);
        self.account.set(match &*service {
            (State::Working, Some(refused)) => State::Waiting(refused.clone()),
            (receiving, _) => receiving.clone(),
        });
    }

    async fn send_part(&self, part: &Part) -> Result<String, SendFailure> {
        let never = |reason: String| SendFailure::Never { reason };
        let thread = self.thread_of(part);
        let file = match &part.file {
            None if part.text.trim().is_empty() => {
                return Err(never("there is no text".to_owned()));
            }
            None => None,
            Some(file) => Some(file.read().await?),
        };
        let mail = compose::compose(&self.options, part, &thread, file).map_err(never)?;
        let smtp = self.smtp().await?;
        if let Some(most) = smtp.most_bytes().filter(|most| mail.bytes.len() > *most) {
            let size = mail.bytes.len();
            return Err(never(format!("the mail has {size} bytes, and the server takes {most}")));
        }
        smtp.send(&self.options.address, &part.target.chat, &mail.bytes).await?;
        Ok(mail.id)
    }

    /// What a part refers to.
    fn thread_of(&self, part: &Part) -> Thread {
        let mut threads = self.threads.lock();
        if threads.len() >= MOST_THREADS {
            threads.clear();
        }
        if let Some(reply_to) = &part.reply_to {
            threads.insert(part.target.clone(), Thread::from_text(reply_to));
        } else if part.number == 0 {
            // The agent begins a thread.
            threads.insert(part.target.clone(), compose::new_thread(&self.options, part));
            return Thread::default();
        }
        threads.get(&part.target).cloned().unwrap_or_default()
    }
}

/// What the owner does about a refused login.
const WRONG_PASSWORD: &str = "check `user`, and `password` or `accessToken`, of channels.email; many providers want a \
                              password for this app alone";

fn imap_probe_failure(error: &ImapError) -> ProbeFailure {
    ProbeFailure(match error {
        ImapError::Login(_) => format!("{error}; {WRONG_PASSWORD}"),
        ImapError::Wire { error: wire, .. } => {
            format!("{error}; {}", advice(wire, "channels.email.imap"))
        }
        ImapError::Refused { command: "SELECT", .. } => {
            format!("{error}; check channels.email.mailbox")
        }
        _ => format!("{error}; check channels.email.imap"),
    })
}

fn smtp_probe_failure(error: &SmtpError) -> ProbeFailure {
    ProbeFailure(match error {
        SmtpError::Login(_) => format!("{error}; {WRONG_PASSWORD}"),
        SmtpError::Wire { error: wire, .. } => {
            format!("{error}; {}", advice(wire, "channels.email.smtp"))
        }
        _ => format!("{error}; check channels.email.smtp"),
    })
}

impl Channel for Email {
    channel_shell! { run: receive_mails, send: send_part }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.options.after_interruption,
            most_file_bytes: Some(self.options.most_bytes),
            actions: &[],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_TEXT, str::len)
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            let mut imap = self.imap().await.map_err(|error| imap_probe_failure(&error))?;
            let opened = imap.select(&self.options.mailbox).await;
            opened.map_err(|error| imap_probe_failure(&error))?;
            self.smtp().await.map_err(|error| smtp_probe_failure(&error))?;
            let EmailOptions { address, imap, smtp, .. } = &self.options;
            Ok(format!("{address} at {imap} (IMAP) and {smtp} (SMTP)"))
        })
    }

    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some(format!("mailto:{}", self.options.address)) })
    }
}
