//! What the index of a repository was written as, so that the next process need not ask git.

use std::io::{self, Write as _};
use std::path::Path;

use myclaw_files::{Durability, NewFile, read_regular};
use serde::{Deserialize, Serialize};

use super::Stamp;

/// Its file.
const FILE: &str = "written";
/// Its next content.
const NEW_FILE: &str = "written.new";
/// Largest such file.
const MOST: u64 = 64 << 20;

/// An index and its tree.
pub(super) struct Written {
    /// The index that is meant.
    pub(super) stamp: Stamp,
    /// The tree.
    pub(super) id: String,
    /// What was left out, and the names in the tree: each with a zero byte behind it.
    pub(super) left_out: Vec<u8>,
    pub(super) names: Vec<u8>,
}

/// The first line of the file. The bytes follow.
#[derive(Serialize, Deserialize)]
struct Head {
    stamp: Stamp,
    id: String,
    left_out: usize,
    names: usize,
}

impl Written {
    /// What is known of an index; `None` if that is another one. Blocks.
    pub(super) fn of(repository: &Path, stamp: Stamp) -> Option<Self> {
        let bytes = read_regular(&repository.join(FILE), MOST).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        let rest = &bytes[end + 1..];
        // One that a crash has cut.
        if head.stamp != stamp || rest.len() != head.left_out + head.names {
            return None;
        }
        let (left_out, names) = rest.split_at(head.left_out);
        Some(Self { stamp, id: head.id, left_out: left_out.to_vec(), names: names.to_vec() })
    }

    /// Keeps it. Blocks.
    pub(super) fn keep(&self, repository: &Path) -> io::Result<()> {
        let Self { stamp, id, left_out, names } = self;
        let head =
            Head { stamp: *stamp, id: id.clone(), left_out: left_out.len(), names: names.len() };
        let mut bytes = serde_json::to_vec(&head)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(left_out);
        bytes.extend_from_slice(names);
        // The lock of the repository is held.
        let mut file = NewFile::named(&repository.join(NEW_FILE))?;
        file.write_all(&bytes)?;
        file.put_at(&repository.join(FILE), Durability::Unsynced).map(drop)
    }
}
