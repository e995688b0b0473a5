//! The tables, and opening them.

use std::path::Path;

use myclaw_files::{parent_of, private_options, sync_directory};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::StoreError;
use crate::blob::blob_of;

/// Version of the tables. An older program refuses a newer one.
const FORMAT: i64 = myclaw_files::formats::STORE.newest as i64;
/// Marks a file as this program's: `MyCl` in ASCII, in SQLite's `application_id`.
pub(super) const APPLICATION: i64 = 0x4d79_436c;

/// One row per record. The partition is `main` where a store serves one party. `entered` orders the records of a queue that have the same place. `epoch`, `owner` and
/// `lease_until` belong to the newest claim. The counter gives versions and epochs, and never goes back.
const RECORDS: &str = "
    CREATE TABLE records (
        partition TEXT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        version INTEGER NOT NULL,
        value BLOB NOT NULL,
        queue TEXT,
        place INTEGER,
        entered INTEGER NOT NULL,
        epoch INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        lease_until INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (partition, kind, key)
    ) STRICT;
    CREATE INDEX queues ON records (partition, queue, place, entered) WHERE queue IS NOT NULL;
";
const COUNTER: &str = "
    CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
    INSERT INTO counter VALUES (0);
";
/// From format 1, which had no partitions: everything is in the main one.
const FROM_1: [&str; 2] = [
    "DROP INDEX queues; ALTER TABLE records RENAME TO records_1;",
    "INSERT INTO records SELECT 'main', kind, key, version, value, queue, place, entered, epoch, owner, lease_until
     FROM records_1;
     DROP TABLE records_1;",
];

/// Opens the database for writing, and creates its tables in a new file.
pub(super) fn open_for_writing(path: &Path) -> Result<Connection, StoreError> {
    create_private(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare(&mut connection, path)?;
    Ok(connection)
}

/// Changes the values of all records.
pub(super) fn change_values(
    path: &Path,
    change: &mut dyn FnMut(&mut [u8]) -> bool,
) -> Result<(), StoreError> {
    let database = |error| failed("change", path)(error);
    let mut connection = open_for_writing(path)?;
    let transaction = connection.transaction().map_err(database)?;
    let mut changed: Vec<(i64, Vec<u8>)> = Vec::new();
    {
        // The chunks of a blob are written together, so their rows follow each other.
        let sql = "SELECT rowid, value, kind, key FROM records ORDER BY rowid";
        let mut all = transaction.prepare(sql).map_err(database)?;
        let mut rows = all.query([]).map_err(database)?;
        let (mut blob, mut chunks) = (String::new(), Vec::new());
        while let Some(row) = rows.next().map_err(database)? {
            let (kind, key): (String, String) =
                (row.get(2).map_err(database)?, row.get(3).map_err(database)?);
            let of = blob_of(&kind, &key).unwrap_or_default();
            if of.is_empty() || of != blob {
                change_together(&mut chunks, change, &mut changed);
                of.clone_into(&mut blob);
            }
            chunks.push((row.get(0).map_err(database)?, row.get(1).map_err(database)?));
        }
        change_together(&mut chunks, change, &mut changed);
    }
    for record in changed {
        transaction
            .execute("UPDATE records SET value = ?2 WHERE rowid = ?1", record)
            .map_err(database)?;
    }
    transaction.commit().map_err(database)?;
    // Older versions of pages are in the write-ahead log, and pages that were moved may have kept theirs.
    connection.execute_batch("VACUUM").map_err(database)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(database)
}

/// Changes a value, or the chunks of one blob as a whole: what is looked for may stand across two of them.
fn change_together(
    chunks: &mut Vec<(i64, Vec<u8>)>,
    change: &mut dyn FnMut(&mut [u8]) -> bool,
    changed: &mut Vec<(i64, Vec<u8>)>,
) {
    let mut whole: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes).copied().collect();
    let is_changed = !chunks.is_empty() && change(&mut whole);
    for (row, bytes) in chunks.drain(..) {
        let rest = whole.split_off(bytes.len());
        let bytes = std::mem::replace(&mut whole, rest);
        if is_changed {
            changed.push((row, bytes));
        }
    }
}

/// Opens the database for reading.
pub(super) fn open_for_reading(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// See [`super::copy_database`].
pub(super) fn copy_database(path: &Path, copy: &Path) -> Result<(), StoreError> {
    create_private(copy)?;
    let name = copy.to_str().ok_or_else(|| StoreError::Io {
        action: "create",
        path: copy.to_owned(),
        reason: "its name is not UTF-8".to_owned(),
    })?;
    open_for_reading(path)?
        .execute("VACUUM INTO ?1", [name])
        .map(drop)
        .map_err(failed("copy", path))
}

/// A failure of the database, in words for a person.
pub(super) fn failed(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |error| {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
                StoreError::Damaged { path, reason: error.to_string() }
            }
            _ => StoreError::Io { action, path, reason: error.to_string() },
        }
    }
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    // Each connection belongs to one thread, so SQLite needs no locks of its own.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags).map_err(failed("open", path))
}

/// Creates an empty file that only the user can read. SQLite gives its other files the same mode.
fn create_private(path: &Path) -> Result<(), StoreError> {
    match private_options().write(true).create_new(true).open(path) {
        Ok(_) => {
            sync_directory(&parent_of(path)).map_err(|error| StoreError::io("create", path, &error))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::io("create", path, &error)),
    }
}

fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let database = |error| failed("open", path)(error);
    let number = |connection: &Connection, name: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, name, |row| row.get(0))
    };
    let application = number(connection, "application_id").map_err(database)?;
    let format = number(connection, "user_version").map_err(database)?;
    if application != APPLICATION && (application, format) != (0, 0) {
        let reason = "another program has written it".to_owned();
        return Err(StoreError::Damaged { path: path.to_owned(), reason });
    }
    if format > FORMAT {
        let path = path.to_owned();
        return Err(StoreError::Newer { path, found: format, known: FORMAT });
    }
    // With a write-ahead log, reads do not wait for a write. With FULL, a transaction is on the disk when it has ended; with
    // SQLite's usual NORMAL, a power cut could undo it.
    connection.pragma_update(None, "journal_mode", "WAL").map_err(database)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(database)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(database)?;
    // What is removed is overwritten with zeros. Otherwise its bytes would stay in free pages until something needs them.
    connection.pragma_update(None, "secure_delete", true).map_err(database)?;
    if application == 0 || format < FORMAT {
        let [before, after] = if application == 0 { [COUNTER, ""] } else { FROM_1 };
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(database)?;
        // Another process may have done it since.
        if number(&transaction, "user_version").map_err(database)? < FORMAT {
            for statements in [before, RECORDS, after] {
                transaction.execute_batch(statements).map_err(database)?;
            }
            transaction.pragma_update(None, "application_id", APPLICATION).map_err(database)?;
            transaction.pragma_update(None, "user_version", FORMAT).map_err(database)?;
        }
        transaction.commit().map_err(database)?;
    }
    // Older versions of pages are in the log until it is used again. A full disk may prevent this, which harms nothing else.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(())
}
