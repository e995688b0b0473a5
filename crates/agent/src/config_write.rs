//! Changes the config file, if `myclaw config check` accepts the result.

use myclaw_config::{
    ConfigChange, ConfigError, ConfigFile, EditError, Loaded, Mistake, WriteError,
};

use crate::config_check::{self, examine};
use crate::confinement::{StoppedRuns, sandbox_problems};
use crate::{AgentError, Examination, FailureClass, Home};

/// A config file that was changed.
#[derive(Debug)]
pub struct WrittenConfig {
    /// Its new text.
    pub file: ConfigFile,
    /// What `myclaw config check` warns of, one line each.
    pub warnings: Vec<String>,
}

/// Why the config file was not changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ConfigWriteError {
    /// A change does not fit the file.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The result has mistakes.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// The file has changed, or cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<ConfigWriteError> for AgentError {
    fn from(error: ConfigWriteError) -> Self {
        match error {
            ConfigWriteError::Edit(error) => Self::new(FailureClass::Config, error.to_string()),
            ConfigWriteError::Invalid(error) => error.into(),
            ConfigWriteError::Write(error) => Self::new(FailureClass::Config, error.to_string()),
        }
    }
}

/// Looks for everything that would make a run fail or refuse, beside what loading finds. Starts no sandbox.
pub async fn check_config(loaded: &Loaded, home: &Home) -> Examination {
    let mut examination = examine(loaded, home);
    for problem in sandbox_problems(&loaded.config, home).await {
        match problem.stops {
            StoppedRuns::All | StoppedRuns::ByMistake => examination.mistakes.push(Mistake {
                path: problem.place,
                message: problem.message,
                help: None,
            }),
            StoppedRuns::Sandboxed => examination.warnings.push(format!(
                "{}: sessions other than the main one cannot run: {}",
                problem.place, problem.message
            )),
        }
    }
    examination
}

/// Applies changes to `file`, checks the result as `myclaw config check` does, and replaces the file. A mistake that the
/// file had before does not stand in the way of another change: it becomes a warning.
///
/// # Errors
/// A change does not fit, the result has mistakes, the file has changed since it was read, or it cannot be written.
pub async fn change_config(
    home: &Home,
    file: &ConfigFile,
    changes: &[ConfigChange],
) -> Result<WrittenConfig, ConfigWriteError> {
    replace_config(home, file, file.with(changes)?).await
}

/// Replaces `file` by `changed` in the same way.
///
/// # Errors
/// As [`change_config`].
pub async fn replace_config(
    home: &Home,
    file: &ConfigFile,
    changed: ConfigFile,
) -> Result<WrittenConfig, ConfigWriteError> {
    let loaded = changed.load(&home.environment)?;
    config_check::refuse_mistakes(&loaded)?;
    let Examination { mistakes, mut warnings } = check_config(&loaded, home).await;
    if !mistakes.is_empty() {
        let known = match file.load(&home.environment) {
            Ok(before) => check_config(&before, home).await.mistakes,
            Err(_) => Vec::new(),
        };
        let (old, new): (Vec<_>, Vec<_>) =
            mistakes.into_iter().partition(|mistake| known.contains(mistake));
        if !new.is_empty() {
            return Err(loaded.refuse(new).into());
        }
        warnings.extend(old.into_iter().map(|old| format!("{}: {}", old.path, old.message)));
    }
    if changed != *file {
        changed.replace(file)?;
    }
    Ok(WrittenConfig { file: changed, warnings })
}
