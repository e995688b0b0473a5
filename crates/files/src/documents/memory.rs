//! Documents that live as long as the process.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::{Document, Documents, checked_document_name as checked};
use crate::Durability;

/// Documents in the memory of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryDocuments(Arc<Mutex<BTreeMap<String, Kept>>>);

#[derive(Debug)]
struct Kept {
    text: String,
    since: Instant,
}

impl Documents for MemoryDocuments {
    fn read(&self, name: &str) -> io::Result<Option<Document>> {
        let all = self.0.lock();
        let kept = all.get(checked(name)?);
        Ok(kept.map(|kept| Document { text: kept.text.clone(), age: kept.since.elapsed() }))
    }

    fn change(
        &self,
        name: &str,
        _: Durability,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> io::Result<()> {
        let mut all = self.0.lock();
        let text = change(all.get(checked(name)?).map(|kept| kept.text.as_str()));
        all.insert(name.to_owned(), Kept { text, since: Instant::now() });
        Ok(())
    }

    fn note_use(&self, name: &str) -> io::Result<()> {
        if let Some(kept) = self.0.lock().get_mut(checked(name)?) {
            kept.since = Instant::now();
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        Ok(self.0.lock().remove(checked(name)?).is_some())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Duration)>> {
        let all = self.0.lock();
        let has_parts = |name: &&String| !name[prefix.len()..].contains('/');
        let found = all.range(prefix.to_owned()..).map(|(name, kept)| (name, kept.since.elapsed()));
        let found = found.take_while(|(name, _)| name.starts_with(prefix));
        let found = found.filter(|(name, _)| has_parts(name));
        Ok(found.map(|(name, age)| (name.clone(), age)).collect())
    }

    fn describe(&self, name: &str) -> String {
        format!("memory:{name}")
    }
}
