//! Which messages the log of a session has taken, so that a search for another one does not read the log.
//!
//! The table `taken` has the ids. Each append adds those of its rows in its own transaction, and each program that can use
//! these tables does so. A row leaves neither by sealing nor by forgetting, so what is in the table stays true. What may be
//! missing are rows that came by no append: those of a fork and of an import. So a session says whether all are there
//! (`knows_taken`). Its first append says so, before which it has no rows; no other program makes rows of another kind
//! then, because forks and imports are for sessions without any. For all others, somebody reads the rows once and adds what they
//! take; what is appended meanwhile adds itself.

use std::collections::HashSet;
use std::sync::Arc;

use myclaw_session::{Entry, EntryId, MessageSearch, SessionError, SessionKey, TAKEN_IDS};
use tokio_postgres::types::Type;

use super::core::{Core, column};
use super::reader::PostgresReader;
use super::sql;
use crate::pool::Parameter;

/// Ids that are added at once.
const AT_ONCE: usize = 10_000;

/// The messages of the inbox that an entry takes in.
pub(super) fn taken_by(entry: &Entry) -> Vec<String> {
    let Entry::Message(message) = entry else { return Vec::new() };
    let meta = message.meta.as_ref().filter(|meta| meta.as_str().contains(TAKEN_IDS));
    let ids: Option<Vec<EntryId>> = meta.and_then(|meta| meta.field(TAKEN_IDS));
    ids.iter().flatten().map(|id| id.as_str().to_owned()).collect()
}

/// Shows `search` the rows up to the last message that the log has taken of those that it looks for.
pub(super) fn search_log(
    core: &Arc<Core>,
    key: &SessionKey,
    search: &mut dyn MessageSearch,
) -> Result<(), SessionError> {
    let taken = taken_of(core, key, search.ids())?;
    if taken.is_empty() {
        return Ok(());
    }
    // Opened now, so that it has the rows that take them.
    let Some(reader) = PostgresReader::open(core, key)? else { return Ok(()) };
    for entry in reader.backward(reader.last + 1) {
        let entry = match entry {
            // Deleted meanwhile, as if it had been so before.
            Err(SessionError::NoSuchSession { .. }) => return Ok(()),
            entry => entry?,
        };
        if let Entry::Message(message) = entry
            && (search.row(message).is_break() || taken.iter().all(|id| search.has_found(*id)))
        {
            break;
        }
    }
    Ok(())
}

/// Those of the messages that the log has taken.
fn taken_of(
    core: &Arc<Core>,
    key: &SessionKey,
    ids: &[EntryId],
) -> Result<Vec<EntryId>, SessionError> {
    // What a full queue dropped is in the log under another id.
    let names = |id: &EntryId| [*id, id.of_remains()].map(|id| id.as_str().to_owned());
    let wanted: Vec<String> = ids.iter().flat_map(names).collect();
    let named: [Parameter<'_>; 1] = [(&wanted, Type::TEXT_ARRAY)];
    let mut found = core.rows_of(key, "read", sql::TAKEN, &named)?;
    if let Some(row) = found.first()
        && !column::<bool>(row, 0)?
    {
        learn(core, key)?;
        found = core.rows_of(key, "read", sql::TAKEN, &named)?;
    }
    let Some(row) = found.first() else { return Ok(Vec::new()) };
    let taken: HashSet<String> = column::<Vec<String>>(row, 1)?.into_iter().collect();
    let is_taken = |id: &&EntryId| names(id).iter().any(|name| taken.contains(name));
    Ok(ids.iter().filter(is_taken).copied().collect())
}

/// Reads the log once, and notes which messages it has taken. What is sealed was left out by searches before, too.
pub(super) fn learn(core: &Arc<Core>, key: &SessionKey) -> Result<(), SessionError> {
    let Some(reader) = PostgresReader::open(core, key)? else { return Ok(()) };
    let mut ids = Vec::new();
    for entry in reader.recent() {
        ids.extend(taken_by(&entry?));
    }
    for some in ids.chunks(AT_ONCE) {
        let added: [Parameter<'_>; 2] = [(&reader.id, Type::INT8), (&some, Type::TEXT_ARRAY)];
        core.rows("read", sql::ADD_TAKEN, &added)?;
    }
    core.rows("read", sql::KNOWS_TAKEN, &[(&reader.id, Type::INT8)]).map(drop)
}
