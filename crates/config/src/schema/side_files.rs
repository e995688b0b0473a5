//! The room that side files of sessions take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session's megabytes: a thousand large outputs.
const DEFAULT_SESSION_MB: u32 = 1_024;
/// All sessions' megabytes: what a disk of a small server can spare.
const DEFAULT_TOTAL_MB: u32 = 10_240;

/// How much room large outputs of tools, downloads and old contents for undo may take. The oldest are removed first; what
/// the last hour made, a running job writes to, or an undo of the last month needs, stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SideFilesConfig {
    /// Megabytes of one session, without what undo needs, which has a limit of its own; 0 for no limit.
    pub session_mb: u32,
    /// Megabytes of all sessions of this installation, with what undo needs; 0 for no limit.
    pub total_mb: u32,
}

impl Default for SideFilesConfig {
    fn default() -> Self {
        Self { session_mb: DEFAULT_SESSION_MB, total_mb: DEFAULT_TOTAL_MB }
    }
}
