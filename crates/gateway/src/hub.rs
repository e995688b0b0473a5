//! The events of sessions, for everybody who watches.
//!
//! Each session has one numbered sequence of events, of which the newest are kept for some time. A watcher reads from
//! there at its own pace, so a slow one delays neither the run nor other watchers. One that falls too far behind gets the
//! number from which it can go on, and reads the rest from the session's history.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use myclaw_agent::llm::StreamEvent;
use myclaw_agent::{AgentRunEvent, RunEvent};
use serde::Serialize;
use tokio::sync::watch;

mod joined;
mod live;

pub(crate) use joined::{Joined, joined, one_by_one};
pub(crate) use live::{Live, Report, WaitingMessage};

/// Most events that are kept of a session: several seconds of a fast model.
const MOST_EVENTS: usize = 1_024;
/// Most bytes that are kept of a session.
const MOST_BYTES: usize = 1024 * 1024;
/// How long an event is kept: long enough for a client whose connection broke. Later ones read the history. A thousand turns
/// of ten deltas a second then have 80 MB of events.
const KEPT: Duration = Duration::from_secs(30);
/// Time in which all sessions are looked at for events that are older.
const SWEEP: Duration = Duration::from_secs(10);
/// Most sessions that are looked at when an event comes, so that none waits for all.
const MOST_SWEPT: usize = 16;
/// Most sessions with kept events. The one whose last event is oldest goes first.
const MOST_SESSIONS: usize = 1_000;

/// All sequences.
pub(crate) struct Hub {
    sequences: Mutex<Sequences>,
    /// Names this process: numbers of another one mean nothing here.
    stream: String,
}

struct Sequences {
    by_session: HashMap<String, Sequence>,
    /// Counts events of all sessions, to find the sequence that was quiet for longest.
    events: u64,
    /// The sessions, in the order in which they are looked at for old events.
    round: VecDeque<String>,
    /// When sessions were looked at.
    swept: Instant,
}

struct Sequence {
    /// With the time at which each came.
    kept: VecDeque<(Instant, Event)>,
    bytes: usize,
    /// Number of the newest event. The first is 1.
    newest: u64,
    last_used: u64,
    /// What is not in the session's log yet.
    live: Live,
    /// Sends the number of the newest event to watchers.
    news: watch::Sender<u64>,
    /// Watchers of several sessions, which wait for all of them at once.
    watchers: Vec<Weak<dyn Watcher>>,
}

/// Somebody who watches sessions.
pub(crate) trait Watcher: Send + Sync {
    /// Says that there are new events.
    fn wake(&self);

    /// Offers the newest event. True if the watcher has taken it, so that it need not be woken. Must not block.
    fn take(&self, session: &str, event: &Joined) -> bool;
}

/// A kept event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// A JSON object.
    pub(crate) text: Arc<str>,
    kind: EventKind,
}

/// Whether an event can be joined with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    /// What a model adds to a text.
    Delta,
    Other,
}

/// A session at one moment, and a way to learn of what comes after.
pub(crate) struct Watching {
    /// The number of the newest event.
    pub(crate) newest: u64,
    /// What these events say that the log does not.
    pub(crate) live: Live,
    /// Gets the number of each new event.
    pub(crate) news: watch::Receiver<u64>,
}

/// Events from a number on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Since {
    /// These, with the number of the first.
    Events(u64, Vec<Event>),
    /// The events after this number are still kept; older ones are gone.
    Gap(u64),
}

impl Hub {
    pub(crate) fn new() -> Self {
        let stream = uuid::Uuid::new_v4().simple().to_string();
        let sequences = Sequences {
            by_session: HashMap::new(),
            events: 0,
            round: VecDeque::new(),
            swept: Instant::now(),
        };
        Self { sequences: Mutex::new(sequences), stream }
    }

    /// Names the sequences of this process.
    pub(crate) fn stream(&self) -> &str {
        &self.stream
    }

    /// Adds an event. Never waits for a watcher.
    pub(crate) fn publish(&self, session: &str, event: &impl Serialize) {
        self.publish_with(session, event, |_| {});
    }

    /// Adds an event of a run.
    pub(crate) fn publish_run(&self, session: &str, event: &RunEvent) {
        let kind = match &event.kind {
            AgentRunEvent::LlmStream {
                event: StreamEvent::TextDelta { .. } | StreamEvent::ThinkingDelta { .. },
            } => EventKind::Delta,
            _ => EventKind::Other,
        };
        self.add(session, event, kind, |live| live.heed(&event.kind));
    }

    /// Adds an event that changes the state that new watchers get first.
    pub(crate) fn publish_with(
        &self,
        session: &str,
        event: &impl Serialize,
        change: impl FnOnce(&mut Live),
    ) {
        self.add(session, event, EventKind::Other, change);
    }

    fn add(
        &self,
        session: &str,
        event: &impl Serialize,
        kind: EventKind,
        change: impl FnOnce(&mut Live),
    ) {
        let Ok(text) = serde_json::to_string(event) else { return };
        let text: Arc<str> = text.into();
        let at = Instant::now();
        let mut sequences = self.lock();
        sequences.sweep(at);
        let sequence = sequences.of(session);
        change(&mut sequence.live);
        sequence.newest += 1;
        sequence.bytes += text.len();
        sequence.kept.push_back((at, Event { text: Arc::clone(&text), kind }));
        while sequence.kept.len() > MOST_EVENTS || sequence.bytes > MOST_BYTES {
            sequence.drop_oldest();
        }
        let newest = sequence.newest;
        sequence.news.send_replace(newest);
        sequence.watchers.retain(|watcher| watcher.strong_count() > 0);
        // Several are woken, so that the run does not wait until all have been served.
        let only = match &sequence.watchers[..] {
            [only] => only.upgrade(),
            several => {
                several.iter().filter_map(Weak::upgrade).for_each(|watcher| watcher.wake());
                None
            }
        };
        drop(sequences);
        if let Some(watcher) = only
            && !watcher.take(session, &Joined { numbers: newest..=newest, text })
        {
            watcher.wake();
        }
    }

    /// The present state of a session, and a way to wait for the next event.
    pub(crate) fn watch(&self, session: &str) -> Watching {
        let mut sequences = self.lock();
        let sequence = sequences.of(session);
        let (newest, live) = (sequence.newest, sequence.live.clone());
        Watching { newest, live, news: sequence.news.subscribe() }
    }

    /// Like [`Hub::watch`]; `watcher` gets the events too, or is woken for them.
    pub(crate) fn watch_with(&self, session: &str, watcher: Weak<dyn Watcher>) -> Watching {
        let watching = self.watch(session);
        let mut sequences = self.lock();
        let watchers = &mut sequences.of(session).watchers;
        // A client may watch a session anew.
        watchers.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&watcher));
        watchers.push(watcher);
        watching
    }

    /// The number of the newest event of a session.
    pub(crate) fn newest(&self, session: &str) -> u64 {
        self.lock().of(session).newest
    }

    /// The kept events after the number `after`.
    pub(crate) fn since(&self, session: &str, after: u64) -> Since {
        let mut sequences = self.lock();
        let sequence = sequences.of(session);
        let gone = sequence.newest - sequence.kept.len() as u64;
        if after < gone || after > sequence.newest {
            return Since::Gap(sequence.newest);
        }
        let skipped = usize::try_from(after - gone).unwrap_or(usize::MAX);
        let events = sequence.kept.iter().skip(skipped).map(|(_, event)| event.clone());
        Since::Events(after + 1, events.collect())
    }

    fn lock(&self) -> MutexGuard<'_, Sequences> {
        // The sequences are whole after every statement, so a panic elsewhere does not spoil them.
        self.sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sequences {
    /// Removes old events, also those of sessions in which nothing happens any more. Looks at as many sessions as time has
    /// passed since the last look, and goes on with the next ones later.
    fn sweep(&mut self, now: Instant) {
        let passed = now.duration_since(self.swept).as_secs_f64() / SWEEP.as_secs_f64();
        let due = (passed * self.round.len() as f64) as usize;
        if due == 0 {
            return;
        }
        self.swept = now;
        for _ in 0..due.min(self.round.len()).min(MOST_SWEPT) {
            let Some(session) = self.round.pop_front() else { return };
            if let Some(sequence) = self.by_session.get_mut(&session) {
                sequence.forget_old(now);
            }
            self.round.push_back(session);
        }
    }

    fn of(&mut self, session: &str) -> &mut Sequence {
        self.events += 1;
        let now = self.events;
        if self.by_session.len() >= MOST_SESSIONS && !self.by_session.contains_key(session) {
            // A watched sequence stays: its numbers would begin again. So does one that knows of unfinished work.
            let is_quiet = |one: &Sequence| one.news.is_closed() && one.live.is_empty();
            let quiet = self.by_session.iter().filter(|(_, one)| is_quiet(one));
            let oldest = quiet.min_by_key(|(_, one)| one.last_used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.by_session.remove(&oldest);
                self.round.retain(|session| *session != oldest);
            }
        }
        let sequence = self.by_session.entry(session.to_owned()).or_insert_with(|| {
            self.round.push_back(session.to_owned());
            Sequence {
                kept: VecDeque::new(),
                bytes: 0,
                // Numbers go on from those of every sequence before, so that one that was removed is not continued wrongly.
                newest: now,
                last_used: now,
                live: Live::default(),
                news: watch::channel(now).0,
                watchers: Vec::new(),
            }
        });
        sequence.last_used = now;
        sequence
    }
}

impl Sequence {
    fn forget_old(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|(came, _)| now.duration_since(*came) > KEPT) {
            self.drop_oldest();
        }
        if self.kept.is_empty() {
            self.kept.shrink_to_fit();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, oldest)) = self.kept.pop_front() {
            self.bytes -= oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests;
