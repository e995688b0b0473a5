//! Looks up the values of `${VAR}` references.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use myclaw_files::canonical_or_same;

use crate::environment::DOTENV_FILE;
use crate::paths::WORKSPACE_DIR_NAME;
use crate::{Environment, PROJECT_MARKERS, Paths, dotenv, project_root};

/// Prefix of the variables that control MyClaw itself. A file of a working directory must not set them.
const OWN_PREFIX: &str = "MYCLAW_";

/// The variables that a config file may refer to: those of [`Environment::get`], then those of `.env` in the current
/// directory.
///
/// That last file may belong to somebody else's project, or may have been written by the agent. So it is read only if
/// the other sources do not have the variable, never for a `MYCLAW_` variable, and not at all if the current directory
/// is in an agent's workspace or in a project.
#[derive(Debug)]
pub struct SubstitutionLookup<'a> {
    environment: &'a Environment,
    state_dir: &'a Path,
    workspaces: Workspaces,
    current_dir_file: OnceCell<Option<BTreeMap<String, String>>>,
}

/// The workspaces of agents, as far as they are known before the config is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspaces {
    /// These workspaces, and the default ones in the state directory.
    Known(Vec<PathBuf>),
    /// Unknown: the config names them with variables that are not resolved yet.
    Unknown,
}

impl<'a> SubstitutionLookup<'a> {
    /// A lookup for a config with these workspaces.
    pub fn new(environment: &'a Environment, paths: &'a Paths, workspaces: Workspaces) -> Self {
        Self {
            environment,
            state_dir: paths.state_dir(),
            workspaces,
            current_dir_file: OnceCell::new(),
        }
    }

    /// The value of a variable; an empty one counts as set.
    pub fn get(&self, name: &str) -> Option<&str> {
        if let Some(value) = self.environment.get(name) {
            return Some(value);
        }
        if name.starts_with(OWN_PREFIX) {
            return None;
        }
        self.current_dir_file()?.get(name).map(String::as_str)
    }

    /// Whether `.env` in the current directory was skipped because an agent or somebody else may have written it.
    pub(crate) fn passed_over_current_dir(&self) -> bool {
        let exists = |directory: &Path| directory.join(DOTENV_FILE).is_file();
        self.current_dir_file().is_none() && self.environment.current_dir().is_some_and(exists)
    }

    fn current_dir_file(&self) -> Option<&BTreeMap<String, String>> {
        let read = || {
            let directory = self.environment.current_dir()?;
            (!self.may_be_workspace(directory) && !self.is_project(directory))
                .then(|| dotenv::read(&directory.join(DOTENV_FILE)).variables)
        };
        self.current_dir_file.get_or_init(read).as_ref()
    }

    /// Whether the files of `directory` belong to a project, and so perhaps to somebody else.
    fn is_project(&self, directory: &Path) -> bool {
        project_root(directory, &PROJECT_MARKERS, self.environment.os_home()).is_some()
    }

    fn may_be_workspace(&self, directory: &Path) -> bool {
        let Workspaces::Known(workspaces) = &self.workspaces else {
            return true;
        };
        let directory = real(directory);
        let below_state_dir = directory.strip_prefix(real(self.state_dir)).ok();
        let in_default_workspace = below_state_dir
            .and_then(|below| below.components().next())
            .is_some_and(|first| is_default_workspace(first.as_os_str()));
        in_default_workspace
            || workspaces.iter().any(|workspace| directory.starts_with(real(workspace)))
    }
}

fn is_default_workspace(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(WORKSPACE_DIR_NAME.as_bytes())
}

/// The path with symbolic links resolved; unchanged if it does not exist.
fn real(path: &Path) -> PathBuf {
    canonical_or_same(path)
}
