//! Reads a session in memory while it may be written.

use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::MutexGuard;

use super::{Content, Session, place_of};
use crate::tail::fill_missing_times;
use crate::{
    About, CompactionEntry, Entry, EntryId, ReadEntries, ReadSession, SessionError, SessionHeader,
    Tail, TailLimit, TranscriptMessage,
};

#[derive(Debug)]
pub(super) struct MemoryReader {
    session: Arc<Session>,
    /// Another session may get its key.
    id: String,
}

#[derive(Debug)]
struct MemoryEntries<'a> {
    reader: &'a MemoryReader,
    next: usize,
    /// Time of the message yielded last.
    last_ts: Option<u64>,
}

impl MemoryReader {
    pub(super) fn new(session: Arc<Session>) -> Self {
        let id = session.content.lock().id.clone();
        Self { session, id }
    }

    /// What is in the session, unless it was deleted meanwhile.
    fn content(&self) -> Result<MutexGuard<'_, Content>, SessionError> {
        let content = self.session.content.lock();
        if content.id == self.id {
            return Ok(content);
        }
        Err(SessionError::NoSuchSession { key: self.session.key.clone() })
    }
}

impl ReadSession for MemoryReader {
    fn describe(&self) -> String {
        place_of(&self.session.key)
    }

    fn header(&self) -> Result<Option<SessionHeader>, SessionError> {
        let content = self.content()?;
        let header = SessionHeader::new(self.session.key.as_str(), content.document.created_at());
        Ok(Some(SessionHeader {
            session_id: Some(content.id.clone()),
            forked_from: content.forked_from.clone(),
            ..header.in_directory(content.directory.as_deref())
        }))
    }

    fn about(&self) -> Result<About, SessionError> {
        let content = self.content()?;
        let own = content.document.entries().get(content.inherited..).unwrap_or_default();
        let about = own.iter().rev().find_map(|entry| match entry {
            Entry::About(entry) => Some(entry.about.clone()),
            _ => None,
        });
        Ok(about.unwrap_or_default())
    }

    fn entries(&self) -> Box<dyn ReadEntries + '_> {
        Box::new(MemoryEntries { reader: self, next: 0, last_ts: None })
    }

    fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        Ok(self.content()?.document.tail(limit))
    }

    fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError> {
        let content = self.content()?;
        Ok(content.document.entries().iter().rev().find_map(|entry| match entry {
            Entry::Compaction(compaction) => Some(compaction.clone()),
            _ => None,
        }))
    }

    fn messages_before(
        &self,
        before: Option<EntryId>,
        count: usize,
    ) -> Result<Option<Vec<TranscriptMessage>>, SessionError> {
        let mut messages = Vec::new();
        let is_found = self.visit_before(before, &mut |message| {
            if messages.len() == count {
                return ControlFlow::Break(());
            }
            messages.push(message);
            ControlFlow::Continue(())
        })?;
        messages.reverse();
        let created_at = self.content()?.document.created_at();
        fill_missing_times(&mut messages, || created_at);
        Ok(is_found.then_some(messages))
    }

    fn visit_before(
        &self,
        before: Option<EntryId>,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<bool, SessionError> {
        let mut sought = before;
        self.content()?.document.visit_newest(&mut |message| match sought {
            None => visit(message),
            Some(id) => {
                sought = (id != message.id).then_some(id);
                ControlFlow::Continue(())
            }
        });
        Ok(sought.is_none())
    }

    fn torn_bytes(&self) -> Result<u64, SessionError> {
        Ok(0)
    }
}

impl Iterator for MemoryEntries<'_> {
    type Item = Result<Entry, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        let content = match self.reader.content() {
            Ok(content) => content,
            Err(_) if self.next == usize::MAX => return None,
            Err(error) => {
                self.next = usize::MAX;
                return Some(Err(error));
            }
        };
        let mut entry = content.document.entries().get(self.next)?.clone();
        self.next += 1;
        if let Entry::Message(message) = &mut entry {
            let created_at = content.document.created_at();
            if message.ts == 0 {
                message.ts = self.last_ts.unwrap_or(created_at);
            }
            self.last_ts = Some(message.ts);
        }
        Some(Ok(entry))
    }
}

impl ReadEntries for MemoryEntries<'_> {
    fn skipped_lines(&self) -> usize {
        0
    }
}
