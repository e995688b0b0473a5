//! What a call of a file tool would change, before it is made.

use myclaw_engine::ToolContext;
use serde_json::{Map, Value};

use crate::files::{diff_deadline, unified_diff};
use crate::{apply_patch, edit, write};

/// The change from one text to another as a unified diff of bounded size; `None` if the texts are too large to compare.
pub fn text_diff(name: &str, old: &str, new: &str) -> Option<String> {
    unified_diff(name, old, new, diff_deadline())
}

/// The change that a call of `write`, `edit` or `apply_patch` would make to the files as they are now, as a unified
/// diff of bounded size: for the person who is asked to approve the call. Changes nothing. `arguments` fit the tool's
/// schema.
///
/// `None` for other tools, for a call that would fail, and where there is no text to compare (a binary or very large
/// file). The diff holds the bytes of files and of the call: escape control characters before it goes to a terminal.
///
/// Blocks, for a second or two at most: it does the tool's work up to the point where the tool writes.
pub fn preview(
    tool_name: &str,
    arguments: &Map<String, Value>,
    context: &ToolContext,
) -> Option<String> {
    let arguments = arguments.clone();
    let diff = match tool_name {
        "write" => write::preview(context, arguments),
        "edit" => edit::preview(context, arguments),
        "apply_patch" => apply_patch::preview(context, arguments),
        _ => return None,
    };
    diff.ok().flatten()
}
