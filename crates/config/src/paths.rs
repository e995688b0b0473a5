//! The paths of an installation: one state directory, the config file, workspaces, sessions, logs.

use std::path::{Component, Path, PathBuf};

use crate::{AgentId, ConfigError, Environment};

/// Replaces `<state>/myclaw.json`.
pub use myclaw_files::variables::CONFIG_PATH as CONFIG_PATH_VARIABLE;
/// Replaces the user's home; used unchanged.
pub use myclaw_files::variables::HOME as HOME_VARIABLE;
/// Replaces `<home>/.myclaw`.
pub use myclaw_files::variables::STATE_DIR as STATE_DIR_VARIABLE;

const STATE_DIR_NAME: &str = ".myclaw";
const CONFIG_FILE_NAME: &str = "myclaw.json";
/// Prefix of the names of default workspaces.
pub(crate) const WORKSPACE_DIR_NAME: &str = "workspace";
/// Above the workspaces of single sessions.
const WORKSPACES_DIR_NAME: &str = "workspaces";
const SESSIONS_DIR_NAME: &str = "sessions";
const AGENTS_DIR_NAME: &str = "agents";
const AGENT_DIR_NAME: &str = "agent";
const LOGS_DIR_NAME: &str = "logs";

/// The directories and files of one installation, all absolute. They need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    home: Option<PathBuf>,
    state_dir: PathBuf,
    config_file: PathBuf,
}

impl Paths {
    /// Determines the paths: home is `MYCLAW_HOME`, else the user's; the state directory is `MYCLAW_STATE_DIR`, else
    /// `.myclaw` in home; the config file is `MYCLAW_CONFIG_PATH`, else `myclaw.json` in the state directory. Blank
    /// variables count as unset. The last two may begin with `~`; if relative, they start at the current directory.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`] if a home is needed and there is none, [`ConfigError::NoCurrentDir`] if a relative path
    /// is to be resolved and the current directory no longer exists.
    pub fn resolve(environment: &Environment) -> Result<Self, ConfigError> {
        let home = home(environment);
        let state_dir = state_dir(environment)?;
        let config_file = match environment.path(CONFIG_PATH_VARIABLE) {
            Some(path) => absolute(expand_tilde(&path, home.as_deref())?, environment)?,
            None => state_dir.join(CONFIG_FILE_NAME),
        };
        let home = home.map(|home| absolute(home, environment)).transpose()?;
        Ok(Self { home, state_dir, config_file })
    }

    /// Paths around a given state directory (absolute), for tests and for programs that embed the agent.
    pub fn in_state_dir(state_dir: impl Into<PathBuf>) -> Self {
        let state_dir = state_dir.into();
        Self { home: None, config_file: state_dir.join(CONFIG_FILE_NAME), state_dir }
    }

    /// The user's home, which replaces `~`.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The directory that holds everything else.
    pub fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    /// The config file.
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// The default workspace of an agent; `None` means the default agent.
    pub fn workspace_dir(&self, agent: Option<&AgentId>) -> PathBuf {
        match agent {
            Some(id) => self.state_dir.join(format!("{WORKSPACE_DIR_NAME}-{id}")),
            None => self.state_dir.join(WORKSPACE_DIR_NAME),
        }
    }

    /// The directory of the workspaces that sessions have for themselves.
    pub fn workspaces_dir(&self) -> PathBuf {
        self.state_dir.join(WORKSPACES_DIR_NAME)
    }

    /// The default directory for an agent's own data.
    pub fn agent_dir(&self, agent: &AgentId) -> PathBuf {
        self.state_dir.join(AGENTS_DIR_NAME).join(agent.as_str()).join(AGENT_DIR_NAME)
    }

    /// The directory of the sessions.
    pub fn sessions_dir(&self) -> PathBuf {
        self.state_dir.join(SESSIONS_DIR_NAME)
    }

    /// The directory of the logs.
    pub fn logs_dir(&self) -> PathBuf {
        self.state_dir.join(LOGS_DIR_NAME)
    }

    /// Resolves a path of the config file: `~` is home, and a relative path starts at the directory of the file.
    ///
    /// # Errors
    /// [`ConfigError::NoHome`] if it begins with `~` and there is no home.
    pub fn resolve_in_config(&self, path: &str) -> Result<PathBuf, ConfigError> {
        let expanded = expand_tilde(Path::new(path.trim()), self.home.as_deref())?;
        let base = self.config_file.parent().unwrap_or(&self.state_dir);
        Ok(without_dots(&base.join(expanded)))
    }
}

/// `MYCLAW_HOME` unchanged, else the user's home.
fn home(environment: &Environment) -> Option<PathBuf> {
    environment.process_path(HOME_VARIABLE).or_else(|| environment.os_home().map(Path::to_path_buf))
}

/// The state directory. It depends only on the process's own variables, since `.env` is in it.
pub(crate) fn state_dir(environment: &Environment) -> Result<PathBuf, ConfigError> {
    let home = home(environment);
    let path = match environment.process_path(STATE_DIR_VARIABLE) {
        Some(path) => expand_tilde(&path, home.as_deref())?,
        None => home.ok_or(ConfigError::NoHome)?.join(STATE_DIR_NAME),
    };
    absolute(path, environment)
}

/// Replaces a leading `~`, `~/` or `~\`. The home of another user (`~name`) is not looked up.
fn expand_tilde(path: &Path, home: Option<&Path>) -> Result<PathBuf, ConfigError> {
    let Some(rest) = path.to_str().and_then(|text| text.strip_prefix('~')) else {
        return Ok(path.to_path_buf());
    };
    if rest.is_empty() {
        return home.map(Path::to_path_buf).ok_or(ConfigError::NoHome);
    }
    match rest.strip_prefix(['/', '\\']) {
        Some(below) => Ok(home.ok_or(ConfigError::NoHome)?.join(below.trim_start_matches('/'))),
        None => Ok(path.to_path_buf()),
    }
}

fn absolute(path: PathBuf, environment: &Environment) -> Result<PathBuf, ConfigError> {
    if path.is_absolute() {
        return Ok(without_dots(&path));
    }
    let base = environment.current_dir().ok_or(ConfigError::NoCurrentDir)?;
    Ok(without_dots(&base.join(path)))
}

/// Removes `.` parts. `..` is kept, because its meaning depends on symbolic links.
fn without_dots(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}
