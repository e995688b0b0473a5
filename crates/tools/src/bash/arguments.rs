//! The arguments of a call, and what follows from them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use myclaw_engine::{ToolContext, ToolError};
use myclaw_exec::EnvironmentPolicy;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::support::{Access, resolve_path};

/// Longest time-out that a call may ask for (a longer one counts as this): models mistake milliseconds for seconds.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// Longest life of a job.
pub(super) const MAX_JOB_TIME: Duration = Duration::from_secs(24 * 3600);
/// Longest time before a command becomes a job that a call may ask for.
const MAX_YIELD: Duration = Duration::from_secs(600);
/// Most variables of a call.
const MAX_VARIABLES: usize = 64;
/// Most bytes of their names and values: far below what the system passes on to a program.
const MAX_VARIABLE_BYTES: usize = 32 * 1024;
/// Variables that decide which code a shell or a loader runs, so they would bypass what was approved.
const REFUSED: [&str; 8] =
    ["PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "PROMPT_COMMAND"];
/// Families of such variables, and MyClaw's own.
const REFUSED_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "MYCLAW_"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    pub(super) command: String,
    /// In seconds.
    #[serde(default)]
    pub(super) timeout: Option<u64>,
    #[serde(default)]
    pub(super) workdir: Option<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) background: bool,
    #[serde(default, rename = "yieldMs")]
    pub(super) yield_ms: Option<u64>,
    #[serde(default)]
    pub(super) pty: bool,
}

/// The properties of the schema that exist only if commands can become jobs.
pub(super) fn job_properties() -> Map<String, Value> {
    let properties = json!({
        "background": {
            "type": "boolean",
            "description": "Return at once; it goes on as a background job",
        },
        "pty": {"type": "boolean", "description": "Give it a terminal"},
    });
    match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

impl Arguments {
    /// When the command becomes a job; `None` means never.
    pub(super) fn yield_after(&self, default: Option<Duration>) -> Option<Duration> {
        if self.background {
            return Some(Duration::ZERO);
        }
        let asked = self.yield_ms.map(|ms| Duration::from_millis(ms).min(MAX_YIELD));
        asked.or(default)
    }

    /// Where the command starts: absolute, with all links followed. Blocks.
    pub(super) fn directory(&self, context: &ToolContext) -> Result<PathBuf, ToolError> {
        let given = self.workdir.as_deref().filter(|given| !given.trim().is_empty());
        // Commands may go anywhere, so this only follows links and the sign for the home directory.
        let context = ToolContext { workspace_only: false, ..context.clone() };
        Ok(resolve_path(&context, given.unwrap_or("."), Access::Read)?.real)
    }

    /// The variables that the call sets.
    pub(super) fn variables(&self) -> Result<BTreeMap<String, String>, ToolError> {
        let mut variables = BTreeMap::new();
        let mut bytes = 0;
        for (name, value) in &self.env {
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => return Err(refused(name, "its value is not text")),
            };
            bytes += name.len() + value.len();
            if let Some(reason) = why_refused(name) {
                return Err(refused(name, reason));
            }
            variables.insert(name.clone(), value);
        }
        if self.env.len() > MAX_VARIABLES || bytes > MAX_VARIABLE_BYTES {
            return Err(ToolError::Failed(format!(
                "env has more than {MAX_VARIABLES} variables or {MAX_VARIABLE_BYTES} bytes; put them into a file and \
                 source it"
            )));
        }
        Ok(variables)
    }

    /// All variables of the command; `variables` are those that the call sets.
    pub(super) fn environment(
        &self,
        inherited: &EnvironmentPolicy,
        variables: &BTreeMap<String, String>,
    ) -> EnvironmentPolicy {
        let mut environment = inherited.clone();
        if self.pty {
            // The keys of `process` fit this terminal, so the terminal of MyClaw itself does not matter.
            environment = environment.with("TERM", "xterm-256color");
        }
        variables.iter().fold(environment, |all, (name, value)| all.with(name, value))
    }
}

/// Why a call must not set the variable `name`; `None` if it may.
pub fn why_refused(name: &str) -> Option<&'static str> {
    let is_name = name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && name.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    if !is_name {
        return Some("it is not the name of a variable (letters, digits and _)");
    }
    let decides_code =
        REFUSED.contains(&name) || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    decides_code.then_some("it decides which code runs")
}

fn refused(name: &str, reason: &str) -> ToolError {
    ToolError::Failed(format!(
        "the variable {name:?} cannot be set by env: {reason}. Leave it out, or set it within the command"
    ))
}
