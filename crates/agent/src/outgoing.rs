//! Files that an agent sends to people.

use std::fs::File;
use std::io;
use std::path::Path;

use myclaw_files::{PathUse, SharedDirectory, canonical_or_same, real_path};

use crate::{AgentError, FailureClass, SessionConfig};

impl SessionConfig {
    /// Opens a file of the workspace, if the tools of the session may read it. The path starts in the workspace, or is
    /// absolute and leads there. Symbolic links are not followed: what is behind one may be outside. Blocks.
    ///
    /// # Errors
    /// There is no such file in the workspace, or the session is sandboxed without access to it. The text names no
    /// directory of this machine.
    pub fn open_in_workspace(&self, path: &str) -> Result<File, AgentError> {
        let workspace = self.working_directory();
        let real = canonical_or_same(workspace);
        let path = Path::new(path);
        let relative = path.strip_prefix(workspace).or_else(|_| path.strip_prefix(&real));
        let relative = relative.unwrap_or(path);
        let wanted = real_path(&real.join(relative)).unwrap_or_default();
        if self.closed_paths().refusing(&wanted, PathUse::Read).is_some() {
            let why = "it is closed to tools: it holds the program's own config, keys or records";
            return Err(AgentError::new(FailureClass::Usage, why));
        }
        let opened = self.as_its_tools(|| SharedDirectory::open(&real)?.file(relative))?;
        opened.map_err(|error| AgentError::new(FailureClass::Usage, why_not(&error)))
    }
}

impl SessionConfig {
    /// Opens a picture that the session has made: a file next to its outputs. Blocks.
    ///
    /// # Errors
    /// It is not there any more. The text names no directory of this machine.
    pub fn open_made_picture(&self, path: &str) -> Result<File, AgentError> {
        let name = Path::new(path).file_name().unwrap_or_default();
        let opened =
            SharedDirectory::open(&self.artifacts()).and_then(|made| made.file(Path::new(name)));
        opened.map_err(|error| AgentError::new(FailureClass::Usage, why_not(&error)))
    }
}

/// Why a file is not sent, for the people who would get it.
fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        io::ErrorKind::NotADirectory => "a part of its path is no directory".to_owned(),
        io::ErrorKind::InvalidFilename => "its name is too long".to_owned(),
        // Only what this program says of a file has words for people.
        _ if error.raw_os_error().is_none() => error.to_string(),
        _ => {
            tracing::error!(%error, "a file of a workspace cannot be opened");
            "it cannot be read".to_owned()
        }
    }
}
