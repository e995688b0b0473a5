//! Values that are too large for a record.
//!
//! A blob is stored in chunks, which are records of their own and never change, so a store may keep them elsewhere. It is
//! written in the transaction that stores what refers to it, and leaves the store when its time is over.

use myclaw_files::{hex, now_ms};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::removal::{delete, sweep};
use crate::{MAX_VALUE_BYTES, Place, RecordId, Store, StoreError, Write};

/// Largest blob, in bytes: as large as the largest answer of a model.
pub const MAX_BLOB_BYTES: usize = 64 * 1024 * 1024;

/// Kind of the chunks, which are bytes.
const KIND: &str = "blob";
/// Queue of the chunks, by the time at which they may be removed, in milliseconds since the Unix epoch.
const QUEUE: &str = "blobs";
/// How long a blob is kept: a day longer than records that are over.
const KEPT_MS: u64 = 31 * 24 * 60 * 60 * 1_000;

/// Names a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// SHA-256 of the bytes that were stored, in hexadecimal digits.
    digest: String,
    /// Tells it from other blobs with the same bytes, because each has its own time.
    salt: String,
    /// How many bytes it has.
    size: usize,
}

impl Blob {
    /// The writes that store these bytes, and the name under which they can be read.
    ///
    /// # Errors
    /// There are too many.
    pub fn put(bytes: &[u8]) -> Result<(Self, Vec<Write>), StoreError> {
        if bytes.len() > MAX_BLOB_BYTES {
            let why = format!("its {} bytes are more than {MAX_BLOB_BYTES}", bytes.len());
            return Err(StoreError::Unusable(why));
        }
        let mut salt = [0; 8];
        SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| StoreError::Unusable("there are no random numbers".to_owned()))?;
        let blob = Self { digest: digest_of(bytes), salt: hex(&salt), size: bytes.len() };
        let place = Place::new(QUEUE, now_ms().saturating_add(KEPT_MS));
        let chunks = bytes.chunks(MAX_VALUE_BYTES).enumerate().map(|(number, chunk)| {
            let (id, place) = (blob.chunk(number), Some(place.clone()));
            Write::Insert { id, value: chunk.to_vec(), place }
        });
        let writes = chunks.collect();
        Ok((blob, writes))
    }

    /// The bytes; `None` if they are not in the store any more.
    ///
    /// # Errors
    /// The store fails.
    pub async fn read(&self, store: &dyn Store) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::with_capacity(self.size.min(MAX_BLOB_BYTES));
        for number in 0..self.chunks() {
            let Some(chunk) = store.get(self.chunk(number)).await? else { return Ok(None) };
            bytes.extend(chunk.value);
        }
        // The digest names the bytes and does not guard them: forgetting replaces letters in the store by stars.
        Ok(Some(bytes).filter(|bytes| bytes.len() == self.size))
    }

    /// Removes the bytes before their time.
    ///
    /// # Errors
    /// The store fails.
    pub async fn delete(&self, store: &dyn Store) -> Result<(), StoreError> {
        for number in 0..self.chunks() {
            delete(store, self.chunk(number)).await?;
        }
        Ok(())
    }

    /// Removes the blobs whose time is over.
    ///
    /// # Errors
    /// The store fails.
    pub async fn sweep(store: &dyn Store) -> Result<(), StoreError> {
        sweep(store, QUEUE, now_ms()).await
    }

    fn chunks(&self) -> usize {
        self.size.min(MAX_BLOB_BYTES).div_ceil(MAX_VALUE_BYTES)
    }

    fn chunk(&self, number: usize) -> RecordId {
        RecordId::new(KIND, format!("{}-{}-{number}", self.digest, self.salt))
    }
}

/// The blob to which a record belongs, if it is a chunk.
pub(crate) fn blob_of<'k>(kind: &str, key: &'k str) -> Option<&'k str> {
    Some(key.rsplit_once('-')?.0).filter(|_| kind == KIND)
}

fn digest_of(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}
