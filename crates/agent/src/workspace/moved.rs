//! Sessions that worked in their agent's workspace before they had one of their own. Their files are still there, so the
//! owner is told once in the log, and by `doctor` until the note is removed.

use std::path::{Path, PathBuf};

use myclaw_config::Paths;
use myclaw_engine::Notice;
use myclaw_files::{SharedDirectory, create_private_directory};

use crate::SessionConfig;

/// Directory of the notes, next to the workspaces. No session's workspace begins with a dot.
const NOTES: &str = ".moved";
/// What happened. People in the chat read it too, so it names no directory.
const MOVED: &str = "the session has a workspace of its own now, since others than the owner write in it; its files from \
                     before stay where they are, and the owner can copy them; \
                     `agents.defaults.sandbox.confinement.workspaceAccess` \"rw\" lets such sessions work in the agent's \
                     workspace again";
/// Most notes that are read.
const MOST: usize = 1_000;
/// Most bytes of a session key.
const MOST_KEY_BYTES: u64 = 1_024;

/// A session that got a workspace of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedSession {
    /// Its key.
    pub session: String,
    /// Its workspace.
    pub workspace: PathBuf,
    /// The file that keeps this in mind.
    pub note: PathBuf,
}

/// The sessions that got a workspace of their own and left files in their agent's, at most 1,000. Blocks.
pub fn moved_sessions(paths: &Paths) -> Vec<MovedSession> {
    let workspaces = paths.workspaces_dir();
    let Ok(notes) = SharedDirectory::open(&workspaces.join(NOTES)) else { return Vec::new() };
    let names = notes.names(MOST, |_| true).map(|found| found.names).unwrap_or_default();
    let moved = names.into_iter().filter_map(|name| {
        let session = String::from_utf8(notes.read(&name, MOST_KEY_BYTES).ok()?).ok()?;
        let (workspace, note) = (workspaces.join(&name), notes.path().join(&name));
        Some(MovedSession { session, workspace, note })
    });
    let mut moved: Vec<_> = moved.collect();
    moved.sort_by(|one, other| one.session.cmp(&other.session));
    moved
}

impl SessionConfig {
    /// Keeps in mind that the session worked elsewhere before `own`, its new workspace, was made.
    pub(super) fn note_if_moved(&self, own: &Path) {
        if !self.home.catalog().exists(&self.session_key) {
            return;
        }
        tracing::warn!(
            session = self.session_key.as_str(),
            workspace = %own.display(),
            before = %self.agent.workspace.display(),
            "{MOVED}"
        );
        self.emit_notice(Notice::Workspace { text: MOVED.to_owned() });
        let noted = own.file_name().zip(own.parent()).map(|(name, workspaces)| {
            let notes = workspaces.join(NOTES);
            create_private_directory(&notes)?;
            std::fs::write(notes.join(name), self.session_key.as_str())
        });
        if let Some(Err(error)) = noted {
            tracing::warn!(%error, "`myclaw doctor` will not name this session");
        }
    }
}
