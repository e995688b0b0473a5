//! What the owner has approved of a server.
//!
//! A model is shown the tools of a server as they were when the owner approved them. A tool whose name, description or schema
//! has changed since is neither offered in its new form nor called in its old one.

use std::io;
use std::path::{Path, PathBuf};

use myclaw_files::{Access, Durability, SharedDirectory, create_private_directory};
use serde::{Deserialize, Serialize};

use crate::ToolDefinition;
use crate::log::{log_name, older_log_name};

/// Largest file that is read.
const MAX_BYTES: u64 = 16 << 20;
/// Most files that are looked at when a server is forgotten.
const MAX_FILES: usize = 10_000;
/// Most bytes of a log that are shown.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// What was approved of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// The name of the server in the config.
    pub server: String,
    /// What identifies it; another program under the same name is another server.
    pub identity: String,
    /// The revision of the protocol that it spoke.
    pub revision: String,
    /// Its tools.
    pub tools: Vec<ToolDefinition>,
    /// The addresses of its resources at that time, for completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The names of its prompts at that time, for completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<String>,
}

/// How what a server lists differs from what was approved. Tools are named as the server names them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Tools that were not there.
    pub new: Vec<ToolDefinition>,
    /// Tools that are gone.
    pub gone: Vec<String>,
    /// Tools that were described in another way: before, now.
    pub changed: Vec<(ToolDefinition, ToolDefinition)>,
}

impl Difference {
    /// Compares what was approved, if anything was, with what is listed now.
    pub fn between(approved: Option<&Approved>, listed: &[ToolDefinition]) -> Self {
        let before = approved.map(|approved| approved.tools.as_slice()).unwrap_or_default();
        let named = |tools: &[ToolDefinition], name: &str| {
            tools.iter().find(|tool| tool.name == name).cloned()
        };
        let mut difference = Self::default();
        for tool in listed {
            match named(before, &tool.name) {
                None => difference.new.push(tool.clone()),
                Some(old) if old.digest() != tool.digest() => {
                    difference.changed.push((old, tool.clone()));
                }
                Some(_) => {}
            }
        }
        let is_gone = |tool: &&ToolDefinition| named(listed, &tool.name).is_none();
        difference.gone = before.iter().filter(is_gone).map(|tool| tool.name.clone()).collect();
        difference
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.gone.is_empty() && self.changed.is_empty()
    }
}

/// What was approved of all servers, in a directory of the state directory.
#[derive(Debug, Clone)]
pub struct ApprovedStore {
    directory: PathBuf,
}

impl ApprovedStore {
    /// A store in `directory`, which is made when something is approved.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What was approved of a server; `None` if nothing was. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn load(&self, server: &str, identity: &str) -> io::Result<Option<Approved>> {
        self.open()?.map_or(Ok(None), |opened| opened.load(server, identity))
    }

    /// The directory, opened once for several servers; `None` if nothing was approved. Blocks.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> io::Result<Option<OpenApproved>> {
        match SharedDirectory::open(&self.directory) {
            Ok(directory) => Ok(Some(OpenApproved(directory))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps what was approved. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn save(&self, approved: &Approved) -> io::Result<()> {
        create_private_directory(&self.directory)?;
        let text = serde_json::to_vec_pretty(approved).map_err(io::Error::other)?;
        let name = file_name(&approved.server, &approved.identity);
        let how = (Access::Owner, Durability::Synced);
        SharedDirectory::open(&self.directory)?.write(name, &text, how)
    }

    /// Forgets a server: what was approved of it, and its log. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn forget(&self, server: &str) -> io::Result<()> {
        let directory = match SharedDirectory::open(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let prefix = format!("{server}.");
        let is_its =
            |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(&prefix));
        for name in directory.names(MAX_FILES, is_its)?.names {
            directory.remove(&name)?;
        }
        Ok(())
    }

    /// What the server has printed to its errors, oldest first. Blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn log(&self, server: &str) -> io::Result<String> {
        let directory = match SharedDirectory::open(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            opened => opened?,
        };
        let mut text = String::new();
        for name in [older_log_name(server), log_name(server)] {
            match directory.read(name, MAX_LOG_BYTES) {
                Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(text)
    }
}

/// What was approved, in an open directory.
pub struct OpenApproved(SharedDirectory);

impl OpenApproved {
    /// As [`ApprovedStore::load`].
    ///
    /// # Errors
    /// As there.
    pub fn load(&self, server: &str, identity: &str) -> io::Result<Option<Approved>> {
        let bytes = match self.0.read(file_name(server, identity), MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let approved: Approved = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        let is_it = approved.server == server && approved.identity == identity;
        Ok(Some(approved).filter(|_| is_it))
    }
}

/// Names of servers have no dots.
fn file_name(server: &str, identity: &str) -> String {
    let short: String = identity.chars().take(16).collect();
    format!("{server}.{short}.json")
}
