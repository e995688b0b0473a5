//! The file with the facts of a workspace: changed under a lock between processes, and replaced as a whole.
//!
//! Others may be able to change everything in the workspace, so no link in it is followed. What is not a fact in the file
//! stays as it is, also where it is no text.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_files::{
    Access, Durability, LockError, LockFile, LockWait, SharedDirectory, create_private_directory,
    parent_of, text_of_bytes,
};

use crate::fact::{Fact, FactId, FactOrigin, MOST_FACT_CHARS, Until, as_fact};

/// The file, in the workspace.
pub const FACTS_FILE: &str = "memory/facts.md";
const DIRECTORY: &str = "memory";
/// The beginning of a new file.
const HEADING: &str = include_str!("../prompts/facts-heading.md");
/// Most bytes of the file: some thousand facts. The search reads no larger note.
const MAX_BYTES: u64 = 1024 * 1024;
/// Longest wait for another process that changes the file, which takes some milliseconds.
const LOCK_WAIT: LockWait = LockWait::Until(Duration::from_secs(10));

/// Why the facts cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NotebookError {
    /// The file or its lock cannot be used.
    #[error("{} cannot be {action}: {source}{}", path.display(), what_to_do(source))]
    File {
        /// The file.
        path: PathBuf,
        /// `read`, `written` or `locked`.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("another process changes the facts for a long time; try again")]
    Locked,
    /// No fact has this id.
    #[error("there is no fact {0}")]
    Unknown(FactId),
    /// The text has no words.
    #[error("the fact is empty; say it in one short sentence")]
    Empty,
    /// The text is too long. Nothing of it is kept.
    #[error(
        "a fact has at most {MOST_FACT_CHARS} characters, and this one has {0}; say it shorter, or as several facts, or write it into \
         a note in memory/"
    )]
    Long(usize),
    /// The file has no room.
    #[error("{} has no room: it may have 1 MiB; move what is old to another note in memory/", .0.display())]
    Full(PathBuf),
}

/// A fact to add.
#[derive(Debug, Clone)]
pub struct NewFact<'a> {
    /// The fact.
    pub text: &'a str,
    /// Where it comes from.
    pub origin: FactOrigin,
    /// The fact that it replaces.
    pub replaces: Option<&'a FactId>,
}

/// What became of a new fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It is on disk, with the fact that it replaced.
    New(Fact, Option<Box<Fact>>),
    /// A fact with the same words holds already.
    Known(Fact),
}

impl Added {
    /// The fact that holds now.
    pub fn fact(self) -> Fact {
        match self {
            Self::New(fact, _) | Self::Known(fact) => fact,
        }
    }
}

/// A line of the file.
struct Line {
    text: String,
    /// Its bytes, if they are no UTF-8: somebody has saved the file in another encoding.
    not_text: Option<Vec<u8>>,
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self { text, not_text: None }
    }
}

/// The facts of one workspace.
#[derive(Debug, Clone)]
pub struct Notebook {
    workspace: PathBuf,
    lock: PathBuf,
}

impl Notebook {
    /// The facts in `workspace`. Those who change them hold the lock `lock`, whose directory is made if it is missing.
    pub fn new(workspace: PathBuf, lock: PathBuf) -> Self {
        Self { workspace, lock }
    }

    /// Where the facts are.
    pub fn path(&self) -> PathBuf {
        self.workspace.join(FACTS_FILE)
    }

    /// The workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The lock of those who change the facts.
    pub fn lock(&self) -> &Path {
        &self.lock
    }

    /// All facts, in the order of the file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn facts(&self) -> Result<Vec<Fact>, NotebookError> {
        Ok(text_of_bytes(&self.read()?).lines().filter_map(Fact::read).collect())
    }

    /// Adds a fact. When this returns, it is on disk.
    ///
    /// # Errors
    /// The fact is empty or too long, there is no fact to replace, or the file cannot be changed.
    pub fn add(&self, new: NewFact<'_>) -> Result<Added, NotebookError> {
        let text = usable(as_fact(new.text))?;
        let _lock = self.locked()?;
        let mut lines = self.lines()?;
        let facts: Vec<Fact> = lines.iter().filter_map(|line| Fact::read(&line.text)).collect();
        let is_same = |fact: &&Fact| {
            fact.is_current()
                && new.replaces != Some(&fact.id)
                && fact.text.to_lowercase() == text.to_lowercase()
        };
        let known = facts.iter().find(is_same).cloned();
        let seed = format!("{text}\n{}\n{}", new.origin.session, new.origin.row);
        let id = known.as_ref().map_or_else(|| free_id(&seed, &facts), |known| known.id.clone());
        let replaced = match new.replaces {
            None => None,
            Some(old) => {
                let until = Until { date: new.origin.date.clone(), now: Some(id.clone()) };
                Some(change(&mut lines, old, |fact| fact.until = Some(until))?)
            }
        };
        if let (Some(known), None) = (&known, &replaced) {
            return Ok(Added::Known(known.clone()));
        }
        let fact =
            known.clone().unwrap_or(Fact { id, text, origin: Some(new.origin), until: None });
        if known.is_none() {
            lines.push(fact.line().into());
        }
        self.write(&lines)?;
        Ok(Added::New(fact, replaced.map(Box::new)))
    }

    /// Changes the words of a fact. Returns it as it was before.
    ///
    /// # Errors
    /// There is no such fact, the text is empty or too long, or the file cannot be changed.
    pub fn edit(&self, id: &FactId, text: &str) -> Result<Fact, NotebookError> {
        let text = usable(as_fact(text))?;
        let _lock = self.locked()?;
        let mut lines = self.lines()?;
        let before = change(&mut lines, id, |fact| {
            // A line of a person has its id from its text, which is another one now.
            fact.origin.get_or_insert_default();
            fact.text = text;
        })?;
        self.write(&lines)?;
        Ok(before)
    }

    /// Removes the lines of a fact. Returns it.
    ///
    /// # Errors
    /// There is no such fact, or the file cannot be changed.
    pub fn remove(&self, id: &FactId) -> Result<Fact, NotebookError> {
        let _lock = self.locked()?;
        let mut lines = self.lines()?;
        let mut removed = None;
        lines.retain(|line| match Fact::read(&line.text) {
            Some(fact) if fact.id == *id => {
                removed = Some(fact);
                false
            }
            _ => true,
        });
        let removed = removed.ok_or_else(|| NotebookError::Unknown(id.clone()))?;
        self.write(&lines)?;
        Ok(removed)
    }

    /// Removes what processes left in the directory of the facts that were killed while they wrote.
    ///
    /// # Errors
    /// The directory cannot be changed.
    pub fn remove_unfinished(&self) -> Result<(), NotebookError> {
        let _lock = self.locked()?;
        let directory = SharedDirectory::open(&self.workspace)
            .and_then(|workspace| workspace.directory(DIRECTORY));
        match directory.and_then(|directory| directory.remove_unfinished()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(self.failed("cleaned of unfinished files")),
        }
    }

    fn locked(&self) -> Result<LockFile, NotebookError> {
        let directory = parent_of(&self.lock);
        create_private_directory(&directory).map_err(|source| NotebookError::File {
            path: directory,
            action: "written",
            source,
        })?;
        LockFile::acquire(&self.lock, LOCK_WAIT).map_err(|error| match error {
            LockError::Held { .. } => NotebookError::Locked,
            LockError::Io { source, .. } => {
                NotebookError::File { path: self.lock.clone(), action: "locked", source }
            }
        })
    }

    fn lines(&self) -> Result<Vec<Line>, NotebookError> {
        let bytes = self.read()?;
        let text = text_of_bytes(&bytes);
        if text.trim().is_empty() {
            return Ok(HEADING.lines().map(|line| line.to_owned().into()).collect());
        }
        let mut lines: Vec<Line> = text.lines().map(|line| line.to_owned().into()).collect();
        let as_written = bytes.split(|byte| *byte == b'\n');
        for (line, bytes) in lines.iter_mut().zip(as_written) {
            let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            // Lines of UTF-16 are others than these, and are text.
            if line.text == String::from_utf8_lossy(bytes) && str::from_utf8(bytes).is_err() {
                line.not_text = Some(bytes.to_vec());
            }
        }
        Ok(lines)
    }

    fn read(&self) -> Result<Vec<u8>, NotebookError> {
        let read = SharedDirectory::open(&self.workspace)
            .and_then(|workspace| workspace.read(FACTS_FILE, MAX_BYTES));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(NotebookError::Full(self.path()))
            }
            read => read.map_err(self.failed("read")),
        }
    }

    fn write(&self, lines: &[Line]) -> Result<(), NotebookError> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line.not_text.as_deref().unwrap_or(line.text.as_bytes()));
            text.push(b'\n');
        }
        if text.len() as u64 > MAX_BYTES {
            return Err(NotebookError::Full(self.path()));
        }
        let written = || {
            create_private_directory(&self.workspace)?;
            let workspace = SharedDirectory::open(&self.workspace)?;
            workspace.make_directory(DIRECTORY, Access::Owner)?;
            workspace.write(FACTS_FILE, &text, (Access::Owner, Durability::Synced))
        };
        written().map_err(self.failed("written"))
    }

    fn failed(&self, action: &'static str) -> impl Fn(io::Error) -> NotebookError {
        let path = self.path();
        move |source| NotebookError::File { path: path.clone(), action, source }
    }
}

/// What the owner can do about an error of the disk, after the error.
fn what_to_do(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, then try again; what was remembered before is there"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; remount it for writing",
        _ => "",
    }
}

/// A text that a fact can have.
fn usable(text: String) -> Result<String, NotebookError> {
    match text.chars().count() {
        0 => Err(NotebookError::Empty),
        length if length > MOST_FACT_CHARS => Err(NotebookError::Long(length)),
        _ => Ok(text),
    }
}

/// Changes the line of a fact. Returns the fact as it was.
fn change(
    lines: &mut [Line],
    id: &FactId,
    change: impl FnOnce(&mut Fact),
) -> Result<Fact, NotebookError> {
    let is_it = |fact: &Fact| fact.id == *id;
    let found = lines
        .iter_mut()
        .find_map(|line| Fact::read(&line.text).filter(is_it).map(|fact| (line, fact)));
    let (line, before) = found.ok_or_else(|| NotebookError::Unknown(id.clone()))?;
    let mut fact = before.clone();
    change(&mut fact);
    *line = fact.line().into();
    Ok(before)
}

/// An id that no fact has.
fn free_id(seed: &str, facts: &[Fact]) -> FactId {
    (0_u32..)
        .map(|attempt| FactId::of(&format!("{seed}\n{attempt}")))
        .find(|id| facts.iter().all(|fact| fact.id != *id))
        .unwrap_or_else(|| FactId::of(seed))
}

#[cfg(test)]
mod tests;
