//! The environment of the process: variables, home, current directory, and the two `.env` files.
//!
//! The variables are copied once, so that a test can use others and the process's own need not change.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::dotenv;
use crate::paths::{self, Paths};

/// Name of the files that hold further variables.
pub(crate) const DOTENV_FILE: &str = ".env";

/// Variables, home and current directory.
///
/// Variables come from three sources, and the first that has a variable wins: the process, `.env` in the state
/// directory, and `.env` in the current directory. The last is trusted least, because it may belong to somebody else's
/// project: it only provides `${VAR}` references of the user's own config file, and only while that file is loaded. So
/// [`Environment::get`] does not include it.
#[derive(Clone, Default)]
pub struct Environment {
    /// Shared, like the next: each session has a copy of the environment.
    process: Arc<BTreeMap<String, OsString>>,
    state_file: Arc<BTreeMap<String, String>>,
    os_home: Option<PathBuf>,
    current_dir: Option<PathBuf>,
    warnings: Vec<String>,
}

impl Environment {
    /// The environment of this process. Variables whose name is not UTF-8 are omitted.
    pub fn from_process() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::new(variables, std::env::home_dir(), std::env::current_dir().ok())
    }

    /// An environment with the given variables, home of the user, and current directory (absolute).
    ///
    /// Reads `.env` in the state directory that these variables determine. Problems with that file are in
    /// [`Environment::warnings`].
    pub fn new<K, V>(
        variables: impl IntoIterator<Item = (K, V)>,
        os_home: Option<PathBuf>,
        current_dir: Option<PathBuf>,
    ) -> Self
    where
        K: Into<String>,
        V: Into<OsString>,
    {
        let process =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let os_home = os_home.filter(|home| !home.as_os_str().is_empty());
        let mut environment =
            Self { process: Arc::new(process), os_home, current_dir, ..Self::default() };
        if let Ok(state_dir) = paths::state_dir(&environment) {
            let file = dotenv::read(&state_dir.join(DOTENV_FILE));
            environment.state_file = Arc::new(file.variables);
            environment.warnings = file.warnings;
        }
        environment
    }

    /// A variable of the process, else of `.env` in the state directory. An empty variable counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.process.get(name) {
            Some(value) => value.to_str(),
            None => self.state_file.get(name).map(String::as_str),
        }
    }

    /// Whether the process has a variable, which then counts whatever `.env` says.
    pub fn is_of_process(&self, name: &str) -> bool {
        self.process.contains_key(name)
    }

    /// Every variable that [`Environment::get`] returns.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let process =
            self.process.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str()?)));
        let file = self.state_file.iter().filter(|(name, _)| !self.process.contains_key(*name));
        process.chain(file.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// A variable of the process alone, in any encoding; blank counts as unset.
    pub(crate) fn process_path(&self, name: &str) -> Option<PathBuf> {
        self.process.get(name).and_then(trimmed_path)
    }

    /// Like [`Environment::get`] for a path; blank counts as unset.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        match self.process.get(name) {
            Some(value) => trimmed_path(value),
            None => {
                self.state_file.get(name).and_then(|value| trimmed_path(&OsString::from(value)))
            }
        }
    }

    /// The user's home as the operating system gives it.
    pub fn os_home(&self) -> Option<&Path> {
        self.os_home.as_deref()
    }

    /// The directory in which the process was started; `None` if it no longer exists.
    pub fn current_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// Problems with `.env` in the state directory, one line each, for the user. No content is quoted.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The directories and files of this installation.
    ///
    /// # Errors
    /// See [`Paths::resolve`].
    pub fn paths(&self) -> Result<Paths, crate::ConfigError> {
        Paths::resolve(self)
    }
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("process", &self.process.keys())
            .field("state_file", &self.state_file.keys())
            .field("os_home", &self.os_home)
            .field("current_dir", &self.current_dir)
            .finish_non_exhaustive()
    }
}

/// The path without surrounding blanks. A path that is not UTF-8 is unchanged.
fn trimmed_path(value: &OsString) -> Option<PathBuf> {
    let path = match value.to_str() {
        Some(text) => PathBuf::from(text.trim()),
        None => PathBuf::from(value),
    };
    (!path.as_os_str().is_empty()).then_some(path)
}
