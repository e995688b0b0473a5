//! Walks through a directory in order, by the rules of ignore files.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder};
use myclaw_engine::ToolError;
use myclaw_files::{ClosedPaths, is_of_process};
use tokio_util::sync::CancellationToken;

/// Lists a directory at any depth, sorted by path, without what `.gitignore`, `.ignore` and git's own exclude files
/// name. Links are listed and never followed, so that a walk cannot leave its directory. `.git` and the processes in `/proc`
/// are never entered.
pub(crate) struct Walker {
    walk: ignore::Walk,
    cancel: CancellationToken,
    /// Number of entries that could not be read.
    unreadable: Arc<AtomicUsize>,
    /// Number of places that were left out because they are closed to tools.
    closed: Arc<AtomicUsize>,
}

impl Walker {
    /// A walk through `root`, a real path that is open to tools. `root` itself is not among the entries; hidden files are,
    /// and what is closed to tools is not.
    pub(crate) fn new(root: &Path, closed: &ClosedPaths, cancel: CancellationToken) -> Self {
        let unreadable = Arc::new(AtomicUsize::new(0));
        let skipped = Arc::clone(&unreadable);
        let left_out = Arc::new(AtomicUsize::new(0));
        let (closed, counted) = (closed.now(), Arc::clone(&left_out));
        let follows_rules = !root.ancestors().any(has_special_ignore_file);
        let is_in_repository = root.ancestors().any(|directory| directory.join(".git").exists());
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .follow_links(false)
            .ignore(follows_rules)
            .git_ignore(follows_rules)
            .git_exclude(follows_rules)
            // In a repository the ignore files of parent directories count, up to its root. A workspace outside of any
            // repository has ignore files too, but those of directories above it do not count.
            .require_git(is_in_repository)
            .parents(is_in_repository && follows_rules)
            .filter_entry(move |entry| {
                if entry.depth() == 0 {
                    return true;
                }
                if is_of_process(entry.path()) {
                    return false;
                }
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                let found = if is_directory { entry.path().symlink_metadata().ok() } else { None };
                if closed.is_closed_place(entry.path(), found.as_ref()) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                if is_directory && follows_rules && has_special_ignore_file(entry.path()) {
                    skipped.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                entry.file_name() != ".git"
            })
            .sort_by_file_name(|left, right| left.cmp(right))
            .build();
        Self { walk, cancel, unreadable, closed: left_out }
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
                Some(Err(_)) => {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// What a result says about the places that were left out because they are closed to tools, if there were any.
    pub(crate) fn closed_note(&self) -> Option<String> {
        let count = self.closed.load(Ordering::Relaxed);
        (count > 0).then(|| {
            format!("{count} closed to tools (the program's own config, keys and records) left out")
        })
    }

    /// Number of entries that could not be read so far.
    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable.load(Ordering::Relaxed)
    }
}

/// Whether an ignore file in this directory is a pipe or a device, because reading it could block forever.
fn has_special_ignore_file(directory: &Path) -> bool {
    [".gitignore", ".ignore", ".git/info/exclude"].iter().any(|name| {
        directory.join(name).metadata().is_ok_and(|file| !file.is_file() && !file.is_dir())
    })
}

#[cfg(test)]
mod tests;
