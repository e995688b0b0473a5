//! Contents that belong to sessions.
//!
//! A content gets its row first, then its bytes, and then what names it; only the last makes it visible. So a program that is
//! killed in between leaves a content that nothing names, which [`Core::sweep_blobs`] finds. The bytes are in parts in the
//! database, or in the object storage that the owner has named, if it can be used.

use std::io::{self, Read};
use std::sync::Arc;

use myclaw_files::hex;
use myclaw_session::{BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, SessionError};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio_postgres::types::Type;

use super::core::{Core, column, failed_io};
use super::sql;
use crate::pool::Parameter;
use crate::read::stored;

/// Bytes of a part, so that no statement is large.
const PART_BYTES: usize = 1024 * 1024;
/// A smaller content is in the database in any case: a request to the object storage takes longer.
const LARGE_BYTES: usize = 64 * 1024;
/// Who stores a content has limited it before.
const ALL: BlobLimits = BlobLimits { each: u64::MAX - 1, together: None };

/// A content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) id: i64,
    /// SHA-256, in hexadecimal digits.
    pub(super) digest: String,
    /// Its name in the object storage, if it is there.
    pub(super) place: Option<String>,
}

/// The digest of a content.
pub(super) fn digest_of(content: &[u8]) -> String {
    hex(digest(&SHA256, content).as_ref())
}

impl Core {
    /// Stores a content that nothing names yet.
    pub(super) fn put_blob(&self, content: &[u8]) -> Result<Blob, SessionError> {
        if content.len() >= LARGE_BYTES
            && let Some(elsewhere) = self.elsewhere.get()
            && let Some(blob) = self.put_elsewhere(elsewhere, content)?
        {
            return Ok(blob);
        }
        let id = self.begin_blob(None)?;
        for (number, part) in content.chunks(PART_BYTES).enumerate() {
            let number = stored(number as u64);
            let parameters: [Parameter<'_>; 3] =
                [(&id, Type::INT8), (&number, Type::INT8), (&part, Type::BYTEA)];
            self.rows("write", sql::ADD_PART, &parameters)?;
        }
        Ok(Blob { id, digest: digest_of(content), place: None })
    }

    /// `None` if the object storage cannot be used, which it has logged. The row that was begun is swept.
    fn put_elsewhere(
        &self,
        elsewhere: &Arc<dyn Blobs>,
        mut content: impl Read,
    ) -> Result<Option<Blob>, SessionError> {
        let mut name = [0; 16];
        if SystemRandom::new().fill(&mut name).is_err() {
            return Ok(None);
        }
        let name = hex(&name);
        let id = self.begin_blob(Some(&name))?;
        let digest = elsewhere.put(&name, &mut content, ALL).ok().and_then(|put| put.digest);
        Ok(digest.map(|digest| Blob { id, digest, place: Some(name) }))
    }

    /// Stores a content that is too large for the database, without having all of it in memory. `None` if there is no object
    /// storage that can be used.
    pub(super) fn put_large(&self, content: impl Read) -> Result<Option<Blob>, SessionError> {
        self.elsewhere.get().map_or(Ok(None), |elsewhere| self.put_elsewhere(elsewhere, content))
    }

    /// Passes a content on, that of a large one in parts.
    pub(super) fn copy_blob(
        &self,
        blob: &Blob,
        to: &mut dyn io::Write,
    ) -> Result<(), SessionError> {
        let failed = |error: io::Error| failed_io("read", &error.to_string());
        match &blob.place {
            Some(_) => io::copy(&mut self.open_blob(blob)?, to).map(drop).map_err(failed),
            None => to.write_all(&self.read_blob(blob)?).map_err(failed),
        }
    }

    fn begin_blob(&self, place: Option<&str>) -> Result<i64, SessionError> {
        let parameters: [Parameter<'_>; 2] = [(&self.partition, Type::INT8), (&place, Type::TEXT)];
        let begun = self.rows("write", sql::BEGIN_BLOB, &parameters)?;
        let row = begun.first().ok_or_else(|| failed_io("write", "the database gave no number"))?;
        column(row, 0)
    }

    pub(super) fn read_blob(&self, blob: &Blob) -> Result<Vec<u8>, SessionError> {
        if blob.place.is_some() {
            let content = self.open_blob(blob)?.read_all();
            return content.map_err(|error| failed_io("read", &error.to_string()));
        }
        let mut content = Vec::new();
        for number in 0_i64.. {
            let wanted: [Parameter<'_>; 2] = [(&blob.id, Type::INT8), (&number, Type::INT8)];
            let found = self.rows("read", sql::PART, &wanted)?;
            let Some(row) = found.first() else { break };
            let part: &[u8] = column(row, 0)?;
            content.extend_from_slice(part);
            // Only the last one is shorter. A missing one changes the digest.
            if part.len() < PART_BYTES {
                break;
            }
        }
        if digest_of(&content) != blob.digest {
            return Err(failed_io("read", "a content has changed since it was stored"));
        }
        Ok(content)
    }

    /// A content of the object storage.
    pub(super) fn open_blob(&self, blob: &Blob) -> Result<OpenBlob, SessionError> {
        let place = blob.place.clone().unwrap_or_default();
        let Some(elsewhere) = self.elsewhere.get() else {
            let why = "a content is in the object storage, and gateway.blobs is not set on this machine; set it to the bucket \
                       that the other machines use";
            return Err(failed_io("read", why));
        };
        let named = NamedBlob { name: place, digest: Some(blob.digest.clone()) };
        elsewhere.open(&named).map_err(|error| match error {
            BlobError::Missing => {
                failed_io("read", &format!("{} is gone", elsewhere.describe(&named)))
            }
            error => failed_io("read", &error.to_string()),
        })
    }

    /// Removes those of these contents that nothing names. What fails is left to the sweep.
    pub(super) fn drop_blobs(&self, ids: &[i64]) {
        if !ids.is_empty() {
            drop(self.try_to_drop(ids));
        }
    }

    fn try_to_drop(&self, ids: &[i64]) -> Result<(), SessionError> {
        let ids: [Parameter<'_>; 1] = [(&ids, Type::INT8_ARRAY)];
        let mut free: Vec<i64> = Vec::new();
        for row in &self.rows("delete", sql::UNNAMED_OF, &ids)? {
            let place: Option<String> = column(row, 1)?;
            // The row goes last, so nothing is in the object storage that no row knows.
            let is_free = place.is_none_or(|name| {
                let blob = NamedBlob { name, digest: None };
                self.elsewhere.get().is_some_and(|elsewhere| elsewhere.remove(&blob).is_ok())
            });
            free.extend(is_free.then_some(column::<i64>(row, 0)?));
        }
        self.rows("delete", sql::DROP_BLOBS, &[(&free, Type::INT8_ARRAY)]).map(drop)
    }

    /// Removes what programs have left that were killed.
    pub(super) fn sweep_blobs(&self) -> Result<(), SessionError> {
        let rows = self.rows("list", sql::UNNAMED_BLOBS, &[(&self.partition, Type::INT8)])?;
        let ids: Vec<i64> = rows.iter().map(|row| column(row, 0)).collect::<Result<_, _>>()?;
        self.drop_blobs(&ids);
        Ok(())
    }
}
