//! Changes what is kept of a tenant in its place, such as words that are to be forgotten: rows of logs, what waits, the list,
//! side files and records. Nothing gets another length, so everything that names a part of it stays right.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use myclaw_session::{LockWait, SessionError, SessionKey};
use tokio_postgres::types::{ToSql, Type};

use super::blobs::Blob;
use super::core::{Core, column, failed_io};
use super::in_parts::{Change, InParts};
use super::lines::{Direction, END_UNKNOWN, Lines};
use super::open::Opened;
use super::segments::Facts;
use super::{PostgresSessions, sql};
use crate::pool::Parameter;

/// Rows that are read at once.
const AT_ONCE: i64 = 256;
/// Records that are sealed or are secrets, and hold no words.
const SEALED: [&str; 3] = ["keys", "renewal", "node-secret"];

impl PostgresSessions {
    /// Changes everything. A session that has something to change is opened first, so nobody writes to it meanwhile. True if
    /// something was changed.
    pub(super) fn change_all(
        &self,
        wait: LockWait,
        change: Change<'_>,
    ) -> Result<bool, SessionError> {
        // Old parts stay where they are meanwhile.
        self.core.is_changing.store(true, Ordering::SeqCst);
        let changed = self.change_each(wait, change);
        self.core.is_changing.store(false, Ordering::SeqCst);
        changed
    }

    fn change_each(&self, wait: LockWait, change: Change<'_>) -> Result<bool, SessionError> {
        let partition: [Parameter<'_>; 1] = [(&self.core.partition, Type::INT8)];
        let mut is_changed = false;
        for row in &self.core.rows("list", sql::ALL_KEYS, &partition)? {
            let key: &str = column(row, 0)?;
            if let Ok(key) = key.parse::<SessionKey>() {
                is_changed |= self.change_session(&key, wait, change)?;
            }
        }
        let core = &self.core;
        is_changed |= change_texts(core, sql::WAITING_TEXTS, sql::SET_WAITING, change)?;
        Ok(is_changed | change_records(core, change)?)
    }

    fn change_session(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: Change<'_>,
    ) -> Result<bool, SessionError> {
        let core = &self.core;
        let found = core.rows_of(key, "read", sql::ID, &[])?;
        let Some(row) = found.first() else { return Ok(false) };
        let id: i64 = column(row, 0)?;
        match visit(core, key, id, change, None) {
            Ok(false) | Err(SessionError::NoSuchSession { .. }) => return Ok(false),
            Ok(true) => {}
            Err(error) => return Err(error),
        }
        // No run has it open, so none writes the same again. It may be another one with the same key by now.
        let opened = Opened::take(core, key, wait)?;
        visit(core, key, opened.id, change, Some(&opened))
    }
}

/// Whether a session has something to change. The owner changes it.
fn visit(
    core: &Arc<Core>,
    key: &SessionKey,
    session: i64,
    change: Change<'_>,
    owner: Option<&Opened>,
) -> Result<bool, SessionError> {
    let mut is_found = match owner {
        Some(owner) => change_segments(core, key, change, owner)?,
        None => false,
    };
    let begin = if owner.is_some() { core.sealed_of(key, session)? } else { 0 };
    // Also what was begun of a session that was never finished.
    let mut lines = Lines::new(core, key, session, Direction::Forward(begin, END_UNKNOWN));
    while let Some((at, body)) = lines.next_line()? {
        let Some(body) = changed(&body, change) else { continue };
        is_found = true;
        if owner.is_some() {
            let set: [Parameter<'_>; 3] =
                [(&session, Type::INT8), (&at, Type::INT8), (&body, Type::TEXT)];
            core.rows("write", sql::SET_ENTRY, &set)?;
        }
    }
    let of_session: [Parameter<'_>; 1] = [(&session, Type::INT8)];
    for row in &core.rows("read", sql::TEXTS, &of_session)? {
        let mut texts: [Option<String>; 2] = [column(row, 0)?, column(row, 1)?];
        let mut is_changed = false;
        for text in &mut texts {
            let new = text.as_deref().and_then(|text| changed(text, change));
            is_changed |= new.is_some();
            *text = new.or(text.take());
        }
        if is_changed && owner.is_some() {
            let [header, listed] = &texts;
            let set: [Parameter<'_>; 3] =
                [(&session, Type::INT8), (header, Type::TEXT), (listed, Type::TEXT)];
            core.rows("write", sql::SET_TEXTS, &set)?;
        }
        is_found |= is_changed;
    }
    Ok(is_found | visit_files(core, session, change, owner)?)
}

/// Replaces the old parts of a session in which something changes.
fn change_segments(
    core: &Core,
    key: &SessionKey,
    change: Change<'_>,
    owner: &Opened,
) -> Result<bool, SessionError> {
    let mut is_found = false;
    for segment in core.segments_of(owner.id)? {
        let (mut rows, mut is_changed) = (segment.rows(core, key)?, false);
        for row in &mut rows {
            if let Some(body) = changed(&row.body, change) {
                (row.body, is_changed) = (body, true);
            }
        }
        if !is_changed {
            continue;
        }
        is_found = true;
        let Some(blob) = core.put_rows(&rows)? else {
            return Err(no_objects());
        };
        let facts = Facts::of(segment.from, &rows);
        let about = facts.about();
        let mut set: Vec<Parameter<'_>> = vec![
            (&owner.id, Type::INT8),
            (&owner.epoch, Type::INT8),
            (&segment.from, Type::INT8),
            (&blob.id, Type::INT8),
            (&blob.digest, Type::TEXT),
        ];
        set.extend(facts.parameters(&about));
        if core.rows("write", sql::segments::SEAL_AGAIN, &set)?.is_empty() {
            core.drop_blobs(&[blob.id]);
            return Err(taken_over());
        }
        core.drop_blobs(&[segment.blob.id]);
    }
    Ok(is_found)
}

fn no_objects() -> SessionError {
    failed_io("write", "the object storage cannot be used now; try again later")
}

fn taken_over() -> SessionError {
    failed_io("write", "another process has taken the session")
}

fn visit_files(
    core: &Core,
    session: i64,
    change: Change<'_>,
    owner: Option<&Opened>,
) -> Result<bool, SessionError> {
    let mut is_found = false;
    for row in &core.rows("read", sql::SIDE_FILES, &[(&session, Type::INT8)])? {
        let name: &str = column(row, 0)?;
        let blob = Blob { id: column(row, 1)?, digest: column(row, 2)?, place: column(row, 3)? };
        let changed = match change_blob(core, &blob, change, owner.is_some()) {
            // Who has the session may have replaced it a moment ago. Its next owner looks again.
            Err(_) if owner.is_none() => {
                is_found = true;
                continue;
            }
            changed => changed?,
        };
        let Some((new, bytes)) = changed else { continue };
        is_found = true;
        let Some((owner, new)) = owner.zip(new) else { continue };
        let bytes = crate::read::stored(bytes);
        let none: Vec<&str> = Vec::new();
        let (names, blobs) = (vec![name], vec![new.id]);
        let (sizes, digests) = (vec![bytes], vec![new.digest]);
        let set: [Parameter<'_>; 7] = [
            (&session, Type::INT8),
            (&owner.epoch, Type::INT8),
            (&none, Type::TEXT_ARRAY),
            (&names, Type::TEXT_ARRAY),
            (&blobs, Type::INT8_ARRAY),
            (&sizes, Type::INT8_ARRAY),
            (&digests, Type::TEXT_ARRAY),
        ];
        if core.rows("write", sql::SET_SIDE_FILES, &set)?.is_empty() {
            return Err(taken_over());
        }
        core.drop_blobs(&[blob.id]);
    }
    Ok(is_found)
}

/// How a content is when it is changed, and its size; `None` if nothing in it changes. It is stored only `for_owner`.
fn change_blob(
    core: &Core,
    blob: &Blob,
    change: Change<'_>,
    for_owner: bool,
) -> Result<Option<(Option<Blob>, u64)>, SessionError> {
    let failed = |error: io::Error| failed_io("change", &error.to_string());
    if blob.place.is_none() {
        let mut content = core.read_blob(blob)?;
        if !change(&mut content) {
            return Ok(None);
        }
        let new = for_owner.then(|| core.put_blob(&content)).transpose()?;
        return Ok(Some((new, content.len() as u64)));
    }
    // It may be larger than the memory.
    let content = core.open_blob(blob)?;
    let bytes = content.bytes;
    let mut parts = InParts::new(content, change);
    io::copy(&mut parts, &mut io::sink()).map_err(failed)?;
    if !parts.is_changed {
        return Ok(None);
    }
    if !for_owner {
        return Ok(Some((None, bytes)));
    }
    let new = core.put_large(InParts::new(core.open_blob(blob)?, change))?;
    Ok(Some((Some(new.ok_or_else(no_objects)?), bytes)))
}

/// Changes what waits in inboxes.
fn change_texts(
    core: &Core,
    read: &str,
    write: &str,
    change: Change<'_>,
) -> Result<bool, SessionError> {
    let mut is_changed = false;
    for row in &core.rows("read", read, &[(&core.partition, Type::INT8)])? {
        let (mailbox, id): (i64, &str) = (column(row, 0)?, column(row, 1)?);
        if let Some(body) = changed(column(row, 2)?, change) {
            is_changed = true;
            let set: [Parameter<'_>; 3] =
                [(&mailbox, Type::INT8), (&id, Type::TEXT), (&body, Type::TEXT)];
            core.rows("write", write, &set)?;
        }
    }
    Ok(is_changed)
}

fn change_records(core: &Core, change: Change<'_>) -> Result<bool, SessionError> {
    let (mut kind, mut key, mut is_changed) = (String::new(), String::new(), false);
    loop {
        let behind: [Parameter<'_>; 4] = [
            (&core.partition, Type::INT8),
            (&kind, Type::TEXT),
            (&key, Type::TEXT),
            (&AT_ONCE, Type::INT8),
        ];
        let rows = core.rows("read", sql::RECORDS, &behind)?;
        if rows.is_empty() {
            return Ok(is_changed);
        }
        for row in &rows {
            (kind, key) = (column(row, 0)?, column(row, 1)?);
            let version: i64 = column(row, 2)?;
            let mut value: Vec<u8> = column(row, 3)?;
            if SEALED.contains(&kind.as_str()) || !change(&mut value) {
                continue;
            }
            is_changed = true;
            let set: [&(dyn ToSql + Sync); 5] = [&core.partition, &kind, &key, &version, &value];
            let types = [Type::INT8, Type::TEXT, Type::TEXT, Type::INT8, Type::BYTEA];
            let set: Vec<Parameter<'_>> = set.into_iter().zip(types).collect();
            core.rows("write", sql::SET_RECORD, &set)?;
        }
    }
}

/// The text if it is changed.
fn changed(text: &str, change: Change<'_>) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    // A change that leaves no text is none.
    change(&mut bytes).then(|| String::from_utf8(bytes).ok()).flatten()
}
