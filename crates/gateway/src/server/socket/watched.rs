//! The sessions that a client watches, and the frames of their events.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};

use crate::hub::{Hub, Joined, Since};

/// A session that a client watches.
pub(super) struct Watched {
    /// The number of the last event that the client got.
    pub(super) sent: u64,
    /// The number of the newest event.
    pub(super) newest: Arc<AtomicU64>,
    /// The session's key, as JSON.
    name: Box<str>,
}

impl Watched {
    pub(super) fn new(session: &str, sent: u64, newest: Arc<AtomicU64>) -> Self {
        Self { sent, newest, name: Value::from(session).to_string().into() }
    }

    /// The frames that the client lacks.
    pub(super) fn frames(&mut self, session: &str, hub: &Hub) -> Vec<String> {
        match hub.since(session, self.sent) {
            Since::Events(events) => {
                self.sent = events.last().map_or(self.sent, |newest| *newest.numbers.end());
                events.iter().map(|event| self.frame(event)).collect()
            }
            Since::Gap(now) => {
                self.sent = now;
                let gap = json!({"type": "gap", "session": session, "sequence": now});
                vec![gap.to_string()]
            }
        }
    }

    /// The frame of an event, which is JSON already.
    pub(super) fn frame(&self, Joined { numbers, text }: &Joined) -> String {
        // All of it, with the longest numbers: it never grows.
        let mut frame = String::with_capacity(text.len() + self.name.len() + 128);
        frame.push_str(r#"{"type":"event","session":"#);
        frame.push_str(&self.name);
        let (first, last) = (numbers.start(), numbers.end());
        // Writing to a string cannot fail.
        if first != last {
            let _ = write!(frame, r#","from":{first}"#);
        }
        let _ = write!(frame, r#","sequence":{last},"event":"#);
        frame.push_str(text);
        frame.push('}');
        frame
    }
}
