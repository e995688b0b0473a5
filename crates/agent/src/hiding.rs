//! Commands outside a sandbox do not find the state directory.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::StateDirectoryAccess;
use myclaw_exec::{HiddenPaths, HidingProgram, HidingRunner, IfImpossible, Visibility};
use myclaw_files::{ClosedPaths, Opening};
use myclaw_tools::CommandPlace;

use crate::confinement::ToolPlace;
use crate::helper;
use crate::permissions::Permissions;
use crate::program::program;
use crate::{AgentError, FailureClass, SessionConfig};

/// Whether the commands of a session find the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDirectoryReport {
    /// They do not.
    Hidden,
    /// They do, as the config says.
    Open,
    /// They do, because this user could hide it only with a loss, and the config restricts no commands.
    OpenByDefault,
    /// It cannot be hidden here, for this reason. With `refused`, commands do not run.
    Impossible {
        /// What is in the way.
        why: String,
        /// What happens to commands.
        commands: IfHidingFails,
    },
}

/// What happens to commands where the state directory cannot be hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfHidingFails {
    /// They run and find it.
    Run,
    /// They do not run.
    AreRefused,
}

impl fmt::Display for StateDirectoryReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => out.write_str("hidden from commands"),
            Self::Open => out.write_str("open to commands (tools.bash.stateDirectory)"),
            Self::OpenByDefault => out.write_str(
                "open to commands, because no commands are restricted; tools.bash.stateDirectory \"hidden\" hides it",
            ),
            Self::Impossible { why, commands: IfHidingFails::Run } => {
                write!(out, "open to commands, because it cannot be hidden here: {why}")
            }
            Self::Impossible { why, commands: IfHidingFails::AreRefused } => {
                write!(out, "it cannot be hidden here, so no command runs: {why}")
            }
        }
    }
}

impl SessionConfig {
    /// Where the commands of a session run whose other tools run in `place`. Blocks for some system calls.
    ///
    /// # Errors
    /// The config demands it, and this program cannot be started again to do it.
    pub(crate) fn command_place(
        &self,
        place: &ToolPlace,
        permissions: &Permissions,
        closed: &ClosedPaths,
    ) -> Result<CommandPlace, AgentError> {
        if let Some(sandbox) = place.sandbox(self) {
            return Ok(sandbox);
        }
        let hiding = self.hiding(permissions, closed)?;
        Ok(hiding.map_or(CommandPlace::Here, |runner| CommandPlace::Hiding(runner)))
    }

    /// Whether commands may run nowhere but here, because the config demands that the state directory is hidden from them.
    pub fn keeps_commands(&self) -> bool {
        self.config.tools.bash.state_directory == StateDirectoryAccess::Hidden
    }

    /// Whether the session's commands find the state directory. Blocks for some milliseconds.
    ///
    /// # Errors
    /// As for the rules of the session.
    pub fn state_directory_report(&self) -> Result<StateDirectoryReport, AgentError> {
        let permissions = Permissions::new(self, None, &[])?;
        let wanted = self.config.tools.bash.state_directory;
        let Some(runner) = self.hiding(&permissions, &self.closed_paths())? else {
            return Ok(match wanted {
                StateDirectoryAccess::Open => StateDirectoryReport::Open,
                _ => StateDirectoryReport::OpenByDefault,
            });
        };
        let commands = match wanted {
            StateDirectoryAccess::Hidden => IfHidingFails::AreRefused,
            _ => IfHidingFails::Run,
        };
        Ok(match runner.check() {
            Ok(()) => StateDirectoryReport::Hidden,
            Err(why) => StateDirectoryReport::Impossible { why, commands },
        })
    }

    fn hiding(
        &self,
        permissions: &Permissions,
        closed: &ClosedPaths,
    ) -> Result<Option<Arc<HidingRunner>>, AgentError> {
        let is_root = HidingRunner::is_root();
        let if_impossible = match self.config.tools.bash.state_directory {
            StateDirectoryAccess::Open => return Ok(None),
            StateDirectoryAccess::Hidden => IfImpossible::Refuse,
            StateDirectoryAccess::Auto if is_root || permissions.restricts_commands() => {
                IfImpossible::RunOpenly
            }
            StateDirectoryAccess::Auto => return Ok(None),
        };
        // Root needs no second start of this program.
        let program = match helper::is_available() || is_root {
            true => program().unwrap_or_default(),
            false if if_impossible == IfImpossible::RunOpenly => return Ok(None),
            false => {
                return Err(AgentError::new(
                    FailureClass::Sandbox,
                    "this program cannot hide the state directory from commands, because its `main` does not begin with \
                     `myclaw_agent::helper_main()`; add the call, or set `tools.bash.stateDirectory` to \"open\"",
                ));
            }
        };
        let hidden = hidden_paths(closed);
        let mut slot = self.executor.hiding.lock();
        if let Some(runner) = slot.as_ref().filter(|made| *made.hidden() == hidden) {
            return Ok(Some(Arc::clone(runner)));
        }
        let program = HidingProgram { program, arguments: vec![OsString::from(helper::HIDE)] };
        let runner = Arc::new(HidingRunner::new(hidden, program, if_impossible));
        Ok(Some(Arc::clone(slot.insert(runner))))
    }
}

/// What tools may not touch, as commands find it.
fn hidden_paths(closed: &ClosedPaths) -> HiddenPaths {
    let mut places: Vec<(PathBuf, Opening)> =
        closed.places().map(|(path, opening)| (path.to_owned(), opening)).collect();
    // Of one path, the strictest rule comes first.
    places.sort_by_key(|(_, opening)| *opening);
    HiddenPaths::new(places.into_iter().map(|(path, opening)| {
        let visibility = match opening {
            Opening::Closed => Visibility::Hidden,
            Opening::Reading => Visibility::ReadOnly,
            Opening::Everything => Visibility::Shown,
        };
        (path, visibility)
    }))
}
