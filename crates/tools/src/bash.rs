//! The `bash` tool: one command.

mod progress;
mod report;

use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolAliases, ToolContext, ToolError, ToolInvocation, ToolOutput};
use myclaw_exec::{
    ChildSpec, EnvironmentPolicy, ErrorOutput, ExecError, Exit, Finished, OutputLimits,
};
use myclaw_llm::{ContentBlock, ToolSchema};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use self::progress::Progress;
use crate::aliases;
use crate::support::{lenient_u64, parse_arguments};

/// Longest time-out that a call may ask for (a longer one counts as this): models mistake milliseconds for seconds.
const MAX_TIMEOUT: Duration = Duration::from_secs(3600);
/// Most lines of output given to the model.
const MAX_LINES: usize = 2000;
/// Most bytes of a character.
const LONGEST_CHAR: usize = 4;
/// Reserved for the notes after the output.
const NOTE_CHARS: usize = 800;
/// How often user interfaces hear of new output.
const UPDATE_PERIOD: Duration = Duration::from_millis(250);
/// Shells to try, in this order.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Runs commands. See `myclaw_exec` for what becomes of the processes, their output and their environment.
#[derive(Debug)]
pub struct BashTool {
    schema: ToolSchema,
    default_timeout: Duration,
    environment: EnvironmentPolicy,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    command: String,
    /// In seconds.
    #[serde(default, deserialize_with = "lenient_u64")]
    timeout: Option<u64>,
}

impl BashTool {
    /// The tool; `default_timeout` applies to calls without a timeout.
    pub fn new(default_timeout: Duration) -> Self {
        let schema = ToolSchema {
            name: "bash".to_owned(),
            description: format!(
                "Run a bash command in the working directory, without input or terminal. Of more than {MAX_LINES} \
                 lines or a very long output only the end is returned; all of it goes to a file."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string"},
                    "timeout": {
                        "type": "integer",
                        "minimum": 1,
                        "description": format!(
                            "Seconds; default {}, at most {}",
                            default_timeout.as_secs(),
                            MAX_TIMEOUT.max(default_timeout).as_secs()
                        ),
                    },
                },
                "required": ["command"],
                "additionalProperties": false,
            }),
        };
        Self { schema, default_timeout, environment: EnvironmentPolicy::inherited() }
    }

    /// With other variables for its commands than the inherited ones.
    #[must_use]
    pub fn with_environment(mut self, environment: EnvironmentPolicy) -> Self {
        self.environment = environment;
        self
    }

    fn timeout(&self, asked: Option<u64>) -> Duration {
        match asked {
            None | Some(0) => self.default_timeout,
            Some(seconds) => {
                Duration::from_secs(seconds).min(MAX_TIMEOUT.max(self.default_timeout))
            }
        }
    }

    fn spec(
        &self,
        invocation: &ToolInvocation<'_>,
        arguments: &Arguments,
        shell: &str,
    ) -> ChildSpec {
        let context = invocation.context;
        let room = context.max_result_chars - NOTE_CHARS.min(context.max_result_chars / 2);
        ChildSpec {
            program: shell.into(),
            args: vec!["-c".into(), arguments.command.as_str().into()],
            directory: context.working_directory.clone(),
            environment: self.environment.clone(),
            input: Vec::new(),
            timeout: Some(self.timeout(arguments.timeout)),
            output: OutputLimits {
                keep_tail_bytes: room.saturating_mul(LONGEST_CHAR),
                keep_tail_chars: room,
                keep_tail_lines: MAX_LINES,
                side_file: Some(side_file(context, invocation.call_id)),
            },
            errors: ErrorOutput::WithOutput,
        }
    }

    async fn run(
        &self,
        invocation: &ToolInvocation<'_>,
        arguments: &Arguments,
    ) -> Result<Finished, ToolError> {
        let mut missing = None;
        for shell in SHELLS {
            match run_reporting(self.spec(invocation, arguments, shell), invocation).await {
                Err(error @ ExecError::ProgramNotFound { .. }) => missing = missing.or(Some(error)),
                Err(error) => return Err(report::start_failure(&error)),
                Ok(finished) => return Ok(finished),
            }
        }
        Err(ToolError::Failed(missing.map_or_else(String::new, |error| error.to_string())))
    }
}

impl Tool for BashTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn aliases(&self) -> ToolAliases {
        aliases::BASH
    }

    fn execute<'a>(
        &'a self,
        mut invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments: Arguments =
                parse_arguments(aliases::BASH, std::mem::take(&mut invocation.arguments))?;
            if arguments.command.trim().is_empty() {
                return Err(ToolError::Failed("the command is empty; say what to run".to_owned()));
            }
            let finished = self.run(&invocation, &arguments).await?;
            let text = report::text(
                &finished,
                self.timeout(arguments.timeout),
                invocation.context.max_result_chars,
            );
            if finished.exit == Exit::Aborted {
                return Err(ToolError::Aborted(text));
            }
            Ok(ToolOutput {
                content: vec![ContentBlock::text(text)],
                details: Some(report::details(&finished)),
                is_error: finished.exit != Exit::Code(0),
            })
        })
    }
}

/// Runs the command and reports its output while it comes.
async fn run_reporting(
    spec: ChildSpec,
    invocation: &ToolInvocation<'_>,
) -> Result<Finished, ExecError> {
    let progress = Progress::default();
    let mut take_output = |piece: &[u8]| progress.push(piece);
    let mut running = pin!(myclaw_exec::run(spec, &invocation.cancel, &mut take_output));
    let mut ticks = interval_at(Instant::now() + UPDATE_PERIOD, UPDATE_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            finished = &mut running => return finished,
            _ = ticks.tick() => {
                if let Some(update) = progress.take() {
                    (invocation.on_update)(update);
                }
            }
        }
    }
}

/// A name of its own for every call: some models number their calls anew in every answer.
fn side_file(context: &ToolContext, call_id: &str) -> PathBuf {
    /// Enough to recognise the call.
    const MAX_ID_CHARS: usize = 40;
    let id: String = call_id
        .chars()
        .filter(|char| char.is_ascii_alphanumeric() || "-_".contains(*char))
        .take(MAX_ID_CHARS)
        .collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    context.artifact_directory.join(format!("bash-{now}-{id}.log"))
}

#[cfg(test)]
mod tests;
