//! Finds the notes of an agent and reads them, and nothing else.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use myclaw_engine::ToolError;
use myclaw_files::{canonical, canonical_or_same, read_regular};
use myclaw_sandbox::{OpenPaths, can_confine_threads, with_open_paths};
use tokio_util::sync::CancellationToken;

use super::MemoryOptions;
use super::passages::{Passage, passages};
use crate::support::{printable, shown_below};

/// The note that is also part of the prompt.
const MAIN_NOTE: &str = "MEMORY.md";
/// The directory of the others.
const DIRECTORY: &str = "memory";
/// The file in it with one fact a line.
pub(super) const FACTS: &str = "facts.md";
/// Largest note. A larger one is a collection of data, which would drown the others.
const MAX_NOTE_BYTES: u64 = 1024 * 1024;
/// Most bytes of all notes that are searched.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Most notes that are searched.
const MAX_NOTES: usize = 5_000;
/// Most entries of directories that are looked at.
const MAX_ENTRIES: usize = 50_000;
/// How deep directories may be nested.
const MAX_DEPTH: usize = 16;
/// Most notes that a remark names.
const MAX_NAMED: usize = 3;

/// The places of an agent's notes.
pub(super) struct Notes {
    workspace: PathBuf,
    /// The existing places, with all links followed.
    places: Vec<PathBuf>,
    /// What the config names and does not exist, and links that lead out of the workspace.
    remarks: Vec<String>,
}

/// The passages of all notes, and what whoever reads the result should know.
pub(super) struct Found {
    pub passages: Vec<Passage>,
    pub remarks: Vec<String>,
}

/// The notes that are there.
#[derive(Default)]
struct FoundPaths {
    /// In order.
    notes: BTreeSet<PathBuf>,
    /// Links to notes, as results write their paths.
    links: Vec<String>,
    /// Whether there are too many.
    is_cut: bool,
}

/// Why a note is not read.
enum Unread {
    TooLarge,
    Failed(io::Error),
}

impl Notes {
    pub(super) fn of(options: &MemoryOptions) -> Self {
        let workspace = canonical_or_same(&options.workspace);
        let mut notes = Self { places: Vec::new(), remarks: Vec::new(), workspace };
        for name in [MAIN_NOTE, DIRECTORY] {
            let path = notes.workspace.join(name);
            match canonical(&path) {
                Ok(real) if real == path => notes.places.push(real),
                Ok(real) => notes.remarks.push(format!(
                    "{name} is a link to {} and was not read; the user can name that in memorySearch.extraPaths",
                    printable(&real.to_string_lossy())
                )),
                Err(_) => {}
            }
        }
        for path in &options.extra {
            match canonical(path) {
                Ok(real) => notes.places.push(real),
                Err(error) => notes.remarks.push(format!(
                    "{} of memorySearch.extraPaths was not searched: {error}",
                    printable(&path.to_string_lossy())
                )),
            }
        }
        notes
    }

    /// Whether there are other notes than the facts. Looks at a few names only.
    pub(super) fn are_there(&self) -> bool {
        self.places.iter().any(|place| {
            let facts = self.workspace.join(DIRECTORY);
            *place != facts
                || std::fs::read_dir(place).is_ok_and(|entries| {
                    let mut names = entries.flatten().map(|entry| entry.file_name());
                    names.any(|name| name != FACTS && !name.as_encoded_bytes().starts_with(b"."))
                })
        })
    }

    /// The passages of all notes, in the order of their paths.
    ///
    /// # Errors
    /// [`ToolError::Aborted`] once `cancel` has fired; the thread cannot be confined.
    pub(super) fn passages(self, cancel: &CancellationToken) -> Result<Found, ToolError> {
        let mut found = self.confined(|| self.read_all(cancel))??;
        let mut remarks = self.remarks;
        remarks.append(&mut found.remarks);
        Ok(Found { remarks, ..found })
    }

    /// One note: how results write its path, and its text.
    ///
    /// # Errors
    /// There is no such note, or it cannot be read; what to do instead.
    pub(super) fn read(&self, given: &str) -> Result<(String, String), ToolError> {
        let given = given.trim();
        let failed = |why: &str| {
            let given = printable(given);
            ToolError::Failed(format!("{given} {why}. memory_search finds the paths of notes"))
        };
        if given.is_empty() || given.contains('\0') {
            return Err(failed("is not a path"));
        }
        let Ok(real) = canonical(self.workspace.join(given)) else {
            return Err(failed("does not exist"));
        };
        let is_inside = self.places.iter().any(|place| real.starts_with(place));
        if !is_inside || !is_markdown(&real) {
            return Err(failed(
                "is not a note: notes are MEMORY.md and the Markdown files in memory/ of the workspace, and in \
                 memorySearch.extraPaths of the config",
            ));
        }
        let shown = shown_below(&real, &self.workspace);
        match self.confined(|| read_note(&real))? {
            Ok(text) => Ok((shown, text)),
            Err(Unread::TooLarge) => Err(failed("is larger than 1 MiB, the limit of a note")),
            Err(Unread::Failed(error)) => Err(failed(&format!("cannot be read: {error}"))),
        }
    }

    /// Does `work` on a thread that can read the notes and nothing else, where the kernel can confine a thread. So a path
    /// that becomes a link after its check leads nowhere.
    fn confined<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, ToolError> {
        if !can_confine_threads() {
            return Ok(work());
        }
        let paths = OpenPaths { readable: self.places.clone(), ..OpenPaths::default() };
        with_open_paths(&paths, work).map_err(|error| {
            ToolError::Failed(format!(
                "the tool cannot be confined to the notes ({error}), so it did not run. Tell the user"
            ))
        })
    }

    fn read_all(&self, cancel: &CancellationToken) -> Result<Found, ToolError> {
        let mut found = Found { passages: Vec::new(), remarks: Vec::new() };
        let (mut large, mut unreadable) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        let FoundPaths { notes, links, mut is_cut } = self.find(cancel)?;
        for note in notes {
            if cancel.is_cancelled() {
                return Err(aborted());
            }
            let shown = shown_below(&note, &self.workspace);
            match read_note(&note) {
                Ok(text) if bytes + text.len() > MAX_BYTES => {
                    is_cut = true;
                    break;
                }
                Ok(text) => {
                    bytes += text.len();
                    found.passages.extend(passages(&shown, &text));
                }
                Err(Unread::TooLarge) => large.push(shown),
                Err(Unread::Failed(_)) => unreadable.push(shown),
            }
        }
        found.remarks.extend(named(&large, "larger than 1 MiB and not searched"));
        found.remarks.extend(named(&unreadable, "not readable and not searched"));
        found.remarks.extend(named(&links, "a link and not searched"));
        if is_cut {
            found.remarks.push(format!(
                "there are more notes than a search takes ({MAX_NOTES} files, 32 MiB); the rest was not searched"
            ));
        }
        Ok(found)
    }

    /// The paths of all notes. Links in directories are not followed, so nothing outside of the places is found.
    fn find(&self, cancel: &CancellationToken) -> Result<FoundPaths, ToolError> {
        let mut found = FoundPaths::default();
        let mut entries = 0_usize;
        for place in &self.places {
            // What an ignore file names is a note all the same: many keep notes out of their repository.
            let walk = WalkBuilder::new(place)
                .standard_filters(false)
                .hidden(true)
                .follow_links(false)
                .max_depth(Some(MAX_DEPTH))
                .sort_by_file_name(Ord::cmp)
                .build();
            for entry in walk.flatten() {
                entries += 1;
                if cancel.is_cancelled() {
                    return Err(aborted());
                }
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if entry.path_is_symlink() && is_markdown(entry.path()) {
                    found.links.push(shown_below(entry.path(), &self.workspace));
                } else if is_file && is_markdown(entry.path()) {
                    found.notes.insert(entry.into_path());
                }
                if entries >= MAX_ENTRIES || found.notes.len() >= MAX_NOTES {
                    return Ok(FoundPaths { is_cut: true, ..found });
                }
            }
        }
        Ok(found)
    }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

fn read_note(path: &Path) -> Result<String, Unread> {
    let bytes = read_regular(path, MAX_NOTE_BYTES + 1).map_err(Unread::Failed)?;
    if bytes.len() as u64 > MAX_NOTE_BYTES {
        return Err(Unread::TooLarge);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn aborted() -> ToolError {
    ToolError::Aborted("aborted before the notes were read".to_owned())
}

/// A remark about some notes.
fn named(notes: &[String], what: &str) -> Option<String> {
    let first = notes.get(..MAX_NAMED).unwrap_or(notes).join(", ");
    match notes.len() {
        0 => None,
        1 => Some(format!("{first} is {what}")),
        count if count <= MAX_NAMED => Some(format!("{first} are {what}")),
        count => Some(format!("{count} notes are {what}, such as {first}")),
    }
}
