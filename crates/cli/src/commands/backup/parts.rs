//! What each file of the state directory is for.

use std::path::Path;

use myclaw_auth::STORE_FILE;
use myclaw_backup::FileRole;

/// Directories that the owner, the agent, groups in containers and MCP servers write.
const WORK: [&str; 7] =
    ["commands", "skills", "workspace", "workspaces", "mcp/data", "host/groups", "host/data"];
/// Files and directories with keys, tokens and logins.
const KEYS: [&str; 5] =
    [".env", "mcp/logins", "gateway/token", "gateway/matrix-keys.sqlite", "node"];
/// What belongs to running processes, or tells only what they did.
const NOT_NEEDED: [&str; 6] =
    ["logs", "snapshots", "gateway/running.json", "host/data/model", "host/data/tmp", "host/logs"];
/// Ends of names of files that belong to running processes, or that are being written.
const PASSING: [&str; 5] = [".lock", ".tmp", "-wal", "-shm", "-journal"];

/// What a path in the state directory is for.
pub(super) fn part_of(path: &Path) -> FileRole {
    let is_at = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let first = path.components().next().map(|part| part.as_os_str().to_string_lossy());
    if is_at(&NOT_NEEDED) {
        return FileRole::Skipped;
    }
    if is_at(&WORK) || first.is_some_and(|name| name.starts_with("workspace-")) {
        return FileRole::Work;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let copy_of = name.strip_suffix(".bak");
    if PASSING.iter().any(|end| name.ends_with(end)) {
        FileRole::Skipped
    } else if is_at(&KEYS) || name.starts_with(STORE_FILE) || copy_of.is_some() {
        // The text of the config before its last change is such a copy.
        FileRole::Key
    } else if name.ends_with(".sqlite") {
        FileRole::Database
    } else if !path.starts_with("sessions") {
        FileRole::Other
    } else if name.ends_with(".inbox") {
        FileRole::Inbox
    } else if name.ends_with(".jsonl") {
        FileRole::Log
    } else if path.components().count() > 2 || name.contains(".history-") {
        FileRole::SideFile
    } else {
        FileRole::Other
    }
}

#[cfg(test)]
mod tests;
