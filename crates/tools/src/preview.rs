//! What a call of a file tool would change, before it is made.

use myclaw_engine::{PreparedCall, ToolContext};

use crate::files::{diff_deadline, unified_diff};
use crate::{apply_patch, edit, write};

/// The whole change from one text to another as a unified diff; `None` if the texts are too large to compare.
pub fn text_diff(name: &str, old: &str, new: &str) -> Option<String> {
    unified_diff(name, old, new, diff_deadline())
}

/// The change that a call of `write`, `edit` or `apply_patch` would make to the files as they are now, as a unified
/// diff: for the person who is asked to approve the call. Changes nothing. The diff is all of the change.
///
/// `None` for other tools, for a call that would fail, and where there is no text to compare (a binary or very large
/// file). The diff holds the bytes of files and of the call: escape control characters before it goes to a terminal.
///
/// Blocks, for a second or two at most: it does the tool's work up to the point where the tool writes.
pub fn preview(call: &PreparedCall, context: &ToolContext) -> Option<String> {
    let diff = match call.tool_name.as_str() {
        "write" => write::preview(context, call),
        "edit" => edit::preview(context, call),
        "apply_patch" => apply_patch::preview(context, call),
        _ => return None,
    };
    diff.ok().flatten()
}
