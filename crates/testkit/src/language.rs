//! A language server with known answers, for Python 3.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A directory with a program `pyright-langserver` for which each word `BAD` of a file is an error.
pub struct LanguageServer(PathBuf);

impl LanguageServer {
    /// Writes it into `directory`; `mode` says how it reports, see the program.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(directory: &Path, mode: &str) -> Self {
        fs::create_dir_all(directory).expect("a directory for the language server");
        let program = directory.join("pyright-langserver");
        fs::write(&program, include_str!("language/server.py")).expect("a language server");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
        fs::write(directory.join("mode.txt"), mode).expect("the mode of a language server");
        Self(directory.to_owned())
    }

    /// `PATH` of this process with the directory before it.
    pub fn path_variable(&self) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        format!("{}:{path}", self.0.display())
    }

    /// The process ids of the servers that were started.
    pub fn started(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.0.join("started.txt")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}
