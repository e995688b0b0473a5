//! The events of a session that are kept. Neighbouring deltas of one text are one of them as they come, so a client that
//! reads later gets them as one event, and what surrounds each delta is kept once.

use std::collections::VecDeque;
use std::ops::{Deref, Range, RangeInclusive};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_engine::{AgentRunEvent, RunEvent, RunId};
use myclaw_llm::StreamEvent;
use serde::Serialize;

/// Most deltas that become one event, and most bytes of their text: a client that comes back in the middle of a long
/// answer gets it in pieces, and old ones make room.
const MOST_JOINED: usize = 64;
const MOST_TEXT: usize = 16 * 1024;
/// Precedes the text of a delta. In a JSON text it can only be this key: quotes in strings are escaped.
const KEY: &str = "\"delta\":\"";

/// Where an event comes from. It matters to the other gateways on the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A run of this process, which shows it only as long as it has the session.
    Run,
    /// Something else that happens here.
    Here,
    /// Another gateway, which shows it to the others itself.
    Elsewhere,
}

/// An event for a client, or several in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The numbers of the events that it stands for.
    pub(crate) numbers: RangeInclusive<u64>,
    pub(crate) origin: Origin,
    /// A JSON object.
    pub(crate) text: EventText,
}

/// The text of an event.
#[derive(Debug, Clone)]
pub(crate) enum EventText {
    /// That of a kept event.
    Kept(Arc<str>),
    /// Made for one reader. Of deltas only what differs is kept.
    Made(String),
}

impl Deref for EventText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Kept(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl PartialEq for EventText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for EventText {}

impl From<String> for EventText {
    fn from(text: String) -> Self {
        Self::Made(text)
    }
}

/// Events from a number on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Since {
    /// These, each with its numbers.
    Events(Vec<Joined>),
    /// The events after this number are still kept; older ones are gone.
    Gap(u64),
}

/// The newest events, in order.
#[derive(Debug)]
pub(super) struct Kept {
    list: VecDeque<Piece>,
    bytes: usize,
    /// Number of the newest event.
    newest: u64,
    /// Of the events until this number, some of other gateways may be missing.
    broken: u64,
}

/// An event, or neighbouring deltas of one text.
#[derive(Debug)]
struct Piece {
    /// When the newest of them came.
    came: Instant,
    /// Number of the oldest of them.
    first: u64,
    origin: Origin,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(Arc<str>),
    Deltas(Box<Deltas>),
}

#[derive(Debug)]
struct Deltas {
    text_of: TextOf,
    /// The event with an empty text.
    form: Arc<str>,
    /// Where in it the text belongs.
    place: usize,
    /// The text of all of them, as JSON.
    text: String,
    /// Where in it each of them ends.
    ends: Vec<u32>,
}

/// Which text a delta belongs to. In deltas of one text, everything but the delta is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextOf {
    run: Option<RunId>,
    kind: Kind,
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Kept {
    /// Begins after the number `newest`.
    pub(super) fn after(newest: u64) -> Self {
        Self { list: VecDeque::new(), bytes: 0, newest, broken: 0 }
    }

    /// The number of the newest event.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many events are kept. A piece holds at least one.
    fn count(&self) -> u64 {
        self.list.front().map_or(0, |oldest| self.newest + 1 - oldest.first)
    }

    /// Adds an event. `None` if it cannot be written as JSON.
    pub(super) fn add(
        &mut self,
        at: Instant,
        origin: Origin,
        event: &impl Serialize,
    ) -> Option<Joined> {
        let text: Arc<str> = serde_json::to_string(event).ok()?.into();
        self.push(at, origin, Content::Whole(Arc::clone(&text)));
        Some(Joined { numbers: self.newest..=self.newest, origin, text: EventText::Kept(text) })
    }

    /// Notes that events of other gateways may be missing, so that clients read the history.
    pub(super) fn break_off(&mut self) {
        self.push(Instant::now(), Origin::Elsewhere, Content::Whole("null".into()));
        self.broken = self.newest;
    }

    /// Adds an event of a run. A delta joins the ones before it.
    pub(super) fn add_of_run(&mut self, at: Instant, event: &RunEvent) -> Option<Joined> {
        let origin = if event.run.is_some() { Origin::Run } else { Origin::Here };
        let Some((text_of, delta)) = delta_of(event) else { return self.add(at, origin, event) };
        if let Some(Piece { came, content: Content::Deltas(deltas), .. }) = self.list.back_mut()
            && deltas.text_of == text_of
            && let Some((added, text)) = deltas.join(delta)
        {
            *came = at;
            self.bytes += added;
            self.newest += 1;
            let text = text.into();
            return Some(Joined { numbers: self.newest..=self.newest, origin, text });
        }
        let whole = serde_json::to_string(event).ok()?;
        let Some(Range { start, end }) = place_of_text(&whole) else {
            return self.add(at, origin, event);
        };
        let form = self
            .form_of(&text_of)
            .unwrap_or_else(|| [&whole[..start], &whole[end..]].concat().into());
        let text = whole[start..end].to_owned();
        let ends = vec![text.len() as u32];
        let deltas = Box::new(Deltas { text_of, form, place: start, text, ends });
        self.push(at, origin, Content::Deltas(deltas));
        Some(Joined { numbers: self.newest..=self.newest, origin, text: whole.into() })
    }

    /// The form of the deltas before, if they are of the same text.
    fn form_of(&self, text_of: &TextOf) -> Option<Arc<str>> {
        match &self.list.back()?.content {
            Content::Deltas(deltas) if deltas.text_of == *text_of => Some(Arc::clone(&deltas.form)),
            _ => None,
        }
    }

    fn push(&mut self, came: Instant, origin: Origin, content: Content) {
        if let Some(Piece { content: Content::Deltas(full), .. }) = self.list.back_mut() {
            full.text.shrink_to_fit();
            full.ends.shrink_to_fit();
        }
        self.newest += 1;
        self.bytes += content.bytes();
        self.list.push_back(Piece { came, first: self.newest, origin, content });
    }

    /// Drops old events until there are at most `bytes`. The newest `count` stay otherwise.
    pub(super) fn limit(&mut self, count: u64, bytes: usize) {
        while let Some(second) = self.list.get(1).map(|piece| piece.first)
            && self.newest + 1 - second >= count
        {
            self.drop_oldest();
        }
        while self.bytes > bytes {
            self.drop_oldest();
        }
    }

    /// Drops what came before that time.
    pub(super) fn forget(&mut self, now: Instant, kept: Duration) {
        while self.list.front().is_some_and(|piece| now.duration_since(piece.came) > kept) {
            self.drop_oldest();
        }
        if self.list.is_empty() {
            self.list.shrink_to_fit();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.list.pop_front() {
            self.bytes -= oldest.content.bytes();
        }
    }

    /// The events after the number `after`, for clients.
    pub(super) fn since(&self, after: u64) -> Since {
        match after < self.broken {
            true => Since::Gap(self.newest),
            false => self.own_since(after),
        }
    }

    /// The same for other gateways, which have the events of others from there.
    pub(super) fn own_since(&self, after: u64) -> Since {
        if after < self.newest - self.count() || after > self.newest {
            return Since::Gap(self.newest);
        }
        // From the newest back: a client is seldom far behind.
        let mut events = Vec::new();
        let mut last = self.newest;
        for piece in self.list.iter().rev().take_while(|piece| {
            let is_new = last > after;
            last = piece.first - 1;
            is_new
        }) {
            events.push(piece.after(after));
        }
        events.reverse();
        Since::Events(events)
    }
}

impl Piece {
    /// What of it comes after the number `after`.
    fn after(&self, after: u64) -> Joined {
        let origin = self.origin;
        match &self.content {
            Content::Whole(text) => {
                let text = EventText::Kept(Arc::clone(text));
                Joined { numbers: self.first..=self.first, origin, text }
            }
            Content::Deltas(deltas) => {
                let skipped = (after + 1).saturating_sub(self.first);
                let numbers = self.first + skipped..=self.first + deltas.ends.len() as u64 - 1;
                Joined { numbers, origin, text: deltas.event(skipped as usize).into() }
            }
        }
    }
}

impl Content {
    fn bytes(&self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Deltas(deltas) => deltas.form.len() + deltas.text.len(),
        }
    }
}

impl Deltas {
    /// Adds a delta, if there is room for it. Gives the bytes that it adds, and its event.
    fn join(&mut self, delta: &str) -> Option<(usize, String)> {
        if self.ends.len() >= MOST_JOINED || self.text.len() + delta.len() > MOST_TEXT {
            return None;
        }
        let before = self.text.len();
        // Most deltas are the same in JSON.
        if delta.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
            let quoted = serde_json::to_string(delta).ok()?;
            self.text.push_str(&quoted[1..quoted.len() - 1]);
        } else {
            self.text.push_str(delta);
        }
        self.ends.push(self.text.len() as u32);
        Some((self.text.len() - before, self.event(self.ends.len() - 1)))
    }

    /// The event for all deltas but the first ones.
    fn event(&self, skipped: usize) -> String {
        let from = skipped.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        let (before, after) = self.form.split_at(self.place);
        [before, &self.text[from..], after].concat()
    }
}

/// The delta that an event is, and the text it belongs to.
fn delta_of(event: &RunEvent) -> Option<(TextOf, &str)> {
    let AgentRunEvent::LlmStream { event: streamed } = &event.kind else { return None };
    let (kind, index, delta) = match streamed {
        StreamEvent::TextDelta { index, delta } => (Kind::Text, *index, delta),
        StreamEvent::ThinkingDelta { index, delta } => (Kind::Thinking, *index, delta),
        _ => return None,
    };
    Some((TextOf { run: event.run, kind, index }, delta))
}

/// Where the text of a delta is in its event.
fn place_of_text(event: &str) -> Option<Range<usize>> {
    let start = event.find(KEY)? + KEY.len();
    let mut bytes = event.as_bytes()[start..].iter().enumerate();
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
