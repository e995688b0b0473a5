//! What was forgotten: which rows of sessions are not searched and not learned from any more, and which facts are not learned
//! again. Nothing here says what it was: rows have ids, and facts have digests.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::PathBuf;

use myclaw_files::{Durability, NewFile, create_private_directory, read_regular};
use myclaw_memory::{Hidden, digest_of_fact};
use serde::{Deserialize, Serialize};

const FILE: &str = "forgotten.json";
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The record of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Forgotten {
    directory: PathBuf,
}

/// The file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Rows, as the key of their session and their id.
    rows: BTreeSet<(String, String)>,
    /// Digests of facts.
    facts: BTreeSet<String>,
}

impl Forgotten {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
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

    /// Adds the digest of a fact and rows. Whoever calls this holds a lock.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) fn add(&self, fact: Option<&str>, rows: &[(String, String)]) -> io::Result<()> {
        let mut record = self.read();
        record.facts.extend(fact.map(str::to_owned));
        record.rows.extend(rows.iter().cloned());
        create_private_directory(&self.directory)?;
        let file = NewFile::in_directory(&self.directory, ".forgotten")?;
        file.as_file().write_all(&serde_json::to_vec(&record)?)?;
        file.put_at(&self.directory.join(FILE), Durability::Synced).map(drop)
    }

    fn read(&self) -> Record {
        let bytes = read_regular(&self.directory.join(FILE), MOST_BYTES).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
