//! Requests that wait for their answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::changes::Changes;
use crate::elicitation::{Answers, Begun};
use crate::failure::{Failure, Kind};
use crate::lines::{Line, QUOTED};

/// Messages that wait to be written.
const QUEUE: usize = 64;
/// Signs of progress that wait to be shown; more are dropped.
const PROGRESS: usize = 16;
/// A call ends after this many times its limit, however much progress the server reports.
const MOST_LIMITS: u32 = 10;
/// Most bytes that a server may print while nothing was asked.
const MAX_STRAY: u64 = 64 << 20;
/// How long a message without an answer may take to be sent.
const TELL_LIMIT: Duration = Duration::from_secs(10);

/// Questions of the server that wait for the user; more are declined.
const MAX_QUESTIONS: usize = 8;

/// The code of JSON-RPC for a method that does not exist.
const NO_METHOD: i64 = -32601;

/// What is asked of a server.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Map<String, Value>,
    /// How long without an answer or a sign of progress.
    pub(crate) limit: Duration,
    pub(crate) cancel: Option<&'a CancellationToken>,
    pub(crate) on_progress: Option<&'a (dyn Fn(String) + Send + Sync)>,
    /// Who answers what the server asks meanwhile.
    pub(crate) questions: Option<&'a dyn Answers>,
    /// For transports that have headers.
    pub(crate) headers: Vec<(String, String)>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: &'a str, params: Map<String, Value>, limit: Duration) -> Self {
        let (cancel, on_progress, questions) = (None, None, None);
        Self { method, params, limit, cancel, on_progress, questions, headers: Vec::new() }
    }

    /// The message, which asks for progress if somebody is shown it.
    fn message(&mut self, id: u64) -> Value {
        if self.on_progress.is_some() {
            let meta = self.params.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("progressToken".to_owned(), json!(id));
            }
        }
        json!({"jsonrpc": "2.0", "id": id, "method": self.method, "params": self.params})
    }
}

/// A message for the server.
pub(crate) struct Outgoing {
    pub(crate) message: Value,
    /// Of a request.
    pub(crate) asked: Option<Asked>,
    /// Dropped when the message is out.
    _sent: Option<oneshot::Sender<()>>,
}

/// What a transport has to know of a request.
pub(crate) struct Asked {
    pub(crate) id: u64,
    /// Headers for transports that have some.
    pub(crate) headers: Vec<(String, String)>,
    /// Cancelled when nobody waits for the answer any more.
    pub(crate) given_up: CancellationToken,
}

impl Outgoing {
    fn other(message: Value) -> Self {
        Self { message, asked: None, _sent: None }
    }

    /// The message on a line.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut bytes = self.message.to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

/// The requests of one connection.
pub(crate) struct Exchange {
    state: Mutex<State>,
    outgoing: mpsc::Sender<Outgoing>,
    /// What the server has said that has changed.
    pub(crate) changes: Changes,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Waiting>,
    last: u64,
    /// Why there are no more answers.
    ended: Option<Failure>,
    stray_bytes: u64,
}

type Answer = Result<Value, Failure>;

/// The id and the parameters of a question of the server.
type Question = (Value, Value);

struct Waiting {
    answer: oneshot::Sender<Answer>,
    progress: mpsc::Sender<String>,
    /// What the server asks the user, if somebody answers.
    questions: Option<mpsc::Sender<Question>>,
}

/// What comes for a request.
struct Registered<'a> {
    answer: oneshot::Receiver<Answer>,
    progress: mpsc::Receiver<String>,
    questions: mpsc::Receiver<Question>,
    place: Place<'a>,
}

impl Exchange {
    /// An exchange, and the messages for the server.
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<Outgoing>) {
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let (state, changes) = Default::default();
        (Arc::new(Self { state, outgoing, changes }), queue)
    }

    /// Why there are no more answers, once that is so.
    pub(crate) fn ended(&self) -> Option<Failure> {
        self.state.lock().ended.clone()
    }

    /// Asks, and waits for the answer. Dropped before the end, the request is cancelled.
    ///
    /// # Errors
    /// The server refuses, ends, or does not answer in time; or the caller cancels.
    pub(crate) async fn ask(&self, mut request: Request<'_>) -> Result<Value, Failure> {
        let Registered { mut answer, mut progress, mut questions, mut place } =
            self.register(request.questions.is_some())?;
        let message = request.message(place.id);
        let started = Instant::now();
        let mut latest = started + request.limit * MOST_LIMITS;
        let mut quiet_until = started + request.limit;
        let never = CancellationToken::new();
        let cancel = request.cancel.unwrap_or(&never);
        let overdue = |limit: Duration| {
            let what = format!(
                "the server has not answered `{}` in {} s",
                request.method,
                limit.as_secs()
            );
            Failure::new(Kind::Overdue, what)
        };
        let asked = Asked {
            id: place.id,
            headers: std::mem::take(&mut request.headers),
            given_up: place.given_up.clone(),
        };
        let outgoing = Outgoing { asked: Some(asked), ..Outgoing::other(message) };
        let sent = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(aborted()),
            sent = timeout_at(quiet_until, self.outgoing.send(outgoing)) => sent,
        };
        if sent.is_err() {
            return Err(overdue(request.limit));
        }
        place.is_sent = true;
        let mut asking: Option<(Instant, BoxFuture<'_, Value>)> = None;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(aborted()),
                answer = &mut answer => {
                    place.free();
                    return answer.unwrap_or_else(|_| Err(self.lost()));
                }
                Some(text) = progress.recv() => {
                    quiet_until = Instant::now() + request.limit;
                    if let Some(show) = request.on_progress {
                        show(text);
                    }
                }
                Some((id, params)) = questions.recv(), if asking.is_none() => {
                    let Some(asked) = request.questions else { continue };
                    let reply = async move {
                        let begun = Begun::Question(params.clone());
                        let result = asked.answer(params, begun).await;
                        json!({"jsonrpc": "2.0", "id": id, "result": result})
                    };
                    asking = Some((Instant::now(), Box::pin(reply)));
                }
                (since, reply) = said(&mut asking) => {
                    asking = None;
                    // The time of the user is not the server's.
                    latest += since.elapsed();
                    quiet_until = Instant::now() + request.limit;
                    let _ = timeout(TELL_LIMIT, self.outgoing.send(Outgoing::other(reply))).await;
                }
                () = sleep_until(quiet_until.min(latest)), if asking.is_none() => {
                    return Err(overdue(quiet_until.min(latest) - started));
                }
            }
        }
    }

    /// Says something that has no answer, and waits until it is out.
    pub(crate) async fn tell(&self, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let (out, is_out) = oneshot::channel();
        let outgoing = Outgoing { _sent: Some(out), ..Outgoing::other(message) };
        // A server that has ended is noticed by the next request.
        if self.outgoing.send(outgoing).await.is_ok() {
            let _ = timeout(TELL_LIMIT, is_out).await;
        }
    }

    fn register(&self, is_asked: bool) -> Result<Registered<'_>, Failure> {
        let mut state = self.state.lock();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        state.last += 1;
        state.stray_bytes = 0;
        let id = state.last;
        let (sender, answer) = oneshot::channel();
        let (reporter, progress) = mpsc::channel(PROGRESS);
        let (asker, questions) = mpsc::channel(MAX_QUESTIONS);
        let asker = is_asked.then_some(asker);
        state.waiting.insert(id, Waiting { answer: sender, progress: reporter, questions: asker });
        let given_up = CancellationToken::new();
        let place = Place { exchange: self, id, given_up, is_sent: false, is_free: false };
        Ok(Registered { answer, progress, questions, place })
    }

    fn lost(&self) -> Failure {
        self.ended().unwrap_or_else(|| Failure::new(Kind::Ended, "the server has ended"))
    }

    /// Whether a request waits for its answer.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.state.lock().waiting.contains_key(&id)
    }

    /// Fails one request, if it waits.
    pub(crate) fn fail(&self, id: u64, failure: Failure) {
        let waiting = self.state.lock().waiting.remove(&id);
        if let Some(waiting) = waiting {
            let _ = waiting.answer.send(Err(failure));
        }
    }

    /// Fails what is asked later. What waits may still be answered.
    pub(crate) fn retire(&self, failure: Failure) {
        self.state.lock().ended.get_or_insert(failure);
    }

    /// Fails all that wait, and what is asked later.
    pub(crate) fn end(&self, failure: Failure) {
        let mut state = self.state.lock();
        let failure = state.ended.get_or_insert(failure).clone();
        for (_, waiting) in state.waiting.drain() {
            let _ = waiting.answer.send(Err(failure.clone()));
        }
    }

    /// Takes a line of the server.
    ///
    /// # Errors
    /// The server prints without end; it has to be ended.
    pub(crate) fn take(&self, line: Line) -> Result<(), Failure> {
        match line {
            Line::Whole(bytes) => match serde_json::from_slice::<Value>(&bytes) {
                // Servers of the revision 2025-03-26 may answer several requests at once.
                Ok(Value::Array(messages)) => {
                    messages.into_iter().try_for_each(|message| self.take_message(message, 0))
                }
                Ok(message @ Value::Object(_)) => self.take_message(message, bytes.len() as u64),
                _ => {
                    let id = id_in(&bytes, &bytes);
                    let what = "the answer of the server is broken: it is no JSON that ends";
                    self.fail_or_count(id, what.to_owned(), bytes.len() as u64)
                }
            },
            Line::TooLong { head, tail, bytes } => {
                let what = format!(
                    "the answer of the server is too large: it has {} MB, and at most {} MB are read. Ask for less at once",
                    bytes >> 20,
                    crate::lines::MAX_LINE >> 20
                );
                self.fail_or_count(id_in(&head, &tail), what, bytes)
            }
        }
    }

    /// Fails the request that a line answers, or counts the line as one that nobody asked for.
    fn fail_or_count(&self, id: Option<u64>, what: String, bytes: u64) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if let Some(waiting) = id.and_then(|id| state.waiting.remove(&id)) {
            let _ = waiting.answer.send(Err(Failure::other(what)));
            return Ok(());
        }
        count(&mut state, bytes)
    }

    fn take_message(&self, message: Value, bytes: u64) -> Result<(), Failure> {
        let method = message.get("method").and_then(Value::as_str);
        let id = message.get("id").filter(|id| !id.is_null());
        match (method, id) {
            (Some(method), Some(id)) => self.reply(method, id, &message["params"]),
            (Some("notifications/progress"), None) => self.note_progress(&message["params"]),
            (Some(method), None) => self.changes.take(method, &message["params"]),
            (None, Some(id)) => {
                let id = id.as_u64().or_else(|| id.as_str()?.parse().ok());
                let waiting = id.and_then(|id| self.state.lock().waiting.remove(&id));
                // An answer that nobody waits for comes after the limit.
                if let Some(waiting) = waiting {
                    let _ = waiting.answer.send(answer_of(message));
                    return Ok(());
                }
            }
            _ => {}
        }
        count(&mut self.state.lock(), bytes)
    }

    /// Answers a request of the server: one that asks whether somebody is there, and one that asks the user, where nobody can
    /// be asked.
    fn reply(&self, method: &str, id: &Value, params: &Value) {
        let reply = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            "elicitation/create" => {
                // The server does not say which of several calls it asks about.
                let state = self.state.lock();
                let mut asked: Vec<_> = state.waiting.iter().collect();
                asked.sort_by_key(|(id, _)| **id);
                let asker = asked.into_iter().find_map(|(_, waiting)| waiting.questions.as_ref());
                let question = (id.clone(), params.clone());
                if asker.is_some_and(|asker| asker.try_send(question).is_ok()) {
                    return;
                }
                json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}})
            }
            _ => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": NO_METHOD, "message": "not supported by this client"}})
            }
        };
        // A server that does not read gets no replies.
        let _ = self.outgoing.try_send(Outgoing::other(reply));
    }

    fn note_progress(&self, params: &Value) {
        let token = &params["progressToken"];
        let Some(id) = token.as_u64().or_else(|| token.as_str()?.parse().ok()) else { return };
        let number = |name: &str| params[name].as_f64();
        let of = match (number("progress"), number("total")) {
            (Some(done), Some(total)) => format!("{done} of {total}"),
            (Some(done), None) => done.to_string(),
            _ => String::new(),
        };
        let message = params["message"].as_str().unwrap_or_default();
        let text: String = [of.as_str(), message].join(" ").trim().chars().take(QUOTED).collect();
        if let Some(waiting) = self.state.lock().waiting.get(&id) {
            let _ = waiting.progress.try_send(text);
        }
    }
}

fn count(state: &mut State, bytes: u64) -> Result<(), Failure> {
    state.stray_bytes = state.stray_bytes.saturating_add(bytes);
    match state.stray_bytes > MAX_STRAY {
        true => Err(Failure::new(
            Kind::Ended,
            format!(
                "the connection was ended, because the server sent more than {} MB that nobody had asked for",
                MAX_STRAY >> 20
            ),
        )),
        false => Ok(()),
    }
}

/// The answer of the user, and since when it was waited for; never without a question.
async fn said(asking: &mut Option<(Instant, BoxFuture<'_, Value>)>) -> (Instant, Value) {
    match asking {
        Some((since, reply)) => (*since, reply.await),
        None => std::future::pending().await,
    }
}

fn aborted() -> Failure {
    Failure::new(Kind::Aborted, "aborted before the server had answered")
}

/// The result in an answer, or the error.
pub(crate) fn answer_of(mut message: Value) -> Result<Value, Failure> {
    if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
        let code = error["code"].as_i64().unwrap_or_default();
        let mut said: String =
            error["message"].as_str().unwrap_or_default().chars().take(QUOTED).collect();
        if let Some(data) = error.get("data").filter(|data| !data.is_null()) {
            said.push('\n');
            said.extend(data.to_string().chars().take(QUOTED));
        }
        let what = format!("the server answered with the error {code}");
        let supported = error["data"]["supported"].as_array().into_iter().flatten();
        let supported = supported.filter_map(Value::as_str).map(str::to_owned).collect();
        return Err(Failure { supported, ..Failure::new(Kind::Refused, what).saying(said) });
    }
    Ok(message.get_mut("result").map(Value::take).unwrap_or_default())
}

/// The number of the request that a broken line answers: the first in its beginning, else the last in its end.
fn id_in(head: &[u8], tail: &[u8]) -> Option<u64> {
    let number = |text: &str, at: usize| {
        let rest = text[at..].trim_start().strip_prefix(':')?.trim_start();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    const KEY: &str = "\"id\"";
    let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
    // What stands behind the beginning of the result is the result's own.
    let front = head.split("\"result\"").next().unwrap_or_default();
    let first = front.find(KEY).and_then(|at| number(front, at + KEY.len()));
    first.or_else(|| tail.rfind(KEY).and_then(|at| number(&tail, at + KEY.len())))
}

/// A request among those that wait.
struct Place<'a> {
    exchange: &'a Exchange,
    id: u64,
    given_up: CancellationToken,
    is_sent: bool,
    is_free: bool,
}

impl Place<'_> {
    fn free(mut self) {
        self.is_free = true;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_free {
            return;
        }
        self.given_up.cancel();
        let was_waiting = self.exchange.state.lock().waiting.remove(&self.id).is_some();
        if was_waiting && self.is_sent {
            let params = json!({"requestId": self.id, "reason": "given up"});
            let message =
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            let _ = self.exchange.outgoing.try_send(Outgoing::other(message));
        }
    }
}

#[cfg(test)]
mod tests;
