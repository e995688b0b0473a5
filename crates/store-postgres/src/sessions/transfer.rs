//! Logs that come from files or go there, line by line as they are.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use myclaw_session::rows::{self, RawLog};
use myclaw_session::{Entry, LockWait, SessionEntry, SessionError, SessionKey};
use tokio_postgres::types::Type;

use super::PostgresSessions;
use super::core::{column, now};
use super::lines::{Direction, Lines};
use super::open::{Columns, Opened};
use super::side_files::Files;
use super::{sql, taken};
use crate::pool::Parameter;
use crate::read::{number, stored};

/// Lines that are written or read at once.
const AT_ONCE: usize = 256;
/// How much longer than a lease a session is waited for.
const MORE: Duration = Duration::from_secs(1);

/// A session whose lines come from elsewhere. It is invisible until it is finished.
#[derive(Debug)]
pub struct ImportedSession {
    opened: Opened,
    waiting: Columns,
    written: i64,
    ids: HashSet<String>,
    /// Lines that a database cannot hold.
    pub left_out: usize,
}

impl PostgresSessions {
    /// Begins a session that must not exist yet.
    ///
    /// # Errors
    /// It exists, somebody else has it open, or the database cannot be used.
    pub fn import(&self, key: &SessionKey) -> Result<ImportedSession, SessionError> {
        // An import that was killed a moment ago has it as long as its lease lasts.
        let lease = Duration::from_millis(number(self.core.lease_ms));
        let opened = Opened::take(&self.core, key, LockWait::Until(lease + MORE))?;
        if opened.last > 0 {
            return Err(SessionError::SessionExists { key: key.clone() });
        }
        let (waiting, ids) = (Columns::default(), HashSet::new());
        Ok(ImportedSession { opened, waiting, written: 0, ids, left_out: 0 })
    }

    /// The keys of all sessions that exist or are listed.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn all_keys(&self) -> Result<Vec<SessionKey>, SessionError> {
        let named: [Parameter<'_>; 1] = [(&self.core.partition, Type::INT8)];
        let rows = self.core.rows("list", sql::ALL_KEYS, &named)?;
        let mut keys = Vec::with_capacity(rows.len());
        for row in &rows {
            let key: &str = column(row, 0)?;
            keys.extend(SessionKey::parse(key).ok());
        }
        Ok(keys)
    }

    /// Copies the side files of a session into `directory`, which need not exist.
    ///
    /// # Errors
    /// The database cannot be used, or the directory cannot be written.
    pub fn export_side_files(
        &self,
        key: &SessionKey,
        directory: &Path,
    ) -> Result<(), SessionError> {
        let found = self.core.rows_of(key, "read", sql::FIND, &[])?;
        let session = found.first().map(|row| column(row, 0)).transpose()?;
        session.map_or(Ok(()), |session| Files::elsewhere(directory).copy(&self.core, session))
    }

    /// Passes the lines of a session to `visit`, the header first. False if it does not exist.
    ///
    /// # Errors
    /// The database cannot be used; and those of `visit`.
    pub fn visit_lines(
        &self,
        key: &SessionKey,
        visit: &mut dyn FnMut(&str) -> Result<(), SessionError>,
    ) -> Result<bool, SessionError> {
        let found = self.core.rows_of(key, "read", sql::FIND, &[])?;
        let Some(row) = found.first() else { return Ok(false) };
        let (id, last): (i64, i64) = (column(row, 0)?, column(row, 1)?);
        let header: Option<&str> = column(row, 2)?;
        header.map_or(Ok(()), &mut *visit)?;
        let mut lines = Lines::new(&self.core, key, id, Direction::Forward(0, last));
        while let Some((_, line)) = lines.next_line()? {
            visit(&line)?;
        }
        Ok(true)
    }
}

impl ImportedSession {
    /// Adds a line, without its line feed.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn line(&mut self, line: &[u8]) -> Result<(), SessionError> {
        let body = std::str::from_utf8(line).ok().filter(|body| !body.contains('\0'));
        let Some(body) = body else {
            self.left_out += 1;
            return Ok(());
        };
        let place = self.written + stored(self.waiting.len() as u64);
        let entry = rows::read_entry(line, number(place) + 1);
        // A line that is no entry has no id in the log either. Of two with the same id, readers find the first.
        let named = entry.as_ref().filter(|_| line.windows(4).any(|part| part == b"\"id\""));
        let id = named.and_then(Entry::id).map(|id| id.as_str().to_owned());
        let id = id.filter(|id| self.ids.insert(id.clone()));
        self.waiting.push(id, entry.as_ref().map_or("other", Columns::kind_of), body.to_owned());
        if self.waiting.len() >= AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Adds the side files in `directory`, which need not exist.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn side_files(&self, directory: &Path) -> Result<(), SessionError> {
        let place = (self.opened.id, self.opened.epoch);
        Files::elsewhere(directory).keep(self.opened.core(), place, true)
    }

    /// Makes the session visible, and lists it with this entry.
    ///
    /// # Errors
    /// The database cannot be used, or somebody else has opened the session.
    pub fn finish(
        mut self,
        log: &RawLog,
        entry: Option<&SessionEntry>,
    ) -> Result<(), SessionError> {
        self.flush()?;
        let (inherited, at) = (stored(log.inherited), now());
        let at = entry.map_or(at, |entry| stored(entry.updated_at));
        let parameters: [Parameter<'_>; 6] = [
            (&self.opened.id, Type::INT8),
            (&self.opened.epoch, Type::INT8),
            (&self.written, Type::INT8),
            (&log.header, Type::TEXT),
            (&inherited, Type::INT8),
            (&at, Type::INT8),
        ];
        let core = self.opened.core();
        if let Some(entry) = entry {
            let listed = self.opened.encode(entry)?;
            // It is given back when this is dropped.
            let no_epoch: Option<i64> = None;
            let set: [Parameter<'_>; 5] = [
                (&self.opened.id, Type::INT8),
                (&listed, Type::TEXT),
                (&at, Type::INT8),
                (&entry.in_turn, Type::BOOL),
                (&no_epoch, Type::INT8),
            ];
            core.rows("list", sql::SET_LISTED, &set)?;
        }
        // Last, so that a session that exists is complete.
        if core.rows("write", sql::FINISH, &parameters)?.is_empty() {
            return Err(SessionError::Fenced { key: log.key.clone() });
        }
        // Otherwise the first turn does it.
        taken::learn(core, &log.key)
    }

    fn flush(&mut self) -> Result<(), SessionError> {
        if self.waiting.len() == 0 {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&self.opened.id, Type::INT8), (&self.written, Type::INT8)];
        parameters.extend(waiting.parameters());
        self.opened.core().rows("write", sql::ADD_ENTRIES, &parameters)?;
        self.written += stored(waiting.len() as u64);
        Ok(())
    }
}
