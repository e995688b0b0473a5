//! The formats of what a state directory holds, in one place, and the file there that names them.
//!
//! A number is raised by a change that older programs would misread. A newer program reads all older formats. It writes its
//! numbers into [`FILE`] before it writes anything else, so a directory in which it was killed at any moment is refused by
//! older programs, and goes on with the newer one.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Durability, NewFile, create_private_directory, now_ms, read_regular};

/// Name of the file in the state directory.
pub const FILE: &str = "formats.json";
/// Largest such file that is read.
const MAX_BYTES: u64 = 64 << 10;
/// What only a program leaves in a state directory; a person may have made the config.
const USED: [&str; 2] = ["sessions", "gateway"];
/// The version of this program.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// The format of one kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Its name in [`FILE`].
    pub name: &'static str,
    /// What has this format, for people.
    pub what: &'static str,
    /// The newest format that this program reads, and the one that it writes.
    pub newest: u32,
}

/// Logs of sessions; a log says in its header which format it has.
pub const LOG: Format = Format::new("log", "a session's log", 2);
/// The list of sessions.
pub const INDEX: Format = Format::new("index", "the list of sessions", 1);
/// Messages that wait for a session.
pub const INBOX: Format = Format::new("inbox", "a session's inbox", 1);
/// The database of the gateway and of the host; it holds its format.
pub const STORE: Format = Format::new("store", "the database", 2);
/// What was approved of tool calls; the file holds its format.
pub const APPROVALS: Format = Format::new("approvals", "the list of approvals", 2);
/// Keys and logins; the file holds its format.
pub const KEYS: Format = Format::new("keys", "the store of keys", 1);
/// The config file; its key `format` says it.
pub const CONFIG: Format = Format::new("config", "the config file", 1);
/// Small documents, such as the totals of a day or what was approved of MCP servers.
pub const DOCUMENTS: Format = Format::new("documents", "documents", 1);
/// Facts, and what was derived from notes and sessions.
pub const MEMORY: Format = Format::new("memory", "the memory", 1);
/// Background jobs.
pub const JOBS: Format = Format::new("jobs", "the list of background jobs", 1);
/// The list of packages of others; the file holds its format.
pub const PACKAGES: Format = Format::new("packages", "the list of packages", 1);

/// All of them.
pub const ALL: [Format; 11] =
    [LOG, INDEX, INBOX, STORE, APPROVALS, KEYS, CONFIG, DOCUMENTS, MEMORY, JOBS, PACKAGES];

impl Format {
    const fn new(name: &'static str, what: &'static str, newest: u32) -> Self {
        Self { name, what, newest }
    }

    /// What people read if `path` has a format that only newer programs read.
    pub fn refusal(&self, path: &Path, found: impl fmt::Display) -> String {
        format!(
            "{}: {} has format {found}, and MyClaw {PROGRAM} reads up to format {}; nothing was changed. Install the newer \
             version that wrote it (docs/use/install.md), or restore a backup",
            path.display(),
            self.what,
            self.newest
        )
    }
}

/// What [`FILE`] says: the program that writes the directory, and its formats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateFormats {
    /// The version of the program that wrote last.
    pub program: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since: u64,
    /// The formats by name. Those of kinds that this program does not know stay.
    pub formats: BTreeMap<String, u32>,
    /// What was there before that program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<EarlierProgram>,
}

/// The program that wrote a directory before the present one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierProgram {
    /// Its version; `None` if it was one that did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The formats that the present program has raised: from, to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub raised: BTreeMap<String, (u32, u32)>,
}

/// Why a state directory cannot be used.
#[derive(Debug)]
pub enum StateFormatsError {
    /// A newer program has written it. The text says what to do.
    Newer(String),
    /// The file cannot be read or written, or is damaged.
    Unusable(PathBuf, io::Error),
}

impl fmt::Display for StateFormatsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer(text) => formatter.write_str(text),
            Self::Unusable(path, error) => write!(
                formatter,
                "{}, which names the formats of the files there, cannot be used: {error}; correct that, or restore a backup",
                path.display()
            ),
        }
    }
}

impl std::error::Error for StateFormatsError {}

impl StateFormats {
    /// What the file of a state directory says; `None` if there is none. Refuses what a newer program has written.
    ///
    /// # Errors
    /// A format is newer than this program knows; or the file cannot be read.
    pub fn check(state: &Path) -> Result<Option<Self>, StateFormatsError> {
        Self::check_named(state, &state.join(FILE))
    }

    /// The same for files that are not in their place yet. Messages name `shown`.
    ///
    /// # Errors
    /// As for [`StateFormats::check`].
    pub fn check_named(state: &Path, shown: &Path) -> Result<Option<Self>, StateFormatsError> {
        let found = Self::read(&state.join(FILE))
            .map_err(|error| StateFormatsError::Unusable(shown.to_owned(), error))?;
        if let Some(found) = &found
            && let Some(newer) = ALL.iter().find(|format| found.of(format) > format.newest)
        {
            return Err(StateFormatsError::Newer(newer.refusal(shown, found.of(newer))));
        }
        Ok(found)
    }

    /// Writes down that this program writes the state directory, which is made if it does not exist. Call it before the first
    /// change.
    ///
    /// # Errors
    /// As [`StateFormats::check`]; or the file names older formats and cannot be written.
    pub fn record(state: &Path) -> Result<(), StateFormatsError> {
        let found = Self::check(state)?;
        if found.as_ref().is_some_and(|found| found.program == PROGRAM && found.is_current()) {
            return Ok(());
        }
        let path = state.join(FILE);
        let is_used = found.is_some() || USED.iter().any(|name| state.join(name).exists());
        let next = Self::after(found.as_ref(), is_used);
        match next.write(&path) {
            // Only a raised number has to be there before what it is about.
            Err(error) if found.is_some_and(|found| !found.is_current()) => {
                Err(StateFormatsError::Unusable(path, error))
            }
            _ => Ok(()),
        }
    }

    fn of(&self, format: &Format) -> u32 {
        self.formats.get(format.name).copied().unwrap_or_default()
    }

    fn is_current(&self) -> bool {
        ALL.iter().all(|format| self.of(format) == format.newest)
    }

    /// What this program writes into a directory that had `found`.
    fn after(found: Option<&Self>, is_used: bool) -> Self {
        let mut formats = found.map(|found| found.formats.clone()).unwrap_or_default();
        let mut raised = BTreeMap::new();
        for format in &ALL {
            let before = formats.insert(format.name.to_owned(), format.newest);
            if let Some(before) = before.filter(|before| *before < format.newest) {
                raised.insert(format.name.to_owned(), (before, format.newest));
            }
        }
        let program = found.map(|found| found.program.clone());
        let before = is_used.then_some(EarlierProgram { program, raised });
        Self { program: PROGRAM.to_owned(), since: now_ms(), formats, before }
    }

    fn read(path: &Path) -> io::Result<Option<Self>> {
        match read_regular(path, MAX_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let directory = crate::parent_of(path);
        create_private_directory(&directory)?;
        let mut file = NewFile::in_directory(&directory, FILE)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.put_at(path, Durability::Synced).map(drop)
    }
}

#[cfg(test)]
mod tests;
