//! What was forgotten: which rows of sessions are not searched and not learned from any more, and which facts are not learned
//! again. Nothing here says what it was: rows have ids, and facts have digests.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use myclaw_files::{Documents, Durability};
use myclaw_memory::{Hidden, digest_of_fact};
use serde::{Deserialize, Serialize};

/// Name of the document.
const NAME: &str = "forgotten.json";

/// The record of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Forgotten {
    documents: Arc<dyn Documents>,
}

/// The document.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Rows, as the key of their session and their id.
    rows: BTreeSet<(String, String)>,
    /// Digests of facts.
    facts: BTreeSet<String>,
}

impl Forgotten {
    pub(crate) fn new(documents: Arc<dyn Documents>) -> Self {
        Self { documents }
    }

    /// The rows.
    pub(crate) fn hidden(&self) -> Hidden {
        let mut hidden = Hidden::new();
        for (session, row) in self.read().rows {
            hidden.entry(session).or_default().insert(row);
        }
        hidden
    }

    /// Whether a fact with these words was forgotten.
    pub(crate) fn has_fact(&self, text: &str) -> bool {
        self.read().facts.contains(&digest_of_fact(text))
    }

    /// Changes with each thing that is forgotten.
    pub(crate) fn state(&self) -> Record {
        self.read()
    }

    /// Adds the digest of a fact and rows.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn add(&self, fact: Option<&str>, rows: &[(String, String)]) -> io::Result<()> {
        self.documents.change(NAME, Durability::Synced, &mut |before| {
            let mut record = before.map(Record::from_text).unwrap_or_default();
            record.facts.extend(fact.map(str::to_owned));
            record.rows.extend(rows.iter().cloned());
            serde_json::to_string(&record).unwrap_or_default()
        })
    }

    fn read(&self) -> Record {
        let document = self.documents.read(NAME).ok().flatten();
        document.map(|document| Record::from_text(&document.text)).unwrap_or_default()
    }
}

impl Record {
    fn from_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }
}
