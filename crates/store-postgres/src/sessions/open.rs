//! A session that is open for writing.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use myclaw_files::{hex, now_ms};
use myclaw_session::{
    Entry, EntryId, Epoch, LockWait, LogEnd, MetaPatch, OpenSession, SessionError, SessionKey,
    SyncHandle, Tail, TailLimit, rows,
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio_postgres::types::Type;

use super::core::{Core, OpenHere, column, now};
use super::reader::PostgresReader;
use super::side_files::Files;
use super::taken::taken_by;
use super::{sql, text_of};
use crate::pool::Parameter;
use crate::read::{number, stored};

/// Between two looks whether a session is free.
const PAUSE: Duration = Duration::from_millis(20);

/// A session that this process owns until the value is dropped, or somebody else takes it.
#[derive(Debug)]
pub(super) struct Opened {
    core: Arc<Core>,
    key: SessionKey,
    pub(super) id: i64,
    pub(super) epoch: i64,
    /// How many entries it has.
    pub(super) last: i64,
    work: Option<PathBuf>,
    end: LogEnd,
    /// The number of its side files in the database, and these files if they belong to what is done with the session.
    version: i64,
    files: Option<Files>,
}

/// Entries as columns.
#[derive(Debug, Default)]
pub(super) struct Columns {
    ids: Vec<Option<String>>,
    kinds: Vec<Cow<'static, str>>,
    bodies: Vec<String>,
}

impl Opened {
    /// Takes a session, as soon as it is free.
    pub(super) fn take(
        core: &Arc<Core>,
        key: &SessionKey,
        wait: LockWait,
    ) -> Result<Self, SessionError> {
        let mut random = [0; 16];
        // Without random numbers another owner of this process could seem to be this one, so the time is in it too.
        let _ = SystemRandom::new().fill(&mut random);
        let owner = format!("{} {} {}", std::process::id(), now_ms(), hex(&random));
        let longest = match wait {
            LockWait::Fail => Duration::ZERO,
            LockWait::Until(longest) => longest,
        };
        let began = Instant::now();
        loop {
            let named: [Parameter<'_>; 2] = [(&owner, Type::TEXT), (&core.lease_ms, Type::INT8)];
            let taken = core.rows_of(key, "open", sql::TAKE, &named)?;
            if let Some(row) = taken.first() {
                let (id, epoch, last) = (column(row, 0)?, column(row, 1)?, column(row, 2)?);
                let here = OpenHere { id, epoch, begins_turn: false, is_given_back: false };
                core.opened.lock().insert(key.as_str().to_owned(), here);
                let opened = Self {
                    core: Arc::clone(core),
                    key: key.clone(),
                    id,
                    epoch,
                    last,
                    work: None,
                    end: LogEnd::of_opening(Epoch(number(epoch))),
                    version: column(row, 3)?,
                    files: None,
                };
                if last == 0 {
                    let parameters: [Parameter<'_>; 2] = [(&id, Type::INT8), (&last, Type::INT8)];
                    core.rows("open", sql::CLEAR_UNFINISHED, &parameters)?;
                }
                return Ok(opened);
            }
            if core.rows_of(key, "open", sql::IN_USE, &[])?.is_empty() {
                // It is new, or was deleted or released between the two statements.
                core.rows_of(key, "open", sql::ADD, &[])?;
                continue;
            }
            let waited = began.elapsed();
            if waited >= longest {
                return Err(SessionError::Locked {
                    path: core.place(key),
                    process_id: None,
                    waited,
                });
            }
            thread::sleep(PAUSE.min(longest));
        }
    }

    pub(super) fn for_work_in(mut self, directory: Option<PathBuf>) -> Self {
        self.work = directory;
        self
    }

    /// Makes the side files on this machine those of the session.
    pub(super) fn with_files(mut self) -> Result<Self, SessionError> {
        let mut files = Files::new(&self.core.scratch, self.key.slug(), self.key.as_str());
        // What is half fetched must not be stored at the end.
        files.fetch(&self.core, self.id, self.version)?;
        self.files = Some(files);
        Ok(self)
    }

    /// Stores what is new of the side files.
    fn keep_files(&mut self, is_end: bool) -> Result<(), SessionError> {
        let (core, place) = (&self.core, (self.id, self.epoch));
        self.files.as_mut().map_or(Ok(()), |files| files.keep(core, place, is_end))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The messages among those that an append takes in that are not in the database.
    fn kept_of(&self, taken: &[String]) -> Vec<EntryId> {
        let kept = self.core.kept.of(self.key.as_str()).into_iter().map(|message| message.id);
        kept.filter(|id| taken.iter().any(|taken| taken == id.as_str())).collect()
    }

    fn fenced(&self) -> SessionError {
        SessionError::Fenced { key: self.key.clone() }
    }

    /// The header of the log, if this append begins it.
    fn header(&self, entries: &[Entry]) -> Result<String, SessionError> {
        let first = entries.first().and_then(Entry::ts).filter(|time| *time > 0);
        let mut header = rows::new_header(&self.key, first.unwrap_or_else(now_ms));
        header.directory = text_of(self.work.as_deref());
        self.encode(&header)
    }

    pub(super) fn encode(&self, value: &impl serde::Serialize) -> Result<String, SessionError> {
        encode(&self.core, &self.key, value)
    }
}

fn encode(
    core: &Core,
    key: &SessionKey,
    value: &impl serde::Serialize,
) -> Result<String, SessionError> {
    serde_json::to_string(value)
        .map_err(|source| SessionError::Encode { path: core.place(key), source })
}

impl Columns {
    pub(super) fn of(opened: &Opened, entries: &[Entry]) -> Result<Self, SessionError> {
        let mut columns = Self::default();
        for entry in entries {
            let id = entry.id().map(|id| id.as_str().to_owned());
            columns.push(id, Self::kind_of(entry), opened.encode(entry)?);
        }
        Ok(columns)
    }

    pub(super) fn push(
        &mut self,
        id: Option<String>,
        kind: impl Into<Cow<'static, str>>,
        body: String,
    ) {
        self.ids.push(id);
        self.kinds.push(kind.into());
        self.bodies.push(body);
    }

    pub(super) fn kind_of(entry: &Entry) -> &'static str {
        match entry {
            Entry::Message(_) => "message",
            Entry::Compaction(_) => "compaction",
            Entry::About(_) => "about",
            _ => "other",
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bodies.len()
    }

    pub(super) fn parameters(&self) -> [Parameter<'_>; 3] {
        [
            (&self.ids, Type::TEXT_ARRAY),
            (&self.kinds, Type::TEXT_ARRAY),
            (&self.bodies, Type::TEXT_ARRAY),
        ]
    }
}

impl OpenSession for Opened {
    fn end(&self) -> LogEnd {
        self.end
    }

    fn append(&mut self, after: LogEnd, entries: &[Entry]) -> Result<LogEnd, SessionError> {
        if after != self.end {
            return Err(self.fenced());
        }
        if entries.is_empty() {
            return Ok(self.end);
        }
        // A row that names a file never comes before the file.
        self.keep_files(false)?;
        let columns = Columns::of(self, entries)?;
        let (count, header, at) = (stored(entries.len() as u64), self.header(entries)?, now());
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&self.id, Type::INT8),
            (&self.epoch, Type::INT8),
            (&self.last, Type::INT8),
            (&count, Type::INT8),
            (&header, Type::TEXT),
            (&at, Type::INT8),
        ];
        parameters.extend(columns.parameters());
        let taken: Vec<String> = entries.iter().flat_map(taken_by).collect();
        let kept = self.kept_of(&taken);
        let kept_ids: Vec<&str> = kept.iter().map(EntryId::as_str).collect();
        let here = self.core.open_here(&self.key).filter(|here| here.epoch == self.epoch);
        let begins_turn = here.is_some_and(|here| here.begins_turn);
        let again = here.filter(|here| here.is_given_back).map(|_| self.core.lease_ms);
        parameters.push((&taken, Type::TEXT_ARRAY));
        parameters.push((&kept_ids, Type::TEXT_ARRAY));
        parameters.push((&begins_turn, Type::BOOL));
        parameters.push((&again, Type::INT8));
        let appended = self.core.rows("append to", sql::APPEND, &parameters)?;
        let is_listed = appended.first().map(|row| column::<bool>(row, 0)).transpose()?;
        if is_listed.is_none() {
            // Refused; or this is a second attempt after one that had no answer. Under this epoch nobody else appends.
            let mine: [Parameter<'_>; 2] = [(&self.id, Type::INT8), (&self.epoch, Type::INT8)];
            let rows = self.core.rows("append to", sql::END, &mine)?;
            let last: Option<i64> = rows.first().map(|row| column(row, 0)).transpose()?;
            if last != Some(self.last + count) {
                // Somebody else has the session, or has taken in what is kept for it.
                self.core.kept.clear(self.key.as_str());
                return Err(self.fenced());
            }
        }
        self.core.change_open(self.key.as_str(), self.epoch, |here| {
            (here.begins_turn, here.is_given_back) = (false, false);
        });
        if !taken.is_empty() {
            let key = self.key.as_str().to_owned();
            self.core.kept.change(&key, &kept, &[]);
            self.core.taken.lock().entry(key).or_default().extend(taken);
        }
        if begins_turn && is_listed != Some(true) {
            // A failure is left to the update at the end of the turn.
            let patch = MetaPatch { in_turn: Some(true), ..MetaPatch::default() };
            drop(self.core.record(&self.key, &patch));
        }
        self.last += count;
        self.end = self.end.behind(entries.len());
        Ok(self.end)
    }

    fn tail(&mut self, limit: TailLimit) -> Result<Tail, SessionError> {
        match PostgresReader::open(&self.core, &self.key)? {
            Some(reader) if reader.id == self.id => reader.tail_within(limit),
            None if self.last == 0 => rows::read_tail(std::iter::empty(), limit),
            // Somebody else took it and deleted it.
            _ => Err(self.fenced()),
        }
    }

    fn sync_handle(&self) -> SyncHandle {
        // What was appended is durable.
        SyncHandle::new(|| Ok(()))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Err(error) = self.keep_files(true) {
            let session = self.key.as_str();
            tracing::warn!(session, %error, "the newest side files are not in the database yet; the next run here stores them");
        }
        let here = self.core.open_here(&self.key).filter(|here| here.epoch == self.epoch);
        if here.is_some() {
            self.core.opened.lock().remove(self.key.as_str());
        }
        self.core.taken.lock().remove(self.key.as_str());
        self.core.kept.tidy_up(self.key.as_str());
        let mine: [Parameter<'_>; 2] = [(&self.id, Type::INT8), (&self.epoch, Type::INT8)];
        if here.is_none_or(|here| !here.is_given_back) {
            // Where this fails, the lease ends by itself.
            drop(self.core.rows("close", sql::RELEASE, &mine));
        }
    }
}
