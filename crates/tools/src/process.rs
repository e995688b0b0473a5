//! The `process` tool: the background jobs of the session.

mod keys;
mod log;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, JobInput, ShownFact, Tool, ToolAliases, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolOutput,
};
use myclaw_exec::WriteError;
use myclaw_llm::outside::harmless_output;
use myclaw_llm::{ContentBlock, ToolSchema};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::jobs::{
    BackgroundJob, Excerpt, Found, JobEnding, JobRecord, Jobs, Killer, elsewhere, one_line,
};
use crate::support::{cut_start, plain_text};
use crate::{aliases, declarations};

/// Longest wait of one call.
const MAX_WAIT: Duration = Duration::from_secs(120);
/// How long a call that writes waits for output of the program, unless it sets a time.
const ANSWER_WAIT: Duration = Duration::from_millis(300);
/// How long a call waits for more output after the first piece, because programs often print in several pieces.
const SETTLE: Duration = Duration::from_millis(50);
/// Most bytes of one write: the capacity of a pipe.
const MAX_WRITE_BYTES: usize = 64 * 1024;
/// Most keys of one call.
const MAX_KEYS: usize = 1_000;
/// Characters reserved for the line about the job.
const NOTE_CHARS: usize = 400;

/// Shows, writes to and ends background jobs.
pub struct ProcessTool {
    jobs: Arc<Jobs>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    List,
    Poll,
    Log,
    Write,
    SendKeys,
    Paste,
    Submit,
    Kill,
    Clear,
    Remove,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    action: Action,
    id: Option<String>,
    data: Option<String>,
    keys: Option<Vec<String>>,
    #[serde(default)]
    eof: bool,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    limit: Option<u64>,
    #[serde(default)]
    wait_ms: Option<u64>,
}

/// The schema that the model reads. All sessions share it.
static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| {
    ToolSchema {
        name: "process".to_owned(),
        description: "Background jobs that bash started: list; poll (new output); log (lines); write, submit (data \
                      and Enter), paste, send-keys; kill; clear (ended ones); remove. A message comes when a job \
                      ends, so do not poll for that."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": [
                        "list", "poll", "log", "write", "send-keys", "paste", "submit", "kill", "clear", "remove"
                    ],
                },
                "id": {"type": "string"},
                "data": {"type": "string"},
                "keys": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "send-keys: enter, up, ctrl-c, …",
                },
                "eof": {"type": "boolean", "description": "write: then end the input"},
                "waitMs": {"type": "integer", "minimum": 0},
            },
            "required": ["action"],
        }),
    }
});

impl Arguments {
    /// What the call writes to a job, as text; `None` if it writes nothing.
    fn input(&self) -> Option<String> {
        let input = match self.action {
            Action::Write => json!({"write": self.data}),
            Action::Paste => json!({"paste": self.data}),
            Action::Submit => json!({"submit": self.data}),
            Action::SendKeys => json!({"keys": self.keys}),
            Action::List
            | Action::Poll
            | Action::Log
            | Action::Kill
            | Action::Clear
            | Action::Remove => return None,
        };
        let end = if self.eof { ", then the end of the input" } else { "" };
        Some(format!("{input}{end}"))
    }
}

impl ProcessTool {
    /// The tool for the jobs of one session.
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }

    async fn act(
        &self,
        invocation: &ToolInvocation<'_>,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let failed = ToolError::Failed;
        let id = arguments.id.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let id = match (arguments.action, id) {
            (Action::List, _) => return Ok(self.list().await),
            (Action::Clear, None) => return self.clear().await.map_err(failed),
            (_, Some(id)) => id,
            (_, None) => {
                let hint = "give the id of a job; action list shows the jobs of this session";
                return Err(failed(hint.to_owned()));
            }
        };
        let found = self.jobs.find(id).await.map_err(failed)?;
        match arguments.action {
            Action::List => Ok(self.list().await),
            Action::Log => {
                let wanted = log::Wanted { offset: arguments.offset, limit: arguments.limit };
                log::show(found, wanted, invocation.context.max_result_chars).await
            }
            Action::Clear => self.forget(record_of(&found)).await.map_err(failed),
            Action::Remove => self.remove(found).await.map_err(failed),
            Action::Kill => match found {
                Found::Own(job) => self.kill(invocation, &job).await.map_err(failed),
                Found::Record(_) => {
                    let error = self.jobs.kill(id, Killer::Agent).await.err();
                    Err(failed(error.unwrap_or_default()))
                }
            },
            Action::Poll => match found {
                Found::Own(job) => {
                    let wait = arguments.wait_ms.map_or(Duration::ZERO, Duration::from_millis);
                    watch(invocation, &job, wait).await
                }
                Found::Record(record) => Ok(of_record(&record)),
            },
            Action::Write | Action::SendKeys | Action::Paste | Action::Submit => match found {
                Found::Own(job) => {
                    write(&job, &arguments).map_err(failed)?;
                    let wait = arguments.wait_ms.map_or(ANSWER_WAIT, Duration::from_millis);
                    watch(invocation, &job, wait).await
                }
                Found::Record(record) if record.is_running() => Err(failed(elsewhere(&record))),
                Found::Record(record) => Err(failed(not_running(&record))),
            },
        }
    }

    async fn list(&self) -> ToolOutput {
        let records = self.jobs.list().await;
        if records.is_empty() {
            return ToolOutput::text(
                "no background jobs; the tool bash starts one with background: true",
            );
        }
        let text: Vec<String> = records.iter().map(line).collect();
        let details = json!({"jobs": records.iter().map(details).collect::<Vec<Value>>()});
        ToolOutput { details: Some(details), ..ToolOutput::text(text.join("\n")) }
    }

    async fn kill(
        &self,
        invocation: &ToolInvocation<'_>,
        job: &Arc<BackgroundJob>,
    ) -> Result<ToolOutput, String> {
        let observer = job.observe();
        let id = job.record().id;
        let killed = self.jobs.kill(&id, Killer::Agent).await;
        observer.report();
        killed?;
        Ok(shown(job, &job.news(), invocation.context.max_result_chars))
    }

    async fn remove(&self, found: Found) -> Result<ToolOutput, String> {
        if let Found::Own(job) = &found
            && job.is_running()
        {
            let observer = job.observe();
            let id = job.record().id;
            let killed = self.jobs.kill(&id, Killer::Agent).await;
            observer.report();
            // The job may have ended by itself meanwhile.
            if job.is_running() {
                killed?;
            }
        }
        self.forget(record_of(&found)).await
    }

    async fn forget(&self, record: JobRecord) -> Result<ToolOutput, String> {
        let id = record.id.clone();
        self.jobs.forget(record).await?;
        Ok(ToolOutput::text(format!("removed job {id} and its output")))
    }

    async fn clear(&self) -> Result<ToolOutput, String> {
        let ended: Vec<JobRecord> =
            self.jobs.list().await.into_iter().filter(|record| !record.is_running()).collect();
        let count = ended.len();
        for record in ended {
            self.jobs.forget(record).await?;
        }
        Ok(ToolOutput::text(match count {
            0 => "no job has ended, so there is nothing to clear".to_owned(),
            1 => "removed 1 job that had ended, and its output".to_owned(),
            count => format!("removed {count} jobs that had ended, and their output"),
        }))
    }
}

impl Tool for ProcessTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        declarations::PROCESS
    }

    fn aliases(&self) -> ToolAliases {
        aliases::PROCESS
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let given: Arguments = arguments.parse()?;
        let subject = CallSubject::of(arguments);
        let Some(input) = given.input() else { return Ok(subject) };
        let job = given.id.as_deref().and_then(|id| self.jobs.command_of(id.trim()));
        let mut facts = Vec::new();
        if let Some(job) = &job {
            facts.push(ShownFact {
                is_whole: job.is_whole,
                ..ShownFact::text("the job runs", job.command.clone())
            });
            facts.push(ShownFact::text("in", job.directory.to_string_lossy()));
        }
        Ok(subject.first(&[], facts).with(CallEffect::Input(JobInput { input, job })))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = invocation.call.arguments.parse()?;
            self.act(&invocation, arguments).await
        })
    }
}

/// Waits for output or the end of a job, and shows what is new.
async fn watch(
    invocation: &ToolInvocation<'_>,
    job: &Arc<BackgroundJob>,
    wait: Duration,
) -> Result<ToolOutput, ToolError> {
    let observer = job.observe();
    if !wait.is_zero() && job.is_running() {
        tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => {}
            () = job.ended() => {}
            () = job.has_news() => {
                tokio::select! {
                    () = job.ended() => {}
                    () = sleep(SETTLE) => {}
                }
            }
            () = sleep(wait.min(MAX_WAIT)) => {}
        }
    }
    observer.report();
    let output = shown(job, &job.news(), invocation.context.max_result_chars);
    if invocation.cancel.is_cancelled() {
        let record = job.record();
        return Err(ToolError::Aborted(format!(
            "aborted; job {} goes on: {}",
            record.id,
            record.state()
        )));
    }
    Ok(output)
}

/// New output, and a line about the job.
fn shown(job: &BackgroundJob, news: &Excerpt, max_chars: usize) -> ToolOutput {
    let record = job.record();
    let text = String::from_utf8_lossy(&news.bytes);
    let text = plain_text(&text);
    let text = text.trim_end_matches('\n');
    let text = if text.is_empty() { "(no new output)" } else { text };
    let text = harmless_output(text);
    let mut text = cut_start(&text, max_chars.saturating_sub(NOTE_CHARS)).into_owned();
    if news.missed > 0 {
        text = format!("[{} bytes before this are shown by action log]\n{text}", news.missed);
    }
    let left: Vec<String> = job
        .left_running()
        .iter()
        .map(|process| format!("{} (pid {})", process.name, process.pid))
        .collect();
    let left = match left.is_empty() {
        true => String::new(),
        false => format!("; it left running: {}", left.join(", ")),
    };
    text.push_str(&format!(
        "\n[job {}: {}; {} bytes of output{left}]",
        record.id,
        record.state(),
        news.end
    ));
    ToolOutput {
        content: vec![ContentBlock::text(cut_start(&text, max_chars))],
        details: Some(details(&record)),
        is_error: record.end.is_some_and(|end| end.how.is_failure()),
    }
}

/// A job of which only the record is left.
fn of_record(record: &JobRecord) -> ToolOutput {
    let text = format!("[job {}: {}]\naction log shows its output", record.id, record.state());
    ToolOutput { details: Some(details(record)), ..ToolOutput::text(text) }
}

fn record_of(found: &Found) -> JobRecord {
    match found {
        Found::Own(job) => job.record(),
        Found::Record(record) => (**record).clone(),
    }
}

fn line(record: &JobRecord) -> String {
    let pid = match (record.is_running(), record.pid()) {
        (true, Some(pid)) => format!(" (pid {pid})"),
        _ => String::new(),
    };
    let terminal = if record.terminal { ", with a terminal" } else { "" };
    format!("{}: {}{pid}{terminal}: {}", record.id, record.state(), one_line(&record.command))
}

/// For user interfaces.
pub(crate) fn details(record: &JobRecord) -> Value {
    let exit_code = match record.end.as_ref().map(|end| &end.how) {
        Some(JobEnding::Exited { code }) => Some(*code),
        _ => None,
    };
    json!({
        "jobId": record.id,
        "running": record.is_running(),
        "state": record.state(),
        "pid": record.pid(),
        "exitCode": exit_code,
        "command": record.command,
        "outputPath": record.output,
    })
}

fn not_running(record: &JobRecord) -> String {
    format!("job {} does not run any more, so it reads nothing: {}", record.id, record.state())
}

/// Passes the input of the call to the job.
fn write(job: &BackgroundJob, arguments: &Arguments) -> Result<(), String> {
    let record = job.record();
    if !record.is_running() {
        return Err(not_running(&record));
    }
    let modes = job.live.terminal_modes();
    let data = || arguments.data.clone().unwrap_or_default();
    let bytes = match arguments.action {
        Action::SendKeys => {
            let keys = arguments.keys.as_deref().unwrap_or_default();
            if !job.handle.is_terminal() {
                return Err(format!(
                    "job {} has no terminal, so it has no keys: use action write, or start it with pty: true",
                    record.id
                ));
            }
            if keys.is_empty() || keys.len() > MAX_KEYS {
                return Err(format!("give 1 to {MAX_KEYS} keys, as in keys: [\"ctrl-c\"]"));
            }
            keys::bytes_of(keys, modes)?
        }
        Action::Paste if job.handle.is_terminal() => keys::pasted(&data(), modes),
        Action::Submit if job.handle.is_terminal() => format!("{}\r", data()).into_bytes(),
        Action::Submit => format!("{}\n", data()).into_bytes(),
        _ => data().into_bytes(),
    };
    if bytes.len() > MAX_WRITE_BYTES {
        return Err(format!(
            "{} bytes are too much for one call; write at most {MAX_WRITE_BYTES} at a time",
            bytes.len()
        ));
    }
    if bytes.is_empty() && !arguments.eof {
        return Err("there is nothing to write; give data, or eof: true".to_owned());
    }
    let mut written = Ok(());
    if !bytes.is_empty() {
        written = job.handle.write(bytes);
    }
    if arguments.eof {
        written = written.and_then(|()| job.handle.end_input());
    }
    written.map_err(|error| match error {
        WriteError::Closed => format!(
            "job {}: {error}. Only a command that was started with background: true or pty: true can be written to, \
             until its input ends",
            record.id
        ),
        WriteError::Full => format!("job {}: {error}; poll it, and write again later", record.id),
    })
}

#[cfg(test)]
mod tests;
