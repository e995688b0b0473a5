//! What the model has seen of a project.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// The files of a session's project that the model has read because it touched their directories.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenInstructions(pub(super) Arc<Mutex<BTreeSet<PathBuf>>>);
