//! Reads a session while it may be written.

use std::ops::ControlFlow;
use std::sync::Arc;

use myclaw_session::{
    About, CompactionEntry, Entry, EntryId, ReadEntries, ReadSession, SessionError, SessionHeader,
    SessionKey, Tail, TailLimit, TranscriptMessage, rows,
};
use tokio_postgres::types::Type;

use super::core::{Core, column};
use super::lines::{Direction, Lines};
use super::sql;
use crate::pool::Parameter;
use crate::read::number;

/// More rows than the last turns have.
const RECENT: i64 = 1_000;

/// A session as it was when it was opened for reading.
#[derive(Debug)]
pub(super) struct PostgresReader {
    core: Arc<Core>,
    key: SessionKey,
    pub(super) id: i64,
    pub(super) last: i64,
    pub(super) header: SessionHeader,
    inherited: i64,
    sealed: i64,
}

/// Entries in one direction.
pub(super) struct Rows<'r> {
    lines: Lines<'r>,
    is_backward: bool,
    is_over: bool,
    skipped: usize,
    /// Time of the message before, for those without one.
    time: u64,
}

impl PostgresReader {
    /// `None` if there is no such session.
    pub(super) fn open(core: &Arc<Core>, key: &SessionKey) -> Result<Option<Self>, SessionError> {
        let found = core.rows_of(key, "read", sql::FIND, &[])?;
        let Some(row) = found.first() else { return Ok(None) };
        let header: Option<String> = column(row, 2)?;
        let header = header.and_then(|header| rows::read_header(header.as_bytes()));
        Ok(Some(Self {
            core: Arc::clone(core),
            key: key.clone(),
            id: column(row, 0)?,
            last: column(row, 1)?,
            header: header.unwrap_or_else(|| SessionHeader::new(key.as_str(), 0)),
            inherited: column(row, 3)?,
            sealed: column(row, 4)?,
        }))
    }

    /// The entries behind `after`.
    pub(super) fn forward(&self, after: i64) -> Rows<'_> {
        self.rows(Direction::Forward(after, self.last))
    }

    /// The entries before `before`, the newest first.
    pub(super) fn backward(&self, before: i64) -> Rows<'_> {
        self.rows(Direction::Backward(before, 1))
    }

    fn rows(&self, direction: Direction) -> Rows<'_> {
        Rows {
            lines: Lines::new(&self.core, &self.key, self.id, direction),
            is_backward: matches!(direction, Direction::Backward(..)),
            is_over: false,
            skipped: 0,
            time: self.header.created_at,
        }
    }

    pub(super) fn tail_within(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        let mut newest_first = self.backward(self.last + 1);
        let tail = rows::read_tail(&mut newest_first, limit)?;
        Ok(Tail { skipped_lines: newest_first.skipped, ..tail })
    }

    /// The place and the kind of an entry.
    pub(super) fn place(&self, id: EntryId) -> Result<Option<(i64, String)>, SessionError> {
        let text = id.as_str();
        let parameters: [Parameter<'_>; 3] =
            [(&self.id, Type::INT8), (&text, Type::TEXT), (&self.last, Type::INT8)];
        match self.core.rows("read", sql::PLACE, &parameters)?.first() {
            Some(row) => Ok(Some((column(row, 0)?, column(row, 1)?))),
            None => match self.core.sealed_place(&self.key, self.id, id)? {
                None => self.none(),
                sealed => Ok(sealed),
            },
        }
    }

    /// The entries, the newest first, for something of the last turns: without those that are sealed, if more than enough others
    /// are there.
    pub(super) fn recent(&self) -> Rows<'_> {
        let first = if self.last - self.sealed >= RECENT { self.sealed + 1 } else { 1 };
        self.rows(Direction::Backward(self.last + 1, first))
    }

    /// Passes the messages among them to `visit`.
    pub(super) fn visit_recent(
        &self,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        for entry in self.recent() {
            if let Entry::Message(message) = entry?
                && visit(message).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// Whether a part of it is in the object storage.
    pub(super) fn has_sealed(&self) -> bool {
        self.sealed > 0
    }

    /// That something is not in the session, unless the session is gone.
    fn none<T>(&self) -> Result<Option<T>, SessionError> {
        self.core.sealed_of(&self.key, self.id).map(|_| None)
    }

    /// The entry of the row that a statement finds.
    fn found(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Option<Entry>, SessionError> {
        let found = self.core.rows("read", sql, parameters)?;
        let Some(row) = found.first() else { return self.none() };
        let (place, body): (i64, &str) = (column(row, 0)?, column(row, 1)?);
        Ok(rows::read_entry(body.as_bytes(), number(place)))
    }
}

impl ReadSession for PostgresReader {
    fn describe(&self) -> String {
        self.core.place(&self.key).display().to_string()
    }

    fn header(&self) -> Result<Option<SessionHeader>, SessionError> {
        Ok(Some(self.header.clone()))
    }

    fn about(&self) -> Result<About, SessionError> {
        let wanted: [Parameter<'_>; 2] = [(&self.id, Type::INT8), (&self.inherited, Type::INT8)];
        Ok(match self.found(sql::LAST_ABOUT, &wanted)? {
            Some(Entry::About(entry)) => entry.about,
            _ => About::default(),
        })
    }

    fn entries(&self) -> Box<dyn ReadEntries + '_> {
        Box::new(self.forward(0))
    }

    fn tail(&self, limit: TailLimit) -> Result<Tail, SessionError> {
        self.tail_within(limit)
    }

    fn last_compaction(&self) -> Result<Option<CompactionEntry>, SessionError> {
        // It is never sealed.
        let wanted: [Parameter<'_>; 4] = [
            (&self.id, Type::INT8),
            (&"compaction", Type::TEXT),
            (&0_i64, Type::INT8),
            (&self.last, Type::INT8),
        ];
        Ok(match self.found(sql::LAST_OF_KIND, &wanted)? {
            Some(Entry::Compaction(compaction)) => Some(compaction),
            _ => None,
        })
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
        rows::fill_missing_times(&mut messages, self.header.created_at);
        Ok(is_found.then_some(messages))
    }

    fn visit_before(
        &self,
        before: Option<EntryId>,
        visit: &mut dyn FnMut(TranscriptMessage) -> ControlFlow<()>,
    ) -> Result<bool, SessionError> {
        let from = match before.map(|id| self.place(id)).transpose()? {
            None => self.last + 1,
            Some(Some((place, kind))) if kind == "message" => place,
            Some(_) => return Ok(false),
        };
        for entry in self.backward(from) {
            if let Entry::Message(message) = entry?
                && visit(message).is_break()
            {
                break;
            }
        }
        Ok(true)
    }

    fn torn_bytes(&self) -> Result<u64, SessionError> {
        Ok(0)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Entry, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let (place, body) = match self.lines.next_line() {
                Ok(line) => line?,
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            };
            let Some(mut entry) = rows::read_entry(body.as_bytes(), number(place)) else {
                self.skipped += 1;
                continue;
            };
            if let Entry::Message(message) = &mut entry
                && !self.is_backward
            {
                if message.ts == 0 {
                    message.ts = self.time;
                }
                self.time = message.ts;
            }
            return Some(Ok(entry));
        }
        None
    }
}

impl ReadEntries for Rows<'_> {
    fn skipped_lines(&self) -> usize {
        self.skipped
    }
}
