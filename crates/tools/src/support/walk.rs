//! Walking a folder in order, by the rules of ignore files.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};
use myclaw_engine::ToolError;
use tokio_util::sync::CancellationToken;

/// What is in a folder, at any depth and sorted by path, without what `.gitignore`, `.ignore` and git's own settings
/// exclude. Links are listed and never followed, so that a walk cannot leave its folder. `.git` is never entered.
pub(crate) struct Walker {
    walk: ignore::Walk,
    cancel: CancellationToken,
    /// Entries that could not be looked at.
    unreadable: usize,
}

impl Walker {
    /// A walk through `root`, with or without names that begin with a dot. `root` itself is not among the entries.
    pub(crate) fn new(root: &Path, hidden: Hidden, cancel: CancellationToken) -> Self {
        let is_in_repository = root.ancestors().any(|folder| folder.join(".git").exists());
        let walk = WalkBuilder::new(root)
            .hidden(hidden == Hidden::Skipped)
            .follow_links(false)
            // Within a repository the ignore files of its parent folders count, up to its own root. A workspace that
            // is none has ignore files too, but no folder above has a say over it.
            .require_git(is_in_repository)
            .parents(is_in_repository)
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git")
            .sort_by_file_name(|left, right| left.cmp(right))
            .build();
        Self { walk, cancel, unreadable: 0 }
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// [`ToolError::Aborted`] once the run is cancelled.
    pub(crate) fn next_entry(&mut self) -> Result<Option<DirEntry>, ToolError> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(ToolError::Aborted("aborted before the search was done".to_owned()));
            }
            match self.walk.next() {
                None => return Ok(None),
                Some(Ok(entry)) if entry.depth() == 0 => {}
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(_)) => self.unreadable += 1,
            }
        }
    }

    /// How many entries could not be looked at so far.
    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable
    }
}

/// What happens to names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    Skipped,
    Included,
}

#[cfg(test)]
mod tests;
