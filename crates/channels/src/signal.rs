//! Signal, through the HTTP interface of signal-cli's daemon: one account.
//!
//! signal-cli confirms a message to Signal's servers before it hands it on. From version to version it keeps the newest
//! events in memory and gives them again to a client that says what it has seen; what is on disk is said so. What
//! signal-cli handed to nobody is lost, so it has to receive only while somebody listens (`--receive-mode=on-connection`).

mod api;
mod envelope;
mod link;
mod people;
mod receive;
mod send;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;

use crate::recent::Recent;
use crate::shell::channel_shell;
use crate::taking::MOST_WITH_FILES;
use crate::{Account, Action, AfterInterruption, Capabilities, Channel, ProbeFailure, split};
use api::Api;
use envelope::File;
pub use link::{begin_signal_link, finish_signal_link};
use people::{Contacts, Person};

/// Name of the channel.
pub const SIGNAL: &str = "signal";
/// Where `signal-cli daemon --http` listens.
pub const SIGNAL_BASE_URL: &str = "http://127.0.0.1:8080";
/// Most bytes of a text. Signal's clients fold longer ones.
const MOST_BYTES: usize = 2_000;

/// How an account is set up.
#[derive(Debug, Clone)]
pub struct SignalOptions {
    /// The account's name in the config.
    pub account: String,
    /// Its phone number, with `+`, or its id.
    pub number: String,
    /// Address of the daemon.
    pub base_url: String,
    /// [`AfterInterruption::Report`] or [`AfterInterruption::SendMarked`]: signal-cli gives each attempt a new time,
    /// which is the id of a message.
    pub after_interruption: AfterInterruption,
    /// Largest file in both directions, in bytes.
    pub most_file_bytes: u64,
}

/// An account.
pub struct Signal {
    options: SignalOptions,
    api: Api,
    account: Account,
    /// What messages say, by their ids: a quote holds the text.
    texts: Mutex<Recent<String>>,
    /// The files of messages, by their ids.
    files: Mutex<Recent<Vec<File>>>,
    /// People by each of their ids.
    people: Mutex<Recent<Person>>,
    contacts: Mutex<Contacts>,
    /// Places for messages with files.
    with_files: Semaphore,
}

impl Signal {
    /// Sets up an account. Nothing is sent yet.
    ///
    /// # Errors
    /// The HTTP client cannot be set up; the text says why.
    pub fn new(options: SignalOptions) -> Result<Self, String> {
        let api = Api::new(&options.base_url, &options.number, options.most_file_bytes)?;
        Ok(Self {
            api,
            account: Account::new(SIGNAL, &options.account),
            options,
            texts: Mutex::default(),
            files: Mutex::default(),
            people: Mutex::default(),
            contacts: Mutex::default(),
            with_files: Semaphore::new(MOST_WITH_FILES),
        })
    }

    fn texts(&self) -> MutexGuard<'_, Recent<String>> {
        self.texts.lock()
    }

    fn files(&self) -> MutexGuard<'_, Recent<Vec<File>>> {
        self.files.lock()
    }

    fn people(&self) -> MutexGuard<'_, Recent<Person>> {
        self.people.lock()
    }

    fn contacts(&self) -> MutexGuard<'_, Contacts> {
        self.contacts.lock()
    }
}

impl Channel for Signal {
    channel_shell! {
        run: receive_events,
        send: send_part,
        change: [set_reaction, edit_text, remove],
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: self.options.after_interruption,
            most_file_bytes: Some(self.options.most_file_bytes),
            actions: &[Action::React, Action::Edit, Action::Unsend],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_BYTES, str::len)
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            match self.check().await {
                Ok(version) => Ok(format!("{} through signal-cli {version}", self.options.number)),
                Err(reason) => Err(ProbeFailure(reason)),
            }
        })
    }

    /// As the apps of Signal share a number.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let is_number = self.options.number.starts_with('+');
            is_number.then(|| format!("https://signal.me/#p/{}", self.options.number))
        })
    }
}
