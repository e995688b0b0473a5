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
mod choosing;
mod closing;
mod command;
mod desk;
mod events;
mod goals;
mod groups;
mod in_force;
mod manner;
mod media;
mod mode;
mod occasion;
mod outage;
mod parts;
mod reach;
mod restart;
mod server_texts;
mod sharing;
mod speaking;
mod versions;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use myclaw_agent::{Driver, FailureClass, FrontEndTools, JobWake, Session, engine};
use myclaw_engine::{Approver, ProgramRequest};
use myclaw_session::SessionKey;
use parking_lot::MutexGuard;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::DeliveryError;
use crate::answered::Answered;
use crate::current::{Current, InForce};
use crate::front::Front;
use crate::ledger::{KEPT, Ledger, OpenMessage};
use crate::live::Live;
use crate::outbox::Outbox;
use crate::questions::Questions;
use crate::routing::Pairings;
use crate::rows::{Incoming, MessageId, MessageState, Outgoing, PartId};
use crate::schedule::{Book, Routes};
use crate::sharing::Others;
use crate::subagents::{Child, Children};
use answering::picture_bytes;
use asking::Asking;
pub(crate) use asking::ChatAnswer;
pub use between::SessionMessage;
pub use children::{ChildOrder, described};
use desk::{Desk, Source};
pub(crate) use groups::GroupMessage;
pub use media::Saying;
use parts::{Approvals, Desks, Planned, Process, Watchers};
pub use speaking::{ChatPlace, SpeakCall, Speech};

/// Sessions that stay open without work: as many as the turns that may run at once. An idle one takes about 9 kB.
const MOST_IDLE_DESKS: usize = 1_024;
/// Pause between two removals of old records.
const SWEEP: Duration = Duration::from_secs(60 * 60);
/// Everything between the channels and the sessions.
pub struct Delivery {
    current: Arc<Current>,
    /// The sessions at work.
    desks: Desks,
    outbox: Arc<Outbox>,
    watchers: Watchers,
    approvals: Approvals,
    schedule: Planned,
    /// The sub-agents.
    children: Children,
    process: Process,
}

/// What delivery is made of.
pub struct DeliveryParts {
    /// The config in force.
    pub current: Arc<Current>,
    /// What sends the parts of answers, with the ledger.
    pub outbox: Arc<Outbox>,
    /// Who is shown what happens in sessions.
    pub front: Arc<dyn Front>,
    /// The people who may write.
    pub pairings: Arc<Pairings>,
    /// The other gateways on the store.
    pub others: Arc<dyn Others>,
    /// The tasks that work on messages.
    pub tasks: TaskTracker,
}

/// Makes the tools that sessions have besides those of the config.
pub(crate) type MakeTools = Box<dyn FnOnce(Weak<Delivery>) -> Arc<dyn FrontEndTools> + Send>;

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
    /// Nothing is begun until [`Delivery::recover`].
    pub fn new(parts: DeliveryParts, make_tools: MakeTools) -> Arc<Self> {
        let DeliveryParts { current, outbox, front, pairings, others, tasks } = parts;
        let InForce { home, config, .. } = &*current.get();
        let limit = Duration::from_secs(config.tools.approvals.timeout_seconds);
        let questions = Arc::new(Questions::new(Arc::clone(&front), limit));
        let ledger = outbox.ledger.clone();
        Arc::new_cyclic(|this: &Weak<Self>| {
            let asking = Asking::new(Arc::clone(&questions), this.clone());
            let of_events = this.clone();
            // Runs end with the process: one that is dropped leaves its session as a crash does, and the next start
            // continues it. An aborted one would be over.
            let driver = Driver::with_tools(
                engine(home.http_options()),
                CancellationToken::new(),
                Arc::new(move |key, event| {
                    if let Some(this) = of_events.upgrade() {
                        this.heed(key, &event);
                    }
                }),
                Some(Arc::new(asking) as Arc<dyn Approver>),
                Some(make_tools(this.clone())),
            );
            Self {
                current,
                desks: Desks::new(driver),
                watchers: Watchers::new(front, &outbox),
                approvals: Approvals::new(questions, ledger.clone()),
                schedule: Planned::new(&ledger, pairings),
                children: Children::new(ledger),
                process: Process::new(tasks, others, this.clone()),
                outbox,
            }
        })
    }

    /// Continues everything that an earlier process left. Returns how many messages have no answer.
    pub async fn recover(self: &Arc<Self>) -> Result<usize, DeliveryError> {
        self.ledger().sweep().await?;
        let this = Arc::downgrade(self);
        self.process.tasks.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                let Some(this) = this.upgrade() else { return };
                this.sweep_copies(KEPT).await;
                if let Err(error) = this.ledger().sweep().await {
                    tracing::warn!(%error, "old records are not removed; trying again in an hour");
                }
            }
        });
        self.children.load().await?;
        if self.ledger().claims().is_shared() {
            // The rest is done for each session that this process gets, and each account.
            return self.look().await;
        }
        self.end_cut_questions(None).await?;
        self.outbox.push(self.ledger().unsent_parts().await?);
        // Before their sub-agents, which count for them.
        self.take_up_goals().await?;
        self.look().await
    }

    /// The message, as soon as it is answered or reported; as it is when `until` is ready before that.
    pub async fn outcome(
        &self,
        id: &MessageId,
        until: impl Future<Output = ()>,
    ) -> Result<Option<Incoming>, DeliveryError> {
        let notify = Arc::clone(self.waiters().entry(id.clone()).or_default());
        tokio::pin!(until);
        let row = loop {
            let settled = notify.notified();
            tokio::pin!(settled);
            // From here on, no end of the message is missed.
            settled.as_mut().enable();
            let now = self.ledger().message(id).await?;
            if now.as_ref().is_none_or(|row| row.state != MessageState::Open) {
                break now;
            }
            tokio::select! {
                () = settled => {}
                () = &mut until => break self.ledger().message(id).await?,
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
    pub async fn parts(&self, ids: &[PartId]) -> Result<Vec<Outgoing>, DeliveryError> {
        let mut parts = Vec::with_capacity(ids.len());
        for id in ids {
            parts.extend(self.ledger().part(id).await?);
        }
        Ok(parts)
    }

    /// The canonical key of a session, and whether it works at this moment.
    pub fn session(&self, name: &str) -> Result<(SessionKey, bool), DeliveryError> {
        let key = self.session_config(name)?.session_key;
        let desk = self.desks().get(key.as_str()).cloned();
        Ok((key, desk.is_some_and(|desk| desk.session.work().is_some())))
    }

    /// Whether the run of a session would answer this message.
    pub fn works_on(&self, session: &str, message: &MessageId) -> bool {
        let desk = self.desks().get(session).cloned();
        desk.is_some_and(|desk| desk.answers(message.entry()))
    }

    /// The keys of the sessions with a run in progress. Its end is an event, so a list that is read again at the events is right:
    /// a session may still work then, as where a goal is looked at.
    pub fn working(&self) -> HashSet<String> {
        let keys: Vec<String> = self.desks().keys().cloned().collect();
        keys.into_iter().filter(|key| self.watchers.front.is_running(key)).collect()
    }

    /// Whether a session works, has a message without an answer, a background job or a sub-agent.
    pub async fn is_in_use(&self, key: &SessionKey) -> bool {
        self.is_in_use_here(key).await || self.asks_others("in_use", key.as_str()).await
    }

    /// The same, as far as it concerns this process.
    pub async fn is_in_use_here(&self, key: &SessionKey) -> bool {
        let is_mine =
            |child: &Child| child.works_for(key.as_str()) || child.session == key.as_str();
        if !self.children.running(is_mine).is_empty() {
            return true;
        }
        let desk = self.desks().get(key.as_str()).cloned();
        let Some(desk) = desk else { return false };
        !desk.is_idle()
            || self.watchers.front.has_waiting(key.as_str())
            || desk.session.jobs().await.iter().any(|job| job.is_running())
    }

    /// What the program asks whose message a session works on.
    pub fn asked_in(&self, session: &str) -> ProgramRequest {
        let desk = self.desks().get(session).cloned();
        desk.and_then(|desk| desk.asked()).map(|asked| *asked).unwrap_or_default()
    }

    /// How many messages have no answer.
    pub fn open_count(&self) -> usize {
        self.desks.open.load(Ordering::SeqCst)
    }

    /// Puts a message onto the desk of its session, which is set up with the first message.
    fn hand_in(
        self: &Arc<Self>,
        message: OpenMessage,
        source: Source,
    ) -> Result<(), (DeliveryError, Box<OpenMessage>)> {
        let session = message.row.session.clone();
        let bytes = picture_bytes(&message.row);
        if self.desks().get(&session).is_some_and(|desk| desk.knows(message.id.entry())) {
            self.leave(bytes);
            return Ok(());
        }
        // Another gateway may have had it meanwhile, so only the session knows whether it has the message.
        let source = if self.ledger().claims().is_shared() { Source::Recovered } else { source };
        // Before a run can take it.
        self.watchers.front.accepted(&message.id, &message.row);
        let mut desks = self.desks();
        // Under the lock: a desk that is removed has no messages.
        let desk = match self.desk_in(&mut desks, &session) {
            Ok(desk) => desk,
            Err(error) => return Err((error, Box::new(message))),
        };
        if message.row.is_heartbeat() {
            desk.session.quiet().add(message.id.entry());
        }
        if !desk.arrived(message, source) {
            self.leave(bytes);
        }
        Ok(())
    }

    /// The desk of a session among `desks`, set up if there is none.
    fn desk_in(
        self: &Arc<Self>,
        desks: &mut HashMap<String, Arc<Desk>>,
        session: &str,
    ) -> Result<Arc<Desk>, DeliveryError> {
        if let Some(desk) = desks.get(session) {
            return Ok(Arc::clone(desk));
        }
        let (mut config, options) = self.opening(session)?;
        // What a sub-agent costs counts for the session at the top.
        let child = self.children.get(session);
        let top = child.as_ref().and_then(|child| child.principals.first());
        if let Some(desk) = top.and_then(|top| desks.get(top.session.as_str())) {
            config.options.cost = desk.session.config().options.cost.clone();
        }
        config.wake_for_jobs(JobWake::StartTurn);
        let desk =
            Arc::new(Desk::new(Session::open(Arc::clone(&self.desks.driver), config, &options)));
        desks.insert(session.to_owned(), Arc::clone(&desk));
        let (this, served) = (Arc::clone(self), Arc::clone(&desk));
        self.process.tasks.spawn(async move { this.serve(&served).await });
        Ok(desk)
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

    /// The messages and the parts in the store.
    pub fn ledger(&self) -> &Ledger {
        &self.outbox.ledger
    }

    /// The parts that are to be sent.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Work in progress, shown in chats.
    pub fn live(&self) -> &Live {
        &self.watchers.live
    }

    /// Questions about tool calls that need an approval.
    pub fn questions(&self) -> &Questions {
        &self.approvals.questions
    }

    /// Who answered the newest of them.
    pub fn answered(&self) -> &Answered {
        &self.approvals.answered
    }

    /// The scheduled jobs.
    pub fn book(&self) -> &Arc<Book> {
        &self.schedule.book
    }

    /// Where people write from.
    pub fn routes(&self) -> &Routes {
        &self.schedule.routes
    }

    /// The sub-agents.
    pub fn children(&self) -> &Children {
        &self.children
    }

    /// Fires when the process is to begin anew.
    pub fn restart(&self) -> CancellationToken {
        self.process.restart.clone()
    }

    fn desks(&self) -> MutexGuard<'_, HashMap<String, Arc<Desk>>> {
        self.desks.by_session.lock()
    }

    fn waiters(&self) -> MutexGuard<'_, HashMap<MessageId, Arc<Notify>>> {
        self.desks.waiting.lock()
    }
}
