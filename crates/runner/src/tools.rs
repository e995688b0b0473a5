//! The tools, under the names of the protocol.

mod ask_boss;
mod find_workflows;
mod renamed;
mod send;
mod tasks;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_browser::{BrowserOptions, BrowserSlot, BrowserTool, Programs};
use myclaw_engine::{
    About, CallArguments, CallEffect, CallSubject, Power, Powers, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolGroup, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_exec::EnvironmentPolicy;
use myclaw_llm::ToolSchema;
use myclaw_speech::Speaker;
use myclaw_tools::{BashTool, EditTool, FindTool, GrepTool, ReadTool, WriteTool};
use myclaw_web::{
    AddressGuard, AddressRules, DownloadOptions, Downloader, FetchLimits, PrivateNetworks,
    WebFetchTool,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::ipc::Ipc;
use crate::job::RunnerJob;
use crate::workflows::semantic_ranker;
use renamed::Renamed;

/// Time limit of a download.
const FETCH_LIMIT: Duration = Duration::from_secs(30);
/// Most characters of a page.
const PAGE_CHARS: usize = 15_000;
/// Longest time of one action of the browser, and how long it stays open without one.
const BROWSER_ACTION: Duration = Duration::from_secs(30);
const BROWSER_IDLE: Duration = Duration::from_secs(600);
/// Names the Chromium of an image.
const CHROMIUM_VARIABLE: &str = "AGENT_BROWSER_EXECUTABLE_PATH";
/// What scripts of an image need to find its browser.
const BROWSER_VARIABLES: [&str; 2] = [CHROMIUM_VARIABLE, "PLAYWRIGHT_BROWSERS_PATH"];

/// What the tools work with.
pub(crate) struct Toolbox<'a> {
    pub(crate) job: &'a RunnerJob,
    pub(crate) ipc: &'a Arc<Ipc>,
    pub(crate) group: &'a Path,
    /// Who speaks. Without one, that is the host's business.
    pub(crate) speaker: Option<Speaker>,
}

/// The tools of a job.
pub(crate) struct Tools {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The browser, if a page was opened.
    pub(crate) browser: BrowserSlot,
}

/// Makes the tools, in the order in which the model sees them.
pub(crate) fn tools(with: &Toolbox<'_>) -> Tools {
    let job = with.job;
    let environment = EnvironmentPolicy::filtered(std::env::vars_os(), &BROWSER_VARIABLES)
        .with("HOME", &job.home);
    let rules = AddressRules {
        private_networks: PrivateNetworks::Refused,
        allowed_hosts: job.allowed_hosts.clone(),
        setting: "the runner's option --allow-host",
    };
    let guard = AddressGuard::new(rules);
    let browser = BrowserSlot::default();
    let mut tools = file_tools(job.command_limit, environment.clone());
    tools.push(web_fetch(job, guard.clone()));
    tools.push(agent_browser(job, guard, browser.clone()));
    tools.extend(send::tools(with.ipc, with.speaker.clone()));
    tools.push(Arc::new(ask_boss::AskBoss::new(Arc::clone(with.ipc), job.ask_limit, &job.say)));
    let workflows = with.group.join("workflows");
    tools.extend(find_workflows::tools(&find_workflows::Workflows {
        ranker: semantic_ranker(&workflows, job.weights.clone(), Arc::clone(&job.say)),
        directory: workflows,
        environment,
        limit: job.workflow_limit,
    }));
    tools.extend(tasks::tools(with.ipc));
    Tools { tools, browser }
}

fn file_tools(limit: Duration, environment: EnvironmentPolicy) -> Vec<Arc<dyn Tool>> {
    let text = json!({"type": "string"});
    let bash = BashTool::new(limit).with_environment(environment);
    vec![
        Renamed::of(
            bash,
            schema(
                "Bash",
                &format!(
                    "Run a bash command in the directory of the group, for at most {} seconds. Long output is cut at its \
                 beginning.",
                    limit.as_secs()
                ),
                &json!({"command": text}),
                &["command"],
            ),
        ),
        Renamed::of(
            ReadTool::new(),
            schema(
                "Read",
                "Read a file of the group, with numbered lines.",
                &json!({
                    "file_path": text,
                    "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1"},
                    "limit": {"type": "integer", "minimum": 1, "description": "Number of lines"},
                }),
                &["file_path"],
            ),
        ),
        Renamed::of(
            WriteTool::new(),
            schema(
                "Write",
                "Create a file of the group, or replace all of it. Makes missing directories.",
                &json!({"file_path": text, "content": text}),
                &["file_path", "content"],
            ),
        ),
        Renamed::of(
            EditTool::new(),
            schema(
                "Edit",
                "Replace text in a file of the group. old_string must occur exactly once.",
                &json!({"file_path": text, "old_string": text, "new_string": text}),
                &["file_path", "old_string", "new_string"],
            ),
        ),
        Renamed::of(
            FindTool::new(),
            schema(
                "Glob",
                "Find files of the group by a pattern, like *.md (a name at any depth) or src/**/*.ts (a path).",
                &json!({"pattern": text, "path": text}),
                &["pattern"],
            ),
        ),
        Renamed::of(
            GrepTool::new(),
            schema(
                "Grep",
                "Search in files of the group, by a regular expression for one line.",
                &json!({"pattern": text, "path": text, "glob": text}),
                &["pattern"],
            ),
        ),
    ]
}

fn web_fetch(job: &RunnerJob, guard: AddressGuard) -> Arc<dyn Tool> {
    let options = DownloadOptions {
        user_agent: job.http.user_agent.clone(),
        extra_ca_files: job.http.extra_ca_files.clone(),
    };
    let limits = FetchLimits { time: FETCH_LIMIT, max_chars: PAGE_CHARS };
    let tool = WebFetchTool::new(Arc::new(Downloader::new(guard, options)), limits);
    Renamed::named(tool, "WebFetch")
}

fn agent_browser(job: &RunnerJob, guard: AddressGuard, slot: BrowserSlot) -> Arc<dyn Tool> {
    let programs = Programs {
        agent_browser: None,
        chromium: std::env::var_os(CHROMIUM_VARIABLE).map(Into::into),
        path: std::env::var_os("PATH").unwrap_or_default(),
        home: Some(job.home.clone()),
    };
    let options =
        BrowserOptions { programs, guard, action_limit: BROWSER_ACTION, idle_limit: BROWSER_IDLE };
    Renamed::named(BrowserTool::new(options, slot), "agent-browser")
}

/// The schema of a tool whose arguments are `properties`.
fn schema(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSchema {
    ToolSchema {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}

/// The answer of a tool of this crate.
type Answer = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// What tools of this crate are that ask the host for something, which decides whether it is done.
const fn of_host(title: &'static str, group: ToolGroup, power: Power) -> ToolDeclaration {
    ToolDeclaration {
        title,
        kind: ToolKind::Other,
        about: About::Nothing,
        group: Some(group),
        powers: Powers::of(&[power]),
        place: WorkPlace::Here,
    }
}

/// The arguments of a call, and the token that aborts it.
struct Call {
    arguments: CallArguments,
    cancel: CancellationToken,
}

impl Call {
    /// A text among the arguments; empty if there is none.
    fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A tool of this crate: a schema and a function.
struct Simple {
    schema: ToolSchema,
    declaration: ToolDeclaration,
    work: Box<dyn Fn(Call) -> Answer + Send + Sync>,
}

/// A tool that is what `declaration` says, and does `work`.
fn simple(
    schema: ToolSchema,
    declaration: ToolDeclaration,
    work: impl Fn(Call) -> Answer + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    Arc::new(Simple { schema, declaration, work: Box::new(work) })
}

/// A result that needs no waiting.
fn ready(result: Result<ToolOutput, ToolError>) -> Answer {
    Box::pin(std::future::ready(result))
}

impl Tool for Simple {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        self.declaration
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let subject = CallSubject::of(arguments);
        Ok(match self.declaration.powers.has(Power::RunsPrograms) {
            // A script, which says itself what it does.
            true => subject.with(CallEffect::Unknown),
            false => subject,
        })
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let ToolInvocation { call, cancel, .. } = invocation;
        (self.work)(Call { arguments: call.arguments.clone(), cancel })
    }
}

/// A failure of a file for the host.
fn not_written(error: &std::io::Error) -> ToolError {
    ToolError::Failed(format!(
        "the host cannot be reached: its directory cannot be written: {error}"
    ))
}
