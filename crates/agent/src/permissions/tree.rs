//! A bounded walk through a directory and those below it, which follows no links.

use std::fs::{DirEntry, ReadDir, read_dir};
use std::path::{Path, PathBuf};

/// What a walk comes across.
pub(super) enum Met {
    Entry(DirEntry),
    /// This directory cannot be read, or only in part.
    Unreadable(PathBuf),
    /// There are more entries than are looked through. The walk is over.
    TooMany,
}

/// The walk. It ends with [`Met::TooMany`], or when everything was met.
pub(super) struct Tree {
    /// Directories that are not opened yet.
    waiting: Vec<PathBuf>,
    open: Option<(PathBuf, ReadDir)>,
    left: usize,
}

impl Tree {
    /// Through at most `most` entries.
    pub(super) fn new(directory: &Path, most: usize) -> Self {
        Self { waiting: vec![directory.to_owned()], open: None, left: most }
    }

    /// Leaves out what is below the directory that was met last.
    pub(super) fn leave_out(&mut self) {
        self.waiting.pop();
    }
}

impl Iterator for Tree {
    type Item = Met;

    fn next(&mut self) -> Option<Met> {
        loop {
            let Some((path, entries)) = &mut self.open else {
                let next = self.waiting.pop()?;
                match read_dir(&next) {
                    Ok(entries) => self.open = Some((next, entries)),
                    Err(_) => return Some(Met::Unreadable(next)),
                }
                continue;
            };
            match entries.next() {
                None => self.open = None,
                Some(_) if self.left == 0 => {
                    self.open = None;
                    self.waiting.clear();
                    return Some(Met::TooMany);
                }
                Some(Err(_)) => {
                    self.left -= 1;
                    return Some(Met::Unreadable(path.clone()));
                }
                Some(Ok(entry)) => {
                    self.left -= 1;
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        self.waiting.push(entry.path());
                    }
                    return Some(Met::Entry(entry));
                }
            }
        }
    }
}
