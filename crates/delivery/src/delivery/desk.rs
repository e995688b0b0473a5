//! What is known in memory about the messages of a session: which arrived, and which a run has taken.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use myclaw_agent::{FailureClass, Session, SessionEvent};
use myclaw_engine::{AgentRunEvent, Notice, ProgramRequest};
use myclaw_session::EntryId;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::choice::Choice;
use crate::ledger::OpenMessage;
use crate::route::Route;
use crate::rows::Occasion;

/// Pause before the first run after one whose models could not be reached; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest such pause: a server that is back is noticed soon.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A source has just delivered it.
    New,
    /// An earlier process left it, in any state.
    Recovered,
}

/// A session and its messages without an answer.
pub(super) struct Desk {
    pub(super) session: Arc<Session>,
    /// Wakes the task that works on the messages.
    pub(super) wake: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arrived: Vec<OpenMessage>,
    /// Whether there are messages that another gateway may have settled.
    has_unchecked: bool,
    /// Where the answers to the open messages go, and what they refer to.
    routes: HashMap<EntryId, (Route, Option<String>)>,
    /// The open messages in the order in which they arrived.
    order: Vec<EntryId>,
    /// How many messages between sessions have led to each open message.
    hops: HashMap<EntryId, u32>,
    /// The names under which what the open messages use is counted.
    channels: BTreeMap<EntryId, String>,
    /// Messages that this process stored and has not handed over yet, so no session has them.
    fresh: HashSet<EntryId>,
    /// Messages in the log without an answer.
    taken: HashSet<EntryId>,
    /// Those that the current run would answer.
    running: HashSet<EntryId>,
    failures: Vec<RunFailure>,
    /// What the people of the session should know, until a run answers some of them.
    notices: Vec<String>,
    outage: Option<Outage>,
    is_abort_asked: bool,
    /// What the program asks whose message the session has.
    asked: Option<Box<ProgramRequest>>,
    /// What was chosen for the session and is not stored.
    choice: Option<Choice>,
    /// Whether it is noted that a goal is worked on.
    has_goal: bool,
}

/// A run that gave no answer.
#[derive(Debug, Clone)]
pub(super) struct RunFailure {
    /// The messages that it would have answered; none if it failed before it took any.
    pub(super) ids: HashSet<EntryId>,
    pub(super) class: &'static str,
    /// For the owner.
    pub(super) message: String,
    /// For everybody else.
    pub(super) for_others: String,
    /// Whether the failure may be over soon.
    pub(super) may_pass: bool,
}

impl RunFailure {
    /// Whether the session could not be opened, read or written.
    pub(super) fn is_of_sessions(&self) -> bool {
        self.class == FailureClass::Session.as_str()
    }
}

/// A time in which the models of a session cannot be reached.
#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Instant,
    attempts: u32,
    /// When the next run begins.
    until: Instant,
}

/// What is done about a failure that may be over soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// The next run begins after this time. So many runs have failed.
    Wait(Duration, u32),
    /// It has lasted too long.
    Over,
}

impl Desk {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session, wake: Notify::new(), state: Mutex::default() }
    }

    /// Adds a message. False if it is there already.
    pub(super) fn arrived(&self, message: OpenMessage, source: Source) -> bool {
        let mut state = self.state.lock();
        if state.routes.contains_key(&message.id.entry()) {
            return false;
        }
        state.has_unchecked = true;
        if source == Source::New {
            state.fresh.insert(message.id.entry());
        }
        // From here on, until the message is settled, the rules for its sender apply to the session.
        for sender in message.row.senders() {
            self.session.config().senders.add(sender);
        }
        state.hops.insert(message.id.entry(), message.row.hops());
        let route = (message.row.route.clone(), message.row.origin.reply_id.clone());
        state.routes.insert(message.id.entry(), route);
        state.order.push(message.id.entry());
        let channel = match message.row.occasion {
            Some(Occasion::Heartbeat) => "heartbeat",
            Some(Occasion::Job) => "schedule",
            Some(Occasion::Task) => "subagent",
            Some(Occasion::Session { .. }) => "session",
            Some(Occasion::Result { .. }) | None => &message.row.route.channel,
        };
        state.channels.insert(message.id.entry(), channel.to_owned());
        state.arrived.push(message);
        drop(state);
        self.wake.notify_one();
        true
    }

    /// Whether the message is one of those without an answer.
    pub(super) fn knows(&self, id: EntryId) -> bool {
        self.state.lock().routes.contains_key(&id)
    }

    /// Whether messages have arrived since [`Desk::is_checked`].
    pub(super) fn has_unchecked(&self) -> bool {
        self.state.lock().has_unchecked
    }

    /// All messages that have been taken from the desk are without an answer.
    pub(super) fn is_checked(&self) {
        let mut state = self.state.lock();
        state.has_unchecked = !state.arrived.is_empty();
    }

    /// True if no session has the message, because this process has not handed it over.
    pub(super) fn is_fresh(&self, id: EntryId) -> bool {
        self.state.lock().fresh.contains(&id)
    }

    /// From here on, the session may have the message.
    pub(super) fn hands_over(&self, id: EntryId) {
        self.state.lock().fresh.remove(&id);
    }

    /// The session has a message of a program that asks for this; `None` for nothing.
    pub(super) fn asks(&self, asked: Option<Box<ProgramRequest>>) {
        self.state.lock().asked = asked;
    }

    /// Something was chosen for the session.
    pub(super) fn chose(&self, new: Choice) {
        let mut state = self.state.lock();
        let before = state.choice.take().unwrap_or_default();
        let model = new.model.or(before.model);
        state.choice = Some(Choice { model, thinking: new.thinking.or(before.thinking) });
    }

    /// Says whether it is noted that a goal is worked on. Returns what was said before.
    pub(super) fn has_goal(&self, is_noted: bool) -> bool {
        std::mem::replace(&mut self.state.lock().has_goal, is_noted)
    }

    /// What was chosen for the session and is not stored.
    pub(super) fn choice(&self) -> Option<Choice> {
        self.state.lock().choice.clone()
    }

    /// This choice is stored.
    pub(super) fn keeps(&self, stored: &Choice) {
        self.state.lock().choice.take_if(|choice| choice == stored);
    }

    pub(super) fn asked(&self) -> Option<Box<ProgramRequest>> {
        self.state.lock().asked.clone()
    }

    /// Whether there is nothing to do, and nothing is done.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().arrived.is_empty() && self.session.work().is_none()
    }

    pub(super) fn take_arrived(&self) -> Vec<OpenMessage> {
        std::mem::take(&mut self.state.lock().arrived)
    }

    /// The failures so far, which stay until they are dealt with.
    pub(super) fn failures(&self) -> Vec<RunFailure> {
        self.state.lock().failures.clone()
    }

    /// Removes the first `count` failures.
    pub(super) fn forget_failures(&self, count: usize) {
        self.state.lock().failures.drain(..count);
    }

    /// Notes that the models could not be reached. `longest` is how long that may last.
    pub(super) fn waits_for_models(&self, longest: Duration) -> Patience {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let first = Outage { since: now, attempts: 0, until: now };
        let outage = state.outage.get_or_insert(first);
        if now.duration_since(outage.since) >= longest {
            state.outage = None;
            return Patience::Over;
        }
        outage.attempts += 1;
        let doubled = FIRST_PAUSE.saturating_mul(1 << (outage.attempts - 1).min(8));
        let pause = doubled.min(LONGEST_PAUSE);
        outage.until = now + pause;
        Patience::Wait(pause, outage.attempts)
    }

    /// Whether the next run waits for the models.
    pub(super) fn is_waiting(&self) -> bool {
        self.state.lock().outage.is_some_and(|outage| Instant::now() < outage.until)
    }

    /// Notes messages that the next run answers, because the log holds them.
    pub(super) fn note_taken(&self, ids: impl Iterator<Item = EntryId>) {
        self.state.lock().taken.extend(ids);
    }

    pub(super) fn settled(&self, messages: &[OpenMessage]) {
        let mut state = self.state.lock();
        for message in messages {
            let id = message.id.entry();
            state.taken.remove(&id);
            state.running.remove(&id);
            state.fresh.remove(&id);
            state.routes.remove(&id);
            state.order.retain(|other| *other != id);
            state.hops.remove(&id);
            state.channels.remove(&id);
            for sender in message.row.senders() {
                self.session.config().senders.remove(sender);
            }
            self.session.quiet().forget(id);
        }
    }

    /// Whether the current run would answer this message.
    pub(super) fn answers(&self, message: EntryId) -> bool {
        self.state.lock().running.contains(&message)
    }

    /// Where the answer of the current run goes, each route once, with the newest message that it refers to.
    pub(super) fn running_routes(&self) -> Vec<(Route, Option<String>)> {
        let state = self.state.lock();
        let mut routes: Vec<(Route, Option<String>)> = Vec::new();
        let running = state.order.iter().rev().filter(|id| state.running.contains(*id));
        for found in running.filter_map(|id| state.routes.get(id)) {
            if !routes.iter().any(|(route, _)| *route == found.0) {
                routes.push(found.clone());
            }
        }
        routes
    }

    /// What is to be said in the chats that the current run answers.
    pub(super) fn take_notices(&self) -> Vec<(Route, String)> {
        if self.state.lock().notices.is_empty() {
            return Vec::new();
        }
        let routes = self.running_routes();
        if routes.is_empty() {
            return Vec::new();
        }
        let notices = std::mem::take(&mut self.state.lock().notices);
        let to_all =
            |text: String| routes.iter().map(move |(route, _)| (route.clone(), text.clone()));
        notices.into_iter().flat_map(to_all).collect()
    }

    /// How many messages between sessions have led to what the current run does.
    pub(super) fn hops(&self) -> u32 {
        let state = self.state.lock();
        state.running.iter().filter_map(|id| state.hops.get(id)).copied().max().unwrap_or(0)
    }

    /// The names under which the messages of the current run are counted.
    pub(super) fn running_channels(&self) -> Vec<String> {
        let state = self.state.lock();
        let channels = state.channels.iter().filter(|(id, _)| state.running.contains(*id));
        channels.map(|(_, channel)| channel.clone()).collect()
    }

    /// How many messages have no answer.
    pub(super) fn open_count(&self) -> usize {
        self.state.lock().order.len()
    }

    /// The name under which what the current run uses is counted: that of the first message that it answers.
    pub(super) fn running_channel(&self) -> String {
        let state = self.state.lock();
        let mut channels = state.channels.iter().filter(|(id, _)| state.running.contains(*id));
        channels.next().map_or_else(|| "none".to_owned(), |(_, channel)| channel.clone())
    }

    pub(super) fn abort(&self) -> bool {
        let mut state = self.state.lock();
        // Under the lock, so that the end of the run finds that it was asked for.
        state.is_abort_asked = self.session.abort();
        if state.is_abort_asked || state.outage.take().is_none() {
            return state.is_abort_asked;
        }
        // Its messages wait for the models.
        let (ids, class) = (state.taken.clone(), FailureClass::Aborted.as_str());
        let message = "stopped; the session is kept, the next message continues it".to_owned();
        let for_others = message.clone();
        state.failures.push(RunFailure { ids, class, message, for_others, may_pass: false });
        drop(state);
        self.wake.notify_one();
        true
    }

    pub(super) fn heed(&self, event: &SessionEvent<'_>) {
        match event {
            SessionEvent::Begin(_) => {
                let mut state = self.state.lock();
                state.running = state.taken.clone();
            }
            SessionEvent::Run(event) => match &event.kind {
                AgentRunEvent::Taken { ids, .. } => {
                    let mut state = self.state.lock();
                    state.taken.extend(ids);
                    state.running.extend(ids);
                }
                AgentRunEvent::Notice(Notice::Workspace { text }) => {
                    self.state.lock().notices.push(text.clone());
                }
                _ => {}
            },
            SessionEvent::End(outcome, _) => {
                let mut state = self.state.lock();
                let is_abort_asked =
                    std::mem::take(&mut state.is_abort_asked) | self.session.take_stopped();
                let ids = std::mem::take(&mut state.running);
                if outcome.is_ok() {
                    state.outage = None;
                }
                if let Err(error) = outcome {
                    let is_failure = match error.class {
                        // The log and the inbox were at rest already.
                        FailureClass::NothingToDo => false,
                        // A message interrupted the run; the next one answers both.
                        FailureClass::Aborted => is_abort_asked,
                        _ => true,
                    };
                    if is_failure {
                        state.failures.push(RunFailure {
                            ids,
                            class: error.class.as_str(),
                            message: error.message.clone(),
                            for_others: error.message_for_others().to_owned(),
                            may_pass: error.may_pass(),
                        });
                    }
                }
                drop(state);
                self.wake.notify_one();
            }
        }
    }
}
