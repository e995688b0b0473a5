//! The events of sessions, for everybody who watches.
//!
//! **What arrives** are the events of runs and of the gateway, from the tasks of the runs ([`Hub::publish_run`]). **What
//! leaves** are the same events with a number for each session, as JSON, and for watchers that join a session what these
//! events say that the log does not yet ([`Live`]).
//!
//! Each session has one numbered sequence of events, of which the newest are kept for some time. A watcher reads from
//! there at its own pace, so a slow one delays neither the run nor other watchers.
//!
//! **What may fail:** nothing that a run would see; publishing neither waits nor returns an error. A watcher that falls
//! behind what is kept (30 seconds, 1,024 events or 1 MiB) gets the number from which it can continue, and reads the rest
//! from the session's history.
//!
//! **Why this shape:** a queue for each watcher would copy each delta as often as there are clients, and would have to
//! drop or block when one is slow. With one sequence, memory is bounded for each session, whatever the number of clients
//! is. Each sequence has a lock of its own, so that runs on several threads do not wait for each other.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use myclaw_delivery::failure_text::for_people;
use myclaw_delivery::front::Front;
use myclaw_delivery::rows::{Incoming, MessageId, MessageState};
use myclaw_engine::{AgentRunEvent, RunEvent, RunOutcome};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

mod kept;
mod live;
mod relayed;
mod seen;

use kept::Kept;
pub(crate) use kept::{Joined, Origin, Since};
pub(crate) use live::Live;
use live::WaitingMessage;
pub(crate) use relayed::PeerState;
use relayed::Relayed;
use seen::Seen;

/// Most events that are kept of a session: several seconds of a fast model.
const MOST_EVENTS: u64 = 1_024;
/// Most bytes that are kept of a session.
const MOST_BYTES: usize = 1024 * 1024;
/// How long an event is kept: long enough for a client whose connection broke. Later ones read the history.
const KEPT: Duration = Duration::from_secs(30);
/// Time in which all sessions are looked at for events that are older.
const SWEEP: Duration = Duration::from_secs(10);
/// Most sessions that are looked at when an event comes, so that none waits for all.
const MOST_SWEPT: usize = 16;
/// Most sessions with kept events. The one whose last event is oldest goes first.
const MOST_SESSIONS: usize = 1_000;

/// The sequence that says which sessions look different in a list. No session has this key.
pub(crate) const LIST: &str = "";

/// All sequences.
pub(crate) struct Hub {
    /// Each has a lock of its own, so that runs on several threads do not wait for each other. Whoever takes the round
    /// too takes it first.
    by_session: RwLock<HashMap<String, Mutex<Sequence>>>,
    /// Counts events of all sessions, to find the sequence that was quiet for longest.
    events: AtomicU64,
    round: Mutex<Round>,
    /// Names this process: numbers of another one mean nothing here.
    stream: String,
}

/// The order in which sessions are looked at for old events.
struct Round {
    sessions: VecDeque<String>,
    /// When sessions were looked at.
    swept: Instant,
}

struct Sequence {
    kept: Kept,
    last_used: u64,
    /// What is not in the session's log yet.
    live: Live,
    /// What it has from other gateways.
    relayed: Relayed,
    /// Sends the number of the newest event to those who wait for one session.
    news: watch::Sender<u64>,
    /// The number of the newest event, for watchers.
    newest: Arc<AtomicU64>,
    /// Watchers of several sessions, which wait for all of them at once.
    watchers: Vec<Weak<dyn Watcher>>,
}

/// Somebody who watches sessions.
pub(crate) trait Watcher: Send + Sync {
    /// Says that there are new events.
    fn wake(&self);

    /// Whether it is another gateway on the store.
    fn is_gateway(&self) -> bool {
        false
    }

    /// Offers the newest event. True if the watcher has taken it, so that it need not be woken. Must not block.
    fn take(&self, session: &str, event: &Joined) -> bool;
}

/// A session at one moment, and a way to learn of what comes after.
pub(crate) struct Watching<News = watch::Receiver<u64>> {
    /// The number of the newest event.
    pub(crate) newest: u64,
    /// What these events say that the log does not.
    pub(crate) live: Live,
    /// Has the number of each new event.
    pub(crate) news: News,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            by_session: RwLock::default(),
            events: AtomicU64::new(0),
            round: Mutex::new(Round { sessions: VecDeque::new(), swept: Instant::now() }),
            stream: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// Names the sequences of this process.
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// Adds an event. Never waits for a watcher.
    pub(crate) fn publish(&self, session: &str, event: &impl Serialize) {
        self.add(session, |sequence, at| sequence.kept.add(at, Origin::Here, event));
    }

    /// Adds an event that several gateways on one store may show, unless it was shown. `change` is the state that new
    /// watchers get first.
    fn publish_once(
        &self,
        session: &str,
        (id, event): (String, &Value),
        change: impl FnOnce(&mut Live),
    ) {
        self.add(session, |sequence, at| sequence.once(id, at, event, Origin::Here, change));
    }

    /// Shows a part of an answer.
    pub(crate) fn reply(&self, session: &str, part: &str, event: &Value) {
        self.publish_once(session, (relayed::of_part(part), event), |_| {});
    }

    /// Says that a session looks different in a list.
    fn changed(&self, session: &str) {
        let event = json!({"type": "changed", "session": session});
        self.add(LIST, |sequence, at| sequence.kept.add(at, Origin::Here, &event));
    }

    fn add(&self, session: &str, add: impl FnOnce(&mut Sequence, Instant) -> Option<Joined>) {
        let at = Instant::now();
        self.sweep(at);
        let offered = self.with(session, |sequence| {
            let event = add(sequence, at)?;
            sequence.kept.limit(MOST_EVENTS, MOST_BYTES);
            Some((sequence.announce()?, event))
        });
        if let Some((watcher, event)) = offered
            && !watcher.take(session, &event)
        {
            watcher.wake();
        }
    }

    /// The present state of a session, and a way to wait for the next event.
    pub(crate) fn watch(&self, session: &str) -> Watching {
        self.with(session, |sequence| sequence.watching(sequence.news.subscribe()))
    }

    /// Like [`Hub::watch`]; `watcher` gets the events too, or is woken for them, until the news are dropped.
    pub(crate) fn watch_with(
        &self,
        session: &str,
        watcher: Weak<dyn Watcher>,
    ) -> Watching<Arc<AtomicU64>> {
        self.with(session, |sequence| {
            // A client may watch a session anew.
            sequence.watchers.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&watcher));
            sequence.watchers.push(watcher);
            sequence.watching(Arc::clone(&sequence.newest))
        })
    }

    /// Ends what [`Hub::watch_with`] began.
    pub(crate) fn unwatch(&self, session: &str, watcher: &Weak<dyn Watcher>) {
        self.with(session, |sequence| {
            sequence.watchers.retain(|other| !other.ptr_eq(watcher));
        });
    }

    /// The number of the newest event of a session.
    pub(crate) fn newest(&self, session: &str) -> u64 {
        self.with(session, |sequence| sequence.kept.newest())
    }

    /// The kept events after the number `after`.
    pub(crate) fn since(&self, session: &str, after: u64) -> Since {
        self.with(session, |sequence| sequence.kept.since(after))
    }

    /// The same for another gateway, which does not read here what others send.
    pub(crate) fn own_since(&self, session: &str, after: u64) -> Since {
        self.with(session, |sequence| sequence.kept.own_since(after))
    }

    /// Calls a function with the sequence of a session, which is made if it is missing.
    fn with<T>(&self, session: &str, work: impl FnOnce(&mut Sequence) -> T) -> T {
        let used = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        let known = self.sequences();
        if let Some(sequence) = known.get(session) {
            let mut sequence = sequence.lock();
            sequence.last_used = used;
            return work(&mut sequence);
        }
        drop(known);
        let mut round = self.round.lock();
        let mut all = self.by_session.write();
        if all.len() >= MOST_SESSIONS && !all.contains_key(session) {
            let quiet = all.iter().filter_map(|(key, one)| {
                let one = one.lock();
                one.is_quiet().then_some((one.last_used, key))
            });
            if let Some(oldest) = quiet.min().map(|(_, key)| key.clone()) {
                all.remove(&oldest);
                round.sessions.retain(|session| *session != oldest);
            }
        }
        let sequence = all.entry(session.to_owned()).or_insert_with(|| {
            round.sessions.push_back(session.to_owned());
            // Numbers go on from those of every sequence before, so that one that was removed is not continued wrongly.
            Mutex::new(Sequence::after(used))
        });
        work(sequence.get_mut())
    }

    fn sequences(&self) -> RwLockReadGuard<'_, HashMap<String, Mutex<Sequence>>> {
        self.by_session.read()
    }

    /// Removes old events, also those of sessions in which nothing happens any more. Looks at as many sessions as time has
    /// passed since the last look, and goes on with the next ones later.
    fn sweep(&self, now: Instant) {
        // Somebody else does it otherwise.
        let Some(mut round) = self.round.try_lock() else { return };
        let passed = now.saturating_duration_since(round.swept).as_secs_f64() / SWEEP.as_secs_f64();
        let due = (passed * round.sessions.len() as f64) as usize;
        if due == 0 {
            return;
        }
        round.swept = now;
        let sequences = self.sequences();
        for _ in 0..due.min(round.sessions.len()).min(MOST_SWEPT) {
            let Some(session) = round.sessions.pop_front() else { return };
            if let Some(sequence) = sequences.get(&session) {
                sequence.lock().kept.forget(now, KEPT);
            }
            round.sessions.push_back(session);
        }
    }
}

impl Front for Hub {
    fn publish(&self, session: &str, event: &Value) {
        Self::publish(self, session, event);
        self.changed(session);
    }

    fn publish_run(&self, session: &str, event: &RunEvent) {
        let for_clients = for_clients(event);
        self.add(session, |sequence, at| {
            let is_anew = sequence.goes_on_here(event)?;
            sequence.live.heed(Seen::of(&event.kind));
            let shown = sequence.kept.add_of_run(at, for_clients.as_ref().unwrap_or(event));
            if is_anew { sequence.says_anew(at) } else { shown }
        });
        if matches!(event.kind, AgentRunEvent::RunStart { .. } | AgentRunEvent::RunEnd { .. }) {
            self.changed(session);
        }
    }

    fn accepted(&self, id: &MessageId, row: &Incoming) {
        let waiting = WaitingMessage {
            message_id: id.clone(),
            text: row.text.clone(),
            images: row.images.len(),
            accepted_at: row.accepted_at,
        };
        let mut event = json!(waiting);
        event["type"] = json!("accepted");
        let once = (relayed::of_accepted(id), &event);
        self.publish_once(&row.session, once, |live| live.accepted(waiting));
        self.changed(&row.session);
    }

    fn ended(&self, id: &MessageId, row: &Incoming, state: &MessageState) {
        let event = json!({"type": "message", "messageId": id, "outcome": state});
        self.add(&row.session, |sequence, at| {
            sequence.end_of_run(at);
            let ended = |live: &mut Live| live.ended(id, row.text.clone(), state);
            sequence.once(relayed::of_end(id), at, &event, Origin::Here, ended)
        });
        self.changed(&row.session);
    }

    fn has_waiting(&self, session: &str) -> bool {
        self.with(session, |sequence| sequence.live.has_waiting())
    }

    fn is_running(&self, session: &str) -> bool {
        Self::is_running(self, session)
    }
}

impl Sequence {
    fn after(newest: u64) -> Self {
        Self {
            kept: Kept::after(newest),
            last_used: newest,
            live: Live::default(),
            relayed: Relayed::default(),
            news: watch::channel(newest).0,
            newest: Arc::new(AtomicU64::new(newest)),
            watchers: Vec::new(),
        }
    }

    fn watching<News>(&self, news: News) -> Watching<News> {
        Watching { newest: self.kept.newest(), live: self.live.clone(), news }
    }

    /// Whether it may go: a watched sequence stays, because its numbers would begin again, and so does one that knows of
    /// unfinished work.
    fn is_quiet(&self) -> bool {
        self.is_unwatched() && self.live.is_empty()
    }

    fn is_unwatched(&self) -> bool {
        self.news.receiver_count() == 0 && Arc::strong_count(&self.newest) == 1
    }

    /// Whether somebody other than a gateway watches it.
    fn has_clients(&self) -> bool {
        let mut watchers = self.watchers.iter().filter_map(Weak::upgrade);
        self.news.receiver_count() > 0 || watchers.any(|watcher| !watcher.is_gateway())
    }

    /// Tells all watchers of the newest event.
    fn wake_all(&mut self) {
        if let Some(only) = self.announce() {
            only.wake();
        }
    }

    /// Tells watchers of the newest event. Gives the only one, which is to be offered it; of several each is woken, so that
    /// the run does not wait until all have been served.
    fn announce(&mut self) -> Option<Arc<dyn Watcher>> {
        let newest = self.kept.newest();
        if self.news.receiver_count() > 0 {
            self.news.send_replace(newest);
        }
        // Before they are woken, so that they find it.
        self.newest.store(newest, Ordering::Release);
        self.watchers.retain(|watcher| watcher.strong_count() > 0);
        match &self.watchers[..] {
            [only] => only.upgrade(),
            several => {
                several.iter().filter_map(Weak::upgrade).for_each(|watcher| watcher.wake());
                None
            }
        }
    }
}

/// An event about a failed call as clients get it, who need not be the owner: without the address of the model's server.
fn for_clients(event: &RunEvent) -> Option<RunEvent> {
    let kind = match &event.kind {
        AgentRunEvent::RunEnd { outcome: RunOutcome::Failed { class, error } } => {
            let error = for_people(class, error).to_owned();
            AgentRunEvent::RunEnd { outcome: RunOutcome::Failed { class, error } }
        }
        AgentRunEvent::Retry { attempt, reason, cause, profile_id, delay_ms, .. } => {
            let seconds = Duration::from_millis(*delay_ms).as_secs_f32();
            AgentRunEvent::Retry {
                attempt: *attempt,
                reason,
                cause,
                profile_id: profile_id.clone(),
                delay_ms: *delay_ms,
                message: format!(
                    "The model did not answer ({cause}). It is asked again in {seconds:.1} s."
                ),
            }
        }
        AgentRunEvent::Fallback { from, to, reason, cause, .. } => AgentRunEvent::Fallback {
            from: from.clone(),
            to: to.clone(),
            reason,
            cause,
            message: format!("{from} cannot answer ({cause}). {to} is asked instead."),
        },
        _ => return None,
    };
    let mut changed = event.clone();
    changed.kind = kind;
    Some(changed)
}

#[cfg(test)]
mod tests;
