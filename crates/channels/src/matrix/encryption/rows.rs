//! The database of keys: rows of JSON under a kind and two names. One process has it open at a time.

use std::path::Path;
use std::sync::Arc;

use matrix_sdk_crypto::CryptoStoreError;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a version of this program can read. A file of a newer one is refused.
const VERSION: i64 = 1;
const TABLE: &str = "CREATE TABLE rows (kind TEXT, a TEXT, b TEXT, sort TEXT, value TEXT, PRIMARY KEY (kind, a, b)) WITHOUT ROWID;
    CREATE INDEX sorted ON rows (kind, sort, b) WHERE sort != '';";

pub(super) type Result<T> = std::result::Result<T, CryptoStoreError>;

/// An open database.
#[derive(Debug, Clone)]
pub(super) struct Rows(Arc<Mutex<Connection>>);

/// The name of a row.
#[derive(Debug, Clone)]
pub(super) struct Key {
    kind: &'static str,
    a: String,
    b: String,
}

pub(super) fn key(kind: &'static str, a: impl AsRef<str>, b: impl AsRef<str>) -> Key {
    Key { kind, a: a.as_ref().to_owned(), b: b.as_ref().to_owned() }
}

/// Changes that become durable together.
#[derive(Debug, Default)]
pub(super) struct Batch(Vec<(Key, String, Option<String>)>);

impl Batch {
    pub(super) fn put(&mut self, key: Key, value: &impl Serialize) -> Result<()> {
        self.put_sorted(key, String::new(), value)
    }

    /// Adds a row that [`Rows::sorted`] finds.
    pub(super) fn put_sorted(
        &mut self,
        key: Key,
        sort: String,
        value: &impl Serialize,
    ) -> Result<()> {
        self.0.push((key, sort, Some(serde_json::to_string(value)?)));
        Ok(())
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.0.push((key, String::new(), None));
    }
}

impl Rows {
    /// Opens or makes the file, which only its owner can read.
    pub(super) fn open(path: &Path) -> Result<Self> {
        use myclaw_files::portable::OpenOptionsExt as _;
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let connection = Connection::open(path).map_err(CryptoStoreError::backend)?;
        prepare(&connection).map_err(CryptoStoreError::backend)?;
        let version: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(CryptoStoreError::backend)?;
        if version != VERSION {
            let known = usize::try_from(VERSION).unwrap_or_default();
            let found = usize::try_from(version).unwrap_or_default();
            return Err(CryptoStoreError::UnsupportedDatabaseVersion(found, known));
        }
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let connection = Arc::clone(&self.0);
        let run = move || job(&mut connection.lock());
        let ran = tokio::task::spawn_blocking(run).await.map_err(CryptoStoreError::backend)?;
        ran.map_err(CryptoStoreError::backend)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, key: Key) -> Result<Option<T>> {
        let found: Option<String> = self
            .run(move |connection| {
                let query = "SELECT value FROM rows WHERE kind = ? AND a = ? AND b = ?";
                let mut statement = connection.prepare_cached(query)?;
                statement.query_row(params![key.kind, key.a, key.b], |row| row.get(0)).optional()
            })
            .await?;
        Ok(found.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    /// All rows of a kind, or those with the first name `a`.
    pub(super) async fn all<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        a: Option<&str>,
    ) -> Result<Vec<T>> {
        let a = a.map(str::to_owned);
        self.texts(move |connection| {
            let query = "SELECT value FROM rows WHERE kind = ?1 AND (?2 IS NULL OR a = ?2)";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![kind, a], |row| row.get(0))?;
            rows.collect()
        })
        .await
    }

    pub(super) async fn count(&self, kind: &'static str) -> Result<usize> {
        let query = "SELECT COUNT(*) FROM rows WHERE kind = ?";
        let count: i64 = self
            .run(move |connection| connection.query_row(query, [kind], |row| row.get(0)))
            .await?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// At most `most` rows under `sort` whose second name comes after `after`, in the order of that name.
    pub(super) async fn sorted<T: DeserializeOwned>(
        &self,
        kind: &'static str,
        sort: String,
        after: Option<String>,
        most: usize,
    ) -> Result<Vec<T>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.texts(move |connection| {
            let query = "SELECT value FROM rows WHERE kind = ?1 AND sort = ?2 AND sort != '' AND b > ?3 ORDER BY b LIMIT ?4";
            let mut statement = connection.prepare_cached(query)?;
            let values = params![kind, sort, after.unwrap_or_default(), most];
            let rows = statement.query_map(values, |row| row.get(0))?;
            rows.collect()
        })
        .await
    }

    async fn texts<T: DeserializeOwned>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<Vec<String>> + Send + 'static,
    ) -> Result<Vec<T>> {
        let texts = self.run(job).await?;
        texts.iter().map(|text| Ok(serde_json::from_str(text)?)).collect()
    }

    pub(super) async fn remove_all(&self, kind: &'static str, a: &str) -> Result<()> {
        let a = a.to_owned();
        let query = "DELETE FROM rows WHERE kind = ? AND a = ?";
        self.run(move |connection| connection.execute(query, params![kind, a])).await?;
        Ok(())
    }

    /// Makes changes durable, all or none.
    pub(super) async fn write(&self, batch: Batch) -> Result<()> {
        if batch.0.is_empty() {
            return Ok(());
        }
        self.run(move |connection| {
            let transaction = connection.transaction()?;
            for (key, sort, value) in batch.0 {
                let statement = match value {
                    Some(_) => "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?)",
                    None => "DELETE FROM rows WHERE kind = ?1 AND a = ?2 AND b = ?3 AND ?4 = '' AND ?5 IS NULL",
                };
                let mut statement = transaction.prepare_cached(statement)?;
                statement.execute(params![key.kind, key.a, key.b, sort, value])?;
            }
            transaction.commit()
        })
        .await
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    // Nobody else may use these keys: two programs would encrypt different texts under one index.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version == 0 {
        let set_up = format!("BEGIN IMMEDIATE; {TABLE} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&set_up)?;
    }
    // The lock is taken by the first write.
    connection.execute_batch("BEGIN IMMEDIATE; COMMIT;")
}
