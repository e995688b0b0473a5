//! The `bash` tool: one command, which may become a background job.

mod arguments;
mod attend;
mod progress;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, CommandLine, SharedSchemas, ShownFact, Tool,
    ToolAliases, ToolContext, ToolDeclaration, ToolError, ToolInvocation, ToolOutput,
};
use myclaw_exec::{
    ChildSpec, EnvironmentPolicy, ErrorOutput, ExecError, Exit, Here, OutputLimits, Runner,
};
use myclaw_llm::{ContentBlock, ToolSchema};
use serde_json::{Map, Value, json};

pub use self::arguments::why_refused as why_variable_is_refused;
use self::arguments::{Arguments, MAX_JOB_TIME, MAX_TIMEOUT, job_properties};
use self::attend::{Outcome, Plan, attachment, attend};
use crate::jobs::Jobs;
use crate::{aliases, declarations};

/// Most lines of output given to the model.
const MAX_LINES: usize = 2000;
/// Most bytes of a character.
const LONGEST_CHAR: usize = 4;
/// Reserved for the notes after the output.
const NOTE_CHARS: usize = 800;
/// Shells to try, in this order.
const SHELLS: [&str; 2] = ["bash", "sh"];

/// Runs commands. `myclaw_exec` describes how it handles processes, output and environment.
pub struct BashTool {
    schema: Arc<ToolSchema>,
    default_timeout: Duration,
    environment: EnvironmentPolicy,
    jobs: Option<Arc<Jobs>>,
    place: CommandPlace,
}

/// Where the commands of a session run.
#[derive(Clone, Default)]
pub enum CommandPlace {
    /// Outside of the sandbox, as children of this process.
    #[default]
    Here,
    /// Outside of the sandbox, without some paths of this machine.
    Hiding(Arc<dyn Runner>),
    /// In a sandbox.
    Sandbox {
        /// Runs them there, with the variables of the sandbox.
        runner: Arc<dyn Runner>,
        /// The working directory as it is named there.
        workspace: PathBuf,
        /// The directory for large outputs as it is named there.
        artifacts: PathBuf,
    },
}

impl BashTool {
    /// The tool without background jobs; `default_timeout` applies to calls without a timeout.
    pub fn new(default_timeout: Duration) -> Self {
        Self::make(default_timeout, None)
    }

    /// The tool with background jobs.
    pub fn with_jobs(default_timeout: Duration, jobs: Arc<Jobs>) -> Self {
        Self::make(default_timeout, Some(jobs))
    }

    fn make(default_timeout: Duration, jobs: Option<Arc<Jobs>>) -> Self {
        static SCHEMAS: SharedSchemas<(Duration, bool)> = SharedSchemas::new();
        let schema = SCHEMAS.get((default_timeout, jobs.is_some()), |_| {
            let of_jobs = jobs.as_ref().map(|_| job_properties());
            Self::schema_with(default_timeout, of_jobs.unwrap_or_default())
        });
        let environment = EnvironmentPolicy::inherited();
        Self { schema, default_timeout, environment, jobs, place: CommandPlace::Here }
    }

    /// The tool, whose commands run in `place`.
    #[must_use]
    pub fn in_place(mut self, place: CommandPlace) -> Self {
        if matches!(place, CommandPlace::Sandbox { .. }) {
            // Only what a call adds: a command in the sandbox gets the variables of the sandbox.
            self.environment = EnvironmentPolicy::empty();
        }
        self.place = place;
        self
    }

    fn schema_with(default_timeout: Duration, of_jobs: Map<String, Value>) -> ToolSchema {
        let mut schema = ToolSchema {
            name: "bash".to_owned(),
            description: "Run a bash command in the working directory, without input or terminal. Only the end of a long \
                          output is returned; all of it goes to a file."
                .to_owned(),
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
                    "workdir": {"type": "string"},
                    "env": {"type": "object"},
                },
                "required": ["command"],
            }),
        };
        if let Some(properties) = schema.parameters["properties"].as_object_mut() {
            properties.extend(of_jobs);
        }
        schema
    }

    /// Uses other variables for its commands than the inherited ones.
    #[must_use]
    pub fn with_environment(mut self, environment: EnvironmentPolicy) -> Self {
        self.environment = environment;
        self
    }

    fn timeout(&self, asked: Option<u64>, background: bool) -> Duration {
        let most = if background { MAX_JOB_TIME } else { MAX_TIMEOUT };
        match asked {
            None | Some(0) if background => MAX_JOB_TIME,
            None | Some(0) => self.default_timeout,
            Some(seconds) => Duration::from_secs(seconds).min(most.max(self.default_timeout)),
        }
    }

    fn spec(
        &self,
        invocation: &ToolInvocation<'_>,
        arguments: &Arguments,
        place: &Place,
        shell: &str,
    ) -> ChildSpec {
        let context = invocation.context;
        let room = context.max_result_chars - NOTE_CHARS.min(context.max_result_chars / 2);
        ChildSpec {
            program: shell.into(),
            args: vec!["-c".into(), arguments.command.as_str().into()],
            directory: place.directory.clone(),
            environment: place.environment.clone(),
            input: Vec::new(),
            timeout: Some(place.timeout),
            output: OutputLimits {
                keep_tail_bytes: room.saturating_mul(LONGEST_CHAR),
                keep_tail_chars: room,
                keep_tail_lines: MAX_LINES,
                side_file: Some(side_file(context, &invocation.call.tool_call_id)),
            },
            errors: ErrorOutput::WithOutput,
        }
    }

    async fn run(
        &self,
        invocation: &ToolInvocation<'_>,
        arguments: &Arguments,
        place: &Place,
    ) -> Result<Outcome, ToolError> {
        let jobs = self.jobs.as_ref();
        let mut missing = None;
        for shell in SHELLS {
            let plan = Plan {
                command: &arguments.command,
                spec: self.spec(invocation, arguments, place, shell),
                runner: self.place.runner(),
                jobs,
                yield_after: jobs.and_then(|jobs| arguments.yield_after(jobs.yield_after())),
                input: attachment(arguments.pty, arguments.background),
            };
            match attend(plan, invocation).await {
                Err(error @ ExecError::ProgramNotFound { .. }) => missing = missing.or(Some(error)),
                Err(error) => return Err(report::start_failure(&error)),
                Ok(outcome) => return Ok(outcome),
            }
        }
        Err(ToolError::Failed(missing.map_or_else(String::new, |error| error.to_string())))
    }

    /// The arguments of a call.
    fn read(&self, arguments: &CallArguments) -> Result<Arguments, ToolError> {
        let arguments: Arguments = arguments.parse()?;
        if arguments.command.trim().is_empty() {
            return Err(ToolError::Failed("the command is empty; say what to run".to_owned()));
        }
        Ok(arguments)
    }
}

impl CommandPlace {
    pub(crate) fn runner(&self) -> Arc<dyn Runner> {
        match self {
            Self::Here => Arc::new(Here),
            Self::Hiding(runner) | Self::Sandbox { runner, .. } => Arc::clone(runner),
        }
    }

    /// The context of a call with the directories as they are named where commands run.
    fn context(&self, context: &ToolContext) -> ToolContext {
        match self {
            Self::Here | Self::Hiding(_) => context.clone(),
            Self::Sandbox { workspace, artifacts, .. } => ToolContext {
                working_directory: workspace.clone(),
                artifact_directory: artifacts.clone(),
                ..context.clone()
            },
        }
    }
}

/// Where and for how long a command runs.
struct Place {
    directory: PathBuf,
    environment: EnvironmentPolicy,
    timeout: Duration,
}

impl Tool for BashTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::BASH
    }

    fn aliases(&self) -> ToolAliases {
        aliases::BASH
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given = self.read(arguments)?;
        let command = CommandLine {
            directory: given.directory(&self.place.context(context))?,
            environment: given.variables()?,
            command: given.command,
            terminal: given.pty,
            background: given.background,
        };
        let mut facts = vec![
            ShownFact::text("command", command.command.clone()),
            ShownFact::text("directory", command.directory.to_string_lossy()),
        ];
        let variable = |(name, value): (&String, &String)| {
            ShownFact::text(format!("variable {name}"), value.clone())
        };
        facts.extend(command.environment.iter().map(variable));
        let subject = CallSubject::of(arguments).first(&["command", "workdir", "env"], facts);
        Ok(subject.with(CallEffect::Run(command)))
    }

    fn has_quick_subject(&self) -> bool {
        // Only the directory is looked up, as the start of the command does too.
        true
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = self.read(&invocation.call.arguments)?;
            // What was judged runs: the directory is not looked up a second time.
            let judged = invocation.call.subject.commands().next().ok_or_else(|| {
                ToolError::Failed("the call does not say what it runs; call again".to_owned())
            })?;
            let context = self.place.context(invocation.context);
            let invocation = ToolInvocation { context: &context, ..invocation };
            let place = Place {
                directory: judged.directory.clone(),
                environment: arguments.environment(&self.environment, &judged.environment),
                timeout: self.timeout(arguments.timeout, arguments.background),
            };
            let max_chars = invocation.context.max_result_chars;
            let finished = match self.run(&invocation, &arguments, &place).await? {
                Outcome::Finished(finished) => *finished,
                Outcome::Job(job) => return Ok(report::of_job(&job, max_chars)),
                Outcome::Refused(refused) => return Err(ToolError::Failed(refused.to_string())),
            };
            let remark = match finished.exit {
                Exit::Code(0) => None,
                _ => self.place.runner().remark(&finished.output.tail),
            };
            let text = report::text(&finished, place.timeout, remark, max_chars);
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

/// A unique name for every call, because some models number their calls anew in every answer.
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
