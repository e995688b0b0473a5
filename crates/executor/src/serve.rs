//! The side that makes calls: a helper, which takes them from its standard input, or a node, which takes them from a
//! WebSocket.
//!
//! A helper ends when its input ends. The supervising process of the sandbox then ends everything that calls have started.

#[cfg_attr(unix, path = "serve/unix.rs")]
#[cfg_attr(windows, path = "serve/windows.rs")]
mod basis;
mod command;

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use myclaw_engine::{
    PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolOutput, ToolUpdate,
};
use myclaw_exec::Piece;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::basis::{has_children, outlive_large_files, standard_input, standard_output};
use self::command::{Command, CommandHold};
use crate::frames;
use crate::protocol::{
    CallNumber, CallOutcome, CallRequest, CommandEnd, CommandRequest, Reply, Request, VERSION,
    decode, raw,
};

/// Most calls and commands of a helper at the same time. The engine makes at most eight calls, and a session has sixteen
/// jobs.
const MAX_CALLS: usize = 64;

/// A call that has arrived.
pub struct ArrivedCall {
    /// The name of the tool.
    pub tool: String,
    /// The model's id for the call.
    pub call_id: String,
    /// The arguments, as the model wrote them.
    pub arguments: Map<String, Value>,
    /// Where the tool works; none if this side decides it.
    pub context: Option<ToolContext>,
    /// Fires when the call is to end, with everything it started.
    pub cancel: CancellationToken,
}

/// Makes the calls that arrive.
pub trait CallService: Send + Sync {
    /// Makes one call.
    ///
    /// # Errors
    /// There is no such tool, or the call is refused, fails or was aborted.
    fn call<'a>(
        &'a self,
        call: ArrivedCall,
        on_update: &'a (dyn Fn(ToolUpdate) + Send + Sync),
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a server takes of the other side.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Most calls and commands at the same time.
    pub calls: usize,
    /// Whether commands are run that no tool has looked at.
    pub commands: BareCommands,
}

/// Commands that the other side asks for without a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareCommands {
    /// They are run: this side is confined, and the other one has judged them.
    Run,
    /// They are refused.
    Refused,
}

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
    let mut input = BufReader::new(standard_input()?);
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
    outlive_large_files()?;
    let tools = Arc::new(Tools(build(setup)?));
    let limits = ServerLimits { calls: MAX_CALLS, commands: BareCommands::Run };
    let (mut server, queue) = CallServer::new(tools, limits);
    let writing = tokio::spawn(frames::write_all(queue, standard_output()?));
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
            () = server.ended() => {}
        }
    }
    server.running.values().for_each(CancellationToken::cancel);
    reading.abort();
    Ok(())
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// The tools of a helper.
struct Tools(Vec<Arc<dyn Tool>>);

impl CallService for Tools {
    fn call<'a>(
        &'a self,
        call: ArrivedCall,
        on_update: &'a (dyn Fn(ToolUpdate) + Send + Sync),
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let ArrivedCall { tool: name, call_id, arguments, context, cancel } = call;
            let found = self.0.iter().find(|tool| tool.schema().name == name);
            let (Some(tool), Some(context)) = (found, context) else {
                let why = format!("the sandboxed helper process has no tool {name:?}");
                return Err(ToolError::Failed(why));
            };
            // The same arguments as in the other process, read by the same tool, with the paths as they are here.
            let prepared = {
                let (tool, context) = (Arc::clone(tool), context.clone());
                let reading = tokio::task::spawn_blocking(move || {
                    PreparedCall::new(&*tool, &call_id, arguments, &context)
                });
                reading.await.map_err(|error| ToolError::Failed(error.to_string()))??
            };
            let (call, context) = (&prepared, &context);
            tool.execute(ToolInvocation { call, on_update, context, cancel }).await
        })
    }
}

/// The calls and commands of one connection, on the side that makes them. Those that run are dropped with it.
pub struct CallServer {
    service: Arc<dyn CallService>,
    limits: ServerLimits,
    replies: mpsc::Sender<Vec<u8>>,
    /// How to cancel the running calls and commands.
    running: HashMap<CallNumber, CancellationToken>,
    /// How to reach the running commands.
    commands: HashMap<CallNumber, CommandHold>,
    tasks: JoinSet<CallNumber>,
}

impl CallServer {
    /// A server, and its replies for the other side.
    pub fn new(
        service: Arc<dyn CallService>,
        limits: ServerLimits,
    ) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (replies, queue) = mpsc::channel(frames::QUEUE);
        let (running, commands, tasks) = (HashMap::new(), HashMap::new(), JoinSet::new());
        (Self { service, limits, replies, running, commands, tasks }, queue)
    }

    /// Takes a request, as JSON. While the replies are not read, it waits.
    ///
    /// # Errors
    /// It is none.
    pub async fn take_text(&mut self, text: &str) -> Result<(), serde_json::Error> {
        self.take(serde_json::from_str(text)?).await;
        Ok(())
    }

    /// Waits until a call or command has ended, if one runs, and forgets it.
    pub async fn ended(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok(number)) => {
                self.running.remove(&number);
                self.commands.remove(&number);
            }
            // One that failed inside has answered nothing, and its place stays taken.
            Some(Err(_)) => {}
            None => pending().await,
        }
    }

    /// Ends everything that runs, with what it started. What is left after `grace` is dropped, which kills it.
    pub async fn end(mut self, grace: Duration) {
        self.running.values().for_each(CancellationToken::cancel);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(grace, all).await;
    }

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
        let (number, most) = (call.number, self.limits.calls);
        if self.running.len() >= most {
            let text = format!("{most} calls run already; wait for one of them");
            let outcome = CallOutcome::Failed { text };
            return self.send(&Reply::Result { number, outcome }).await;
        }
        let cancel = CancellationToken::new();
        self.running.insert(number, cancel.clone());
        let (service, replies) = (Arc::clone(&self.service), self.replies.clone());
        self.tasks.spawn(async move {
            run(&*service, call, cancel, replies).await;
            number
        });
    }

    async fn begin_command(&mut self, request: CommandRequest) {
        let (number, most) = (request.number, self.limits.calls);
        if self.limits.commands == BareCommands::Refused {
            let text = "this side takes calls of tools only".to_owned();
            let end = Box::new(CommandEnd::Failed { text });
            return self.send(&Reply::Ended { number, end }).await;
        }
        let refusal = match Command::new(request) {
            _ if self.running.len() >= most => {
                format!("{most} calls and commands run already; wait for one of them")
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
    service: &dyn CallService,
    call: CallRequest,
    cancel: CancellationToken,
    replies: mpsc::Sender<Vec<u8>>,
) {
    let CallRequest { number, tool, call_id, arguments, context } = call;
    let context = context.map(ToolContext::from);
    let on_update = |ToolUpdate { text, details }: ToolUpdate| {
        let details = details.as_ref().and_then(raw);
        if let Ok(bytes) = frames::encode(&Reply::Update { number, text, details }) {
            // Progress that is not sent in time is dropped; the result has everything.
            let _ = replies.try_send(bytes);
        }
    };
    let call = ArrivedCall { tool, call_id, arguments, context, cancel };
    let running = async { service.call(call, &on_update).await };
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
            outcome: CallOutcome::Failed {
                text: format!("the result cannot be passed on: {error}"),
            },
        }),
        _ => Err(error),
    });
    if let Ok(bytes) = bytes {
        // The other side has ended, so the input ends as well.
        drop(replies.send(bytes).await);
    }
}
