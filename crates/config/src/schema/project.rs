//! Projects: directories in which the agent works instead of its workspace.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};
use crate::project::PROJECT_MARKERS;

/// How `myclaw`, `myclaw chat` and `myclaw run` behave in the directory of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProjectConfig {
    /// Whether the tools work in the current directory if it belongs to a project. Otherwise only with `-C`.
    pub detect: bool,
    /// Files and directories that mark a project. The home directory is never one.
    #[schemars(with = "Vec<NonBlankText>")]
    pub markers: Vec<ProjectMarker>,
    /// The session that begins in a project when none is named.
    pub start: ProjectStart,
    /// Whether the model reads the `AGENTS.md` and `CLAUDE.md` of projects.
    pub instructions: bool,
    /// Whether the sandbox mode `non-main` applies to sessions of projects too. Otherwise they may do what the main session
    /// may.
    pub sandbox: bool,
}

impl Default for ProjectConfig {
    fn default() -> Self {
        Self {
            detect: true,
            markers: PROJECT_MARKERS.map(|name| ProjectMarker(name.to_owned())).to_vec(),
            start: ProjectStart::default(),
            instructions: true,
            sandbox: false,
        }
    }
}

/// The name of a file or directory that marks a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectMarker(#[serde(deserialize_with = "values::non_blank")] pub String);

impl AsRef<Path> for ProjectMarker {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

/// The session that begins in a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ProjectStart {
    /// A new one.
    #[default]
    New,
    /// The last one of the directory, or a new one if there is none.
    Continue,
}
