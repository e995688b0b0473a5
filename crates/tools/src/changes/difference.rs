//! What a session has changed, as diffs: each file as it was before its first change against what it is now.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use myclaw_engine::ToolContext;
use myclaw_files::{read_regular, text_of_bytes};
use serde::Serialize;

use super::image::load;
use super::journal::{FileChange, Journal};
use super::plan::is_allowed;
use super::{UndoError, directory};
use crate::files::{diff_deadline, unified_diff};
use crate::support::{real_root, shown_below};

/// Largest file that is compared, in bytes.
const MAX_COMPARED_BYTES: u64 = 2 * 1024 * 1024;

/// A file that a session has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDifference {
    /// Relative to the working directory where it lies in there, else absolute.
    pub path: String,
    /// The difference as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Why there is no diff. The text follows "it".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// The files that `write`, `edit` and `apply_patch` have changed in a session and that are different now, by name. Blocks.
///
/// # Errors
/// The list of changes cannot be read.
pub fn differences(context: &ToolContext) -> Result<Vec<FileDifference>, UndoError> {
    let directory = directory(context);
    let journal = Journal::new(directory.clone());
    let content =
        journal.read().map_err(|source| UndoError::Journal { path: directory, source })?;
    let mut first: BTreeMap<PathBuf, FileChange> = BTreeMap::new();
    for change in content.records.into_iter().flat_map(|record| record.files) {
        first.entry(change.path.clone()).or_insert(change);
    }
    let root = real_root(context);
    let differs = |(path, change): (PathBuf, FileChange)| {
        let shown = shown_below(&path, &root);
        match compared(context, &journal, &path, &change, &shown) {
            Ok(None) => None,
            Ok(diff) => Some(FileDifference { path: shown, diff, not_compared: None }),
            Err(why) => Some(FileDifference { path: shown, diff: None, not_compared: Some(why) }),
        }
    };
    Ok(first.into_iter().filter_map(differs).collect())
}

/// The difference of a file; `None` if there is none. The error says why it is not known.
fn compared(
    context: &ToolContext,
    journal: &Journal,
    path: &Path,
    change: &FileChange,
    shown: &str,
) -> Result<Option<String>, String> {
    if !is_allowed(context, path) {
        return Err("is outside of what the tools of this session may touch".to_owned());
    }
    let unread = |error: io::Error| format!("cannot be read: {error}");
    let before = match (&change.before, &change.image) {
        (None, _) => None,
        (Some(known), Some(image)) => {
            let kept = load(&journal.images().join(image), known).map_err(unread)?;
            Some(kept.ok_or("had content that is not kept any more")?.0)
        }
        (Some(_), None) => {
            let why = change.not_kept.clone();
            return Err(why.unwrap_or_else(|| "had content that was not kept".to_owned()));
        }
    };
    let now = match read_regular(path, MAX_COMPARED_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unread(error)),
    };
    if before == now {
        return Ok(None);
    }
    let [before, now] = [before, now].map(Option::unwrap_or_default);
    if [&before, &now].iter().any(|bytes| bytes.contains(&0)) {
        return Err("is no text".to_owned());
    }
    let (before, now) = (text_of_bytes(&before), text_of_bytes(&now));
    match unified_diff(shown, &before, &now, diff_deadline()) {
        Some(diff) => Ok(Some(diff)),
        None => Err("is too large to be compared".to_owned()),
    }
}
