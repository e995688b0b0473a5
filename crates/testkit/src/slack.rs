//! A strict Slack: Socket Mode and the methods of the Web API that MyClaw uses, written from the published reference. What
//! Slack refuses, it refuses; what Slack would ignore, such as an argument that does not exist, it notes as a mistake.

mod method;
mod press;

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::vendor::Shared;
use crate::wire::{Push, Request, answer, serve_socket};

/// Slack sends an event again if it is not acknowledged within this time.
const ACKNOWLEDGE: Duration = Duration::from_secs(3);
/// How long an announced end of a socket waits for another one.
const REFRESH: Duration = Duration::from_secs(10);
const BOT_TOKEN: &str = "xoxb-1-secret";
const APP_TOKEN: &str = "xapp-1-secret";
/// The user of the bot.
const BOT: &str = "UBOT";

/// What the server does with the next call of a method, instead of carrying it out.
#[derive(Debug, Clone)]
pub enum SlackFault {
    /// Refuses it with 429 and this many seconds.
    TooMany(u64),
    /// Carries it out and breaks the connection before it answers.
    Silence,
    /// Breaks the connection.
    Break,
    /// Refuses it with this error.
    Refuse(&'static str),
}

/// A message of the bot, as it is now.
#[derive(Debug, Clone)]
pub struct SlackMessage {
    /// Its id.
    pub ts: String,
    /// The arguments of the call that sent it; the text is that of the last edit.
    pub params: Value,
    /// How often it was edited.
    pub edits: usize,
    /// The files that it shares, with their bytes.
    pub files: Vec<(Value, Vec<u8>)>,
}

impl SlackMessage {
    /// Its text, as it was sent.
    pub fn text(&self) -> &str {
        self.params["text"].as_str().unwrap_or_default()
    }
}

/// A Slack on a free port, with one app in one workspace. It ends with the process.
#[derive(Debug, Clone)]
pub struct SlackServer {
    shared: Arc<Shared<State>>,
    port: u16,
}

#[derive(Debug, Default)]
struct State {
    port: u16,
    next: u64,
    /// Tickets of sockets that nobody has used.
    tickets: Vec<String>,
    sockets: Vec<(u64, Sender<Push>)>,
    greetings: usize,
    events: VecDeque<Delivery>,
    sent: Vec<SlackMessage>,
    calls: Vec<(String, Value)>,
    faults: VecDeque<(String, SlackFault)>,
    mistakes: Vec<String>,
    lost_scopes: Vec<String>,
    /// Bytes of the files of people and of uploads, by id.
    files: Vec<(String, String, Vec<u8>)>,
    reactions: Vec<(String, String)>,
    /// What people said before, which no event told.
    past: Vec<Value>,
}

/// An event until it is acknowledged.
#[derive(Debug)]
struct Delivery {
    kind: &'static str,
    envelope: String,
    body: Value,
    attempts: u64,
    /// The socket that it was sent through, and when.
    under_way: Option<(u64, Instant)>,
}

impl SlackServer {
    /// Starts a server.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = State { port, ..State::default() };
        let server = Self { shared: Arc::new(Shared::new(state)), port };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.converse(stream));
            }
        });
        server
    }

    /// Address of the Web API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.port)
    }

    /// The token of the bot.
    pub fn bot_token(&self) -> &'static str {
        BOT_TOKEN
    }

    /// The token of the app.
    pub fn app_token(&self) -> &'static str {
        APP_TOKEN
    }

    /// While it is down, it closes every connection.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
        if is_down {
            self.push_all(|| Push::Break);
        }
    }

    /// Takes a scope away from the bot.
    pub fn lose_scope(&self, scope: &str) {
        self.lock().lost_scopes.push(scope.to_owned());
    }

    /// A person writes to the bot directly. Gives the id of the message.
    pub fn write(&self, person: &str, text: &str) -> String {
        self.deliver(&json!({
            "type": "message", "channel": format!("D{person}"), "channel_type": "im", "user": person, "text": text,
        }))
    }

    /// Somebody said this before, and no event told it.
    pub fn said_before(&self, message: &Value) {
        self.lock().past.push(message.clone());
    }

    /// Delivers an event with these fields; `ts` is added if it is missing. Gives the `ts`.
    pub fn deliver(&self, event: &Value) -> String {
        let mut state = self.lock();
        let mut event = event.clone();
        let ts = match event["ts"].as_str() {
            Some(ts) => ts.to_owned(),
            None => state.time(),
        };
        event["ts"] = json!(ts);
        event["event_ts"] = json!(ts);
        let number = state.number();
        let body = json!({
            "token": "x", "team_id": "T1", "api_app_id": "A1", "event": event, "type": "event_callback",
            "event_id": format!("Ev{number}"), "event_time": 1_700_000_000,
            "authorizations": [{"team_id": "T1", "user_id": BOT, "is_bot": true}],
        });
        state.queue("events_api", body);
        ts
    }

    /// Keeps a file; gives it as events name it.
    pub fn keep_file(&self, name: &str, bytes: &[u8]) -> Value {
        let mut state = self.lock();
        let id = format!("F{}", state.number());
        state.files.push((id.clone(), name.to_owned(), bytes.to_vec()));
        state.file(&id).unwrap_or_default()
    }

    /// The next call of `method` meets a fault.
    pub fn fail_next(&self, method: &str, fault: SlackFault) {
        self.lock().faults.push_back((method.to_owned(), fault));
    }

    /// Announces that the sockets end, and ends them.
    pub fn refresh(&self, reason: &str) {
        let notice = json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "x"}});
        self.push_all(|| Push::Text(notice.to_string()));
        let server = self.clone();
        let (old, before): (Vec<u64>, usize) = {
            let state = self.lock();
            (state.sockets.iter().map(|(id, _)| *id).collect(), state.greetings)
        };
        thread::spawn(move || {
            // They end when there is another one.
            let end = Instant::now() + REFRESH;
            while server.lock().greetings == before && Instant::now() < end {
                thread::sleep(Duration::from_millis(10));
            }
            let mut state = server.lock();
            if state.greetings == before {
                state
                    .mistakes
                    .push("no other socket was opened before the old one ended".to_owned());
            }
            for (_, socket) in state.sockets.iter().filter(|(id, _)| old.contains(id)) {
                let _ = socket.send(Push::Close(1000));
            }
        });
    }

    /// Breaks the sockets without a word.
    pub fn break_sockets(&self) {
        self.push_all(|| Push::Break);
    }

    /// Sends frames that no Slack would send.
    pub fn send_frames(&self, texts: &[&str]) {
        for text in texts {
            self.push_all(|| Push::Text((*text).to_owned()));
        }
        self.push_all(|| Push::Binary(vec![0xff, 0xfe]));
    }

    /// How often a socket was opened.
    pub fn greetings(&self) -> usize {
        self.lock().greetings
    }

    /// How often an event was sent at most that is not acknowledged.
    pub fn attempts(&self) -> u64 {
        self.lock().events.iter().map(|event| event.attempts).max().unwrap_or_default()
    }

    /// Events that are not acknowledged.
    pub fn waiting(&self) -> usize {
        self.lock().events.len()
    }

    /// The messages of the bot, as they are now.
    pub fn sent(&self) -> Vec<SlackMessage> {
        self.lock().sent.clone()
    }

    /// All calls so far: method and arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.lock().calls.clone()
    }

    /// What was wrong with calls, besides refusals that a test asked for.
    pub fn mistakes(&self) -> Vec<String> {
        self.lock().mistakes.clone()
    }

    /// Waits until `found` gives something about the messages of the bot.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for<T>(&self, what: &str, found: impl Fn(&[SlackMessage]) -> Option<T>) -> T {
        self.shared.wait_for(what, |state| found(&state.sent))
    }

    /// Waits for a message whose text contains `words`.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_text(&self, words: &str) -> SlackMessage {
        self.wait_for(words, |sent| {
            sent.iter().find(|message| message.text().contains(words)).cloned()
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    fn push_all(&self, push: impl Fn() -> Push) {
        for (_, socket) in &self.lock().sockets {
            let _ = socket.send(push());
        }
    }

    fn converse(&self, stream: TcpStream) {
        let Ok(mut writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            if self.shared.is_down.load(Ordering::SeqCst) {
                return;
            }
            if let Some(ticket) = request.path.strip_prefix("/link/?ticket=") {
                return self.link(writer, &request, ticket);
            }
            let Some((status, headers, body)) = self.respond(&request) else { return };
            if !answer(&mut writer, status, &headers, &body) {
                return;
            }
        }
    }

    /// Serves a socket.
    fn link(&self, mut writer: TcpStream, request: &Request, ticket: &str) {
        let (pushes, outbox) = mpsc::channel();
        let id = {
            let mut state = self.lock();
            // A ticket works once.
            let Some(at) = state.tickets.iter().position(|known| known == ticket) else {
                state.mistakes.push("a socket without a ticket".to_owned());
                answer(&mut writer, 404, "", b"");
                return;
            };
            state.tickets.remove(at);
            state.greetings += 1;
            let id = state.number();
            let hello =
                json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}});
            let _ = pushes.send(Push::Text(hello.to_string()));
            state.sockets.push((id, pushes));
            id
        };
        let server = self.clone();
        thread::spawn(move || server.deliver_through(id));
        serve_socket(writer, request, &outbox, |text| self.heard(&text));
        let mut state = self.lock();
        state.sockets.retain(|(other, _)| *other != id);
        for delivery in &mut state.events {
            if delivery.under_way.is_some_and(|(socket, _)| socket == id) {
                delivery.under_way = None;
            }
        }
    }

    /// Sends events through the newest socket until it ends.
    fn deliver_through(&self, id: u64) {
        loop {
            {
                let mut state = self.lock();
                let Some(socket) = state.sockets.iter().find(|(other, _)| *other == id) else {
                    return;
                };
                let (socket, is_newest) =
                    (socket.1.clone(), state.sockets.last().is_some_and(|(last, _)| *last == id));
                for delivery in state.events.iter_mut().filter(|_| is_newest) {
                    if delivery.under_way.is_some_and(|(_, since)| since.elapsed() < ACKNOWLEDGE) {
                        continue;
                    }
                    let envelope = json!({
                        "type": delivery.kind, "envelope_id": delivery.envelope, "payload": delivery.body,
                        "accepts_response_payload": false, "retry_attempt": delivery.attempts, "retry_reason": "",
                    });
                    delivery.attempts += 1;
                    delivery.under_way = Some((id, Instant::now()));
                    let _ = socket.send(Push::Text(envelope.to_string()));
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// An acknowledgement.
    fn heard(&self, text: &str) {
        let mut state = self.lock();
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        match value["envelope_id"].as_str() {
            Some(id) => state.events.retain(|delivery| delivery.envelope != id),
            None => state.mistakes.push(format!("on the socket: {text}")),
        }
    }

    /// Status, headers and body; `None` breaks the connection.
    fn respond(&self, request: &Request) -> Option<(u16, String, Vec<u8>)> {
        let plain = |status: u16, body: &[u8]| Some((status, String::new(), body.to_vec()));
        let bearer = request.header("authorization").strip_prefix("Bearer ").unwrap_or_default();
        if let Some(id) = request.path.strip_prefix("/files-pri/") {
            let state = self.lock();
            let found = state.files.iter().find(|(other, ..)| other == id);
            return match found {
                Some((_, _, bytes)) if bearer == BOT_TOKEN => plain(200, bytes),
                Some(_) => Some((302, "location: /login\r\n".to_owned(), Vec::new())),
                None => plain(404, b""),
            };
        }
        if let Some(id) = request.path.strip_prefix("/upload/") {
            let mut state = self.lock();
            if !bearer.is_empty() {
                state.mistakes.push("the token goes to the place of an upload".to_owned());
            }
            let Some(file) = state.files.iter_mut().find(|(other, ..)| other == id) else {
                return plain(404, b"");
            };
            if file.2.len() != request.body.len() {
                return plain(400, b"length");
            }
            file.2.clone_from(&request.body);
            return plain(200, b"OK");
        }
        let Some(method) = request.path.strip_prefix("/api/") else { return plain(404, b"") };
        let mut state = self.lock();
        let checked = method::check(method, request, bearer, &state.lost_scopes);
        let params = match checked {
            Ok(params) => params,
            Err((error, is_mistake)) => {
                if is_mistake {
                    state.mistakes.push(format!("{method}: {error}"));
                }
                return plain(200, error.to_string().as_bytes());
            }
        };
        state.calls.push((method.to_owned(), params.clone()));
        let fault = state.faults.iter().position(|(of, _)| of == method);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(_, fault)| fault);
        match fault {
            Some(SlackFault::TooMany(seconds)) => {
                let body = json!({"ok": false, "error": "ratelimited"}).to_string().into_bytes();
                return Some((429, format!("retry-after: {seconds}\r\n"), body));
            }
            Some(SlackFault::Refuse(error)) => {
                return plain(200, json!({"ok": false, "error": error}).to_string().as_bytes());
            }
            Some(SlackFault::Break) => return None,
            Some(SlackFault::Silence) => {
                let _ = method::carry_out(&mut state, method, &params);
                self.shared.changed.notify_all();
                return None;
            }
            None => {}
        }
        let done = method::carry_out(&mut state, method, &params);
        self.shared.changed.notify_all();
        let body = match done {
            Ok(mut answer) => {
                answer["ok"] = json!(true);
                answer
            }
            Err(error) => json!({"ok": false, "error": error}),
        };
        plain(200, body.to_string().as_bytes())
    }
}

impl State {
    /// A file, as events name it.
    fn file(&self, id: &str) -> Option<Value> {
        let (_, name, bytes) = self.files.iter().find(|(other, ..)| other == id)?;
        Some(json!({
            "id": id, "name": name, "mimetype": "application/octet-stream", "size": bytes.len(),
            "url_private": format!("http://127.0.0.1:{}/files-pri/{id}", self.port),
        }))
    }

    fn queue(&mut self, kind: &'static str, body: Value) {
        let envelope = format!("envelope-{}", self.number());
        self.events.push_back(Delivery { kind, envelope, body, attempts: 0, under_way: None });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A time that no message has: now, and a number.
    fn time(&mut self) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let seconds = now.map(|now| now.as_secs()).unwrap_or_default();
        format!("{seconds}.{:06}", self.number())
    }
}
