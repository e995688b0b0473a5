//! Running a workflow.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use myclaw_engine::{ToolError, ToolOutput};
use myclaw_exec::{ChildSpec, EnvironmentPolicy, ExecError, Exit, Finished, OutputLimits, run};
use myclaw_llm::ContentBlock;
use myclaw_llm::outside::harmless_output;
use myclaw_tools::why_variable_is_refused;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::Workflow;

/// Most bytes of output that are kept, from its end: 1 MiB with the notes about it.
const MAX_OUTPUT: usize = 1024 * 1024 - 1024;
/// Most arguments, and bytes of their values: far below what the system passes on.
const MAX_ARGUMENTS: usize = 64;
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;
/// Shells to try, in this order.
const SHELLS: [&str; 2] = ["bash", "sh"];
/// What the shell answers for a command that it cannot run, and for one that it does not find.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Variables by which an interpreter or a tool loads other code, besides those of shells and the loader; the last group
/// are those on which scripts rely.
const REFUSED: &[&str] = &[
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PERL5DB",
    "RUBYLIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "LUA_PATH",
    "LUA_CPATH",
    "LUA_INIT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "AWKPATH",
    "GCONV_PATH",
    "NLSPATH",
    "MALLOC_CONF",
    "CDPATH",
    "GLOBIGNORE",
    "POSIXLY_CORRECT",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "MAKEFLAGS",
    "TAR_OPTIONS",
    "RSYNC_RSH",
    "OPENSSL_CONF",
    "CURL_HOME",
    "WGETRC",
    "XDG_CONFIG_HOME",
    "HOME",
    "SHELL",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "TERM",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
];
const REFUSED_PREFIXES: &[&str] = &["GIT_", "NPM_CONFIG_", "BASH_", "SSH_", "GLIBC_"];

/// One run of a workflow.
pub struct WorkflowRun<'a> {
    /// Where it runs.
    pub directory: &'a Path,
    /// Its variables, without the arguments.
    pub environment: &'a EnvironmentPolicy,
    /// Its time.
    pub limit: Duration,
    /// What runs.
    pub workflow: &'a Workflow,
    /// Values by name.
    pub arguments: &'a Map<String, Value>,
}

impl WorkflowRun<'_> {
    /// Runs it to its end. When its time is up, or `cancel` fires, it is ended with everything it started.
    ///
    /// # Errors
    /// An argument cannot be passed, or the command cannot be started.
    pub async fn run(&self, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        let variables = variables(self.arguments).map_err(ToolError::Failed)?;
        let mut environment = self.environment.clone();
        for (name, value) in variables {
            environment = environment.with(name, value);
        }
        let finished = self.run_with(environment, cancel).await?;
        let text = self.report(&finished);
        if finished.exit == Exit::Aborted {
            return Err(ToolError::Aborted(text));
        }
        let is_error = finished.exit != Exit::Code(0);
        Ok(ToolOutput { content: vec![ContentBlock::text(text)], details: None, is_error })
    }

    async fn run_with(
        &self,
        environment: EnvironmentPolicy,
        cancel: &CancellationToken,
    ) -> Result<Finished, ToolError> {
        let mut missing = String::new();
        for shell in SHELLS {
            let spec = ChildSpec {
                args: vec!["-c".into(), self.workflow.run.as_str().into()],
                environment: environment.clone(),
                timeout: Some(self.limit),
                output: OutputLimits {
                    keep_tail_bytes: MAX_OUTPUT,
                    keep_tail_chars: usize::MAX,
                    keep_tail_lines: usize::MAX,
                    side_file: None,
                },
                ..ChildSpec::new(shell, self.directory)
            };
            match run(spec, cancel, &mut |_| {}).await {
                Ok(finished) => return Ok(finished),
                Err(error @ ExecError::ProgramNotFound { .. }) => missing = error.to_string(),
                Err(error) => {
                    return Err(ToolError::Failed(format!(
                        "the workflow {} cannot be started: {error}",
                        self.workflow.name
                    )));
                }
            }
        }
        Err(ToolError::Failed(missing))
    }

    /// The output, with notes about it in brackets.
    fn report(&self, finished: &Finished) -> String {
        let output = finished.output.tail.trim_end_matches('\n');
        let output = if output.is_empty() { "(no output)" } else { output };
        let mut text = harmless_output(output).into_owned();
        let cut = finished.output.truncated.then(|| {
            format!("only the last {MAX_OUTPUT} of {} bytes are shown", finished.output.total_bytes)
        });
        let ending = match finished.exit {
            Exit::Code(0) => None,
            Exit::Code(NOT_EXECUTABLE) => Some(
                "exit code 126: a file of the workflow is not executable; the owner must run chmod +x on it"
                    .to_owned(),
            ),
            Exit::Code(NOT_FOUND) => Some(
                "exit code 127: the workflow's command was not found; the owner must check `run` in registry.json"
                    .to_owned(),
            ),
            Exit::Code(code) => Some(format!("exit code {code}")),
            Exit::Signal(signal) => Some(format!("ended by signal {signal}")),
            Exit::TimedOut => Some(format!(
                "it was ended with everything it started, after {} seconds",
                self.limit.as_secs()
            )),
            Exit::Aborted => Some("it was ended with everything it started".to_owned()),
        };
        for note in [cut, ending].into_iter().flatten() {
            text.push_str("\n[");
            text.push_str(&note);
            text.push(']');
        }
        text
    }
}

/// The variables of the arguments.
fn variables(arguments: &Map<String, Value>) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    let mut bytes = 0;
    for (argument, value) in arguments {
        let name = variable_name(argument)?;
        let value = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if value.contains('\0') {
            return Err(format!(
                "the argument {argument:?} has a zero byte, which no program can be given"
            ));
        }
        bytes += name.len() + value.len();
        if variables.insert(name.clone(), value).is_some() {
            return Err(format!("two arguments mean the variable {name}; give it once"));
        }
    }
    if variables.len() > MAX_ARGUMENTS || bytes > MAX_ARGUMENT_BYTES {
        return Err(format!(
            "there are more than {MAX_ARGUMENTS} arguments or {MAX_ARGUMENT_BYTES} bytes; write large values to a file"
        ));
    }
    Ok(variables)
}

/// The variable of an argument: in capitals, with `_` for everything but letters and digits.
///
/// # Errors
/// The variable decides which code runs.
fn variable_name(argument: &str) -> Result<String, String> {
    let sign = |char: char| match char.is_ascii_alphanumeric() {
        true => char.to_ascii_uppercase(),
        false => '_',
    };
    let mut name: String = argument.chars().map(sign).collect();
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    let is_refused = why_variable_is_refused(&name).is_some()
        || REFUSED.contains(&name.as_str())
        || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if is_refused {
        return Err(format!(
            "the argument {argument:?} cannot be passed: the variable {name} decides which code runs or where it works. \
             Use another name"
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests;
