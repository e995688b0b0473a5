//! A session that is invisible until it is finished.

use std::path::Path;
use std::sync::Arc;

use myclaw_session::{
    CreateSession, Entry, LockWait, SessionError, SessionHeader, SessionKey, rows,
};
use tokio_postgres::types::Type;

use super::core::{Core, now};
use super::open::{Columns, Opened};
use super::{sql, text_of};
use crate::pool::Parameter;
use crate::read::stored;

/// Entries that are written at once.
const AT_ONCE: usize = 256;

/// A session whose entries are there and not yet counted.
#[derive(Debug)]
pub(super) struct NewSession {
    core: Arc<Core>,
    key: SessionKey,
    header: SessionHeader,
    waiting: Vec<Entry>,
    written: i64,
    inherited: i64,
    /// Released last: what was not finished is removed by the next opening.
    opened: Opened,
}

impl NewSession {
    /// Takes the place of the owner of a session that must not exist yet.
    pub(super) fn begin(
        core: &Arc<Core>,
        key: &SessionKey,
        created_at: u64,
        directory: Option<&Path>,
    ) -> Result<Self, SessionError> {
        let opened = Opened::take(core, key, LockWait::Fail)?;
        if opened.last > 0 {
            return Err(SessionError::SessionExists { key: key.clone() });
        }
        let mut header = rows::new_header(key, created_at);
        header.directory = text_of(directory);
        let core = Arc::clone(core);
        let key = key.clone();
        Ok(Self { core, key, header, waiting: Vec::new(), written: 0, inherited: 0, opened })
    }

    /// Copies the first entries of another session, up to `last`.
    pub(super) fn inherit(
        &mut self,
        from: &SessionKey,
        parent: i64,
        last: i64,
        forked_from: myclaw_session::ForkOrigin,
    ) -> Result<(), SessionError> {
        loop {
            let sealed = self.core.sealed_of(from, parent)?;
            self.copy(from, parent, sealed, last)?;
            // Also if it is still there at all.
            if self.core.sealed_of(from, parent)? == sealed {
                break;
            }
            // Some of its rows have moved meanwhile.
            self.written = 0;
            let all: [Parameter<'_>; 2] =
                [(&self.opened.id, Type::INT8), (&self.written, Type::INT8)];
            self.core.rows("fork", sql::CLEAR_UNFINISHED, &all)?;
        }
        self.inherited = self.written;
        self.header.forked_from = Some(forked_from);
        Ok(())
    }

    /// Copies the rows of `parent` up to `last`. Those up to `sealed` are in segments.
    fn copy(
        &mut self,
        from: &SessionKey,
        parent: i64,
        sealed: i64,
        last: i64,
    ) -> Result<(), SessionError> {
        if sealed > 0 {
            for segment in self.core.segments_of(parent)? {
                let count = usize::try_from(last - segment.from + 1).unwrap_or_default();
                let mut columns = Columns::default();
                for row in segment.rows(&self.core, from)?.into_iter().take(count) {
                    if row.kind != "about" {
                        columns.push(row.id, row.kind, row.body);
                    }
                }
                self.add(&columns)?;
            }
        }
        let copied: [Parameter<'_>; 5] = [
            (&self.opened.id, Type::INT8),
            (&parent, Type::INT8),
            (&last, Type::INT8),
            (&sealed, Type::INT8),
            (&self.written, Type::INT8),
        ];
        self.core.rows("fork", sql::COPY_ENTRIES, &copied)?;
        let mine: [Parameter<'_>; 1] = [(&self.opened.id, Type::INT8)];
        let rows = self.core.rows("fork", sql::COUNT_ENTRIES, &mine)?;
        self.written = rows.first().map_or(Ok(0), |row| super::core::column(row, 0))?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SessionError> {
        let columns = Columns::of(&self.opened, &self.waiting)?;
        self.waiting.clear();
        self.add(&columns)
    }

    fn add(&mut self, columns: &Columns) -> Result<(), SessionError> {
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&self.opened.id, Type::INT8), (&self.written, Type::INT8)];
        parameters.extend(columns.parameters());
        self.core.rows("write", sql::ADD_ENTRIES, &parameters)?;
        self.written += stored(columns.len() as u64);
        Ok(())
    }
}

impl CreateSession for NewSession {
    fn key(&self) -> &SessionKey {
        &self.key
    }

    fn append(&mut self, entry: &Entry) -> Result<(), SessionError> {
        self.waiting.push(entry.clone());
        if self.waiting.len() >= AT_ONCE { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<(), SessionError> {
        if !self.waiting.is_empty() {
            self.flush()?;
        }
        let (header, at) = (self.opened.encode(&self.header)?, now());
        let parameters: [Parameter<'_>; 6] = [
            (&self.opened.id, Type::INT8),
            (&self.opened.epoch, Type::INT8),
            (&self.written, Type::INT8),
            (&header, Type::TEXT),
            (&self.inherited, Type::INT8),
            (&at, Type::INT8),
        ];
        let finished = self.core.rows("write", sql::FINISH, &parameters)?;
        match finished.is_empty() {
            true => Err(SessionError::Fenced { key: self.key.clone() }),
            false => Ok(()),
        }
    }
}
