//! Copies of files that wait to be sent, in the database, so that any node can send them.
//!
//! A blob is a record with its size, and parts of up to a mebibyte. The parts are written first, so a blob that is there is
//! complete. Parts of one that was never completed go with their age.

use std::io::{self, Read, Write as _};
use std::sync::Arc;
use std::time::Duration;

use myclaw_files::{hex, now_ms};
use myclaw_session::{
    BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, checked_blob_name as checked,
};
use myclaw_store::{
    Batch, Change, Commit, MAX_VALUE_BYTES, Place, RecordId, Records, Store as _, StoreError,
    Write, scan, sweep,
};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::blocking::Blocking;

const KEPT: Records<Kept> = Records::new(KIND);
pub(crate) const KIND: &str = "outgoing-file";
/// The blobs by the time at which they were put, in milliseconds since the Unix epoch.
pub(crate) const QUEUE: &str = "outgoing-files";
/// Kind of the parts, which are bytes.
pub(crate) const PART_KIND: &str = "outgoing-part";
/// Their queue, in the same order.
const PARTS: &str = "outgoing-parts";
/// How much older than their blob parts may be: the longest time in which a file is copied.
const COPYING_MS: u64 = 60 * 60 * 1_000;

/// Blobs in a database.
#[derive(Debug)]
pub(crate) struct RecordedBlobs(Arc<Blocking>);

/// A blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    bytes: u64,
    parts: u64,
    /// Begins the keys of its parts.
    prefix: String,
}

/// Writes the parts of a blob.
struct Writer<'b> {
    records: &'b Blocking,
    prefix: String,
    at: u64,
    waiting: Vec<u8>,
    bytes: u64,
    parts: u64,
}

/// Reads the parts of a blob, one at a time.
struct Reader {
    records: Arc<Blocking>,
    kept: Kept,
    next: u64,
    part: io::Cursor<Vec<u8>>,
}

impl RecordedBlobs {
    pub(crate) fn new(records: Arc<Blocking>) -> Self {
        Self(records)
    }

    fn find(&self, name: &str) -> Result<Kept, BlobError> {
        let found = self.0.wait(|store| KEPT.get(store, name)).map_err(failed)?;
        found.map(|stored| stored.row).ok_or(BlobError::Missing)
    }

    fn bytes_without(&self, name: &str) -> Result<u64, BlobError> {
        let all = self.0.wait(|store| KEPT.all(store, QUEUE)).map_err(failed)?;
        let others = all.iter().filter(|stored| stored.id != name);
        Ok(others.map(|stored| stored.row.bytes).fold(0, u64::saturating_add))
    }

    fn remove_parts(&self, kept: &Kept) -> Result<(), BlobError> {
        (0..kept.parts).try_for_each(|number| {
            let parts: Records<()> = Records::new(PART_KIND);
            let key = part_key(&kept.prefix, number);
            self.0.wait(async |store| parts.delete(store, &key).await).map_err(failed)
        })
    }
}

impl Blobs for RecordedBlobs {
    fn put(
        &self,
        name: &str,
        content: &mut dyn Read,
        limits: BlobLimits,
    ) -> Result<NamedBlob, BlobError> {
        checked(name)?;
        let others = limits.together.map_or(Ok(0), |_| self.bytes_without(name))?;
        let mut writer = Writer::new(&self.0, name)?;
        let copied = limits.copy(name, content, others, &mut writer);
        let copied = copied.and_then(|blob| Ok((blob, writer.flush()?)));
        let kept = Kept { bytes: writer.bytes, parts: writer.parts, prefix: writer.prefix };
        let blob = match copied {
            Ok((blob, ())) => blob,
            Err(error) => {
                // What stays goes with its age.
                let _ = self.remove_parts(&kept);
                return Err(error);
            }
        };
        let (mut before, place) = (None, Place::new(QUEUE, now_ms()));
        let decide = |known: Option<Kept>| {
            before = known;
            Change::put(kept.clone(), place.clone())
        };
        self.0.wait(|store| KEPT.update(store, name, decide)).map_err(failed)?;
        if let Some(before) = before {
            let _ = self.remove_parts(&before);
        }
        Ok(blob)
    }

    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError> {
        let kept = self.find(checked(&blob.name)?)?;
        let (records, bytes) = (Arc::clone(&self.0), kept.bytes);
        let reader = Reader { records, kept, next: 0, part: io::Cursor::default() };
        Ok(OpenBlob::new(blob, bytes, reader))
    }

    fn remove(&self, blob: &NamedBlob) -> Result<bool, BlobError> {
        let name = checked(&blob.name)?;
        let kept = match self.find(name) {
            Err(BlobError::Missing) => return Ok(false),
            kept => kept?,
        };
        self.0.wait(async |store| KEPT.delete(store, name).await).map_err(failed)?;
        self.remove_parts(&kept)?;
        Ok(true)
    }

    fn sweep(&self, max_age: Duration) -> Result<usize, BlobError> {
        let age = u64::try_from(max_age.as_millis()).unwrap_or(u64::MAX);
        let until = now_ms().saturating_sub(age);
        let all = self.0.wait(|store| scan(store, QUEUE, usize::MAX)).map_err(failed)?;
        let is_old = |order: u64| order < until;
        let old =
            all.iter().filter(|record| record.place.as_ref().is_some_and(|it| is_old(it.order)));
        let mut count = 0;
        for record in old {
            let blob = NamedBlob { name: record.id.key.clone(), digest: None };
            count += usize::from(self.remove(&blob)?);
        }
        let parts_until = until.saturating_sub(COPYING_MS);
        self.0.wait(|store| sweep(store, PARTS, parts_until)).map_err(failed)?;
        Ok(count)
    }

    fn describe(&self, blob: &NamedBlob) -> String {
        format!("{}/outgoing/{}", self.0.server(), blob.name)
    }
}

impl<'b> Writer<'b> {
    fn new(records: &'b Blocking, name: &str) -> io::Result<Self> {
        let mut salt = [0; 8];
        SystemRandom::new()
            .fill(&mut salt)
            .map_err(|_| io::Error::other("there are no random numbers"))?;
        let prefix = format!("{name}-{}", hex(&salt));
        Ok(Self { records, prefix, at: now_ms(), waiting: Vec::new(), bytes: 0, parts: 0 })
    }

    fn store(&mut self, part: Vec<u8>) -> io::Result<()> {
        let bytes = part.len() as u64;
        let write = Write::Insert {
            id: RecordId::new(PART_KIND, part_key(&self.prefix, self.parts)),
            value: part,
            place: Some(Place::new(PARTS, self.at)),
        };
        let stored = self.records.wait(|store| store.commit(Batch::of(write)));
        match stored.map_err(io::Error::other)? {
            Commit::Done(_) => {}
            Commit::Refused(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        }
        self.parts += 1;
        self.bytes += bytes;
        Ok(())
    }
}

impl io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_VALUE_BYTES - self.waiting.len();
        let taken = &bytes[..bytes.len().min(room)];
        self.waiting.extend_from_slice(taken);
        if self.waiting.len() == MAX_VALUE_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let part = std::mem::take(&mut self.waiting);
        self.store(part)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.part.read(buffer)?;
            if count > 0 || self.next == self.kept.parts || buffer.is_empty() {
                return Ok(count);
            }
            let id = RecordId::new(PART_KIND, part_key(&self.kept.prefix, self.next));
            let found = self.records.wait(|store| store.get(id)).map_err(io::Error::other)?;
            let part = found.ok_or_else(|| io::Error::other("a part of it is gone"))?;
            self.part = io::Cursor::new(part.value);
            self.next += 1;
        }
    }
}

fn part_key(prefix: &str, number: u64) -> String {
    format!("{prefix}-{number}")
}

fn failed(error: StoreError) -> BlobError {
    BlobError::Io(io::Error::other(error))
}
