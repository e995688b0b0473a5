//! The agent's workspace: created if missing, with a starter `AGENTS.md`, and read for the bootstrap files.
//!
//! The only module of this crate that touches the file system. Its functions block, so callers run them off the async
//! thread.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use myclaw_files::{create_private_directory, open_beneath, read_regular};

use crate::{Notice, RunError};

/// Files that go into the system prompt, in this order.
pub(crate) const BOOTSTRAP_FILES: [&str; 8] = [
    "AGENTS.md",
    "SOUL.md",
    "USER.md",
    "TOOLS.md",
    "IDENTITY.md",
    "MEMORY.md",
    "HEARTBEAT.md",
    "BOOTSTRAP.md",
];

/// Those that say how the agent works. The others are about the owner: who that is, what is private to them, what the
/// agent does on its own.
const SHARED_FILES: [&str; 4] = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"];

/// The file with the notes of a session that has a workspace of its own.
const NOTES_FILE: &str = "MEMORY.md";

/// The file that replaces the prompt's identity text.
const IDENTITY_FILE: &str = "SYSTEM.md";

/// Most characters of one bootstrap file: a longer one would crowd out the messages.
const MAX_FILE_CHARS: usize = 50_000;

/// Most characters of all bootstrap files together, `SYSTEM.md` included.
const MAX_TOTAL_CHARS: usize = 200_000;

/// Most characters of such notes: everybody who writes in the session can make them longer, and each call has them.
const MAX_NOTES_CHARS: usize = 10_000;

/// The names of all files that a prompt is made of.
pub const BOOTSTRAP_NAMES: [&str; 9] = [
    IDENTITY_FILE,
    BOOTSTRAP_FILES[0],
    BOOTSTRAP_FILES[1],
    BOOTSTRAP_FILES[2],
    BOOTSTRAP_FILES[3],
    BOOTSTRAP_FILES[4],
    BOOTSTRAP_FILES[5],
    BOOTSTRAP_FILES[6],
    BOOTSTRAP_FILES[7],
];

/// Which files a prompt is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PromptFiles {
    /// All bootstrap files of the workspace: the session is the owner's.
    #[default]
    All,
    /// The bootstrap files that say how the agent works, and the notes of the session.
    Shared {
        /// The session's own workspace. What is in it is data for the model, never an instruction.
        own_workspace: PathBuf,
    },
}

impl PromptFiles {
    /// The names of the bootstrap files of the agent's workspace that the prompt is made of.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        BOOTSTRAP_NAMES.into_iter().filter(|name| *name == IDENTITY_FILE || self.has(name))
    }

    /// The file with the session's notes, which the prompt shows as data.
    pub fn notes(&self) -> Option<PathBuf> {
        match self {
            Self::All => None,
            Self::Shared { own_workspace } => Some(own_workspace.join(NOTES_FILE)),
        }
    }

    fn has(&self, name: &str) -> bool {
        *self == Self::All || SHARED_FILES.contains(&name)
    }
}

/// Written once into a new workspace.
const STARTER_AGENTS: &str = include_str!("../prompts/agents-starter.md");

/// One bootstrap file as the prompt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BootstrapFile {
    /// Its name in the workspace.
    pub(crate) name: &'static str,
    /// Its text, cut to the limits.
    pub(crate) content: String,
    /// Whether it was cut.
    pub(crate) is_cut: bool,
    /// Size of the whole file, in bytes.
    pub(crate) file_bytes: u64,
}

/// The contents of the workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Bootstrap {
    /// `SYSTEM.md`, if it is there and not blank.
    pub(crate) identity: Option<BootstrapFile>,
    /// The files that are there and not blank, in prompt order.
    pub(crate) files: Vec<BootstrapFile>,
    /// The notes of a session with a workspace of its own, if it has any.
    pub(crate) notes: Option<BootstrapFile>,
    /// One line for each file that was cut or could not be read.
    pub(crate) notices: Vec<Notice>,
}

/// Creates the workspace and its starter file if they are missing, and reads the files for the prompt.
pub(crate) fn prepare_workspace(
    directory: &Path,
    files: &PromptFiles,
) -> Result<Bootstrap, RunError> {
    let failed = |source| RunError::Workspace { path: directory.to_owned(), source };
    if !directory.is_dir() {
        // The state directory may also be missing.
        create_private_directory(directory).map_err(failed)?;
    }
    let mut bootstrap = Bootstrap::default();
    write_starter(directory, &mut bootstrap);
    let mut remaining = MAX_TOTAL_CHARS;
    bootstrap.identity = bootstrap.read(directory, IDENTITY_FILE, &mut remaining);
    for name in BOOTSTRAP_FILES.into_iter().filter(|name| files.has(name)) {
        let file = bootstrap.read(directory, name, &mut remaining);
        bootstrap.files.extend(file);
    }
    if let PromptFiles::Shared { own_workspace } = files {
        let (text, mut room) = (read_notes(own_workspace), MAX_NOTES_CHARS);
        bootstrap.notes = bootstrap.shorten(own_workspace, NOTES_FILE, text, &mut room);
    }
    Ok(bootstrap)
}

/// Whoever writes in the session can put anything in the place of its notes.
fn read_notes(own_workspace: &Path) -> std::io::Result<String> {
    let file = open_beneath(own_workspace, Path::new(NOTES_FILE))?;
    let mut bytes = Vec::new();
    file.take(most_bytes(MAX_NOTES_CHARS)).read_to_end(&mut bytes)?;
    Ok(text_of(bytes))
}

/// A workspace that cannot be written to is still readable, so a failure here is only a notice.
fn write_starter(directory: &Path, bootstrap: &mut Bootstrap) {
    let path = directory.join("AGENTS.md");
    let starter = fs::OpenOptions::new().write(true).create_new(true).open(&path);
    let written = starter.and_then(|mut file| {
        let written = file.write_all(STARTER_AGENTS.as_bytes());
        if written.is_err() {
            // If the disk is full: half a file would prevent a complete one from being written later.
            drop(fs::remove_file(&path));
        }
        written
    });
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => bootstrap.notices.push(Notice::StarterFileMissing {
            directory: directory.to_owned(),
            error: error.to_string(),
        }),
    }
}

/// Reads no more than the limits can use, however large the file is.
fn read_capped(path: &Path) -> std::io::Result<String> {
    Ok(text_of(read_regular(path, most_bytes(MAX_FILE_CHARS))?))
}

/// The bytes that hold more than `chars` characters.
fn most_bytes(chars: usize) -> u64 {
    const LONGEST_CHAR: usize = 4;
    ((chars + 1) * LONGEST_CHAR) as u64
}

fn text_of(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

impl Bootstrap {
    /// Reads the file of that name, if it exists and is not blank.
    fn read(
        &mut self,
        directory: &Path,
        name: &'static str,
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        self.shorten(directory, name, read_capped(&directory.join(name)), remaining)
    }

    /// The file of that name with this text, if there is one and it is not blank.
    fn shorten(
        &mut self,
        directory: &Path,
        name: &'static str,
        text: std::io::Result<String>,
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        match text {
            Ok(text) if text.trim().is_empty() => None,
            Ok(text) => self.cut(&directory.join(name), name, text, remaining),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                let error = error.to_string();
                self.notices.push(Notice::BootstrapFileUnreadable { file: name, error });
                None
            }
        }
    }

    /// Cuts the file to the limits; `None` if nothing is left of it.
    fn cut(
        &mut self,
        path: &Path,
        name: &'static str,
        mut text: String,
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        let limit = MAX_FILE_CHARS.min(*remaining);
        let cut = text.char_indices().nth(limit).map(|(at, _)| at);
        let mut file_bytes = text.len() as u64;
        if let Some(at) = cut {
            // More of the file may exist than was read.
            file_bytes = fs::symlink_metadata(path).map_or(file_bytes, |metadata| metadata.len());
            text.truncate(at);
            self.notices.push(Notice::BootstrapFileCut { file: name, limit });
        }
        if text.is_empty() {
            return None;
        }
        *remaining -= if cut.is_some() { limit } else { text.chars().count() };
        Some(BootstrapFile { name, content: text, is_cut: cut.is_some(), file_bytes })
    }
}

#[cfg(test)]
mod tests;
