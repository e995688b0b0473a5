//! The thread that reads.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Row, params};
use tokio::sync::{mpsc, oneshot};

use super::schema::{APPLICATION, failed, open_for_reading};
use crate::{
    Cursor, MAX_SCAN_BYTES, Partition, Place, QueueId, Record, RecordId, StoreError, Version,
};

/// The columns that [`record`] reads.
pub(super) const COLUMNS: &str = "partition, kind, key, version, value, queue, place, entered";

/// Receives the outcome of a task.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// One call that reads.
#[derive(Debug)]
pub(super) enum Reading {
    Get(RecordId, Reply<Option<Record>>),
    Scan { queue: QueueId, after: Option<Cursor>, most: usize, reply: Reply<Vec<Record>> },
}

/// The database, open for reading.
pub(super) struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: open_for_reading(path)?, path: path.to_owned() })
    }

    /// Answers calls until nobody can make any. A caller that no longer waits is no failure.
    pub(super) fn serve(self, mut tasks: mpsc::Receiver<Reading>) {
        while let Some(task) = tasks.blocking_recv() {
            match task {
                Reading::Get(id, reply) => {
                    let found = get(&self.connection, &id).map_err(failed("read", &self.path));
                    let _ = reply.send(found);
                }
                Reading::Scan { queue, after, most, reply } => {
                    let found = scan(&self.connection, &queue, after, most);
                    let _ = reply.send(found.map_err(failed("read", &self.path)));
                }
            }
        }
    }
}

/// See [`super::SqliteStore::examine`].
pub(super) fn examine(path: &Path) -> Result<(), StoreError> {
    let connection = open_for_reading(path)?;
    let application: i64 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_err(failed("read", path))?;
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(failed("read", path))?;
    let reason = match (found.as_str(), application) {
        ("ok", APPLICATION) => return Ok(()),
        ("ok", _) => "another program has written it".to_owned(),
        _ => found,
    };
    Err(StoreError::Damaged { path: path.to_owned(), reason })
}

/// See [`super::visit_records`].
pub(super) fn visit(
    path: &Path,
    visit: &mut dyn FnMut(Record) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let connection = open_for_reading(path)?;
    let sql = format!("SELECT {COLUMNS} FROM records ORDER BY entered, kind, key");
    let mut statement = connection.prepare(&sql).map_err(failed("read", path))?;
    let mut rows = statement.query([]).map_err(failed("read", path))?;
    while let Some(row) = rows.next().map_err(failed("read", path))? {
        visit(record(row).map_err(failed("read", path))?)?;
    }
    Ok(())
}

/// The record with this id.
pub(super) fn get(connection: &Connection, id: &RecordId) -> rusqlite::Result<Option<Record>> {
    let sql =
        format!("SELECT {COLUMNS} FROM records WHERE partition = ?1 AND kind = ?2 AND key = ?3");
    let name = [id.partition.as_str(), &id.kind, &id.key];
    connection.prepare_cached(&sql)?.query_row(name, record).optional()
}

fn scan(
    connection: &Connection,
    queue: &QueueId,
    after: Option<Cursor>,
    most: usize,
) -> rusqlite::Result<Vec<Record>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM records WHERE partition = ?1 AND queue = ?2 AND (place, entered) > (?3, ?4)
         ORDER BY place, entered LIMIT ?5"
    );
    let (place, entered) =
        after.map_or((-1, 0), |after| (stored(after.order), stored(after.entered)));
    let mut statement = connection.prepare_cached(&sql)?;
    let QueueId { partition, name } = queue;
    let mut rows =
        statement.query(params![partition.as_str(), name, place, entered, stored(most as u64)])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let record = record(row)?;
        bytes += record.value.len();
        found.push(record);
        if bytes > MAX_SCAN_BYTES {
            break;
        }
    }
    Ok(found)
}

/// Reads [`COLUMNS`].
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    let partition = match row.get_ref(0)?.as_str()? {
        name if name == Partition::MAIN.as_str() => Partition::MAIN,
        name => Partition::new(name),
    };
    let queue: Option<String> = row.get(5)?;
    let order: Option<i64> = row.get(6)?;
    let place = queue.zip(order).map(|(queue, order)| Place { queue, order: order as u64 });
    Ok(Record {
        id: RecordId { partition, kind: row.get(1)?, key: row.get(2)? },
        version: Version(row.get::<_, i64>(3)? as u64),
        value: row.get(4)?,
        place,
        entered: row.get::<_, i64>(7)? as u64,
    })
}

/// A number as SQLite stores it. All are below 2^63: they are counted from 0, or checked.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
