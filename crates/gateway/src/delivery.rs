//! From a message to its answer: steps 1 to 5 of the gateway's table in `ARCHITECTURE.md`.
//!
//! **What arrives** are messages with an id that their source chose: from channels through the routing, from clients,
//! schedules, sub-agents and other sessions ([`Delivery::accept_from`]). **What leaves** are parts of answers in the store,
//! which the outbox sends, and events in the hub.
//!
//! A message is first in the store, then in its session's inbox, then in its log, and at last its answer is in the
//! store. Each session has a desk with the messages that have no answer yet. `advance` looks where they are and moves each
//! one step on. It is called when a message arrives, when a run ends, and at the start: what a killed process left is no
//! special case.
//!
//! **What may fail:** before the acknowledgement, a message is refused (too long, too many are open, the store cannot be
//! written), and its source keeps it. After it, nothing is lost: a step that fails is tried again after a pause, a run
//! that fails ends in a report to the sender or, while a model is away, in another run, and a killed process continues at
//! its next start.
//!
//! **Why this shape:** no transaction spans the store and the logs. So a message moves in one direction only, each step is
//! idempotent by the message's id, and recovery is to repeat steps. Which step is next is read from the store, the inbox
//! and the log; a desk in memory is a cache of that and may be lost at any moment.

mod acceptance;
mod advance;
mod answering;
mod asking;
mod between;
mod children;
mod closing;
mod desk;
mod events;
mod groups;
mod in_force;
mod manner;
pub(crate) mod media;
mod occasion;
mod outage;
mod restart;
mod sharing;
mod speaking;
mod versions;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use myclaw_agent::{Driver, FailureClass, JobWake, Session, engine};
use myclaw_engine::{Approver, ProgramRequest};
use myclaw_llm::ImageContent;
use myclaw_session::SessionKey;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::GatewayError;
use crate::current::{Current, InForce};
use crate::hub::{Hub, WaitingMessage};
use crate::ledger::{KEPT, Ledger, OpenMessage};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::outbox::Outbox;
use crate::questions::Questions;
use crate::routing::Router;
use crate::rows::{Incoming, MessageId, MessageState, Outgoing, PartId, Route};
use crate::schedule::{Book, Routes};
use crate::server::Server;
use crate::subagents::{Child, Children};
use crate::telemetry::Telemetry;
use crate::tools::GatewayTools;
use crate::usage::UsageBook;
use answering::picture_bytes;
pub(crate) use asking::ChatAnswer;
use asking::{Asked, Asking};
pub(crate) use between::SessionMessage;
pub(crate) use children::{ChildOrder, described};
use desk::{Desk, Source};
pub(crate) use groups::GroupMessage;
pub(crate) use outage::for_people;
use sharing::Elsewhere;
pub(crate) use speaking::{ChatPlace, SpeakCall, Speech};

/// Sessions that stay open without work: as many as the turns that may run at once. An idle one takes about 9 kB.
const MOST_IDLE_DESKS: usize = 1_024;
/// Pause between two removals of old records.
const SWEEP: Duration = Duration::from_secs(60 * 60);
/// Longest text of a message, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Longest id that a source may give a message, in bytes.
pub(crate) const MAX_SOURCE_ID_BYTES: usize = 256;

/// A message from a channel.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) route: Route,
    pub(crate) source_id: String,
    /// Name or key of the session.
    pub(crate) session: String,
    pub(crate) text: String,
    /// Checked pictures.
    pub(crate) images: Vec<ImageContent>,
    /// What a program asks for besides an answer.
    pub(crate) asked: Option<Box<ProgramRequest>>,
}

/// A file that came with a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageFile {
    /// Without anything that could be a path.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// An acknowledged message.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) id: MessageId,
    pub(crate) row: Incoming,
}

/// Everything between the channels and the sessions.
pub(crate) struct Delivery {
    current: Arc<Current>,
    driver: Arc<Driver>,
    pub(crate) ledger: Ledger,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) live: Live,
    pub(crate) hub: Arc<Hub>,
    /// The scheduled jobs.
    pub(crate) book: Arc<Book>,
    /// Where people write from.
    pub(crate) routes: Routes,
    /// Questions about tool calls that need an approval.
    pub(crate) questions: Arc<Questions>,
    /// Those of them that were asked in chats.
    asked: Asked,
    pub(crate) metrics: Arc<Metrics>,
    /// Traces of runs.
    pub(crate) telemetry: Arc<Telemetry>,
    /// What models have used.
    pub(crate) usage: Arc<UsageBook>,
    desks: Mutex<HashMap<String, Arc<Desk>>>,
    /// What other gateways have.
    elsewhere: Mutex<Elsewhere>,
    open: AtomicUsize,
    /// Bytes of the pictures of messages without an answer.
    pictures: AtomicUsize,
    /// Who waits for the end of a message.
    waiting: Mutex<HashMap<MessageId, Arc<Notify>>>,
    /// Other machines, and the devices among which they are.
    pub(crate) nodes: Arc<Nodes>,
    /// The sub-agents.
    pub(crate) children: Children,
    /// Fires when no more messages are taken.
    closing: CancellationToken,
    tasks: TaskTracker,
    /// The server and the routing, once there are any.
    links: OnceLock<Links>,
    /// The session that asked for a restart. The next process continues its turn.
    restarting: Mutex<Option<String>>,
    /// Distinguishes this process from those before and after it, which can have the same number.
    process: String,
    /// Fires when the process is to begin anew.
    pub(crate) restart: CancellationToken,
    /// Itself, for what goes on in tasks.
    this: Weak<Self>,
}

/// What delivery asks others, which were made after it.
pub(crate) struct Links {
    pub(crate) server: Weak<Server>,
    pub(crate) routing: Weak<Router>,
}

/// What becomes of messages that get no answer.
struct Report {
    class: String,
    message: String,
}

impl Report {
    /// For messages that a full queue dropped.
    fn of_a_drop() -> Self {
        let message = "the message was dropped, because too many waited (messages.queue.cap); send it again if it still \
                       matters";
        Self { class: FailureClass::QueueFull.as_str().to_owned(), message: message.to_owned() }
    }
}

impl Delivery {
    pub(crate) fn new(
        current: Arc<Current>,
        outbox: Arc<Outbox>,
        hub: Arc<Hub>,
        tasks: TaskTracker,
        nodes: Arc<Nodes>,
    ) -> Arc<Self> {
        let InForce { home, config, .. } = &*current.get();
        let limit = Duration::from_secs(config.tools.approvals.timeout_seconds);
        let questions = Arc::new(Questions::new(Arc::clone(&hub), limit));
        let ledger = outbox.ledger.clone();
        Arc::new_cyclic(|this: &Weak<Self>| {
            let tools = GatewayTools::new(this.clone());
            let asking = Asking::new(Arc::clone(&questions), this.clone());
            let (own, this) = (this.clone(), this.clone());
            // Runs end with the process: one that is dropped leaves its session as a crash does, and the next start
            // continues it. An aborted one would be over.
            let driver = Driver::with_tools(
                engine(home.http_options()),
                CancellationToken::new(),
                Arc::new(move |key, event| {
                    if let Some(this) = this.upgrade() {
                        this.heed(key, &event);
                    }
                }),
                Some(Arc::new(asking) as Arc<dyn Approver>),
                Some(Arc::new(tools)),
            );
            Self {
                telemetry: Arc::new(Telemetry::new(config)),
                current,
                driver,
                live: Live::new(ledger.clone(), Arc::clone(&outbox)),
                metrics: Arc::clone(&outbox.metrics),
                outbox,
                hub,
                book: Arc::new(Book::new(Arc::clone(ledger.claims()))),
                routes: Routes::new(Arc::clone(ledger.claims().store())),
                questions,
                asked: Asked::default(),
                usage: Arc::new(UsageBook::new(ledger.clone())),
                desks: Mutex::default(),
                elsewhere: Mutex::default(),
                open: AtomicUsize::new(0),
                pictures: AtomicUsize::new(0),
                waiting: Mutex::default(),
                nodes,
                children: Children::new(ledger.clone()),
                ledger,
                closing: CancellationToken::new(),
                tasks,
                links: OnceLock::new(),
                restarting: Mutex::default(),
                process: uuid::Uuid::new_v4().to_string(),
                restart: CancellationToken::new(),
                this: own,
            }
        })
    }

    /// Introduces the server and the routing.
    pub(crate) fn link(&self, links: Links) {
        // The first ones stay; there are no others.
        let _ = self.links.set(links);
    }

    /// Continues everything that an earlier process left. Returns how many messages have no answer.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<usize, GatewayError> {
        self.ledger.sweep().await?;
        let this = Arc::downgrade(self);
        self.tasks.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(this) = this.upgrade() else { return };
                this.sweep_copies(KEPT).await;
                if let Err(error) = this.ledger.sweep().await {
                    tracing::warn!(%error, "old records are not removed; trying again in an hour");
                }
            }
        });
        let usage = Arc::clone(&self.usage);
        self.tasks.spawn(async move { usage.record().await });
        let telemetry = Arc::clone(&self.telemetry);
        self.tasks.spawn(async move { telemetry.exporter.run().await });
        self.children.load().await?;
        if self.ledger.claims().is_shared() {
            // The rest is done for each session that this process gets, and each account.
            return self.look().await;
        }
        self.end_cut_questions(None).await?;
        self.outbox.push(self.ledger.unsent_parts().await?);
        self.look().await
    }

    /// The message, as soon as it is answered or reported; as it is when `until` is ready before that.
    pub(crate) async fn outcome(
        &self,
        id: &MessageId,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Incoming>, GatewayError> {
        let notify = Arc::clone(self.waiters().entry(id.clone()).or_default());
        tokio::pin!(until);
        let row = loop {
            let settled = notify.notified();
            tokio::pin!(settled);
            // From here on, no end of the message is missed.
            settled.as_mut().enable();
            let now = self.ledger.message(id).await?;
            if now.as_ref().is_none_or(|row| row.state != MessageState::Open) {
                break now;
            }
            tokio::select! {
                () = settled => {}
                () = &mut until => break self.ledger.message(id).await?,
            }
        };
        let mut waiters = self.waiters();
        // This one and the map hold it; without others it is not needed.
        if Arc::strong_count(&notify) <= 2 {
            waiters.remove(id);
        }
        Ok(row)
    }

    /// The parts of an answer or a report, in order.
    pub(crate) async fn parts(&self, ids: &[PartId]) -> Result<Vec<Outgoing>, GatewayError> {
        let mut parts = Vec::with_capacity(ids.len());
        for id in ids {
            parts.extend(self.ledger.part(id).await?);
        }
        Ok(parts)
    }

    /// The canonical key of a session, and whether it works at this moment.
    pub(crate) fn session(&self, name: &str) -> Result<(SessionKey, bool), GatewayError> {
        let key = self.session_config(name)?.session_key;
        let desk = self.desks().get(key.as_str()).cloned();
        Ok((key, desk.is_some_and(|desk| desk.session.work().is_some())))
    }

    /// Whether the run of a session would answer this message.
    pub(crate) fn works_on(&self, session: &str, message: &MessageId) -> bool {
        let desk = self.desks().get(session).cloned();
        desk.is_some_and(|desk| desk.answers(message.entry()))
    }

    /// The keys of the sessions that work at this moment.
    pub(crate) fn working(&self) -> HashSet<String> {
        let desks = self.desks();
        let working = desks.iter().filter(|(_, desk)| desk.session.work().is_some());
        working.map(|(key, _)| key.clone()).collect()
    }

    /// Whether a session works, has a message without an answer, a background job or a sub-agent.
    pub(crate) async fn is_in_use(&self, key: &SessionKey) -> bool {
        let is_mine =
            |child: &Child| child.works_for(key.as_str()) || child.session == key.as_str();
        if !self.children.running(is_mine).is_empty() {
            return true;
        }
        let desk = self.desks().get(key.as_str()).cloned();
        let Some(desk) = desk else { return false };
        !desk.is_idle()
            || self.hub.has_waiting(key.as_str())
            || desk.session.jobs().await.iter().any(|job| job.is_running())
    }

    /// What the program asks whose message a session works on.
    pub(crate) fn asked_in(&self, session: &str) -> ProgramRequest {
        let desk = self.desks().get(session).cloned();
        desk.and_then(|desk| desk.asked()).map(|asked| *asked).unwrap_or_default()
    }

    /// How many messages have no answer.
    pub(crate) fn open_count(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Puts a message onto the desk of its session, which is set up with the first message.
    fn hand_in(
        self: &Arc<Self>,
        message: OpenMessage,
        source: Source,
    ) -> Result<(), (GatewayError, Box<OpenMessage>)> {
        let session = message.row.session.clone();
        let bytes = picture_bytes(&message.row);
        if self.desks().get(&session).is_some_and(|desk| desk.knows(message.id.entry())) {
            self.leave(bytes);
            return Ok(());
        }
        // Another gateway may have had it meanwhile, so only the session knows whether it has the message.
        let source = if self.ledger.claims().is_shared() { Source::Recovered } else { source };
        let waiting = WaitingMessage {
            message_id: message.id.clone(),
            text: message.row.text.clone(),
            images: message.row.images.len(),
            accepted_at: message.row.accepted_at,
        };
        let mut event = json!(waiting);
        event["type"] = json!("accepted");
        // Before a run can take it.
        self.hub.publish_with(&session, &event, |live| live.accepted(waiting));
        let mut desks = self.desks();
        // Under the lock: a desk that is removed has no messages.
        if let Some(desk) = desks.get(&session) {
            if message.row.is_heartbeat() {
                desk.session.quiet().add(message.id.entry());
            }
            if !desk.arrived(message, source) {
                self.leave(bytes);
            }
            return Ok(());
        }
        let (config, options) = match self.opening(&session) {
            Ok(opening) => opening,
            Err(error) => return Err((error, Box::new(message))),
        };
        config.wake_for_jobs(JobWake::StartTurn);
        let desk = Arc::new(Desk::new(Session::open(Arc::clone(&self.driver), config, &options)));
        if message.row.is_heartbeat() {
            desk.session.quiet().add(message.id.entry());
        }
        desk.arrived(message, source);
        desks.insert(session, Arc::clone(&desk));
        drop(desks);
        let this = Arc::clone(self);
        self.tasks.spawn(async move { this.serve(&desk).await });
        Ok(())
    }

    /// Closes the session of a desk without work, if there are many. The next message opens it again.
    async fn remove_if_idle(&self, desk: &Desk) -> bool {
        let is_one_of_many = || self.desks().len() > MOST_IDLE_DESKS;
        // A background job ends with its session.
        if !is_one_of_many() || desk.session.jobs().await.iter().any(|job| job.is_running()) {
            return false;
        }
        let mut desks = self.desks();
        if desks.len() <= MOST_IDLE_DESKS || !desk.is_idle() {
            return false;
        }
        desks.remove(desk.session.key().as_str()).is_some()
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<String, Arc<Desk>>> {
        self.desks.lock()
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<MessageId, Arc<Notify>>> {
        self.waiting.lock()
    }
}
