//! The scripted model server.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::delivery::{self, BodyKind, Next, Response, Sent};
use crate::history::History;
use crate::http::{HttpRequest, RequestReader};
use crate::pairing::ROUTES;
use crate::script::PairingCheck;
use crate::step::Answer;
use crate::{RecordedRequest, Script, Step, validate_pairing};

/// How long a `wait_for_…` waits before it fails the test: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often an async wait checks again.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A model server on a free port of 127.0.0.1 that answers from a [`Script`] and records whole requests. It stops,
/// with all its connections, when dropped.
///
/// Model calls are `POST` requests to a path that ends in `/messages`, `/chat/completions` or `/converse-stream`; each takes one step of
/// the script. `GET …/models` lists models; anything else is 404. A call that breaks the providers' pairing rules is
/// answered by 400 and takes no step (see [`Script::accept_invalid_requests`]); a call after the script's end is
/// answered by 500.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    url: String,
    running: Running,
}

/// The thread or task that runs the server.
#[derive(Debug)]
enum Running {
    Task(tokio::task::JoinHandle<()>),
    Thread { stop: Option<oneshot::Sender<()>>, thread: Option<JoinHandle<()>> },
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    script: Script,
    history: History,
    /// The mistakes of clients, for [`ModelServer::assert_finished`].
    complaints: Vec<String>,
    accepted: usize,
    closed: usize,
}

impl ModelServer {
    /// Starts it on the current tokio runtime. In a test whose runtime has one thread, nothing may block that thread
    /// while the server is needed; otherwise use [`ModelServer::spawn_blocking_thread`].
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn start(script: impl Into<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("binding a port of 127.0.0.1");
        let address = listener.local_addr().expect("the address of a bound socket");
        let shared = Arc::new(Shared::new(script.into()));
        let running = Running::Task(tokio::spawn(serve(listener, Arc::clone(&shared))));
        Self { shared, address, url: format!("http://{address}"), running }
    }

    /// Starts it on a thread of its own, for tests without a runtime and for tests that block theirs.
    ///
    /// # Panics
    /// When no port can be bound or no thread started.
    pub fn spawn_blocking_thread(script: impl Into<Script>) -> Self {
        let listener =
            std::net::TcpListener::bind("127.0.0.1:0").expect("binding a port of 127.0.0.1");
        listener.set_nonblocking(true).expect("a non-blocking socket");
        let address = listener.local_addr().expect("the address of a bound socket");
        let shared = Arc::new(Shared::new(script.into()));
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("model-server".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a tokio runtime");
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener).expect("a socket for tokio");
                    tokio::select! {
                        () = serve(listener, served) => {}
                        _ = stopped => {}
                    }
                });
            })
            .expect("a thread for the model server");
        let running = Running::Thread { stop: Some(stop), thread: Some(thread) };
        Self { shared, address, url: format!("http://{address}"), running }
    }

    /// Such as `http://127.0.0.1:40123`, without a slash at the end. For OpenAI clients add `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The model calls so far, in order of arrival; refused ones are not among them.
    pub fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.shared.lock().history.calls()
    }

    /// Every request so far, probes and refused calls included.
    pub fn all_requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.shared.lock().history.all()
    }

    /// The most recent model call.
    ///
    /// # Panics
    /// When there was none.
    pub fn last_request(&self) -> Arc<RecordedRequest> {
        self.shared.lock().history.last_call().expect("the server was asked at least once")
    }

    /// How many connections were accepted.
    pub fn connections(&self) -> usize {
        self.shared.lock().accepted
    }

    /// How many connections were closed, by either side.
    pub fn closed_connections(&self) -> usize {
        self.shared.lock().closed
    }

    /// Adds a step after those that are left.
    pub fn push(&self, step: impl Into<Step>) {
        self.shared.lock().script.push(step.into());
    }

    /// Waits until there were `count` model calls and returns them all.
    ///
    /// # Panics
    /// After a minute.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Arc<RecordedRequest>> {
        self.poll(|state| state.history.call_count() >= count, &format!("{count} model calls"))
            .await;
        self.requests()
    }

    /// As [`ModelServer::wait_for_requests`], on a thread that may block.
    ///
    /// # Panics
    /// After a minute.
    pub fn wait_for_requests_blocking(&self, count: usize) -> Vec<Arc<RecordedRequest>> {
        self.block(|state| state.history.call_count() >= count, &format!("{count} model calls"));
        self.requests()
    }

    /// Waits until `count` connections are over: how a test sees that a cancelled call really closed its own.
    ///
    /// # Panics
    /// After a minute.
    pub async fn wait_for_closed_connections(&self, count: usize) {
        self.poll(|state| state.closed >= count, &format!("{count} closed connections")).await;
    }

    /// As [`ModelServer::wait_for_closed_connections`], on a thread that may block.
    ///
    /// # Panics
    /// After a minute.
    pub fn wait_for_closed_connections_blocking(&self, count: usize) {
        self.block(|state| state.closed >= count, &format!("{count} closed connections"));
    }

    /// Checks that every step was taken, that no call came after the end, and that none was refused.
    ///
    /// # Panics
    /// With the problem.
    pub fn assert_finished(&self) {
        let state = self.shared.lock();
        assert!(
            state.complaints.is_empty(),
            "the model server refused requests:\n{}",
            state.complaints.join("\n")
        );
        let left = state.script.steps_left();
        assert!(
            left == 0,
            "{left} steps of the script were never asked for, after {} calls",
            state.history.call_count()
        );
    }

    async fn poll(&self, done: impl Fn(&State) -> bool, what: &str) {
        // The machine's clock, not tokio's: a test may have paused the latter.
        let deadline = Instant::now() + PATIENCE;
        while !done(&self.shared.lock()) {
            assert!(Instant::now() < deadline, "{}", self.timed_out(what));
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn block(&self, done: impl Fn(&State) -> bool, what: &str) {
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), PATIENCE, |state| !done(state))
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
        assert!(!waited.timed_out(), "{}", self.timed_out(what));
    }

    fn timed_out(&self, what: &str) -> String {
        let state = self.shared.lock();
        format!(
            "waited {} s for {what}; there were {} calls on {} connections ({} closed); refused: {:?}",
            PATIENCE.as_secs(),
            state.history.call_count(),
            state.accepted,
            state.closed,
            state.complaints
        )
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        match &mut self.running {
            Running::Task(task) => task.abort(),
            Running::Thread { stop, thread } => {
                drop(stop.take());
                if let Some(thread) = thread.take() {
                    // A panic of the server's thread has been printed; a second one here would abort the test.
                    let _ = thread.join();
                }
            }
        }
    }
}

impl Shared {
    fn new(script: Script) -> Self {
        let history = History::new(script.settings.kept_bodies);
        let state = State { script, history, complaints: Vec::new(), accepted: 0, closed: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The state; a panic elsewhere while it was held leaves it usable, every change being one step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    fn record(&self, request: HttpRequest, connection: usize) -> (Arc<RecordedRequest>, usize) {
        let request = Arc::new(RecordedRequest {
            method: request.method,
            path: request.path,
            headers: request.headers,
            body_length: request.body.len(),
            body: request.body,
            connection,
            head_arrived: request.head_arrived,
            arrived: request.arrived,
            json: OnceLock::new(),
            end: OnceLock::new(),
        });
        let place = self.update(|state| state.history.add(&request));
        (request, place)
    }

    fn refuse(&self, status: u16, kind: &str, message: &str) -> Step {
        let body =
            json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
        self.update(|state| state.complaints.push(format!("{status}: {message}")));
        Step::status(status, &[], body)
    }

    /// The step that answers `request`, which is at `place` in the history.
    fn decide(&self, request: &RecordedRequest, place: usize) -> Step {
        let route = request.route();
        let is_call =
            request.method == "POST" && ROUTES.iter().any(|(ending, _)| route.ends_with(ending));
        let documents = self.lock().script.settings.documents.clone();
        if let Some((_, document)) = documents.iter().find(|(path, _)| path == route) {
            return Step::status(200, &[], document.to_string());
        }
        if !is_call && self.lock().script.settings.every_route {
            return self.take_step(request, place);
        }
        if request.method == "GET" && route.ends_with("/models") {
            return self.list_models();
        }
        if !is_call {
            let message =
                format!("the scripted model server has no {} {}", request.method, request.path);
            return Step::status(
                404,
                &[],
                json!({"error": {"type": "not_found_error", "message": message}}).to_string(),
            );
        }
        let check = self.lock().script.settings.pairing;
        if check == PairingCheck::Refuse
            && let Err(violation) = validate_pairing(request)
        {
            return self.refuse(400, "invalid_request_error", &violation.to_string());
        }
        self.take_step(request, place)
    }

    fn take_step(&self, request: &RecordedRequest, place: usize) -> Step {
        let taken = self.update(|state| {
            let answering = state.script.take()?;
            Some((answering, state.history.mark_as_call(place)))
        });
        match taken {
            Some((answering, number)) => answering.into_step(request, number),
            None => self.refuse(
                500,
                "api_error",
                "the script of the model server is over, but another call came",
            ),
        }
    }

    fn list_models(&self) -> Step {
        let models = self.lock().script.settings.models.clone();
        let data: Vec<_> = models
            .iter()
            .map(|id| json!({"id": id, "object": "model", "type": "model", "display_name": id, "owned_by": "testkit"}))
            .collect();
        Step::status(
            200,
            &[],
            json!({"object": "list", "data": data, "has_more": false}).to_string(),
        )
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let number = shared.update(|state| {
                    state.accepted += 1;
                    state.accepted - 1
                });
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    // A connection that breaks was closed by the client, or broken on request.
                    let _ = serve_connection(stream, number, &shared).await;
                });
            }
            Some(ended) = connections.join_next() => shared.update(|state| {
                state.closed += 1;
                if ended.is_err_and(|error| error.is_panic()) {
                    state.complaints.push("the function that decides the answers panicked".to_owned());
                }
            }),
        }
    }
}

async fn serve_connection(mut stream: TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = RequestReader::default();
    loop {
        let request = match reader.next(&mut stream).await {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let step =
                    shared.refuse(400, "invalid_request_error", &error.to_string()).then_close();
                if let Answer::Fixed { status, headers, body } = step.answer {
                    let response = Response { status, headers, kind: BodyKind::Whole, body };
                    delivery::send(&mut stream, response, &step.delivery).await;
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (request, place) = shared.record(request, number);
        let step = shared.decide(&request, place);
        let sent = answer(&mut stream, &request, step).await;
        shared.update(|_| request.end.get_or_init(|| (sent.end, Instant::now())));
        let wants_close =
            request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        if sent.connection == Next::Close || wants_close {
            return Ok(());
        }
    }
}

async fn answer(stream: &mut TcpStream, request: &RecordedRequest, step: Step) -> Sent {
    let Step { answer, delivery } = step;
    let response = match answer {
        Answer::Raw(bytes) => return delivery::send_raw(stream, &bytes, &delivery).await,
        Answer::Reply(reply) => reply.render(request),
        Answer::Fixed { status, headers, body } => {
            Response { status, headers, kind: BodyKind::Whole, body }
        }
        Answer::EventStream(body) => {
            Response { status: 200, headers: Vec::new(), kind: BodyKind::EventStream, body }
        }
    };
    delivery::send(stream, response, &delivery).await
}
