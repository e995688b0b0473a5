//! Events of sessions that other gateways on the same store work on, in the sequences of this process.
//!
//! A client has one sequence for each session, with the numbers of the gateway that it is connected to, whichever gateway
//! works on the session. What only one gateway may show, the events of a run, carries the number of the claim under which
//! that gateway has the session: what an earlier holder sends late is left out. What several may show, such as that a
//! message was accepted, is shown once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use myclaw_delivery::rows::{MessageId, MessageState};
use myclaw_engine::{AgentRunEvent, RunEvent, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Hub, Joined, Live, Origin, Seen, Sequence, WaitingMessage};

/// Most events of a session that are known to have been shown.
const MOST_KNOWN: usize = 256;
/// Said to clients when another gateway begins a turn anew.
const TAKEN_OVER: &str =
    "The gateway that worked on this is gone or stands still. Another one asks the model again.";

/// What a sequence has from others.
#[derive(Default)]
pub(super) struct Relayed {
    /// The newest events that several gateways may show.
    shown: VecDeque<String>,
    /// The highest claim of another gateway.
    epoch: u64,
    /// The gateway that sends the run; `None` for one of this process.
    source: Option<Arc<str>>,
    /// The newest run of this process, until another gateway has the session.
    here: Option<RunId>,
    /// Whether that gateway is gone, in the middle of a run.
    is_cut_off: bool,
}

/// What another gateway says of a session.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerState {
    /// The number of its claim; `None` if it does not have the session.
    epoch: Option<u64>,
    live: Live,
}

/// An event that several gateways may show.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Told {
    Accepted(WaitingMessage),
    Message {
        message_id: MessageId,
        outcome: MessageState,
    },
    Reply {
        part: String,
    },
    #[serde(other)]
    Other,
}

pub(super) fn of_accepted(id: &MessageId) -> String {
    format!("accepted {id}")
}

pub(super) fn of_end(id: &MessageId) -> String {
    format!("end {id}")
}

pub(super) fn of_part(id: &str) -> String {
    format!("part {id}")
}

impl Hub {
    /// Shows an event of the gateway `source`. `epoch` is the number of its claim, for events of runs.
    pub(crate) fn relay(
        &self,
        session: &str,
        (source, epoch): (&Arc<str>, Option<u64>),
        event: &RawValue,
    ) {
        self.add(session, |sequence, at| match epoch {
            Some(epoch) => sequence.run_elsewhere(at, (source, epoch), event),
            None => sequence.told_elsewhere(at, event),
        });
    }

    /// Takes the state of a session over from the gateway `source`.
    pub(crate) fn adopt(&self, session: &str, source: &Arc<str>, state: PeerState) {
        self.with(session, |sequence| {
            let Some(epoch) = state.epoch.filter(|epoch| *epoch >= sequence.relayed.epoch) else {
                return;
            };
            let was_running = sequence.live.is_running();
            let is_watched = !sequence.is_unwatched();
            sequence.relayed.comes_from(source, epoch);
            let reports = sequence.live.adopt(state.live);
            for id in sequence.live.waiting() {
                sequence.relayed.is_new(of_accepted(id));
            }
            for report in reports {
                if sequence.relayed.is_new(of_end(&report.message_id)) {
                    sequence.live.reported(report);
                }
            }
            // Who watches already has seen less, or something else.
            if is_watched && (was_running || sequence.live.is_running()) {
                sequence.miss();
            }
        });
    }

    /// Has clients read the history of a session, because events of another gateway may be missing here.
    pub(crate) fn miss(&self, session: &str) {
        if let Some(sequence) = self.sequences().get(session) {
            sequence.lock().miss();
        }
    }

    /// Notes that nothing more comes from the gateway `source`.
    pub(crate) fn cut_off(&self, source: &Arc<str>) {
        for sequence in self.sequences().values() {
            let mut sequence = sequence.lock();
            let is_of_it = sequence.relayed.source.as_ref().is_some_and(|from| from == source);
            sequence.relayed.is_cut_off |= is_of_it && sequence.live.is_running();
        }
    }

    /// Forgets what another gateway has sent of a session, because nothing more is asked for.
    pub(crate) fn lose_sight(&self, session: &str) {
        if let Some(sequence) = self.sequences().get(session) {
            sequence.lock().live = Live::default();
        }
    }

    /// Whether a client of this process watches a session.
    pub(crate) fn has_clients(&self, session: &str) -> bool {
        let sequences = self.sequences();
        sequences.get(session).is_some_and(|sequence| sequence.lock().has_clients())
    }

    /// Whether a run goes on in a session, here or as far as is known at another gateway.
    pub(crate) fn is_running(&self, session: &str) -> bool {
        let sequences = self.sequences();
        sequences.get(session).is_some_and(|sequence| sequence.lock().live.is_running())
    }
}

impl Relayed {
    /// Notes that `source` has the session, by the claim with this number.
    fn comes_from(&mut self, source: &Arc<str>, epoch: u64) {
        (self.epoch, self.source) = (epoch, Some(Arc::clone(source)));
        (self.here, self.is_cut_off) = (None, false);
    }

    /// Notes that an event is shown. False if it was shown before.
    fn is_new(&mut self, id: String) -> bool {
        if self.shown.contains(&id) {
            return false;
        }
        if self.shown.len() >= MOST_KNOWN {
            self.shown.pop_front();
        }
        self.shown.push_back(id);
        true
    }
}

impl Sequence {
    fn miss(&mut self) {
        self.kept.break_off();
        self.wake_all();
    }

    /// Adds an event, unless it was shown.
    pub(super) fn once(
        &mut self,
        id: String,
        at: Instant,
        event: &Value,
        origin: Origin,
        change: impl FnOnce(&mut Live),
    ) -> Option<Joined> {
        if !self.relayed.is_new(id) {
            return None;
        }
        change(&mut self.live);
        self.kept.add(at, origin, event)
    }

    /// Notes an event of this process. True if a run begins in place of one that another gateway did not end; `None` for what
    /// comes late, of a run that another gateway has taken over.
    pub(super) fn goes_on_here(&mut self, event: &RunEvent) -> Option<bool> {
        let Some(run) = event.run else { return Some(false) };
        let relayed = &mut self.relayed;
        if !matches!(event.kind, AgentRunEvent::RunStart { .. }) {
            return (relayed.source.is_none() || relayed.here == Some(run)).then_some(false);
        }
        (relayed.here, relayed.is_cut_off) = (Some(run), false);
        Some(relayed.source.take().is_some() && self.live.is_running())
    }

    /// Says why a message begins anew.
    pub(super) fn says_anew(&mut self, at: Instant) -> Option<Joined> {
        let notice = json!({"type": "notice", "code": "taken_over", "message": TAKEN_OVER});
        self.kept.add(at, Origin::Elsewhere, &notice)
    }

    fn run_elsewhere(
        &mut self,
        at: Instant,
        (source, epoch): (&Arc<str>, u64),
        event: &RawValue,
    ) -> Option<Joined> {
        if epoch < self.relayed.epoch {
            return None;
        }
        let seen: Seen<'_> = serde_json::from_str(event.get()).ok()?;
        let is_newer = epoch > self.relayed.epoch;
        let is_anew = is_newer && self.live.is_running();
        if is_newer || matches!(seen, Seen::RunStart) {
            self.relayed.comes_from(source, epoch);
        }
        self.live.heed(seen);
        let shown = self.kept.add(at, Origin::Elsewhere, &event);
        if is_anew { self.says_anew(at) } else { shown }
    }

    fn told_elsewhere(&mut self, at: Instant, event: &RawValue) -> Option<Joined> {
        let origin = Origin::Elsewhere;
        match serde_json::from_str(event.get()).ok()? {
            Told::Accepted(message) => {
                let is_new = self.relayed.is_new(of_accepted(&message.message_id));
                is_new.then(|| self.live.accepted(message))?;
            }
            Told::Message { message_id: id, outcome } => {
                self.relayed.is_new(of_end(&id)).then_some(())?;
                let text = self.live.waiting_text(&id).unwrap_or_default().to_owned();
                self.live.ended(&id, text, &outcome);
                self.end_of_run(at);
            }
            Told::Reply { part } => self.relayed.is_new(of_part(&part)).then_some(())?,
            Told::Other => {}
        }
        self.kept.add(at, origin, &event)
    }

    /// Ends a run of which nothing more can come: its message has an end, which another gateway stored.
    pub(super) fn end_of_run(&mut self, at: Instant) {
        if std::mem::take(&mut self.relayed.is_cut_off) {
            self.live.heed(Seen::RunEnd);
            let over = json!({"type": "run_end", "outcome": "aborted"});
            drop(self.kept.add(at, Origin::Elsewhere, &over));
        }
    }
}

#[cfg(test)]
mod tests;
