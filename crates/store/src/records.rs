//! Rows of one type, as records of one kind: JSON in, JSON out, under the version that was read.
//!
//! Who keeps rows in the store has a constant for each kind:
//!
//! ```
//! use myclaw_store::Records;
//!
//! const NAMES: Records<String> = Records::new("name");
//! ```
//!
//! A row is changed with [`Records::update`]: it reads the row, asks what becomes of it, and does both again if somebody else
//! changed the row meanwhile. So a refused condition is no failure.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::races::{MOST_RACES, stand_back};
use crate::removal::delete;
use crate::{
    Blob, Commit, Cursor, MAX_SCAN_BYTES, MAX_VALUE_BYTES, Place, QueueId, Record, RecordId, Store,
    StoreError, Version, Write,
};

/// Records that are read or removed at once.
const AT_ONCE: usize = 200;
/// Begins the value of a record with the name of a blob that holds the row. No JSON begins with it.
const ELSEWHERE: u8 = 0;

/// The records of one kind, which hold rows of the type `R` under keys of the type `K`.
pub struct Records<R, K = String> {
    kind: &'static str,
    rows: PhantomData<fn() -> (R, K)>,
}

/// A row with the version under which it may be changed.
#[derive(Debug, Clone)]
pub struct Stored<R, K = String> {
    /// Its key.
    pub id: K,
    /// The version.
    pub version: Version,
    /// The row.
    pub row: R,
    /// Its place in a queue, if it was read and has one.
    pub place: Option<Place>,
}

/// What becomes of a row.
#[derive(Debug)]
pub enum Change<R> {
    /// It is stored at this place.
    Put(R, Option<Place>),
    /// It stays as it is.
    Keep,
}

impl<R, K> Stored<R, K> {
    /// A row that was stored in this version.
    pub fn new(id: K, version: Version, row: R) -> Self {
        Self { id, version, row, place: None }
    }

    /// Its order in its queue; 0 outside of one.
    pub fn order(&self) -> u64 {
        self.place.as_ref().map_or(0, |place| place.order)
    }
}

impl<R> Change<R> {
    /// The row is stored at this place.
    pub fn put(row: R, place: impl Into<Option<Place>>) -> Self {
        Self::Put(row, place.into())
    }
}

impl<R, K> Clone for Records<R, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, K> Copy for Records<R, K> {}

impl<R, K> fmt::Debug for Records<R, K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Records({})", self.kind)
    }
}

impl<R, K> Records<R, K> {
    /// The records of this kind.
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, rows: PhantomData }
    }

    /// The record with this key.
    pub fn id(&self, key: &str) -> RecordId {
        RecordId::new(self.kind, key)
    }

    /// The write that removes a row that was read in this version.
    pub fn remove(&self, key: &str, expected: Version) -> Write {
        Write::Remove { id: self.id(key), expected }
    }

    /// Removes the row with this key, in whichever version. Nothing happens if there is none.
    ///
    /// # Errors
    /// As for [`Records::update`].
    pub async fn delete(&self, store: &dyn Store, key: &str) -> Result<(), StoreError> {
        delete(store, self.id(key)).await
    }
}

impl<R: Serialize, K> Records<R, K> {
    /// The write that stores a row in place of the version that is known, or as a new one. For rows that are never larger
    /// than a value may be; [`Records::put_any_size`] is for the others.
    ///
    /// # Errors
    /// The row cannot be written as JSON.
    pub fn put(
        &self,
        key: &str,
        known: Option<Version>,
        row: &R,
        place: impl Into<Option<Place>>,
    ) -> Result<Write, StoreError> {
        let value = serde_json::to_vec(row).map_err(|error| unreadable(&self.id(key), &error))?;
        Ok(self.write(key, known, value, place.into()))
    }

    fn write(
        &self,
        key: &str,
        known: Option<Version>,
        value: Vec<u8>,
        place: Option<Place>,
    ) -> Write {
        let id = self.id(key);
        match known {
            Some(expected) => Write::Replace { id, expected, value, place },
            None => Write::Insert { id, value, place },
        }
    }

    /// The writes that store a row in place of the version that is known, or as a new one: the record's first, and for a row
    /// that is too large those of a blob.
    ///
    /// # Errors
    /// The row cannot be written as JSON, or is larger than a blob.
    pub fn put_any_size(
        &self,
        key: &str,
        known: Option<Version>,
        row: &R,
        place: impl Into<Option<Place>>,
    ) -> Result<Vec<Write>, StoreError> {
        let json = |error| unreadable(&self.id(key), &error);
        let mut value = serde_json::to_vec(row).map_err(json)?;
        let mut chunks = Vec::new();
        if value.len() > MAX_VALUE_BYTES {
            let (blob, writes) = Blob::put(&value)?;
            value = vec![ELSEWHERE];
            serde_json::to_writer(&mut value, &blob).map_err(json)?;
            chunks = writes;
        }
        let mut writes = vec![self.write(key, known, value, place.into())];
        writes.extend(chunks);
        Ok(writes)
    }

    /// Stores a new row. `None` if there is one with this key.
    ///
    /// # Errors
    /// The store fails.
    pub async fn insert(
        &self,
        store: &dyn Store,
        key: &str,
        row: &R,
        place: impl Into<Option<Place>>,
    ) -> Result<Option<Version>, StoreError> {
        match store.commit(self.put_any_size(key, None, row, place)?.into()).await? {
            Commit::Done(version) => Ok(Some(version)),
            Commit::Refused(_) => Ok(None),
        }
    }

    /// Stores a row in place of a version. `None` if it has changed since.
    ///
    /// # Errors
    /// The store fails.
    pub async fn replace(
        &self,
        store: &dyn Store,
        key: &str,
        expected: Version,
        row: &R,
        place: impl Into<Option<Place>>,
    ) -> Result<Option<Version>, StoreError> {
        match store.commit(self.put_any_size(key, Some(expected), row, place)?.into()).await? {
            Commit::Done(version) => Ok(Some(version)),
            Commit::Refused(_) => Ok(None),
        }
    }
}

impl<R: DeserializeOwned, K: From<String>> Records<R, K> {
    /// The row of a record of this kind.
    ///
    /// # Errors
    /// The record holds something else, or the store fails.
    pub async fn read(
        &self,
        store: &dyn Store,
        record: Record,
    ) -> Result<Stored<R, K>, StoreError> {
        let json = |error| unreadable(&record.id, &error);
        let row = match record.value.split_first() {
            Some((&ELSEWHERE, name)) => {
                let blob: Blob = serde_json::from_slice(name).map_err(json)?;
                let gone = || StoreError::Row {
                    id: record.id.to_string(),
                    problem: "a part of it is gone".to_owned(),
                };
                let bytes = blob.read(store).await?.ok_or_else(gone)?;
                serde_json::from_slice(&bytes).map_err(json)?
            }
            _ => serde_json::from_slice(&record.value).map_err(json)?,
        };
        let Record { id, version, place, .. } = record;
        Ok(Stored { id: id.key.into(), version, row, place })
    }

    /// The row with this key, if there is one.
    ///
    /// # Errors
    /// The store fails, or the record holds something else.
    pub async fn get(
        &self,
        store: &dyn Store,
        key: &str,
    ) -> Result<Option<Stored<R, K>>, StoreError> {
        match store.get(self.id(key)).await? {
            Some(record) => Ok(Some(self.read(store, record).await?)),
            None => Ok(None),
        }
    }

    /// The first rows of a queue of this kind, in its order.
    ///
    /// # Errors
    /// As for [`Records::get`].
    pub async fn first(
        &self,
        store: &dyn Store,
        queue: &str,
        most: usize,
    ) -> Result<Vec<Stored<R, K>>, StoreError> {
        let mut rows = Vec::new();
        for record in scan(store, queue, most).await? {
            rows.push(self.read(store, record).await?);
        }
        Ok(rows)
    }

    /// All rows of a queue of this kind, in its order.
    ///
    /// # Errors
    /// As for [`Records::get`].
    pub async fn all(
        &self,
        store: &dyn Store,
        queue: &str,
    ) -> Result<Vec<Stored<R, K>>, StoreError> {
        self.first(store, queue, usize::MAX).await
    }
}

impl<R: Serialize + DeserializeOwned, K: From<String>> Records<R, K> {
    /// Changes the row with this key: `decide` gets it, or `None` if there is none, and says what becomes of it. It is asked
    /// again when somebody else has changed the row meanwhile. Returns the row that is stored; `None` if it stays as it is.
    ///
    /// # Errors
    /// The store fails, or others change the row all the time.
    pub async fn update(
        &self,
        store: &dyn Store,
        key: &str,
        mut decide: impl FnMut(Option<R>) -> Change<R>,
    ) -> Result<Option<Stored<R, K>>, StoreError> {
        for races in 0..MOST_RACES {
            let (known, row) = match self.get(store, key).await? {
                Some(stored) => (Some(stored.version), Some(stored.row)),
                None => (None, None),
            };
            let Change::Put(row, place) = decide(row) else { return Ok(None) };
            let writes = self.put_any_size(key, known, &row, place.clone())?;
            if let Commit::Done(version) = store.commit(writes.into()).await? {
                return Ok(Some(Stored { id: key.to_owned().into(), version, row, place }));
            }
            stand_back(races).await;
        }
        Err(StoreError::Contended(self.id(key).to_string()))
    }
}

/// The first records of a queue, in its order.
///
/// # Errors
/// The store fails.
pub async fn scan(store: &dyn Store, queue: &str, most: usize) -> Result<Vec<Record>, StoreError> {
    let (mut all, mut after): (Vec<Record>, Option<Cursor>) = (Vec::new(), None);
    while all.len() < most {
        let wanted = AT_ONCE.min(most - all.len());
        let records = store.scan(QueueId::new(queue), after, wanted).await?;
        let bytes: usize = records.iter().map(|record| record.value.len()).sum();
        let is_end = records.len() < wanted && bytes <= MAX_SCAN_BYTES;
        after = records.last().and_then(Record::cursor);
        all.extend(records);
        if is_end {
            break;
        }
    }
    Ok(all)
}

fn unreadable(id: &RecordId, error: &serde_json::Error) -> StoreError {
    StoreError::Row { id: id.to_string(), problem: error.to_string() }
}
