//! Sessions of chats that got a workspace of their own, and left files in their agent's.

use myclaw_agent::{Home, workspace::moved_sessions};

use super::Check;

/// Most sessions that are named.
const MOST_NAMED: usize = 5;

/// What became of the files of sessions from before; `None` if there are no such sessions.
pub(super) fn check(home: &Home) -> Option<Check> {
    let moved = moved_sessions(&home.paths);
    let (first, rest) = (moved.first()?, moved.len().saturating_sub(MOST_NAMED));
    let named: Vec<String> = moved
        .iter()
        .take(MOST_NAMED)
        .map(|one| format!("{} in {}", one.session, one.workspace.display()))
        .collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let notes = first.note.parent().unwrap_or(&first.note).display();
    Some(Check::warn(
        "workspaces",
        format!(
            "chats have workspaces of their own since others write in them, and their files from before are still in the \
             agent's workspace: {}{more}",
            named.join("; ")
        ),
        format!(
            "copy what they need, or set agents.defaults.sandbox.confinement.workspaceAccess to \"rw\" for the old \
             behaviour; then remove {notes}"
        ),
    ))
}
