//! Contents that belong to sessions.
//!
//! A content gets its row first, then its parts, and then what names it; only the last makes it visible. So a program that is
//! killed in between leaves a content that nothing names, which [`Core::sweep_blobs`] finds.

use myclaw_files::hex;
use myclaw_session::SessionError;
use ring::digest::{SHA256, digest};
use tokio_postgres::types::Type;

use super::core::{Core, column, failed_io};
use super::sql;
use crate::pool::Parameter;
use crate::read::stored;

/// Bytes of a part, so that no statement is large.
const PART_BYTES: usize = 1024 * 1024;

/// A content that nothing names yet, or something does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) id: i64,
    pub(super) bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub(super) digest: String,
}

/// The digest of a content.
pub(super) fn digest_of(content: &[u8]) -> String {
    hex(digest(&SHA256, content).as_ref())
}

impl Core {
    pub(super) fn put_blob(&self, content: &[u8]) -> Result<Blob, SessionError> {
        let begun = self.rows("write", sql::BEGIN_BLOB, &[(&self.partition, Type::INT8)])?;
        let row = begun.first().ok_or_else(|| failed_io("write", "the database gave no number"))?;
        let id: i64 = column(row, 0)?;
        for (number, part) in content.chunks(PART_BYTES).enumerate() {
            let number = stored(number as u64);
            let parameters: [Parameter<'_>; 3] =
                [(&id, Type::INT8), (&number, Type::INT8), (&part, Type::BYTEA)];
            self.rows("write", sql::ADD_PART, &parameters)?;
        }
        Ok(Blob { id, bytes: content.len() as u64, digest: digest_of(content) })
    }

    pub(super) fn read_blob(&self, blob: &Blob) -> Result<Vec<u8>, SessionError> {
        let mut content = Vec::new();
        for number in 0_i64.. {
            if content.len() as u64 >= blob.bytes {
                break;
            }
            let wanted: [Parameter<'_>; 2] = [(&blob.id, Type::INT8), (&number, Type::INT8)];
            let found = self.rows("read", sql::PART, &wanted)?;
            let row = found.first().ok_or_else(|| failed_io("read", "a part of it is gone"))?;
            content.extend_from_slice(column(row, 0)?);
        }
        if digest_of(&content) != blob.digest {
            return Err(failed_io("read", "a content has changed since it was stored"));
        }
        Ok(content)
    }

    /// Removes those of these contents that nothing names. What fails is left to the sweep.
    pub(super) fn drop_blobs(&self, ids: &[i64]) {
        if !ids.is_empty() {
            drop(self.rows("delete", sql::DROP_BLOBS, &[(&ids, Type::INT8_ARRAY)]));
        }
    }

    /// Removes what programs have left that were killed.
    pub(super) fn sweep_blobs(&self) -> Result<(), SessionError> {
        let rows = self.rows("list", sql::UNNAMED_BLOBS, &[(&self.partition, Type::INT8)])?;
        let ids: Vec<i64> = rows.iter().map(|row| column(row, 0)).collect::<Result<_, _>>()?;
        self.drop_blobs(&ids);
        Ok(())
    }
}
