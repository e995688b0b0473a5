//! The sessions that a client watches, and the frames of their events.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};

use crate::hub::{Hub, Joined, Origin, Since};

/// Who reads the frames.
pub(super) enum Reader {
    Client,
    /// Another gateway, with the number of this gateway's claim of the session at the moment.
    Gateway(Box<dyn Fn() -> Option<u64> + Send + Sync>),
}

/// A session that a client watches.
pub(super) struct Watched {
    /// The number of the last event that the client got.
    pub(super) sent: u64,
    /// The number of the newest event.
    pub(super) newest: Arc<AtomicU64>,
    /// The session's key, as JSON.
    name: Box<str>,
    reader: Reader,
}

impl Watched {
    pub(super) fn new(session: &str, sent: u64, newest: Arc<AtomicU64>, reader: Reader) -> Self {
        Self { sent, newest, name: Value::from(session).to_string().into(), reader }
    }

    /// The frames that the client lacks.
    pub(super) fn frames(&mut self, session: &str, hub: &Hub) -> Vec<String> {
        let since = match self.reader {
            Reader::Client => hub.since(session, self.sent),
            Reader::Gateway(_) => hub.own_since(session, self.sent),
        };
        match since {
            Since::Events(events) => {
                self.sent = events.last().map_or(self.sent, |newest| *newest.numbers.end());
                events.iter().filter_map(|event| self.frame(event)).collect()
            }
            Since::Gap(now) => {
                self.sent = now;
                let gap = json!({"type": "gap", "session": session, "sequence": now});
                vec![gap.to_string()]
            }
        }
    }

    /// The frame of an event, which is JSON already. `None` if the reader does not get it: a gateway has what happens
    /// elsewhere from there, and a run is shown only by the gateway that has the session.
    pub(super) fn frame(&self, Joined { numbers, origin, text }: &Joined) -> Option<String> {
        let epoch = match (&self.reader, origin) {
            (Reader::Client, _) | (Reader::Gateway(_), Origin::Here) => None,
            (Reader::Gateway(epoch), Origin::Run) => Some(epoch()?),
            (Reader::Gateway(_), Origin::Elsewhere) => return None,
        };
        // All of it, with the longest numbers: it never grows.
        let mut frame = String::with_capacity(text.len() + self.name.len() + 128);
        frame.push_str(r#"{"type":"event","session":"#);
        frame.push_str(&self.name);
        let (first, last) = (numbers.start(), numbers.end());
        // Writing to a string cannot fail.
        if first != last {
            let _ = write!(frame, r#","from":{first}"#);
        }
        if let Some(epoch) = epoch {
            let _ = write!(frame, r#","epoch":{epoch}"#);
        }
        let _ = write!(frame, r#","sequence":{last},"event":"#);
        frame.push_str(text);
        frame.push('}');
        Some(frame)
    }
}
