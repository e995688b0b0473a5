//! Code mode: a script that calls the tools of servers, and of which a model reads the output only.
//!
//! The script runs confined, in a directory of its own. It reaches one port of a loopback interface of its own, which the sandbox
//! connects with a socket of this process. A call is a line of JSON there, and so is its answer. The engine makes the call as
//! one of the tool that finds others, so hooks, the policy, approvals and what was approved of the server hold as for a call of the model.

mod answer;
mod client;

use std::fs;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, InnerCalls, Power, Powers, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolKind, ToolOutput, WorkPlace,
};
use myclaw_exec::{Exit, Finished, UnixListener};
use myclaw_files::OwnedDirectory;
use myclaw_files::portable::PermissionsExt as _;
use myclaw_llm::ToolSchema;
use myclaw_llm::outside::{MARK_CHARS, mark, visible};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::answer::Calls;
pub use self::client::{ScriptAnswer, call_from_script};
use crate::spec::{PrepareScript, Program, ScriptPlace};

/// The name of the tool that runs scripts. No server may be called `mcp`.
pub const SCRIPT: &str = "mcp__script";
/// How long a script may run, without the time of its calls: each of those has a limit of its own.
const OWN_LIMIT: Duration = Duration::from_secs(120);
/// Longest script, in bytes.
const MAX_SCRIPT: usize = 256 << 10;
/// Room for the lines around the output.
const NOTE_CHARS: usize = 400;
/// What names of the directories of scripts begin with.
const DIRECTORY_PREFIX: &str = "myclaw-script-";
/// In the directory: what the script may change, and the socket, which it does not see.
const WORK: &str = "work";
const SOCKET: &str = "calls";

const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Run a script of MCP calls",
    kind: ToolKind::Run,
    about: About::Argument { verb: "", name: "script" },
    group: None,
    powers: Powers::of(&[Power::RunsPrograms]),
    place: WorkPlace::Here,
};

/// Runs scripts.
pub(crate) struct Script {
    schema: ToolSchema,
    prepare: Arc<PrepareScript>,
}

impl Script {
    pub(crate) fn new(prepare: Arc<PrepareScript>) -> Self {
        let description = "Runs a script that calls tools of MCP servers, in a sandbox without network and without your files. You get only \
             what it prints, so use it for several calls, or to keep a small part of long results. It is for sh, or for \
             python3 if its first line is `#!/usr/bin/env python3`. In it `myclaw mcp call SERVER TOOL 'JSON'` calls the tool \
             SERVER__TOOL with these arguments, prints the result, and fails if the call does. Look for tools and their \
             arguments with `find` of mcp__tools first."
            .to_owned();
        let parameters = json!({
            "type": "object",
            "properties": {"script": {"type": "string", "description": "The script"}},
            "required": ["script"],
        });
        Self { schema: ToolSchema { name: SCRIPT.to_owned(), description, parameters }, prepare }
    }

    async fn run(
        &self,
        invocation: ToolInvocation<'_>,
        engine: &dyn InnerCalls,
    ) -> Result<ToolOutput, ToolError> {
        let text = invocation.call.arguments["script"].as_str().unwrap_or_default().to_owned();
        if text.trim().is_empty() {
            return Err(ToolError::Failed(
                "the script is empty; write what it should do".to_owned(),
            ));
        }
        if text.len() > MAX_SCRIPT {
            let what =
                format!("the script has more than {} KB; write a shorter one", MAX_SCRIPT >> 10);
            return Err(ToolError::Failed(what));
        }
        let (prepare, context) = (Arc::clone(&self.prepare), invocation.context.clone());
        let made = tokio::task::spawn_blocking(move || Place::make(&*prepare, &text, &context));
        let made = made.await.map_err(|error| ToolError::Failed(error.to_string()))?;
        let place = made.map_err(ToolError::Failed)?;
        let listener = UnixListener::bind(&place.socket).map_err(|error| {
            ToolError::Failed(format!("the socket for its calls cannot be made: {error}"))
        })?;
        let ended = CancellationToken::new();
        let calls = Calls::new(engine, &invocation.call.tool_call_id, &ended);
        let stop = invocation.cancel.child_token();
        let Program { sandbox, child, confinement, .. } = place.program.clone();
        // Its calls have events of their own; what it prints counts when it has ended.
        let mut on_output = |_: &[u8]| {};
        let running = async {
            let mut running = pin!(sandbox.run(child, &confinement, &stop, &mut on_output));
            let finished = tokio::select! {
                finished = &mut running => finished,
                () = calls.own_time_is_over(OWN_LIMIT) => {
                    stop.cancel();
                    running.await
                }
            };
            // The script's end ends its calls.
            ended.cancel();
            finished
        };
        let (finished, ()) = tokio::join!(running, calls.answer_all(listener));
        let advice = &place.program.advice;
        let finished = finished.map_err(|error| {
            ToolError::Failed(format!("the script did not run: {error}. {advice}"))
        })?;
        let text = report(&finished, invocation.context.max_result_chars);
        if invocation.cancel.is_cancelled() {
            return Err(ToolError::Aborted(text));
        }
        let exit_code = match finished.exit {
            Exit::Code(code) => Some(code),
            _ => None,
        };
        Ok(ToolOutput {
            is_error: finished.exit != Exit::Code(0),
            details: Some(json!({"exitCode": exit_code, "calls": calls.made()})),
            ..ToolOutput::text(text)
        })
    }
}

impl Tool for Script {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    /// What it does itself, it does in its sandbox. Its calls are judged one by one.
    fn subject(
        &self,
        arguments: &CallArguments,
        _context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::unknown(arguments))
    }

    fn execute<'a>(
        &'a self,
        _invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let what = "a script runs in a turn only, because its calls are calls of that turn";
        Box::pin(std::future::ready(Err(ToolError::Failed(what.to_owned()))))
    }

    fn execute_with<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
        calls: &'a dyn InnerCalls,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.run(invocation, calls))
    }
}

/// Where one script runs. It is removed with this value.
struct Place {
    program: Program,
    socket: PathBuf,
    _directory: OwnedDirectory,
}

impl Place {
    /// Blocks for some system calls.
    fn make(prepare: &PrepareScript, text: &str, context: &ToolContext) -> Result<Self, String> {
        let base = std::env::temp_dir();
        let failed = |error: std::io::Error| {
            let base = base.display();
            format!(
                "the script's directory cannot be made in {base}: {error}; set TMPDIR to one with a short name"
            )
        };
        // Not in the state directory, whose path can be too long for a socket.
        let directory = OwnedDirectory::create(&base, DIRECTORY_PREFIX).map_err(failed)?;
        let (work, socket) = (directory.path().join(WORK), directory.path().join(SOCKET));
        fs::create_dir(&work).map_err(failed)?;
        let script = work.join("script");
        fs::write(&script, text).map_err(failed)?;
        let mut program = prepare(&ScriptPlace { work, socket: socket.clone() })?;
        let child = &mut program.child;
        match text.starts_with("#!") {
            true => {
                fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).map_err(failed)?;
                child.program = script.into();
            }
            false => child.args = vec![script.into()],
        }
        child.output.keep_tail_chars =
            context.max_result_chars.saturating_sub(MARK_CHARS + NOTE_CHARS);
        let name = format!("script-{}.txt", Uuid::new_v4().simple());
        child.output.side_file = Some(context.artifact_directory.join(name));
        Ok(Self { program, socket, _directory: directory })
    }
}

/// What a model reads. Most of it comes from servers.
fn report(finished: &Finished, max_chars: usize) -> String {
    let Finished { exit, output, .. } = finished;
    let printed = visible(&output.tail);
    let mut text = match printed.trim() {
        "" => "The script printed nothing; let it print what you want to know.".to_owned(),
        printed => format!("Output of the script. {}", mark(printed)),
    };
    let how = match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("exit code {code}")),
        Exit::Signal(signal) => Some(format!("ended by the signal {signal}")),
        Exit::TimedOut | Exit::Aborted => Some(format!(
            "ended: a script runs for at most {} s without its calls",
            OWN_LIMIT.as_secs()
        )),
    };
    let cut = output.side_file.as_ref().filter(|_| output.truncated).map(|file| {
        let path = file.path.display();
        format!("only the end of the output is shown; full output: {path}")
    });
    for note in how.into_iter().chain(cut) {
        text.push_str(&format!("\n[{note}]"));
    }
    text.chars().take(max_chars).collect()
}
