//! Everything that can go wrong with the settings, in words that say what happened, where, and what to do next.

use std::io;
use std::path::PathBuf;

use crate::{AgentId, ConfigPath, RenderStyle, Report};

/// Why there are no settings to work with. No message holds a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The user has no home and none is given.
    #[error(
        "no home folder found: set HOME, or set MYCLAW_HOME or MYCLAW_STATE_DIR to the folder that MyClaw shall use"
    )]
    NoHome,
    /// The folder in which the process was started no longer exists.
    #[error(
        "the current folder no longer exists: change to another one, or use absolute paths in MYCLAW_* variables"
    )]
    NoCurrentDir,
    /// A [`crate::Config`] that was not loaded has no folders.
    #[error(
        "these settings were made without folders: set `Config::paths`, or give the workspace as an absolute path"
    )]
    NoPaths,
    /// There is no settings file.
    #[error("no settings file at {}: `myclaw init` writes one to start from", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The user named a settings file, and there is none.
    #[error(
        "no settings file at {}, which MYCLAW_CONFIG_PATH names: correct or unset it, or let `myclaw init` write one there",
        path.display()
    )]
    NamedFileNotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The settings file is a symbolic link to nothing.
    #[error("{} is a symbolic link to {}, which does not exist: repair the link or remove it", path.display(), target.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// What it points to.
        target: PathBuf,
    },
    /// There is a folder, device or the like where the settings file should be.
    #[error("{} is {kind}, not a file: move it away, or set MYCLAW_CONFIG_PATH to the settings file", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
        /// What it is, such as "a folder".
        kind: &'static str,
    },
    /// The settings file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The settings file is far larger than settings can be.
    #[error("{} is larger than {} KiB, so it is no settings file", path.display(), limit / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read, in bytes.
        limit: u64,
    },
    /// The settings file is not text.
    #[error("{}:{line}: not UTF-8 text; save the file in the encoding UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is no text, from 1.
        line: usize,
    },
    /// The settings file is not JSON5.
    #[error("{0}")]
    Syntax(Box<Report>),
    /// The settings refer to a variable that is unset or empty.
    #[error("{report}")]
    MissingEnvVar {
        /// The first such variable.
        var: String,
        /// The setting that refers to it.
        config_path: ConfigPath,
        /// All of them.
        report: Box<Report>,
    },
    /// The settings hold something that they may not.
    #[error("{0}")]
    Invalid(Box<Report>),
    /// No agent of that name is configured.
    #[error("there is no agent `{id}`; known: {}", list(known))]
    UnknownAgent {
        /// The name that was asked for, normalised.
        id: AgentId,
        /// The names there are.
        known: Vec<AgentId>,
    },
    /// The starter file or its folder cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// What was to be written.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

impl ConfigError {
    /// What is wrong with the text of the file, where that is the matter.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Syntax(report) | Self::Invalid(report) | Self::MissingEnvVar { report, .. } => {
                Some(report)
            }
            _ => None,
        }
    }

    /// The message for a terminal: with the lines of the file that are wrong, secrets blanked. No line end at the end.
    pub fn render(&self, style: RenderStyle) -> String {
        match self.report() {
            Some(report) => report.render(style),
            None => {
                let title = annotate_snippets::Level::ERROR.primary_title(self.to_string());
                let renderer = match style {
                    RenderStyle::Plain => annotate_snippets::Renderer::plain(),
                    RenderStyle::Coloured => annotate_snippets::Renderer::styled(),
                };
                renderer.render(&[annotate_snippets::Group::with_title(title)])
            }
        }
    }
}

fn list(ids: &[AgentId]) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}
