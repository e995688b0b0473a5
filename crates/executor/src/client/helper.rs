//! A running helper process and the calls and commands that it holds.

mod process;
mod waiting;

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::{ToolError, ToolInvocation, ToolOutput};
use myclaw_exec::{ChildSpec, TreeTrace, end_traced, kill_traced};
use myclaw_sandbox::Socket;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::BufReader;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::process::{Process, make_temporary};
pub(super) use self::waiting::{CommandEvents, Waiting};
use super::Launch;
use crate::protocol::{CallContext, CallNumber, CallOutcome, CallRequest, Reply, Request, VERSION};
use crate::{ExecutorError, frames};

/// How long a helper may take to be ready. A container needs most of it on a slow machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Updates of one call that wait to be shown; more are dropped.
const UPDATES: usize = 16;
/// How long a call or command that was given up may take to end. The helper needs up to three seconds for a program that
/// does not end by itself; beyond that it is ended as a whole.
pub(super) const CANCEL_GRACE: Duration = Duration::from_secs(10);
/// Reasons of an end that were not caused by the helper's messages.
const ENDED: &str = "it ended";
const IDLE: &str = "it was idle";
pub(super) const GIVEN_UP: &str = "one of its calls was given up and did not end";
pub(super) const OVERDUE: &str = "one of its calls took longer than its limit and was not ended";

/// A helper that was ready. Dropping it ends the process with everything it started.
#[derive(Debug)]
pub(super) struct Helper {
    workspace: PathBuf,
    scratch: PathBuf,
    /// What commands find as their directory for temporary files.
    pub(super) temporary: PathBuf,
    requests: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
    /// Owns the process.
    attending: AbortOnDropHandle<()>,
    /// As [`Launch::call_limit`].
    call_limit: Duration,
}

/// What the calls and the task that reads replies have in common.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    calls: HashMap<CallNumber, Waiting>,
    last: CallNumber,
    /// Why the helper ended, once it has.
    ended: Option<String>,
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
        let (mut confined, input, output) =
            launch.sandbox.spawn_with_sockets(spec, &confinement)?;
        let Some(errors) = confined.take_errors() else {
            return Err(ExecutorError::Start("its errors cannot be read".to_owned()));
        };
        let (requests, queue) = mpsc::channel(frames::QUEUE);
        let writing = AbortOnDropHandle::new(tokio::spawn(frames::write_all(queue, input)));
        let temporary_path = temporary.path().to_owned();
        let process = Process::new(confined, errors, temporary);
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
            _writing: writing,
        };
        let attending = AbortOnDropHandle::new(tokio::spawn(attendant.attend(process, replies)));
        Ok(Self {
            workspace: launch.confinement.workspace.clone(),
            scratch: launch.scratch.clone(),
            temporary: temporary_path,
            requests,
            shared,
            attending,
            call_limit: launch.call_limit,
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
        let Some(place) = self.begin(Waiting::Call { updates, result }, None) else {
            return Err(self.lost());
        };
        let number = place.number();
        let call = Request::Call(CallRequest {
            number,
            tool: tool.to_owned(),
            call_id: invocation.call.tool_call_id.clone(),
            arguments: invocation.call.arguments.as_map().clone(),
            context: Some(CallContext {
                // The paths inside the sandbox: those of the context may lead through links that do not exist there.
                working_directory: self.workspace.clone(),
                artifact_directory: self.scratch.clone(),
                max_result_chars: invocation.context.max_result_chars,
                workspace_only: invocation.context.workspace_only,
                turn: invocation.context.turn.clone(),
            }),
        });
        let call = match frames::encode(&call) {
            Ok(bytes) => bytes,
            Err(error) => {
                place.free();
                return Err(ToolError::Failed(format!(
                    "the call cannot be passed to the sandbox: {error}. Pass less at once"
                )));
            }
        };
        let cancel = &invocation.cancel;
        let attending = async {
            drop(self.requests.send(call).await);
            let mut is_cancelled = false;
            loop {
                tokio::select! {
                    biased;
                    Some(update) = progress.recv() => (invocation.on_update)(update),
                    ended = &mut outcome => break ended,
                    () = cancel.cancelled(), if !is_cancelled => {
                        is_cancelled = true;
                        self.send(&Request::Cancel { number }).await;
                    }
                }
            }
        };
        let ended = self.in_time(attending, cancel, Some(self.call_limit)).await;
        place.free();
        ended.map_or_else(|_| Err(self.lost()), CallOutcome::check)
    }

    /// Waits for the end of a call or command. If it is not over in time, the helper ends with everything that it
    /// started. The helper is told to cancel and keeps limits of its own, but what it runs may have stopped it.
    pub(super) async fn in_time<T>(
        &self,
        attending: impl Future<Output = T>,
        cancel: &CancellationToken,
        limit: Option<Duration>,
    ) -> T {
        let mut attending = pin!(attending);
        let cancelled = async {
            cancel.cancelled().await;
            sleep(CANCEL_GRACE).await;
        };
        let overdue = async {
            match limit {
                Some(limit) => sleep(limit.saturating_add(CANCEL_GRACE)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = &mut attending => return ended,
            () = cancelled => self.end(GIVEN_UP),
            () = overdue => self.end(OVERDUE),
        }
        // Everything that it waits for ends with the helper.
        attending.await
    }

    /// Takes a place for a call or command; `None` if the helper has ended. `trace` finds what a command starts.
    pub(super) fn begin(&self, waiting: Waiting, trace: Option<TreeTrace>) -> Option<Place<'_>> {
        let number = self.shared.begin(waiting)?;
        Some(Place { helper: self, number, trace, is_free: false })
    }

    /// Sends a request. One that cannot be sent has no effect: the helper has ended, or is about to.
    pub(super) async fn send(&self, request: &Request) {
        if let Ok(bytes) = frames::encode(request) {
            drop(self.requests.send(bytes).await);
        }
    }

    /// Ends the helper, with everything that it started.
    pub(super) fn end(&self, reason: &str) {
        self.shared.end(reason);
        self.attending.abort();
    }

    /// Why the helper ended.
    pub(super) fn reason(&self) -> String {
        let state = self.shared.lock();
        state.ended.clone().unwrap_or_else(|| "for an unknown reason".to_owned())
    }

    /// The error of a call whose helper has ended.
    fn lost(&self) -> ToolError {
        let reason = self.reason();
        ToolError::Failed(format!(
            "the sandboxed helper process ended during this call ({reason}). What the call had done stays done; check \
             before you repeat it. The next call starts a new helper"
        ))
    }
}

/// The place of a call or command among those that the helper holds. Dropped before the end, it kills the command and
/// cancels the call. The helper ends if that does not help within [`CANCEL_GRACE`]: a call that nobody waits for must not keep running.
pub(super) struct Place<'a> {
    helper: &'a Helper,
    number: CallNumber,
    trace: Option<TreeTrace>,
    is_free: bool,
}

impl Place<'_> {
    pub(super) fn number(&self) -> CallNumber {
        self.number
    }

    /// The call is over.
    pub(super) fn free(mut self) {
        self.is_free = true;
        self.helper.shared.lock().calls.remove(&self.number);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_free {
            return;
        }
        if let Some(trace) = &self.trace {
            kill_traced(trace);
        }
        let Some(over) = self.helper.shared.give_up(self.number) else { return };
        let Helper { shared, attending, requests, .. } = self.helper;
        let cancel = frames::encode(&Request::Cancel { number: self.number });
        let is_sent = cancel.is_ok_and(|bytes| requests.try_send(bytes).is_ok());
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if is_sent => {
                let given_up = GivenUp {
                    shared: Arc::clone(shared),
                    attending: attending.abort_handle(),
                    trace: self.trace.take(),
                };
                drop(runtime.spawn(given_up.end(over)));
            }
            _ => self.helper.end(GIVEN_UP),
        }
    }
}

/// A call or command whose caller is gone.
struct GivenUp {
    shared: Arc<Shared>,
    attending: AbortHandle,
    trace: Option<TreeTrace>,
}

impl GivenUp {
    /// Waits until the cancelled call has ended, and ends the helper if it does not. `over` then resolves with an error.
    async fn end(self, over: oneshot::Receiver<()>) {
        if timeout(CANCEL_GRACE, over).await.is_err() {
            self.shared.end(GIVEN_UP);
            self.attending.abort();
        }
        if let Some(trace) = self.trace {
            // It may have started something between the kill and its end.
            end_traced(&trace).await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement.
        self.0.lock()
    }

    /// Gives a call its number; `None` if the helper has ended.
    fn begin(&self, waiting: Waiting) -> Option<CallNumber> {
        self.begin_within(waiting, usize::MAX).flatten()
    }

    /// As [`begin`](Self::begin); the inner value is `None` if `most` calls wait already.
    pub(super) fn begin_within(&self, waiting: Waiting, most: usize) -> Option<Option<CallNumber>> {
        let mut state = self.lock();
        if state.ended.is_some() {
            return None;
        }
        if state.calls.len() >= most {
            return Some(None);
        }
        state.last += 1;
        let number = state.last;
        state.calls.insert(number, waiting);
        Some(Some(number))
    }

    /// Whoever waits for this call, who does so no longer.
    pub(super) fn remove(&self, number: CallNumber) -> Option<Waiting> {
        self.lock().calls.remove(&number)
    }

    /// Fails the calls that wait, and takes no more.
    pub(super) fn end(&self, reason: &str) {
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

    /// Notes that the caller is gone. The receiver fails when the call is over; `None` if it is over already.
    fn give_up(&self, number: CallNumber) -> Option<oneshot::Receiver<()>> {
        let mut state = self.lock();
        let waiting = state.calls.get_mut(&number)?;
        if matches!(waiting, Waiting::Beside { .. }) {
            // The helper knows nothing of it, and has nothing to end.
            state.calls.remove(&number);
            return None;
        }
        let (sender, over) = oneshot::channel();
        *waiting = Waiting::GivenUp { _over: sender };
        Some(over)
    }

    /// Passes a reply to its call or command.
    ///
    /// # Errors
    /// It names one that does not wait, or that cannot have such a reply.
    fn take(&self, reply: Reply) -> Result<(), String> {
        let number = match &reply {
            Reply::Update { number, .. }
            | Reply::Result { number, .. }
            | Reply::Output { number, .. }
            | Reply::Took { number, .. }
            | Reply::Ended { number, .. } => *number,
            Reply::Ready { .. } => return Err("it began twice".to_owned()),
            Reply::Idle => return Ok(()),
        };
        let is_last = matches!(reply, Reply::Result { .. } | Reply::Ended { .. });
        let mut state = self.lock();
        let unknown = || format!("it answered call {number}, which does not wait");
        if is_last {
            return state.calls.remove(&number).ok_or_else(unknown)?.end(reply);
        }
        state.calls.get(&number).ok_or_else(unknown)?.go_on(reply)
    }
}

/// Attends to a helper until it ends.
struct Attendant {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Vec<u8>>,
    idle: Duration,
    _writing: AbortOnDropHandle<io::Result<()>>,
}

impl Attendant {
    async fn attend(self, process: Process, replies: BufReader<Socket>) {
        let problem = self.pass_on(replies).await;
        // No call may begin while the process ends, and those that wait get the reason.
        self.shared.lock().ended.get_or_insert_with(|| problem.clone());
        let reason = process.end(&problem).await;
        let mut state = self.shared.lock();
        state.ended = Some(reason);
        state.calls.clear();
    }

    /// Passes replies to their calls until the helper ends, breaks the rules, or has been idle for long. Returns why.
    async fn pass_on(&self, mut replies: BufReader<Socket>) -> String {
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
        loop {
            match tokio::time::timeout(self.idle, arrived.recv()).await {
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
