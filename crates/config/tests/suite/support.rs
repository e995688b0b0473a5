//! A home of its own for each test.

use std::fs;
use std::path::{Path, PathBuf};

use myclaw_config::{ConfigError, Environment, Loaded, RenderStyle, load_config};
use tempfile::TempDir;

/// A temporary home with a state directory, and another directory to stand in.
pub(crate) struct Home {
    directory: TempDir,
    variables: Vec<(String, String)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap(), variables: Vec::new() };
        fs::create_dir_all(home.state_dir()).unwrap();
        fs::create_dir_all(home.current_dir()).unwrap();
        home
    }

    pub(crate) fn with_config(text: impl AsRef<[u8]>) -> Self {
        let home = Self::new();
        fs::write(home.config_file(), text).unwrap();
        home
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.path().join(".myclaw")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.state_dir().join("myclaw.json")
    }

    pub(crate) fn current_dir(&self) -> PathBuf {
        self.path().join("project")
    }

    pub(crate) fn environment(&self) -> Environment {
        self.environment_in(&self.current_dir())
    }

    pub(crate) fn environment_in(&self, current_dir: &Path) -> Environment {
        Environment::new(
            self.variables.clone(),
            Some(self.path().to_path_buf()),
            Some(current_dir.to_path_buf()),
        )
    }

    pub(crate) fn load(&self) -> Result<Loaded, ConfigError> {
        load_config(&self.environment())
    }

    /// The message of the error that loading gives, with the home's path as `~`.
    pub(crate) fn error(&self) -> String {
        self.shorten(&self.load().unwrap_err().to_string())
    }

    pub(crate) fn rendered_error(&self) -> String {
        self.shorten(&self.load().unwrap_err().render(RenderStyle::Plain))
    }

    fn shorten(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "~")
    }
}
