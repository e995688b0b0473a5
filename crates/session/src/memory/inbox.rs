//! An inbox in memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_files::Durability;
use parking_lot::Mutex;

use super::place::{Place, Taken};
use crate::inbox::MAX_BYTES;
use crate::{
    EntryId, HeldInbox, Inbox, InboxCallback, InboxWatch, LockWait, QueuedMessage, SessionError,
};

#[derive(Debug)]
pub(super) struct MemoryInbox {
    place: Arc<Place>,
    content: Arc<Content>,
}

#[derive(Default)]
struct Content {
    /// Each with the bytes of its JSON text, which count against the limit.
    pending: Mutex<Vec<(QueuedMessage, u64)>>,
    /// Those who watch, by number.
    watches: Mutex<(u64, Vec<(u64, InboxCallback)>)>,
}

#[derive(Debug)]
struct HeldMemory {
    content: Arc<Content>,
    name: PathBuf,
    taken: Option<Taken>,
    has_news: bool,
}

#[derive(Debug)]
struct MemoryWatch {
    content: Arc<Content>,
    id: u64,
}

impl MemoryInbox {
    pub(super) fn named(name: PathBuf) -> Self {
        Self { place: Arc::new(Place::named(name)), content: Arc::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.content.pending.lock().is_empty()
    }

    /// Removes all messages, with the session.
    pub(super) fn clear(&self) {
        self.content.pending.lock().clear();
    }

    fn take(&self, wait: LockWait) -> Result<HeldMemory, SessionError> {
        let taken = Some(self.place.take(wait)?);
        let content = Arc::clone(&self.content);
        Ok(HeldMemory { content, name: self.place.name(), taken, has_news: false })
    }
}

impl Inbox for MemoryInbox {
    fn hold_within(&self, wait: LockWait) -> Result<Option<Box<dyn HeldInbox>>, SessionError> {
        Ok(Some(Box::new(self.take(wait)?)))
    }

    fn hold_or_create(&self) -> Result<Box<dyn HeldInbox>, SessionError> {
        Ok(Box::new(self.take(crate::inbox::LONGEST_WAIT)?))
    }

    fn pending_within(&self, wait: LockWait) -> Result<Vec<QueuedMessage>, SessionError> {
        self.take(wait)?.pending()
    }

    fn bytes(&self) -> u64 {
        self.content.bytes()
    }

    fn watch(&self, notify: InboxCallback) -> Box<dyn InboxWatch> {
        let mut watches = self.content.watches.lock();
        watches.0 += 1;
        let id = watches.0;
        watches.1.push((id, notify));
        Box::new(MemoryWatch { content: Arc::clone(&self.content), id })
    }
}

impl Content {
    fn bytes(&self) -> u64 {
        self.pending.lock().iter().map(|(_, bytes)| bytes).sum()
    }
}

impl HeldInbox for HeldMemory {
    fn pending(&self) -> Result<Vec<QueuedMessage>, SessionError> {
        Ok(self.content.pending.lock().iter().map(|(message, _)| message.clone()).collect())
    }

    fn write(
        &mut self,
        messages: &[QueuedMessage],
        settled: &[EntryId],
        _durability: Durability,
    ) -> Result<(), SessionError> {
        let mut added = Vec::with_capacity(messages.len());
        for message in messages {
            let text = serde_json::to_vec(message)
                .map_err(|source| SessionError::Encode { path: self.name.clone(), source })?;
            added.push((message.clone(), text.len() as u64));
        }
        let more: u64 = added.iter().map(|(_, bytes)| bytes).sum();
        if !added.is_empty() && self.content.bytes() + more > MAX_BYTES {
            return Err(SessionError::InboxFull { path: self.name.clone(), limit: MAX_BYTES });
        }
        self.has_news |= !added.is_empty();
        let mut pending = self.content.pending.lock();
        pending.retain(|(message, _)| !settled.contains(&message.id));
        pending.append(&mut added);
        Ok(())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // Those who are notified find the inbox free.
        drop(self.taken.take());
        if self.has_news {
            let watches = self.content.watches.lock().1.clone();
            watches.iter().for_each(|(_, notify)| notify());
        }
    }
}

impl InboxWatch for MemoryWatch {
    fn notice_other_processes(&self) {}
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.content.watches.lock().1.retain(|(id, _)| *id != self.id);
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Content").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
