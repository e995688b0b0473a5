//! The errors of this crate. Each message says what happened, where, and what to do next.

use std::io;
use std::path::PathBuf;

use crate::{AgentId, ConfigPath, RenderStyle, Report};

/// Why the config could not be loaded. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no home directory.
    #[error(
        "no home directory found: set HOME, or set MYCLAW_HOME or MYCLAW_STATE_DIR to the directory that MyClaw shall use"
    )]
    NoHome,
    /// The directory in which the process was started no longer exists.
    #[error(
        "the current directory no longer exists: change to another one, or use absolute paths in MYCLAW_* variables"
    )]
    NoCurrentDir,
    /// A [`crate::Config`] that was not loaded has no directories.
    #[error(
        "this config was made without paths: set `Config::paths`, or give the workspace as an absolute path"
    )]
    NoPaths,
    /// There is no config file.
    #[error("no config file at {}: `myclaw init` writes one to start from", path.display())]
    NotFound {
        /// The path that was searched.
        path: PathBuf,
    },
    /// The config file that the user named does not exist.
    #[error(
        "no config file at {}, which MYCLAW_CONFIG_PATH names: correct or unset it, or let `myclaw init` write one there",
        path.display()
    )]
    NamedFileNotFound {
        /// The path that was searched.
        path: PathBuf,
    },
    /// The config file is a symbolic link to nothing.
    #[error("{} is a symbolic link to {}, which does not exist: repair the link or remove it", path.display(), target.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// What it points to.
        target: PathBuf,
    },
    /// There is a directory, device or similar at the path of the config file.
    #[error("{} is {kind}, not a file: move it away, or set MYCLAW_CONFIG_PATH to the config file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// Its kind, such as "a directory".
        kind: &'static str,
    },
    /// The config file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The config file is far larger than a config can be.
    #[error("{} is larger than {} KiB, so it is not a config file", path.display(), limit / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size that is read, in bytes.
        limit: u64,
    },
    /// The config file is not text.
    #[error("{}:{line}: not UTF-8 text; save the file in the encoding UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The first line that is not text, from 1.
        line: usize,
    },
    /// The config file is for a newer program.
    #[error("{}", myclaw_files::formats::CONFIG.refusal(path, found))]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format that it names.
        found: u64,
    },
    /// The config file is not JSON5.
    #[error("{0}")]
    Syntax(Box<Report>),
    /// The config refers to a variable that is unset or empty.
    #[error("{report}")]
    MissingEnvVar {
        /// The first such variable.
        var: String,
        /// The key whose value refers to it.
        config_path: ConfigPath,
        /// All such variables.
        report: Box<Report>,
    },
    /// The config has a mistake.
    #[error("{0}")]
    Invalid(Box<Report>),
    /// No agent of that name is configured.
    #[error("there is no agent `{id}`; known: {}", list(known))]
    UnknownAgent {
        /// The requested name, normalised.
        id: AgentId,
        /// The configured names.
        known: Vec<AgentId>,
    },
    /// The starter file or its directory cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The path to write.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ConfigError {
    /// The report on the text of the file, if the error is in the text.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Syntax(report) | Self::Invalid(report) | Self::MissingEnvVar { report, .. } => {
                Some(report)
            }
            _ => None,
        }
    }

    /// The message for a terminal: with the affected lines of the file, secrets blanked, and no line end at the end.
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
