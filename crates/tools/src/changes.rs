//! The file tools' record of files: which content the model has seen, and the content before each change, so that the
//! change can be undone.
//!
//! Everything is in one directory next to the session (`changes` in its directory of artifacts), so it survives a
//! restart and needs no state in a process:
//!
//! - `seen.jsonl`: the content of each file when it was last read or written ([`require_fresh`]);
//! - `journal.jsonl`: each change with the state of the file before and after it ([`make_change`]);
//! - `images/`: the old contents. The tools replace files as a whole, so an old content is usually kept by a second link
//!   to the old file, which takes no time and no copy.
//!
//! A change of a file tool is recorded, durably, before it is made; what commands change, after it (`commands`). If the
//! process is killed in between, the file is still in its old state, and undo finds that there is nothing to do.

mod commands;
mod difference;
mod fingerprint;
mod image;
mod journal;
mod plan;
mod record;
mod seen;
mod undo;

use myclaw_files::now_ms;
use std::path::{Path, PathBuf};

use myclaw_engine::ToolContext;

pub use commands::{
    CommandChange, OldContent, forget_command, note_command, noted_command, record_command,
};
pub use difference::{FileDifference, differences};
pub(crate) use fingerprint::Fingerprint;
pub use plan::{Direction, FileOutcome, Undone, UndoneFile, WhichTurn};
pub(crate) use record::{Before, Upcoming, make_change};
pub(crate) use seen::{note_read, note_seen, require_fresh};
pub use undo::{ChangedTurn, Undo, UndoError, changed_turns, inherit_changes};

/// Largest file whose old content is kept: the largest that `edit` and `apply_patch` change.
const MAX_IMAGE_BYTES: u64 = 64 * 1024 * 1024;

/// The directory of a session's changes.
fn directory(context: &ToolContext) -> PathBuf {
    directory_in(&context.artifact_directory)
}

fn directory_in(artifact_directory: &Path) -> PathBuf {
    artifact_directory.join("changes")
}
