//! Hooks as commands: runs the config's commands behind the engine's [`Hook`] trait.
//!
//! A command gets one JSON object on its standard input, and may answer with one on its standard output;
//! `docs/operate/hooks.md` is the contract. This crate knows how to run a command and how to read its answer. It must not
//! know terminals, tools or models, nor how a run uses an answer.
//!
//! | module | is |
//! |---|---|
//! | `command` | running a command, and its failures |
//! | `answer` | the answers that a command may give; anything else is a failure |
//! | `claude` | hooks that are written for Claude Code |
//! | `hook` | the trait's methods: the input of a command, and the effect of its answer |
//! | `run_info` | what a command is given of a run |
#![forbid(unsafe_code)]

mod answer;
mod claude;
mod command;
mod hook;
mod run_info;

use std::path::Path;
use std::sync::Arc;

use myclaw_config::{CommandLine, Config, ConfigError, ConfigPath, HooksConfig, Paths};
use myclaw_engine::{Hook, HookError};
use myclaw_exec::ExecError;
use serde_json::Value;

pub use crate::claude::{ClaudeEvent, claude_hook};
pub use crate::command::Check;
use crate::command::{Command, Printed};
use crate::hook::CommandHook;
pub use crate::run_info::RunInfo;

/// The commands of the config, in their order there.
///
/// # Errors
/// [`ConfigError::NoPaths`] for a config that was not loaded from a file, and [`ConfigError::NoHome`] for a path that
/// begins with `~` where there is no home.
pub fn command_hooks(config: &Config, run: RunInfo) -> Result<Vec<Arc<dyn Hook>>, ConfigError> {
    if config.hooks.commands().next().is_none() {
        return Ok(Vec::new());
    }
    let paths = config.paths.as_ref().ok_or(ConfigError::NoPaths)?;
    hooks_of(&config.hooks, paths, None, run)
}

/// The commands of a package of others, which find its directory in the variable `CLAUDE_PLUGIN_ROOT`. `check` is called
/// before each start.
///
/// # Errors
/// As for [`command_hooks`].
pub fn package_hooks(
    hooks: &HooksConfig,
    paths: &Paths,
    package: (&Path, &Check),
    run: RunInfo,
) -> Result<Vec<Arc<dyn Hook>>, ConfigError> {
    hooks_of(hooks, paths, Some(package), run)
}

fn hooks_of(
    hooks: &HooksConfig,
    paths: &Paths,
    package: Option<(&Path, &Check)>,
    run: RunInfo,
) -> Result<Vec<Arc<dyn Hook>>, ConfigError> {
    let run = Arc::new(run);
    let hook = |(event, _, entry): (_, _, myclaw_config::AnyHookCommand<'_>)| {
        let mut command = Command::new(entry.command, entry.timeout_seconds, paths)?;
        if let Some((root, check)) = package {
            command = command.of_package(root, Arc::clone(check));
        }
        let tools = entry.tools.map(<[String]>::to_vec);
        Ok(Arc::new(CommandHook::new(event, command, tools, Arc::clone(&run))) as Arc<dyn Hook>)
    };
    hooks.commands().map(hook).collect()
}

/// Runs a command of the config with `input` on its standard input, in `directory`, and gives what it printed. It is ended
/// with everything it started when the future is dropped.
///
/// # Errors
/// It cannot be started, fails, prints more than 1 MiB beyond its input, or takes longer than `timeout_seconds`.
pub async fn run_command(
    line: &CommandLine,
    timeout_seconds: u64,
    paths: &Paths,
    directory: &Path,
    input: &Value,
) -> Result<String, HookError> {
    let command =
        Command::new(line, timeout_seconds, paths).map_err(|error| HookError(error.to_string()))?;
    command.run(directory, input, Printed::Answer).await
}

/// A command that could not be started.
#[derive(Debug)]
pub struct UnusableCommand {
    /// Its place in the config, such as `hooks.tool_call[0]`.
    pub place: ConfigPath,
    /// The error.
    pub error: ExecError,
}

/// The commands whose program does not exist or is not executable. Of a shell command only the shell itself is checked.
///
/// # Errors
/// [`ConfigError::NoHome`] for a path that begins with `~` where there is no home.
pub fn unusable_commands(
    config: &Config,
    paths: &Paths,
) -> Result<Vec<UnusableCommand>, ConfigError> {
    let mut unusable = Vec::new();
    for (event, index, entry) in config.hooks.commands() {
        let command = Command::new(entry.command, entry.timeout_seconds, paths)?;
        if let Err(error) = command.find_program() {
            let place = ConfigPath::default().key("hooks").key(event.as_str()).index(index);
            unusable.push(UnusableCommand { place, error });
        }
    }
    Ok(unusable)
}
