//! What delivery consists of, by who needs it.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use myclaw_agent::Driver;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Delivery;
use super::asking::Asked;
use super::desk::Desk;
use super::sharing::Elsewhere;
use crate::answered::Answered;
use crate::counters::Counters;
use crate::front::Front;
use crate::ledger::Ledger;
use crate::live::Live;
use crate::outbox::Outbox;
use crate::questions::Questions;
use crate::routing::Pairings;
use crate::rows::MessageId;
use crate::schedule::{Book, Routes};
use crate::sharing::Others;

/// The sessions at work, and the messages without an answer.
pub(super) struct Desks {
    pub(super) driver: Arc<Driver>,
    pub(super) by_session: Mutex<HashMap<String, Arc<Desk>>>,
    /// What other gateways have.
    pub(super) elsewhere: Mutex<Elsewhere>,
    /// How many messages have no answer.
    pub(super) open: AtomicUsize,
    /// Bytes of their pictures.
    pub(super) pictures: AtomicUsize,
    /// Who waits for the end of a message.
    pub(super) waiting: Mutex<HashMap<MessageId, Arc<Notify>>>,
}

impl Desks {
    pub(super) fn new(driver: Arc<Driver>) -> Self {
        Self {
            driver,
            by_session: Mutex::default(),
            elsewhere: Mutex::default(),
            open: AtomicUsize::new(0),
            pictures: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }
}

/// Those who learn of messages and runs.
pub(super) struct Watchers {
    pub(super) front: Arc<dyn Front>,
    pub(super) counters: Arc<dyn Counters>,
    /// The chats, which are shown work in progress.
    pub(super) live: Live,
}

impl Watchers {
    pub(super) fn new(front: Arc<dyn Front>, outbox: &Arc<Outbox>) -> Self {
        let live = Live::new(outbox.ledger.clone(), Arc::clone(outbox));
        Self { front, counters: Arc::clone(&outbox.counters), live }
    }
}

/// Questions about tool calls that need an approval.
pub(super) struct Approvals {
    pub(super) questions: Arc<Questions>,
    /// Those of them that were asked in chats.
    pub(super) asked: Asked,
    /// Who answered the newest ones.
    pub(super) answered: Answered,
}

impl Approvals {
    pub(super) fn new(questions: Arc<Questions>, ledger: Ledger) -> Self {
        Self { questions, asked: Asked::default(), answered: Answered::new(ledger) }
    }
}

/// What happens by the clock, and where it may say something.
pub(super) struct Planned {
    /// The scheduled jobs.
    pub(super) book: Arc<Book>,
    /// Where people write from.
    pub(super) routes: Routes,
    /// The people who may write, to whom the agent may write too.
    pub(super) pairings: Arc<Pairings>,
}

impl Planned {
    pub(super) fn new(ledger: &Ledger, pairings: Arc<Pairings>) -> Self {
        let claims = ledger.claims();
        let routes = Routes::new(Arc::clone(claims.store()));
        Self { book: Arc::new(Book::new(Arc::clone(claims))), routes, pairings }
    }
}

/// The process in which all of this is, and the others on its store.
pub(super) struct Process {
    pub(super) tasks: TaskTracker,
    /// The other gateways on the store.
    pub(super) others: Arc<dyn Others>,
    /// Distinguishes this process from those before and after it, which can have the same number.
    pub(super) id: String,
    /// Fires when no more messages are taken.
    pub(super) closing: CancellationToken,
    /// Fires when the process is to begin anew.
    pub(super) restart: CancellationToken,
    /// The session that asked for a restart. The next process continues its turn.
    pub(super) restarting: Mutex<Option<String>>,
    /// Delivery itself, for what goes on in tasks.
    pub(super) this: Weak<Delivery>,
}

impl Process {
    pub(super) fn new(tasks: TaskTracker, others: Arc<dyn Others>, this: Weak<Delivery>) -> Self {
        Self {
            tasks,
            others,
            id: uuid::Uuid::new_v4().to_string(),
            closing: CancellationToken::new(),
            restart: CancellationToken::new(),
            restarting: Mutex::default(),
            this,
        }
    }
}
