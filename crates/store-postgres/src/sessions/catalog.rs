//! The catalog of the sessions in a database.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::now_ms;
use myclaw_session::{
    About, AboutEntry, Catalog, CreateSession, EntryId, Fork, ForkOrigin, IndexRepair,
    IndexedSession, LockWait, MetaPatch, MovedAside, OpenSession, PruneReport, PruneScope,
    ReadSession, SearchQuery, SearchReport, SearchScope, SessionEntry, SessionError, SessionKey,
    Sessions, indexed_title, rows,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::core::{column, quiet_patch};
use super::create::NewSession;
use super::open::Opened;
use super::{PostgresSessions, fork, search, sql};
use crate::pool::Parameter;
use crate::read::{number, stored};

/// Entries of the list that are read at once.
const AT_ONCE: i64 = 500;
/// How many sessions are counted one by one.
const MOST_COUNTED: i64 = 20_000;

/// An entry of the list, from its columns.
fn entry_of(listed: &str, at: i64, in_turn: bool) -> Option<SessionEntry> {
    let entry: SessionEntry = serde_json::from_str(listed).ok()?;
    let written = if in_turn { number(at) } else { 0 };
    Some(SessionEntry { updated_at: entry.updated_at.max(written), in_turn, ..entry })
}

impl PostgresSessions {
    fn existing(&self, key: &SessionKey) -> Result<super::PostgresReader, SessionError> {
        self.reader(key)?.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })
    }

    /// Passes the list on, the latest first, until `take` breaks off.
    fn list(
        &self,
        take: &mut dyn FnMut(&Row) -> Result<ControlFlow<()>, SessionError>,
    ) -> Result<(), SessionError> {
        self.list_of(sql::LIST, take)
    }

    /// The same of a part of the list.
    fn list_of(
        &self,
        statement: &str,
        take: &mut dyn FnMut(&Row) -> Result<ControlFlow<()>, SessionError>,
    ) -> Result<(), SessionError> {
        let (mut at, mut key) = (i64::MAX, String::new());
        loop {
            let parameters: [Parameter<'_>; 4] = [
                (&self.core.partition, Type::INT8),
                (&at, Type::INT8),
                (&key, Type::TEXT),
                (&AT_ONCE, Type::INT8),
            ];
            let found = self.core.rows("list", statement, &parameters)?;
            if found.is_empty() {
                return Ok(());
            }
            for row in &found {
                (key, at) = (column(row, 0)?, column(row, 2)?);
                if take(row)?.is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// The `limit` latest sessions of the list that fit.
    fn latest_of(
        &self,
        limit: usize,
        fits: impl Fn(&IndexedSession) -> bool,
    ) -> Result<Vec<IndexedSession>, SessionError> {
        let mut latest = Vec::new();
        if limit > 0 {
            self.list(&mut |row| {
                latest.extend(listed(row)?.filter(&fits));
                Ok(if latest.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
        }
        Ok(latest)
    }

    fn count_listed(&self) -> Result<usize, SessionError> {
        let parameters: [Parameter<'_>; 2] =
            [(&self.core.partition, Type::INT8), (&MOST_COUNTED, Type::INT8)];
        let counted = self.core.rows("list", sql::COUNT_LISTED, &parameters)?;
        let count: i64 = counted.first().map_or(Ok(0), |row| column(row, 0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Deletes a session, unless somebody has written to it since `oldest_kept`. Returns whether it was deleted.
    fn delete_old(&self, key: &SessionKey, oldest_kept: i64) -> Result<bool, SessionError> {
        let opened = Opened::take(&self.core, key, LockWait::Fail)?;
        // Between the list and the taking, a turn may have come and gone.
        let listed = Catalog::entry(self, key)?;
        let is_old = listed.is_some_and(|entry| stored(entry.updated_at) < oldest_kept);
        if is_old {
            self.clear(key, &opened)?;
        }
        Ok(is_old)
    }

    /// Deletes what belongs to a session that this process owns. Returns whether it existed or was listed.
    fn clear(&self, key: &SessionKey, opened: &Opened) -> Result<bool, SessionError> {
        let is_listed = Catalog::entry(self, key)?.is_some();
        self.core.remove_side_files(&key.slug())?;
        let blobs = self.core.rows_of(key, "delete", sql::BLOBS_OF, &[])?;
        let blobs: Vec<i64> = blobs.iter().map(|row| column(row, 0)).collect::<Result<_, _>>()?;
        let epoch: [Parameter<'_>; 1] = [(&opened.epoch, Type::INT8)];
        self.core.rows_of(key, "delete", sql::DELETE, &epoch)?;
        self.core.kept.clear(key.as_str());
        self.core.drop_blobs(&blobs);
        Ok(is_listed || opened.last > 0)
    }
}

/// The session of a row of the list.
fn listed(row: &Row) -> Result<Option<IndexedSession>, SessionError> {
    let (key, text): (&str, &str) = (column(row, 0)?, column(row, 1)?);
    let entry = entry_of(text, column(row, 2)?, column(row, 3)?);
    Ok(entry.zip(key.parse().ok()).map(|(entry, key)| IndexedSession { key, entry }))
}

impl Catalog for PostgresSessions {
    fn exists(&self, key: &SessionKey) -> bool {
        self.reader(key).is_ok_and(|reader| reader.is_some())
    }

    fn has_any(&self) -> bool {
        let partition: [Parameter<'_>; 1] = [(&self.core.partition, Type::INT8)];
        self.core.rows("list", sql::HAS_ANY, &partition).is_ok_and(|rows| !rows.is_empty())
    }

    fn describe(&self, key: &SessionKey) -> String {
        Sessions::describe(self, key)
    }

    fn directory_of(&self, key: &SessionKey) -> Result<Option<PathBuf>, SessionError> {
        Ok(self.header(key)?.and_then(|header| header.directory).map(PathBuf::from))
    }

    fn read(&self, key: &SessionKey) -> Result<Option<Box<dyn ReadSession>>, SessionError> {
        Ok(self.reader(key)?.map(|reader| Box::new(reader) as Box<dyn ReadSession>))
    }

    fn entry(&self, key: &SessionKey) -> Result<Option<SessionEntry>, SessionError> {
        let found = self.core.rows_of(key, "list", sql::LISTED, &[])?;
        let Some(row) = found.first() else { return Ok(None) };
        Ok(entry_of(column(row, 0)?, column(row, 1)?, column(row, 2)?))
    }

    fn latest(&self, limit: usize) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        Ok((self.latest_of(limit, |_| true)?, self.count_listed()?))
    }

    /// Of the sessions without labels none is read but those that are given back.
    fn latest_labelled(
        &self,
        limit: usize,
        with: &[&str],
        without: &[&str],
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        let fits = |session: &IndexedSession| {
            About::from_extra(session.entry.extra.as_ref()).fits(with, without)
        };
        let mut labelled = Vec::new();
        self.list_of(sql::LABELLED, &mut |row| {
            labelled.extend(listed(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        let all = labelled.len();
        labelled.retain(fits);
        let fitting = labelled.len();
        if with.is_empty() {
            let count = self.count_listed()?.saturating_sub(all - fitting);
            return Ok((self.latest_of(limit, fits)?, count));
        }
        labelled.truncate(limit);
        Ok((labelled, fitting))
    }

    fn latest_keys(
        &self,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<SessionKey>, SessionError> {
        let mut keys: Vec<SessionKey> = Vec::new();
        if limit > 0 {
            self.list(&mut |row| {
                let key: &str = column(row, 0)?;
                if is_wanted(key) {
                    keys.extend(key.parse::<SessionKey>());
                }
                Ok(if keys.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
        }
        Ok(keys)
    }

    fn visit(
        &self,
        visit: &mut dyn FnMut(IndexedSession) -> ControlFlow<()>,
    ) -> Result<(), SessionError> {
        self.list(&mut |row| Ok(listed(row)?.map_or(ControlFlow::Continue(()), &mut *visit)))
    }

    fn find(
        &self,
        query: &SearchQuery,
        limit: usize,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(Vec<IndexedSession>, usize), SessionError> {
        let (mut found, mut count) = (Vec::new(), 0);
        Catalog::visit(self, &mut |session| {
            let key = session.key.as_str();
            let title = || indexed_title(session.entry.extra.as_ref());
            let is_titled = || title().is_some_and(|title| rows::matches(query, &title));
            if is_wanted(key) || rows::matches(query, key) || is_titled() {
                count += 1;
                found.extend((found.len() < limit).then_some(session));
            }
            ControlFlow::Continue(())
        })?;
        Ok((found, count))
    }

    fn search(
        &self,
        query: &SearchQuery,
        scope: &SearchScope,
        limit: usize,
    ) -> Result<SearchReport, SessionError> {
        search::search(&self.core, query, scope, limit)
    }

    fn update(&self, key: &SessionKey, patch: MetaPatch) -> Result<SessionEntry, SessionError> {
        self.core.record(key, &patch)
    }

    fn change_about(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: &mut dyn FnMut(&mut About),
    ) -> Result<About, SessionError> {
        self.existing(key)?;
        let mut opened = Opened::take(&self.core, key, wait)?;
        // It may have been deleted meanwhile.
        let before = self.existing(key)?.about()?;
        let mut about = before.clone();
        change(&mut about);
        if about != before {
            opened.append(opened.end(), &[AboutEntry::new(about.clone()).into()])?;
        }
        let extra = Some(rows::about_fields(&about));
        self.core.record(key, &MetaPatch { extra, ..quiet_patch() })?;
        Ok(about)
    }

    fn fork(
        &self,
        from: &SessionKey,
        at: Option<EntryId>,
        to: &SessionKey,
    ) -> Result<Fork, SessionError> {
        let parent = self.existing(from)?;
        if from == to || self.reader(to)?.is_some() {
            return Err(SessionError::SessionExists { key: to.clone() });
        }
        let (count, last) = fork::cut(&self.core, &parent, from, at)?;
        let directory = parent.header.directory.as_deref().map(Path::new);
        let mut child = NewSession::begin(&self.core, to, now_ms(), directory)?;
        let origin = ForkOrigin { session_key: from.to_string(), entry_id: Some(last) };
        child.inherit(from, parent.id, count, origin.clone())?;
        Box::new(child).finish()?;
        self.core.record(to, &rows::fork_patch(to, &origin))?;
        Ok(Fork { origin, skipped_lines: 0 })
    }

    fn create(
        &self,
        key: &SessionKey,
        created_at: u64,
        directory: Option<&Path>,
    ) -> Result<Box<dyn CreateSession>, SessionError> {
        Ok(Box::new(NewSession::begin(&self.core, key, created_at, directory)?))
    }

    fn change_kept(
        &self,
        wait: LockWait,
        change: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Result<bool, SessionError> {
        self.change_all(wait, change)
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, SessionError> {
        let opened = Opened::take(&self.core, key, LockWait::Fail)?;
        self.clear(key, &opened)
    }

    fn prune(&self, max_age: Duration, scope: PruneScope) -> Result<PruneReport, SessionError> {
        let max_age = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let oldest_kept = stored(now_ms().saturating_sub(max_age));
        let parameters: [Parameter<'_>; 2] =
            [(&self.core.partition, Type::INT8), (&oldest_kept, Type::INT8)];
        let mut report = PruneReport::default();
        for row in self.core.rows("list", sql::OLD, &parameters)? {
            let key: &str = column(&row, 0)?;
            let key: SessionKey = key.parse()?;
            match scope {
                PruneScope::IndexOnly => {
                    self.core.rows_of(&key, "take off the list", sql::UNLIST, &[])?;
                }
                PruneScope::WithTranscripts => match self.delete_old(&key, oldest_kept) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        report.kept.push((key, error));
                        continue;
                    }
                },
            }
            report.removed.push(key);
        }
        Ok(report)
    }

    fn adopt(&self) -> Result<usize, SessionError> {
        Ok(0)
    }

    fn moved_aside(&self, _of: Option<&SessionKey>) -> Result<Vec<MovedAside>, SessionError> {
        Ok(Vec::new())
    }

    fn take_repairs(&self) -> Vec<IndexRepair> {
        Vec::new()
    }
}
