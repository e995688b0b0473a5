//! A running language server: its process, and the requests to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use myclaw_exec::{
    Attachment, ChildSpec, ErrorOutput, Handle, Link, OutputLimits, OutputPiece, Piece, Runner,
    attach, memory_of_traced,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, SemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::DiagnosticsLimits;
use super::frames::{Frames, encode};
use super::kind::Kind;
use super::problem::{Problem, address, path_of};
use crate::Jobs;
use crate::jobs::Noted;

/// Messages that wait until the server reads them. It is ended when there are more.
const MAX_WAITING: usize = 64;
/// Bytes that are written at once.
const PIECE: usize = 32 << 10;
/// Files of which the last report is kept.
const MAX_REPORTS: usize = 200;
/// How often the memory of a server is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// The pause before a server is asked again that was changing its mind.
const AGAIN: Duration = Duration::from_millis(100);
/// A server that reports in several steps is done when it is silent for this long.
const QUIET: Duration = Duration::from_millis(250);
/// Answers by which a server says that it has to be asked again: the content changed, or it was busy.
const ASK_AGAIN: [i64; 3] = [-32_800, -32_801, -32_802];
/// The protocol's number for a request that a client does not know.
const UNKNOWN_METHOD: i64 = -32_601;

/// A server. Dropping it ends the program with everything it started.
pub(super) struct Server {
    outgoing: Outgoing,
    shared: Arc<Shared>,
    _tasks: [AbortOnDropHandle<()>; 3],
}

/// What is started, and where.
pub(super) struct Start {
    pub(super) kind: Kind,
    pub(super) spec: ChildSpec,
    pub(super) root: PathBuf,
    pub(super) options: Value,
    pub(super) runner: Arc<dyn Runner>,
    pub(super) limits: DiagnosticsLimits,
    /// Its place among the servers of this process.
    pub(super) permit: SemaphorePermit<'static>,
    pub(super) jobs: Option<Arc<Jobs>>,
}

/// What the tasks of a server have in common.
struct Shared {
    kind: Kind,
    root: PathBuf,
    options: Value,
    state: Mutex<State>,
    /// Something in the state has changed.
    changed: Notify,
    /// Ends the program.
    stop: CancellationToken,
}

#[derive(Default)]
struct State {
    answers: HashMap<u64, oneshot::Sender<Result<Value, i64>>>,
    last_request: u64,
    /// Whether the server has answered the first request.
    has_begun: bool,
    /// Whether it has read the project.
    is_ready: bool,
    /// Whether it can be asked for the errors of a file.
    answers_questions: bool,
    reports: HashMap<PathBuf, Report>,
    last_use: Option<Instant>,
}

/// What a server has said about a file by itself.
#[derive(Clone)]
struct Report {
    version: Option<i64>,
    arrived: Instant,
    problems: Vec<Problem>,
}

#[derive(Clone)]
struct Outgoing(mpsc::Sender<Vec<u8>>, CancellationToken);

impl Outgoing {
    /// Ends a server that does not read.
    fn send(&self, message: &Value) {
        if self.0.try_send(encode(message)).is_err() {
            self.1.cancel();
        }
    }
}

impl Server {
    pub(super) fn start(start: Start) -> Self {
        let Start { kind, mut spec, root, options, runner, limits, permit, jobs } = start;
        spec.errors = ErrorOutput::Apart;
        spec.output = OutputLimits {
            keep_tail_bytes: 1 << 10,
            keep_tail_chars: 1 << 10,
            keep_tail_lines: 10,
            side_file: None,
        };
        let (handle, link) = attach(Attachment::Pipe);
        let running = handle.clone();
        let (sender, queue) = mpsc::channel(MAX_WAITING);
        let stop = CancellationToken::new();
        let outgoing = Outgoing(sender, stop.clone());
        let state = State {
            is_ready: !kind.says_when_ready(),
            last_use: Some(Instant::now()),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            kind,
            root,
            options,
            state: Mutex::new(state),
            changed: Notify::new(),
            stop,
        });
        let attendant = Attendant {
            shared: Arc::clone(&shared),
            outgoing: outgoing.clone(),
            limits,
            _permit: permit,
            // Before it runs: its mark is known already.
            _noted: jobs.and_then(|jobs| jobs.note(&handle)),
        };
        let attending = attendant.attend(spec, link, runner, running);
        let beginning = begin(Arc::clone(&shared), outgoing.clone());
        let tasks = [
            AbortOnDropHandle::new(tokio::spawn(write_all(queue, handle))),
            AbortOnDropHandle::new(tokio::spawn(attending)),
            AbortOnDropHandle::new(tokio::spawn(beginning)),
        ];
        Self { outgoing, shared, _tasks: tasks }
    }

    /// Whether its program has ended, or is about to.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Returns when its program has ended.
    pub(super) async fn ended(&self) {
        self.shared.stop.cancelled().await;
    }

    /// Returns once it can say what errors a file has; never if it has ended.
    pub(super) async fn ready(&self) {
        self.until(|state| (state.has_begun && state.is_ready).then_some(())).await;
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.outgoing.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The errors of version `version` of a file, which was sent at `sent`. Never returns if the server has ended.
    pub(super) async fn problems(&self, path: &Path, version: i64, sent: Instant) -> Vec<Problem> {
        self.shared.state.lock().last_use = Some(Instant::now());
        while self.shared.state.lock().answers_questions {
            let params = json!({"textDocument": {"uri": address(path)}});
            match self.shared.request(&self.outgoing, "textDocument/diagnostic", &params).await {
                Ok(answer) => return Problem::read(&answer["items"]),
                Err(code) if ASK_AGAIN.contains(&code) => tokio::time::sleep(AGAIN).await,
                // It reports by itself then.
                Err(_) => self.shared.state.lock().answers_questions = false,
            }
        }
        loop {
            let newest = |state: &State| {
                let report = state.reports.get(path)?;
                let is_of_it = match report.version {
                    Some(reported) => reported >= version,
                    None => report.arrived >= sent,
                };
                is_of_it.then(|| report.clone())
            };
            let report = self.until(newest).await;
            sleep_until(report.arrived + QUIET).await;
            let is_last = self
                .shared
                .state
                .lock()
                .reports
                .get(path)
                .is_some_and(|now| now.arrived == report.arrived);
            if is_last {
                return report.problems;
            }
        }
    }

    async fn until<T>(&self, found: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = found(&self.shared.state.lock()) {
                return found;
            }
            changed.await;
        }
    }
}

impl Shared {
    /// The answer to a request, or the number of the error.
    async fn request(
        &self,
        outgoing: &Outgoing,
        method: &str,
        params: &Value,
    ) -> Result<Value, i64> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut state = self.state.lock();
            state.last_request += 1;
            // Those of requests that nobody waits for any more.
            state.answers.retain(|_, waiting| !waiting.is_closed());
            let id = state.last_request;
            state.answers.insert(id, sender);
            id
        };
        outgoing.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        match answer.await {
            Ok(answer) => answer,
            // The server has ended.
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes what the server has sent.
    fn take(&self, outgoing: &Outgoing, message: &Value) {
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => outgoing.send(&self.answer(method, id, &message["params"])),
            (Some(method), None) => self.note(method, &message["params"]),
            (None, _) => {
                let waiting =
                    message["id"].as_u64().and_then(|id| self.state.lock().answers.remove(&id));
                let answer = match message.get("error") {
                    Some(error) => Err(error["code"].as_i64().unwrap_or_default()),
                    None => Ok(message["result"].clone()),
                };
                if let Some(waiting) = waiting {
                    // Whoever asked may have given up.
                    let _ = waiting.send(answer);
                }
            }
        }
        self.changed.notify_waiters();
    }

    fn answer(&self, method: &str, id: &Value, params: &Value) -> Value {
        let result = match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let of = |item: &Value| match item["section"].as_str() {
                    Some("rust-analyzer") => self.options.clone(),
                    _ => Value::Null,
                };
                Value::Array(items.iter().map(of).collect())
            }
            "workspace/workspaceFolders" => json!([folder(&self.root)]),
            "client/registerCapability" => {
                let registered =
                    params["registrations"].as_array().map(Vec::as_slice).unwrap_or_default();
                if registered.iter().any(|one| one["method"] == "textDocument/diagnostic") {
                    self.state.lock().answers_questions = true;
                }
                Value::Null
            }
            "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh" => Value::Null,
            _ => {
                let error =
                    json!({"code": UNKNOWN_METHOD, "message": "this client has no such method"});
                return json!({"jsonrpc": "2.0", "id": id, "error": error});
            }
        };
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }

    fn note(&self, method: &str, params: &Value) {
        match method {
            "textDocument/publishDiagnostics" => {
                let Some(path) = params["uri"].as_str().and_then(path_of) else { return };
                let report = Report {
                    version: params["version"].as_i64(),
                    arrived: Instant::now(),
                    problems: Problem::read(&params["diagnostics"]),
                };
                let mut state = self.state.lock();
                if state.reports.len() >= MAX_REPORTS {
                    state.reports.clear();
                }
                state.reports.insert(path, report);
            }
            "experimental/serverStatus" if params["quiescent"] == true => {
                self.state.lock().is_ready = true
            }
            _ => {}
        }
    }
}

/// Makes the first request, and waits for its answer.
async fn begin(shared: Arc<Shared>, outgoing: Outgoing) {
    let params = json!({
        // The server may not see this process.
        "processId": null,
        "clientInfo": {"name": "myclaw"},
        "rootUri": address(&shared.root),
        "rootPath": shared.root,
        "workspaceFolders": [folder(&shared.root)],
        "initializationOptions": shared.options,
        "capabilities": {
            "textDocument": {
                "synchronization": {"didSave": true},
                "publishDiagnostics": {"versionSupport": true},
                "diagnostic": {"dynamicRegistration": true},
            },
            "workspace": {"configuration": true, "workspaceFolders": true},
            "experimental": {"serverStatusNotification": true},
        },
    });
    let Ok(answer) = shared.request(&outgoing, "initialize", &params).await else {
        shared.stop.cancel();
        return;
    };
    outgoing.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
    let mut state = shared.state.lock();
    state.has_begun = true;
    state.answers_questions |= answer["capabilities"]["diagnosticProvider"].is_object();
    drop(state);
    shared.changed.notify_waiters();
}

fn folder(root: &Path) -> Value {
    json!({"uri": address(root), "name": root.file_name().map(|name| name.to_string_lossy())})
}

async fn write_all(mut queue: mpsc::Receiver<Vec<u8>>, handle: Handle) {
    while let Some(message) = queue.recv().await {
        for piece in message.chunks(PIECE) {
            if handle.pass_on(Piece::Bytes(piece.to_vec())).await.is_err() {
                return;
            }
        }
    }
}

/// Attends to the program of a server until it ends.
struct Attendant {
    shared: Arc<Shared>,
    outgoing: Outgoing,
    limits: DiagnosticsLimits,
    _permit: SemaphorePermit<'static>,
    _noted: Option<Noted>,
}

impl Attendant {
    async fn attend(self, spec: ChildSpec, link: Link, runner: Arc<dyn Runner>, handle: Handle) {
        let (never, stop) = (CancellationToken::new(), self.shared.stop.clone());
        // Also when this task is dropped.
        let _ended = stop.clone().drop_guard();
        let mut frames = Frames::default();
        let mut take = |piece: OutputPiece<'_>| {
            frames.push(piece.bytes);
            loop {
                match frames.next() {
                    _ if piece.skipped_bytes > 0 => break stop.cancel(),
                    Ok(Some(message)) => self.shared.take(&self.outgoing, &message),
                    Ok(None) => break,
                    Err(_) => break stop.cancel(),
                }
            }
        };
        // Dropping the future ends the program with everything it started.
        let why = tokio::select! {
            outcome = runner.run(spec, link, &never, &mut take) => match outcome {
                Ok(finished) => format!("it has ended by itself. {}", finished.errors.tail.trim()),
                Err(error) => error.to_string(),
            },
            () = self.shared.stop.cancelled() => "it does not keep to the protocol".to_owned(),
            why = self.outlived(handle) => why.to_owned(),
        };
        (self.limits.on_end)(self.shared.kind.program(), &why);
    }

    /// Returns when the server was idle for too long, or has taken too much memory.
    async fn outlived(&self, handle: Handle) -> &'static str {
        loop {
            tokio::time::sleep(LOOK).await;
            let last = self.shared.state.lock().last_use;
            if last.is_some_and(|last| last.elapsed() >= self.limits.idle) {
                return "it was idle";
            }
            let trace = handle.trace();
            let used = tokio::task::spawn_blocking(move || memory_of_traced(&trace)).await;
            if used.is_ok_and(|used| used > self.limits.memory) {
                return "it took more memory than tools.diagnostics.memoryMb";
            }
        }
    }
}
