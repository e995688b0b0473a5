//! A running helper process and the calls that it holds.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use myclaw_engine::{ToolError, ToolInvocation, ToolOutput, ToolUpdate};
use myclaw_exec::ChildSpec;
use myclaw_sandbox::Confined;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{Launch, MessageListener};
use crate::protocol::{
    CallContext, CallNumber, CallRequest, MAX_MESSAGE_BYTES, MAX_MESSAGES, Outcome, Reply, Request,
    VERSION, check_update,
};
use crate::{ExecutorError, frames};

/// How long a helper may take to be ready. A container needs most of it on a slow machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Updates of one call that wait to be shown; more are dropped.
const UPDATES: usize = 16;
/// Bytes of the helper's error output that are kept, from its end. It prints only when it fails.
const ERRORS_KEPT: usize = 4 << 10;
/// Longest wait for the end of a helper that closed its output, and then for the rest of its errors.
const END_GRACE: Duration = Duration::from_millis(500);
/// `SIGKILL`, which the kernel sends when memory runs out.
const KILLED: i32 = 9;
/// Reasons of an end that were not caused by the helper's messages.
const ENDED: &str = "it ended";
const IDLE: &str = "it was idle";

/// A helper that was ready. Dropping it ends the process with everything it started.
#[derive(Debug)]
pub(super) struct Helper {
    workspace: PathBuf,
    scratch: PathBuf,
    requests: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
    /// Owns the process.
    attending: AbortOnDropHandle<()>,
}

/// What the calls and the task that reads replies have in common.
#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    calls: HashMap<CallNumber, Waiting>,
    last: CallNumber,
    /// Why the helper ended, once it has.
    ended: Option<String>,
}

/// A call without a result.
#[derive(Debug)]
struct Waiting {
    updates: mpsc::Sender<ToolUpdate>,
    result: oneshot::Sender<Outcome>,
}

/// The process and what ends with it.
struct Process {
    confined: Confined,
    errors: AbortOnDropHandle<Vec<u8>>,
    /// Removed after the process has ended.
    temporary: TempDir,
}

impl Helper {
    /// Starts a helper and waits until it is ready.
    pub(super) async fn start(launch: &Launch) -> Result<Self, ExecutorError> {
        let scratch = launch.scratch.clone();
        let temporary = tokio::task::spawn_blocking(move || make_temporary(&scratch))
            .await
            .map_err(|error| ExecutorError::Start(error.to_string()))?
            .map_err(ExecutorError::Directory)?;
        let mut confinement = launch.confinement.clone();
        confinement.temporary = Some(temporary.path().to_owned());
        let mut spec = ChildSpec::new(&launch.program, &confinement.workspace);
        spec.args.clone_from(&launch.arguments);
        spec.environment = launch.environment.clone();
        let mut confined = launch.sandbox.spawn(spec, &confinement)?;
        let pipes = (confined.take_input(), confined.take_output(), confined.take_errors());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(ExecutorError::Start("it has no pipes".to_owned()));
        };
        let (requests, queue) = mpsc::channel(frames::QUEUE);
        let writing = AbortOnDropHandle::new(tokio::spawn(frames::write_all(queue, input)));
        let errors = AbortOnDropHandle::new(tokio::spawn(read_end(errors)));
        let process = Process { confined, errors, temporary };
        let mut replies = BufReader::new(output);
        let begin = Request::Begin { version: VERSION.to_owned(), setup: launch.setup.clone() };
        // A helper that has ended already is noticed below.
        let begin =
            frames::encode(&begin).map_err(|error| ExecutorError::Start(error.to_string()))?;
        drop(requests.send(begin).await);
        let first = tokio::time::timeout(START_LIMIT, frames::read::<Reply>(&mut replies)).await;
        let problem = match first {
            Ok(Ok(Some(Reply::Ready { version }))) if version == VERSION => None,
            Ok(Ok(Some(Reply::Ready { version }))) => Some(format!("its version is {version}")),
            Ok(Ok(Some(_))) => Some("it is not a helper".to_owned()),
            Ok(Ok(None)) => Some(ENDED.to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("it was not ready after {} s", START_LIMIT.as_secs())),
        };
        if let Some(problem) = problem {
            return Err(ExecutorError::Start(process.end(&problem).await));
        }
        let shared = Arc::<Shared>::default();
        let attendant = Attendant {
            shared: Arc::clone(&shared),
            requests: requests.clone(),
            idle: launch.idle,
            on_message: launch.on_message.clone(),
            _writing: writing,
        };
        let attending = AbortOnDropHandle::new(tokio::spawn(attendant.attend(process, replies)));
        Ok(Self {
            workspace: launch.confinement.workspace.clone(),
            scratch: launch.scratch.clone(),
            requests,
            shared,
            attending,
        })
    }

    /// Whether it takes no more calls.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.lock().ended.is_some()
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        invocation: ToolInvocation<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let (updates, mut progress) = mpsc::channel(UPDATES);
        let (result, mut outcome) = oneshot::channel();
        let Some(number) = self.shared.begin(Waiting { updates, result }) else {
            return Err(self.lost());
        };
        let mut dropped = EndUnlessDone { helper: self, is_done: false };
        let call = Request::Call(CallRequest {
            number,
            tool: tool.to_owned(),
            call_id: invocation.call_id.to_owned(),
            arguments: invocation.arguments,
            context: CallContext {
                // The paths inside the sandbox: those of the context may lead through links that do not exist there.
                working_directory: self.workspace.clone(),
                artifact_directory: self.scratch.clone(),
                max_result_chars: invocation.context.max_result_chars,
                workspace_only: invocation.context.workspace_only,
                turn: invocation.context.turn.clone(),
            },
        });
        match frames::encode(&call) {
            Ok(bytes) => drop(self.requests.send(bytes).await),
            Err(error) => {
                dropped.is_done = true;
                self.shared.lock().calls.remove(&number);
                return Err(ToolError::Failed(format!(
                    "the call cannot be passed to the sandbox: {error}. Pass less at once"
                )));
            }
        }
        let mut is_cancelled = false;
        let ended = loop {
            tokio::select! {
                biased;
                Some(update) = progress.recv() => (invocation.on_update)(update),
                ended = &mut outcome => break ended,
                () = invocation.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    if let Ok(bytes) = frames::encode(&Request::Cancel { number }) {
                        drop(self.requests.send(bytes).await);
                    }
                }
            }
        };
        dropped.is_done = true;
        ended.map_or_else(|_| Err(self.lost()), Outcome::check)
    }

    /// The error of a call whose helper has ended.
    fn lost(&self) -> ToolError {
        let state = self.shared.lock();
        let reason = state.ended.as_deref().unwrap_or("for an unknown reason");
        ToolError::Failed(format!(
            "the sandboxed helper process ended during this call ({reason}). What the call had done stays done; check \
             before you repeat it. The next call starts a new helper"
        ))
    }
}

/// Ends the helper when the future of a call is dropped before its result: nothing it started may go on.
struct EndUnlessDone<'a> {
    helper: &'a Helper,
    is_done: bool,
}

impl Drop for EndUnlessDone<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.helper.shared.end("one of its calls was given up");
            self.helper.attending.abort();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a call its number; `None` if the helper has ended.
    fn begin(&self, waiting: Waiting) -> Option<CallNumber> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.calls.insert(number, waiting);
        Some(number)
    }

    /// Fails the calls that wait, and takes no more.
    fn end(&self, reason: &str) {
        let mut state = self.lock();
        state.ended.get_or_insert_with(|| reason.to_owned());
        state.calls.clear();
    }

    /// Takes no more calls if none waits.
    fn end_if_idle(&self) -> bool {
        let mut state = self.lock();
        if state.calls.is_empty() {
            state.ended = Some(IDLE.to_owned());
        }
        state.calls.is_empty()
    }

    /// Passes a reply to its call.
    ///
    /// # Errors
    /// It names a call that does not wait.
    fn take(&self, reply: Reply) -> Result<(), String> {
        let unknown = |number| format!("it answered call {number}, which does not wait");
        match reply {
            Reply::Update { number, text, details } => {
                let state = self.lock();
                let waiting = state.calls.get(&number).ok_or_else(|| unknown(number))?;
                if let Some(update) = check_update(text, details) {
                    // Progress that is not read in time is dropped.
                    let _ = waiting.updates.try_send(update);
                }
            }
            Reply::Result { number, outcome } => {
                let waiting = self.lock().calls.remove(&number).ok_or_else(|| unknown(number))?;
                // If the caller was dropped, it has ended the helper.
                let _ = waiting.result.send(outcome);
            }
            Reply::Ready { .. } => return Err("it began twice".to_owned()),
            Reply::Idle | Reply::Message { .. } => {}
        }
        Ok(())
    }
}

/// Attends to a helper until it ends.
struct Attendant {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Vec<u8>>,
    idle: Duration,
    on_message: MessageListener,
    _writing: AbortOnDropHandle<io::Result<()>>,
}

impl Attendant {
    async fn attend(self, process: Process, replies: BufReader<ChildStdout>) {
        let problem = self.pass_on(replies).await;
        // No call may begin while the process ends, and those that wait get the reason.
        self.shared.lock().ended.get_or_insert_with(|| problem.clone());
        let reason = process.end(&problem).await;
        let mut state = self.shared.lock();
        state.ended = Some(reason);
        state.calls.clear();
    }

    /// Passes replies to their calls until the helper ends, breaks the rules, or has been idle for long. Returns why.
    async fn pass_on(&self, mut replies: BufReader<ChildStdout>) -> String {
        let (queue, mut arrived) = mpsc::channel(frames::QUEUE);
        // A task of its own, because reading must not be interrupted within a message.
        let _reading = AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                let reply = frames::read::<Reply>(&mut replies).await;
                let is_last = !matches!(reply, Ok(Some(_)));
                if queue.send(reply).await.is_err() || is_last {
                    break;
                }
            }
        }));
        let mut messages = 0;
        loop {
            match tokio::time::timeout(self.idle, arrived.recv()).await {
                Ok(Some(Ok(Some(Reply::Message { text })))) => {
                    messages += 1;
                    if messages > MAX_MESSAGES || text.len() > MAX_MESSAGE_BYTES {
                        return "it sent too many messages".to_owned();
                    }
                    (self.on_message.0)(text);
                }
                Ok(Some(Ok(Some(Reply::Idle)))) => {
                    if self.shared.end_if_idle() {
                        return IDLE.to_owned();
                    }
                }
                Ok(Some(Ok(Some(reply)))) => {
                    if let Err(problem) = self.shared.take(reply) {
                        return problem;
                    }
                }
                Ok(Some(Ok(None)) | None) => return ENDED.to_owned(),
                Ok(Some(Err(error))) => return error.to_string(),
                Err(_) => {
                    if let Ok(bytes) = frames::encode(&Request::AreYouIdle) {
                        // A full queue shows that it is not idle.
                        let _ = self.requests.try_send(bytes);
                    }
                }
            }
        }
    }
}

impl Process {
    /// Ends the process with everything it started. Returns why it ended: `problem`, with what is known about it.
    async fn end(mut self, problem: &str) -> String {
        if problem == ENDED {
            // It is ending by itself, and its exit code says why.
            drop(tokio::time::timeout(END_GRACE, self.confined.wait()).await);
        }
        let status = self.confined.end().await;
        let printed = tokio::time::timeout(END_GRACE, self.errors).await;
        let printed = printed.ok().and_then(Result::ok).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let temporary = self.temporary;
        // A failure leaves files in the session's own directory, which is deleted with the session.
        drop(tokio::task::spawn_blocking(move || temporary.close()).await);
        let Ok(status) = status else { return problem.to_owned() };
        if let Some(failure) = self.confined.setup_failure(status, &printed) {
            return failure;
        }
        match (problem, printed.trim()) {
            (ENDED, "") => describe(status),
            (ENDED, printed) => format!("{}: {printed}", describe(status)),
            (problem, _) => problem.to_owned(),
        }
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(KILLED)) => "killed by signal 9, perhaps because memory ran out".to_owned(),
        (None, signal) => format!("ended by signal {}", signal.unwrap_or_default()),
    }
}

/// The end of what the helper prints as errors.
async fn read_end(mut errors: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        let surplus = kept.len().saturating_sub(ERRORS_KEPT);
        kept.drain(..surplus);
    }
    kept
}

/// A directory for temporary files that only this user can enter.
fn make_temporary(scratch: &Path) -> io::Result<TempDir> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    tempfile::Builder::new().prefix("tmp-").tempdir_in(scratch)
}
