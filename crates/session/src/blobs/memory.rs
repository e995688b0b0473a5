//! Blobs that live as long as the process.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{BlobError, BlobLimits, Blobs, NamedBlob, OpenBlob, checked};

/// Blobs in the memory of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryBlobs(Arc<Mutex<HashMap<String, Kept>>>);

#[derive(Debug)]
struct Kept {
    content: Arc<[u8]>,
    since: Instant,
}

impl Blobs for MemoryBlobs {
    fn put(
        &self,
        name: &str,
        content: &mut dyn Read,
        limits: BlobLimits,
    ) -> Result<NamedBlob, BlobError> {
        checked(name)?;
        let sizes = |all: &HashMap<String, Kept>| {
            let others = all.iter().filter(|(other, _)| *other != name);
            others.map(|(_, kept)| kept.content.len() as u64).sum()
        };
        let (others, mut bytes) = (sizes(&self.0.lock()), Vec::new());
        let blob = limits.copy(name, content, others, &mut bytes)?;
        let kept = Kept { content: bytes.into(), since: Instant::now() };
        self.0.lock().insert(name.to_owned(), kept);
        Ok(blob)
    }

    fn open(&self, blob: &NamedBlob) -> Result<OpenBlob, BlobError> {
        checked(&blob.name)?;
        let kept = self.0.lock();
        let kept = kept.get(&blob.name).ok_or(BlobError::Missing)?;
        let content = Arc::clone(&kept.content);
        Ok(OpenBlob::new(blob, content.len() as u64, Cursor::new(content)))
    }

    fn remove(&self, blob: &NamedBlob) -> Result<bool, BlobError> {
        Ok(self.0.lock().remove(checked(&blob.name)?).is_some())
    }

    fn sweep(&self, max_age: Duration) -> Result<usize, BlobError> {
        let mut all = self.0.lock();
        let before = all.len();
        all.retain(|_, kept| kept.since.elapsed() <= max_age);
        Ok(before - all.len())
    }

    fn describe(&self, blob: &NamedBlob) -> String {
        format!("memory:{}", blob.name)
    }
}
