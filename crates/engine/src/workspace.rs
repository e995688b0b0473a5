//! The agent's workspace: created if missing, with a starter `AGENTS.md`, and read for the bootstrap files.
//!
//! A sandboxed session may be able to change everything in it, so no link is followed.
//!
//! The only module of this crate that touches the file system. Its functions block, so callers run them off the async
//! thread.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use myclaw_files::{
    Access, SharedDirectory, create_private_directory, text_of_bytes, without_controls,
};

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
    let workspace = SharedDirectory::open(directory).map_err(failed)?;
    let mut bootstrap = Bootstrap::default();
    write_starter(&workspace, &mut bootstrap);
    let mut remaining = MAX_TOTAL_CHARS;
    bootstrap.identity = bootstrap.read(&workspace, IDENTITY_FILE, &mut remaining);
    for name in BOOTSTRAP_FILES.into_iter().filter(|name| files.has(name)) {
        let file = bootstrap.read(&workspace, name, &mut remaining);
        // The starter file has questions for its owner, which say nothing to a model.
        bootstrap.files.extend(file.filter(|file| file.content != STARTER_AGENTS));
    }
    if let PromptFiles::Shared { own_workspace } = files {
        let notes = SharedDirectory::open(own_workspace)
            .and_then(|own| read_capped(&own, NOTES_FILE, MAX_NOTES_CHARS));
        bootstrap.notes = bootstrap.shorten(NOTES_FILE, notes, &mut { MAX_NOTES_CHARS });
    }
    Ok(bootstrap)
}

/// A workspace that cannot be written to is still readable, so a failure here is only a notice.
fn write_starter(workspace: &SharedDirectory, bootstrap: &mut Bootstrap) {
    const NAME: &str = "AGENTS.md";
    let written = workspace.create(NAME, Access::Everyone).and_then(|mut file| {
        file.write_all(STARTER_AGENTS.as_bytes()).inspect_err(|_| {
            // If the disk is full: half a file would prevent a complete one from being written later.
            drop(workspace.remove(NAME));
        })
    });
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => bootstrap.notices.push(Notice::StarterFileMissing {
            directory: workspace.path().to_owned(),
            error: error.to_string(),
        }),
    }
}

/// Reads no more than so many characters can need, however large the file is. Also gives its size in bytes.
fn read_capped(
    workspace: &SharedDirectory,
    name: &str,
    most_chars: usize,
) -> io::Result<(String, u64)> {
    const LONGEST_CHAR: usize = 4;
    let file = workspace.file(name)?;
    let mut bytes = Vec::new();
    (&file).take(((most_chars + 1) * LONGEST_CHAR) as u64).read_to_end(&mut bytes)?;
    let size = file.metadata().map_or(0, |found| found.len()).max(bytes.len() as u64);
    Ok((without_controls(text_of_bytes(&bytes)), size))
}

impl Bootstrap {
    /// Reads the file of that name, if it exists and is not blank.
    fn read(
        &mut self,
        workspace: &SharedDirectory,
        name: &'static str,
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        self.shorten(name, read_capped(workspace, name, MAX_FILE_CHARS), remaining)
    }

    /// The file of that name with this text and size, if there is one and it is not blank.
    fn shorten(
        &mut self,
        name: &'static str,
        file: io::Result<(String, u64)>,
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        match file {
            Ok((text, _)) if text.trim().is_empty() => None,
            Ok(file) => self.cut(name, file, remaining),
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
        name: &'static str,
        (mut text, file_bytes): (String, u64),
        remaining: &mut usize,
    ) -> Option<BootstrapFile> {
        let limit = MAX_FILE_CHARS.min(*remaining);
        let cut = text.char_indices().nth(limit).map(|(at, _)| at);
        if let Some(at) = cut {
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
