//! Messages that their senders keep until they are answered.
//!
//! They wait in the memory of the process that works on their session, so they cost no transaction. If the process dies, their
//! senders find them nowhere and send them again. The append that takes one in is refused if the log has it already, which
//! another process may have done meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_session::{EntryId, QueuedMessage, rows};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// How long it counts that nothing else waits for a session.
const KNOWN: Duration = Duration::from_secs(1);

/// The messages of all sessions, and who of this process may change them.
#[derive(Debug, Default)]
pub(super) struct KeptMessages(Mutex<HashMap<String, Shelf>>);

#[derive(Debug)]
struct Shelf {
    messages: Vec<QueuedMessage>,
    /// One holder at a time.
    turn: Arc<Semaphore>,
    /// When the database had no message for the session.
    is_all_since: Option<Instant>,
}

impl Shelf {
    fn bytes(&self) -> u64 {
        self.messages.iter().map(size).sum()
    }
}

impl KeptMessages {
    /// What a holder acquires.
    pub(super) fn turn(&self, key: &str) -> Arc<Semaphore> {
        self.shelf(key, |shelf| Arc::clone(&shelf.turn))
    }

    /// Forgets a session without messages and holders.
    pub(super) fn tidy_up(&self, key: &str) {
        let mut shelves = self.0.lock();
        let is_unused =
            |shelf: &Shelf| shelf.messages.is_empty() && Arc::strong_count(&shelf.turn) == 1;
        if shelves.get(key).is_some_and(is_unused) {
            shelves.remove(key);
        }
    }

    /// The messages of a session, the oldest first.
    pub(super) fn of(&self, key: &str) -> Vec<QueuedMessage> {
        self.0.lock().get(key).map(|shelf| shelf.messages.clone()).unwrap_or_default()
    }

    pub(super) fn bytes(&self, key: &str) -> u64 {
        self.0.lock().get(key).map_or(0, Shelf::bytes)
    }

    /// Those of these ids that wait here.
    pub(super) fn among(&self, key: &str, ids: &[EntryId]) -> Vec<EntryId> {
        let shelves = self.0.lock();
        let Some(shelf) = shelves.get(key) else { return Vec::new() };
        ids.iter()
            .filter(|id| shelf.messages.iter().any(|message| message.id == **id))
            .copied()
            .collect()
    }

    /// Removes some messages and adds others. False, and nothing changes, if too many bytes would wait.
    pub(super) fn change(&self, key: &str, removed: &[EntryId], added: &[QueuedMessage]) -> bool {
        self.shelf(key, |shelf| {
            let stay = shelf.messages.iter().filter(|message| !removed.contains(&message.id));
            let bytes: u64 = stay.chain(added).map(size).sum();
            if !added.is_empty() && bytes > rows::MAX_INBOX_BYTES {
                return false;
            }
            shelf.messages.retain(|message| !removed.contains(&message.id));
            shelf.messages.extend_from_slice(added);
            true
        })
    }

    /// Adds a message unless it waits already. `None` if too many bytes would wait; otherwise whether it was added.
    pub(super) fn push_once(&self, key: &str, message: &QueuedMessage) -> Option<bool> {
        match self.among(key, &[message.id]).is_empty() {
            true => self.change(key, &[], std::slice::from_ref(message)).then_some(true),
            false => Some(false),
        }
    }

    /// Forgets the messages of a session: it is deleted, or another process has taken them in.
    pub(super) fn clear(&self, key: &str) {
        if let Some(shelf) = self.0.lock().get_mut(key) {
            shelf.messages.clear();
        }
    }

    /// Notes whether a look into the database found nothing there. Then the next holder need not look again.
    pub(super) fn looked(&self, key: &str, is_all: bool) {
        if let Some(shelf) = self.0.lock().get_mut(key) {
            shelf.is_all_since = is_all.then(Instant::now);
        }
    }

    /// Whether nothing waited in the database a moment ago. Says so once for each look.
    pub(super) fn were_all(&self, key: &str) -> bool {
        let mut shelves = self.0.lock();
        let Some(shelf) = shelves.get_mut(key) else { return false };
        let since = shelf.is_all_since.take();
        !shelf.messages.is_empty() && since.is_some_and(|since| since.elapsed() < KNOWN)
    }

    fn shelf<T>(&self, key: &str, work: impl FnOnce(&mut Shelf) -> T) -> T {
        let mut shelves = self.0.lock();
        work(shelves.entry(key.to_owned()).or_insert_with(|| Shelf {
            messages: Vec::new(),
            turn: Arc::new(Semaphore::new(1)),
            is_all_since: None,
        }))
    }
}

fn size(message: &QueuedMessage) -> u64 {
    let meta = message.meta.as_ref().map_or(0, |meta| meta.as_str().len());
    (message.content.len() + meta) as u64
}

/// Two lists as one, the oldest first. What is in both counts once.
pub(super) fn merged(stored: Vec<QueuedMessage>, kept: Vec<QueuedMessage>) -> Vec<QueuedMessage> {
    let mut all: Vec<QueuedMessage> = Vec::with_capacity(stored.len() + kept.len());
    let mut stored = stored.into_iter().peekable();
    for message in kept {
        while let Some(older) = stored.next_if(|other| other.ts <= message.ts) {
            all.push(older);
        }
        all.push(message);
    }
    all.extend(stored);
    let mut seen = HashSet::new();
    all.retain(|message| seen.insert(message.id));
    all
}
