//! Changes the config file, if `myclaw config check` accepts the result.

use myclaw_config::{
    ConfigChange, ConfigError, ConfigFile, ConfigPath, EditError, Loaded, Mistake, WriteError,
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config_check::{self, examine};
use crate::confinement::{StoppedRuns, sandbox_problems};
use crate::{AgentError, FailureClass, Home, config_check::Examination};

/// Most changes of one proposal: more than a person reads.
const MOST_CHANGES: usize = 50;

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

/// Looks for everything that would make a run fail or refuse, besides what loading finds. Starts no sandbox.
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

/// Changes that a model proposes, as the person who decides about them sees them.
#[derive(Debug)]
pub struct ConfigProposal {
    file: ConfigFile,
    changed: ConfigFile,
    /// The difference as a unified diff, and a line for each change. Secrets are blanked out.
    pub shown: String,
}

/// How a model writes a change.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProposedChanges {
    /// The version of the file that the changes were made for.
    version: String,
    changes: Vec<ProposedChange>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProposedChange {
    op: ProposedOperation,
    path: String,
    value: Option<Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProposedOperation {
    Set,
    Unset,
    Append,
}

impl ProposedChanges {
    /// The arguments `version` and `changes` of a call.
    ///
    /// # Errors
    /// They are missing or of another form; what to write instead.
    fn parse(arguments: &Map<String, Value>) -> Result<Self, String> {
        let fields = ["version", "changes"];
        let given = fields
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), arguments.get(*name)?.clone())));
        let parsed: Self = serde_json::from_value(Value::Object(given.collect()))
            .map_err(|error| format!("{error}; the action change needs version and changes"))?;
        if parsed.changes.is_empty() || parsed.changes.len() > MOST_CHANGES {
            return Err(format!("changes has 1 to {MOST_CHANGES} entries"));
        }
        Ok(parsed)
    }

    fn changes(self) -> Result<Vec<ConfigChange>, String> {
        let change = |ProposedChange { op, path, value }: ProposedChange| {
            let path: ConfigPath = path.parse().map_err(|error| format!("{path:?}: {error}"))?;
            let value = value.ok_or_else(|| format!("{path}: value is missing"));
            Ok(match op {
                ProposedOperation::Set => ConfigChange::Set { path, value: value? },
                ProposedOperation::Append => ConfigChange::Append { path, value: value? },
                ProposedOperation::Unset => ConfigChange::Unset { path },
            })
        };
        self.changes.into_iter().map(change).collect()
    }
}

impl ConfigProposal {
    /// The change that a call proposes.
    ///
    /// # Errors
    /// The arguments are wrong, or the change does not fit the file; what to do.
    pub fn of_call(home: &Home, arguments: &Map<String, Value>) -> Result<Self, String> {
        let proposed = ProposedChanges::parse(arguments)?;
        let version = proposed.version.clone();
        Self::new(home, &version, &proposed.changes()?).map_err(|error| error.to_string())
    }

    /// Applies changes that were made for a version of the file to a copy of it. Blocks.
    ///
    /// # Errors
    /// The file cannot be read or has another version, or a change does not fit it.
    fn new(home: &Home, version: &str, changes: &[ConfigChange]) -> Result<Self, ConfigWriteError> {
        let file = ConfigFile::read(&home.paths)?;
        if file.version() != version {
            return Err(WriteError::Changed { path: file.path().to_owned() }.into());
        }
        let changed = file.with(changes)?;
        let name = file.path().display().to_string();
        let (old, new) = (file.masked_text(), changed.masked_text());
        // A secret in the place of another one makes no difference there.
        let lines = changes.iter().map(|change| match change {
            ConfigChange::Unset { path } => format!("unset {path}\n"),
            ConfigChange::Set { path, .. } => format!("set {path}\n"),
            ConfigChange::Append { path, .. } => format!("append to {path}\n"),
        });
        let diff = myclaw_tools::text_diff(&name, &old, &new);
        let shown = lines.chain(diff).collect();
        Ok(Self { file, changed, shown })
    }

    /// Replaces the file, if it is still the one that the changes were made for.
    ///
    /// # Errors
    /// As [`change_config`].
    pub async fn write(self, home: &Home) -> Result<WrittenConfig, ConfigWriteError> {
        replace_config(home, &self.file, self.changed).await
    }
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
