//! XMPP: one account.
//!
//! Acknowledgements (XEP-0198) say what the server has and what this side has on disk; what was not acknowledged when a
//! connection breaks is sent again in the same session. What a session loses is in the server's archive (XEP-0313): from
//! there come the messages that arrived meanwhile, and there it is looked up whether a message of ours arrived.

mod archive;
mod connection;
mod content;
mod event;
mod jid;
mod receive;
mod rooms;
mod sasl;
mod send;
mod session;
mod upload;
mod xml;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;

use crate::pace::Pace;
use crate::recent::Recent;
use crate::shell::channel_shell;
use crate::taking::MOST_WITH_FILES;
use crate::wire::{ServerAddress, WireError};
use crate::{
    Account, Action, AfterInterruption, Capabilities, Channel, ProbeFailure, Refusal, SendFailure,
    split,
};
use connection::{Connection, XmppError};
use rooms::Room;
use upload::Upload;
use xml::{Element, ns};

/// Name of the channel.
pub const XMPP: &str = "xmpp";
/// Most characters of a text. There is no limit in the standard; servers take stanzas of 10 KB at least (RFC 6120, section
/// 13.12), and a character has up to six bytes in XML.
const MOST_TEXT: usize = 5_000;
/// Stanzas that may wait for the connection.
const QUEUE: usize = 64;
/// Time for an answer.
const ANSWER: Duration = Duration::from_secs(60);
/// Messages of a chat within a time. Servers name no rate; they read slowly from those who send much.
const MESSAGES: usize = 10;
const MESSAGES_TIME: Duration = Duration::from_secs(10);

/// Downloads a file of at most so many bytes from an address that a stranger may have written; the error says why not.
pub type FetchFile =
    Arc<dyn Fn(String, usize) -> BoxFuture<'static, Result<Vec<u8>, String>> + Send + Sync>;

/// Decides whether somebody, by bare address, may see when the account is online.
pub type AcceptsContact = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// How an account is set up.
#[derive(Clone)]
pub struct XmppOptions {
    /// The account's name in the config.
    pub account: String,
    /// Its own address, `local@domain`.
    pub address: String,
    /// Its password.
    pub password: SecretString,
    /// The server.
    pub server: ServerAddress,
    /// The name in rooms.
    pub nick: String,
    /// The rooms that are joined, by address.
    pub rooms: Vec<String>,
    /// Largest file in both directions, in bytes.
    pub most_file_bytes: u64,
    /// Downloads files of others.
    pub fetch: FetchFile,
    /// Who may become a contact.
    pub accepts_contact: AcceptsContact,
}

/// An account.
pub struct Xmpp {
    options: XmppOptions,
    account: Account,
    memory: Mutex<Memory>,
    pace: Pace,
    with_files: Semaphore,
}

/// What is known of the present session.
#[derive(Default)]
struct Memory {
    /// Takes stanzas while there is a connection.
    outgoing: Option<mpsc::Sender<Outgoing>>,
    /// Whether the server keeps an archive of the account; unknown until it was asked.
    has_archive: Option<bool>,
    is_present: bool,
    /// Archives whose messages have all been read, by address.
    read_archives: HashSet<String>,
    /// Rooms by address.
    rooms: HashMap<String, Room>,
    /// Questions to archives, by their names.
    queries: HashMap<String, Query>,
    upload: Option<Upload>,
    /// The newest messages, by chat and id.
    said: Recent<Said>,
}

/// A question to an archive.
struct Query {
    /// Its address: that of the account, or of a room.
    archive: String,
    purpose: Purpose,
}

enum Purpose {
    /// To read messages.
    CatchUp,
    /// To find the ids of messages that were sent.
    Look(Vec<String>),
    /// To know where it ends.
    End,
}

/// A message that somebody may refer to.
struct Said {
    /// The `source_id` of its arrival.
    source_id: String,
    /// Its author as in arrivals; `None` for this account.
    sender: Option<String>,
    text: String,
    /// Addresses of its files.
    files: Vec<String>,
}

/// A stanza that is to be sent.
struct Outgoing {
    stanza: Element,
    done: Done,
}

/// Who waits for what becomes of a stanza.
enum Done {
    Nobody,
    /// The server has it, or refused it.
    Delivered(oneshot::Sender<Result<(), SendFailure>>),
    /// The answer to a question.
    Answer(oneshot::Sender<Result<Element, Refused>>),
}

/// An error in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused {
    reason: String,
    /// Its condition, such as `item-not-found`.
    condition: String,
    is_for_now: bool,
}

impl Refused {
    fn of(stanza: &Element) -> Self {
        let error = stanza.get("error", ns::CLIENT);
        let condition = error.and_then(|error| {
            error.children.iter().find(|child| child.namespace == ns::STANZA_ERROR)
        });
        Self {
            reason: error.map_or_else(String::new, |error| error.reason(ns::STANZA_ERROR)),
            condition: condition.map(|child| child.name.clone()).unwrap_or_default(),
            is_for_now: error.and_then(|error| error.attribute("type")) == Some("wait"),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum AskError {
    #[error("not connected")]
    NotConnected,
    #[error("no answer came")]
    Silent,
    #[error("the XMPP server refused it: {}", .0.reason)]
    Refused(Refused),
    #[error("how far it was read is not known: {0}")]
    Intake(Refusal),
}

impl Xmpp {
    /// Sets up an account. Nothing is sent yet.
    pub fn new(options: XmppOptions) -> Self {
        let pace = Pace::new(MESSAGES, MESSAGES_TIME);
        let with_files = Semaphore::new(MOST_WITH_FILES);
        let account = Account::new(XMPP, &options.account);
        Self { options, account, memory: Mutex::default(), pace, with_files }
    }

    /// The account's own address, as addresses are compared.
    fn me(&self) -> String {
        jid::bare(&self.options.address)
    }

    /// Puts a stanza into the queue of the connection; false if there is no connection.
    async fn put(&self, stanza: Element, done: Done) -> bool {
        let outgoing = self.memory.lock().outgoing.clone();
        match outgoing {
            Some(outgoing) => outgoing.send(Outgoing { stanza, done }).await.is_ok(),
            None => false,
        }
    }

    /// Asks a question; returns the answer.
    async fn ask(&self, question: Element) -> Result<Element, AskError> {
        let (sender, answer) = oneshot::channel();
        if !self.put(question, Done::Answer(sender)).await {
            return Err(AskError::NotConnected);
        }
        match tokio::time::timeout(ANSWER, answer).await {
            Ok(Ok(answer)) => answer.map_err(AskError::Refused),
            Ok(Err(_)) => Err(AskError::NotConnected),
            Err(_) => Err(AskError::Silent),
        }
    }
}

/// A question of the type `kind`, to somebody or to the server.
fn question(kind: &str, to: Option<&str>, about: Element) -> Element {
    let id = Uuid::new_v4().simple().to_string();
    let question = Element::new("iq", ns::CLIENT).with("type", kind).with("id", &id);
    let question = match to {
        Some(to) => question.with("to", to),
        None => question,
    };
    question.child(about)
}

/// Whether an answer about somebody's abilities names `feature`.
fn has_feature(answer: &Element, feature: &str) -> bool {
    let info = answer.get("query", ns::INFO);
    info.is_some_and(|info| {
        info.children.iter().any(|child| child.attribute("var") == Some(feature))
    })
}

/// What the owner does about a failure.
fn advice(error: &XmppError) -> String {
    match error {
        XmppError::Wire { error: WireError::Certificate(_), .. } => format!(
            "{error}; its certificate must have the domain of channels.xmpp.address; for one that you signed yourself, \
             name your own authority in the variable SSL_CERT_FILE"
        ),
        XmppError::Wire { .. } => {
            format!(
                "{error}; check `host`, `port` and `security` of channels.xmpp, and the network"
            )
        }
        XmppError::Login(_) => {
            format!("{error}; check `address` and `password` of channels.xmpp")
        }
        XmppError::Unusable(_) => format!("{error}; check `security` of channels.xmpp"),
        XmppError::Ended { condition, .. } if condition == "conflict" => {
            format!("{error}; another program uses this account under the same name")
        }
        XmppError::Ended { condition, .. } if condition == "host-unknown" => {
            format!("{error}; check `address` of channels.xmpp")
        }
        XmppError::Ended { .. } => error.to_string(),
    }
}

impl Channel for Xmpp {
    channel_shell! {
        run: receive_stanzas,
        send: send_part,
        find: find_part,
        change: [send_reaction, send_correction, send_retraction],
        live: here,
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: AfterInterruption::Look,
            most_file_bytes: Some(self.options.most_file_bytes),
            actions: &[Action::React, Action::Edit, Action::Unsend],
        }
    }

    fn split(&self, text: &str) -> Vec<String> {
        split(text, MOST_TEXT, |text| text.chars().count())
    }

    fn probe(&self) -> BoxFuture<'_, Result<String, ProbeFailure>> {
        Box::pin(async {
            // It begins no session, which would end that of a gateway.
            match Connection::log_in(&self.options).await {
                Ok(mut connection) => {
                    connection.close().await;
                    Ok(format!("{} at {}", self.options.address, self.options.server))
                }
                Err(error) => Err(ProbeFailure(advice(&error))),
            }
        })
    }

    /// As XEP-0147 says.
    fn address(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some(format!("xmpp:{}?message", self.options.address)) })
    }
}
