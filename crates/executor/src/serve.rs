//! The helper's side: takes calls from its standard input and runs them.
//!
//! It ends when its input ends. The supervising process of the sandbox then ends everything that calls have started.

mod command;

use std::collections::HashMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::FutureExt;
use myclaw_engine::{PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolUpdate};
use myclaw_exec::Piece;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use tokio::io::BufReader;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::command::{Command, CommandHold};
use crate::frames;
use crate::protocol::{
    CallNumber, CallRequest, CommandEnd, CommandRequest, Outcome, Reply, Request, VERSION, decode,
    raw,
};

/// Most calls and commands at the same time. The engine makes at most eight calls, and a session has sixteen jobs.
const MAX_CALLS: usize = 64;

/// Serves calls until the standard input ends. `build` makes the tools from what the other side was given as
/// [`Launch::setup`](crate::Launch::setup).
///
/// The value is for the caller's `main` to return. A failure is printed to standard error, which the other side reads:
/// the runtime cannot be started, the input is not from an [`Executor`](crate::Executor) of this version, or the tools
/// cannot be made.
pub fn serve(build: impl FnOnce(Value) -> io::Result<Vec<Arc<dyn Tool>>>) -> ExitCode {
    let served =
        tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let served = runtime.block_on(attend(build));
            // A thread may still wait for input, or work on a call that was cancelled.
            runtime.shutdown_background();
            served
        });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn attend(build: impl FnOnce(Value) -> io::Result<Vec<Arc<dyn Tool>>>) -> io::Result<()> {
    let mut input = BufReader::new(tokio::io::stdin());
    let Some(Request::Begin { version, setup }) = frames::read(&mut input).await? else {
        return Err(io::Error::other(
            "this command runs tools for MyClaw in a sandbox and is not for people",
        ));
    };
    if version != VERSION {
        return Err(io::Error::other(format!(
            "MyClaw {version} was replaced by {VERSION} while it ran; start it again"
        )));
    }
    let (replies, queue) = mpsc::channel(frames::QUEUE);
    let tools = build(setup)?;
    let writing = tokio::spawn(frames::write_all(queue, tokio::io::stdout()));
    let (running, commands) = (HashMap::new(), HashMap::new());
    let mut server = Server { tools, replies, running, commands, tasks: JoinSet::new() };
    server.send(&Reply::Ready { version: VERSION.to_owned() }).await;
    let (requests, mut arrived) = mpsc::channel(frames::QUEUE);
    let reading = tokio::spawn(async move {
        while let Some(request) = frames::read::<Request>(&mut input).await? {
            if requests.send(request).await.is_err() {
                break;
            }
        }
        io::Result::Ok(())
    });
    while !writing.is_finished() {
        tokio::select! {
            request = arrived.recv() => match request {
                Some(request) => server.take(request).await,
                None => break,
            },
            Some(ended) = server.tasks.join_next() => {
                if let Ok(number) = ended {
                    server.running.remove(&number);
                    server.commands.remove(&number);
                }
            }
        }
    }
    server.running.values().for_each(CancellationToken::cancel);
    reading.abort();
    Ok(())
}

struct Server {
    tools: Vec<Arc<dyn Tool>>,
    replies: mpsc::Sender<Vec<u8>>,
    /// How to cancel the running calls and commands.
    running: HashMap<CallNumber, CancellationToken>,
    /// How to reach the running commands.
    commands: HashMap<CallNumber, CommandHold>,
    tasks: JoinSet<CallNumber>,
}

impl Server {
    async fn take(&mut self, request: Request) {
        match request {
            // Only the first message may say so.
            Request::Begin { .. } => {}
            Request::Call(call) => self.begin(call).await,
            Request::Run(command) => self.begin_command(*command).await,
            Request::Input { number, data } => {
                if let (Some(hold), Ok(bytes)) = (self.commands.get(&number), decode(&data)) {
                    hold.pass_on(Piece::Bytes(bytes));
                }
            }
            Request::EndInput { number } => {
                if let Some(hold) = self.commands.get(&number) {
                    hold.pass_on(Piece::End);
                }
            }
            Request::KeepOutput { number } => {
                if let Some(hold) = self.commands.get(&number) {
                    hold.keep_all_output();
                }
            }
            Request::Cancel { number } => {
                if let Some(cancel) = self.running.get(&number) {
                    cancel.cancel();
                }
            }
            Request::AreYouIdle => {
                if self.running.is_empty() && !has_children() {
                    self.send(&Reply::Idle).await;
                }
            }
        }
    }

    async fn begin(&mut self, call: CallRequest) {
        let number = call.number;
        let found = self.tools.iter().find(|tool| tool.schema().name == call.tool);
        let refusal = match found {
            Some(_) if self.running.len() >= MAX_CALLS => {
                format!("{MAX_CALLS} calls run already; wait for one of them")
            }
            None => format!("the sandboxed helper process has no tool {:?}", call.tool),
            Some(tool) => {
                let cancel = CancellationToken::new();
                self.running.insert(number, cancel.clone());
                let (tool, replies) = (Arc::clone(tool), self.replies.clone());
                self.tasks.spawn(async move {
                    run(tool, call, cancel, replies).await;
                    number
                });
                return;
            }
        };
        let outcome = Outcome::Failed { text: refusal };
        self.send(&Reply::Result { number, outcome }).await;
    }

    async fn begin_command(&mut self, request: CommandRequest) {
        let number = request.number;
        let refusal = match Command::new(request) {
            _ if self.running.len() >= MAX_CALLS => {
                format!("{MAX_CALLS} calls and commands run already; wait for one of them")
            }
            None => "the command has no mark, so it was not run; start MyClaw again".to_owned(),
            Some((command, hold)) => {
                self.running.insert(number, command.cancel.clone());
                self.commands.insert(number, hold);
                let replies = self.replies.clone();
                self.tasks.spawn(async move {
                    command.run(replies).await;
                    number
                });
                return;
            }
        };
        let end = Box::new(CommandEnd::Failed { text: refusal });
        self.send(&Reply::Ended { number, end }).await;
    }

    async fn send(&self, reply: &Reply) {
        send(&self.replies, reply).await;
    }
}

async fn run(
    tool: Arc<dyn Tool>,
    call: CallRequest,
    cancel: CancellationToken,
    replies: mpsc::Sender<Vec<u8>>,
) {
    let number = call.number;
    let context = ToolContext::from(call.context);
    let on_update = |ToolUpdate { text, details }: ToolUpdate| {
        let details = details.as_ref().and_then(raw);
        if let Ok(bytes) = frames::encode(&Reply::Update { number, text, details }) {
            // Progress that is not sent in time is dropped; the result has everything.
            let _ = replies.try_send(bytes);
        }
    };
    let running = async {
        // The same arguments as in the other process, read by the same tool, with the paths as they are here.
        let prepared = {
            let (tool, context) = (Arc::clone(&tool), context.clone());
            let reading = tokio::task::spawn_blocking(move || {
                PreparedCall::new(&*tool, &call.call_id, call.arguments, &context)
            });
            reading.await.map_err(|error| ToolError::Failed(error.to_string()))??
        };
        let (call, on_update, context) = (&prepared, &on_update, &context);
        tool.execute(ToolInvocation { call, on_update, context, cancel }).await
    };
    let outcome = match AssertUnwindSafe(running).catch_unwind().await {
        Ok(outcome) => outcome,
        Err(_) => Err(ToolError::Failed("the tool failed inside and did not finish".to_owned())),
    };
    send(&replies, &Reply::Result { number, outcome: outcome.into() }).await;
}

async fn send(replies: &mpsc::Sender<Vec<u8>>, reply: &Reply) {
    let bytes = frames::encode(reply).or_else(|error| match reply {
        Reply::Result { number, .. } => frames::encode(&Reply::Result {
            number: *number,
            outcome: Outcome::Failed { text: format!("the result cannot be passed on: {error}") },
        }),
        _ => Err(error),
    });
    if let Ok(bytes) = bytes {
        // The other side has ended, so the input ends as well.
        drop(replies.send(bytes).await);
    }
}

/// Whether a process that this one started is still there, such as a background job. It is not collected.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(rustix::io::Errno::CHILD))
}
