//! Joins the deltas of a message, for clients that are slower than the model.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::{Event, EventKind};

/// Precedes the text of a delta. In a JSON text it can only be this key: quotes in strings are escaped.
const KEY: &str = "\"delta\":\"";

/// An event for a client, or several in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The numbers of the events that it stands for.
    pub(crate) numbers: RangeInclusive<u64>,
    /// A JSON object.
    pub(crate) text: Arc<str>,
}

/// The events from the number `first` on, each by itself.
pub(crate) fn one_by_one(first: u64, events: Vec<Event>) -> Vec<Joined> {
    let numbered = (first..).zip(events);
    numbered.map(|(number, event)| Joined { numbers: number..=number, text: event.text }).collect()
}

/// The events from the number `first` on. Neighbours that are deltas of one block become one event.
pub(crate) fn joined(first: u64, events: Vec<Event>) -> Vec<Joined> {
    let mut joined = Vec::with_capacity(events.len());
    let mut open: Option<Growing> = None;
    for (number, event) in (first..).zip(events) {
        let delta = delta_of(&event);
        if let (Some(growing), Some(delta)) = (&mut open, &delta)
            && growing.takes(number, &event.text, delta)
        {
            continue;
        }
        joined.extend(open.take().map(Growing::end));
        let numbers = number..=number;
        match delta {
            Some(delta) => open = Some(Growing { numbers, text: event.text.to_string(), delta }),
            None => joined.push(Joined { numbers, text: event.text }),
        }
    }
    joined.extend(open.map(Growing::end));
    joined
}

/// A delta that may get longer.
struct Growing {
    numbers: RangeInclusive<u64>,
    text: String,
    /// Where the text of the delta is.
    delta: Range<usize>,
}

impl Growing {
    /// Adds a delta, if it is one of the same block: then everything around it is the same.
    fn takes(&mut self, number: u64, text: &str, delta: &Range<usize>) -> bool {
        let is_same = self.text[..self.delta.start] == text[..delta.start]
            && self.text[self.delta.end..] == text[delta.end..];
        if is_same {
            self.text.insert_str(self.delta.end, &text[delta.clone()]);
            self.delta.end += delta.len();
            self.numbers = *self.numbers.start()..=number;
        }
        is_same
    }

    fn end(self) -> Joined {
        Joined { numbers: self.numbers, text: self.text.into() }
    }
}

/// Where the text of a delta is in its event.
fn delta_of(event: &Event) -> Option<Range<usize>> {
    let text = (event.kind == EventKind::Delta).then_some(&*event.text)?;
    let start = text.find(KEY)? + KEY.len();
    let mut bytes = text.as_bytes()[start..].iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(start..start + at),
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
