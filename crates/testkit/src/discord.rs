//! A strict Discord: the Gateway and the routes of the REST API that MyClaw uses, written from the published reference. What
//! Discord refuses, it refuses; a field that does not exist is noted as a mistake.

mod press;
mod route;

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use route::said;

use crate::vendor::{PATIENCE, Shared};
use crate::wire::{Push, Request, answer, serve_socket};

const TOKEN: &str = "bot.token.secret";
/// The user of the bot.
const BOT: &str = "900";
/// Servers, messages in them and direct ones, and what they say.
const INTENTS: u64 = 1 | 512 | 4_096 | 32_768;
/// The first moment of ids, in milliseconds since the Unix epoch.
const EPOCH: u64 = 1_420_070_400_000;

/// What the server does with the next call of a route, instead of carrying it out.
#[derive(Debug, Clone)]
pub enum DiscordFault {
    /// Refuses it with 429 and this many seconds, for the route or for everything.
    TooMany(f64, bool),
    /// Carries it out and breaks the connection before it answers.
    Silence,
    /// Breaks the connection.
    Break,
    /// Refuses it with this status and code.
    Refuse(u16, u64),
}

/// A message of the bot, as it is now.
#[derive(Debug, Clone)]
pub struct DiscordMessage {
    /// Its id.
    pub id: String,
    /// The channel or thread that it is in.
    pub channel: String,
    /// The body of the call that sent it; the content is that of the last edit.
    pub body: Value,
    /// How often it was edited.
    pub edits: usize,
    /// Its file: name and bytes.
    pub file: Option<(String, Vec<u8>)>,
}

impl DiscordMessage {
    /// Its text.
    pub fn text(&self) -> &str {
        self.body["content"].as_str().unwrap_or_default()
    }
}

/// A Discord on a free port, with one bot. It ends with the process.
#[derive(Debug, Clone)]
pub struct DiscordServer {
    shared: Arc<Shared<State>>,
    port: u16,
}

#[derive(Debug, Default)]
struct State {
    port: u16,
    next: u64,
    /// The session that can be resumed, and its events.
    session: Option<String>,
    events: Vec<Value>,
    /// The socket of the session, and how many events went through it.
    socket: Option<(u64, Sender<Push>, usize)>,
    identified: usize,
    resumed: usize,
    heartbeats: usize,
    is_deaf: bool,
    is_forgetful: bool,
    close_with: Option<u16>,
    heartbeat_ms: u64,
    sent: Vec<DiscordMessage>,
    calls: Vec<(String, Value)>,
    faults: VecDeque<(String, DiscordFault)>,
    mistakes: Vec<String>,
    files: Vec<Vec<u8>>,
    /// What people said before, which no event told.
    past: Vec<Value>,
    /// Threads, with their channels.
    threads: Vec<(String, String)>,
}

impl DiscordServer {
    /// Starts a server.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = State { port, heartbeat_ms: 41_250, ..State::default() };
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

    /// Address of the API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/api/v10", self.port)
    }

    /// The token of the bot.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// While it is down, it closes every connection.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
        if is_down {
            self.push(Push::Break);
        }
    }

    /// Time between heartbeats from the next connection on, in milliseconds.
    pub fn set_heartbeat(&self, milliseconds: u64) {
        self.lock().heartbeat_ms = milliseconds;
    }

    /// While it is deaf, it answers no heartbeats.
    pub fn set_deaf(&self, is_deaf: bool) {
        self.lock().is_deaf = is_deaf;
    }

    /// Closes the next connection with this code instead of beginning a session.
    pub fn refuse_sessions(&self, code: Option<u16>) {
        self.lock().close_with = code;
    }

    /// From now on it knows no nonce any more, as after some minutes.
    pub fn forget_nonces(&self) {
        self.lock().is_forgetful = true;
    }

    /// Makes a thread in a channel.
    pub fn add_thread(&self, thread: &str, channel: &str) {
        self.lock().threads.push((thread.to_owned(), channel.to_owned()));
    }

    /// Somebody writes to the bot directly. Gives the id of the message.
    pub fn write(&self, person: &str, text: &str) -> String {
        self.deliver(person, &format!("5{person}"), &json!({"content": text}))
    }

    /// Somebody writes in a channel, with further fields. Gives the id of the message.
    pub fn deliver(&self, person: &str, channel: &str, fields: &Value) -> String {
        let id = self.lock().snowflake();
        self.happen("MESSAGE_CREATE", &said(&id, person, channel, fields));
        id
    }

    /// Somebody said this in a channel before, and no event told it. Gives the id of the message.
    pub fn said_before(&self, person: &str, channel: &str, fields: &Value) -> String {
        let mut state = self.lock();
        let id = state.snowflake();
        state.past.push(said(&id, person, channel, fields));
        id
    }

    /// Somebody edits a message.
    pub fn edit(&self, id: &str, person: &str, channel: &str, fields: &Value) {
        self.happen("MESSAGE_UPDATE", &said(id, person, channel, fields));
    }

    /// An event happens.
    pub fn happen(&self, kind: &str, data: &Value) {
        let mut state = self.lock();
        state.push_event(kind, data);
        state.flush();
    }

    /// Keeps a file; gives it as messages name it.
    pub fn keep_file(&self, name: &str, bytes: &[u8]) -> Value {
        let mut state = self.lock();
        state.files.push(bytes.to_vec());
        let url = format!("http://127.0.0.1:{}/attachments/{}", self.port, state.files.len() - 1);
        json!({"id": "1", "filename": name, "size": bytes.len(), "url": url, "proxy_url": url})
    }

    /// The next call of a route, such as `POST messages`, meets a fault.
    pub fn fail_next(&self, route: &str, fault: DiscordFault) {
        self.lock().faults.push_back((route.to_owned(), fault));
    }

    /// Asks for another connection.
    pub fn ask_to_reconnect(&self) {
        self.push(Push::Text(json!({"op": 7, "d": null}).to_string()));
    }

    /// Ends the session; it cannot be resumed.
    pub fn end_session(&self) {
        self.lock().session = None;
        self.push(Push::Text(json!({"op": 9, "d": false}).to_string()));
    }

    /// Breaks the socket without a word, or closes it with a code.
    pub fn break_socket(&self, code: Option<u16>) {
        self.push(code.map_or(Push::Break, Push::Close));
    }

    /// Sends frames that no Discord would send.
    pub fn send_frames(&self, texts: &[&str]) {
        for text in texts {
            self.push(Push::Text((*text).to_owned()));
        }
        self.push(Push::Binary(vec![0xff, 0xfe]));
    }

    /// How often a session was begun and resumed, and how many heartbeats came.
    pub fn connections(&self) -> (usize, usize, usize) {
        let state = self.lock();
        (state.identified, state.resumed, state.heartbeats)
    }

    /// Waits until a session has begun or was resumed more often than this.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_connection(&self, before: usize) {
        let end = Instant::now() + PATIENCE;
        loop {
            let (identified, resumed, _) = self.connections();
            if identified + resumed > before {
                return;
            }
            assert!(Instant::now() < end, "no connection; mistakes: {:?}", self.mistakes());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The messages of the bot, as they are now.
    pub fn sent(&self) -> Vec<DiscordMessage> {
        self.lock().sent.clone()
    }

    /// All calls so far: route and body.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.lock().calls.clone()
    }

    /// What was wrong with calls and words, besides refusals that a test asked for.
    pub fn mistakes(&self) -> Vec<String> {
        self.lock().mistakes.clone()
    }

    /// Waits until `found` gives something about the messages of the bot.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for<T>(&self, what: &str, found: impl Fn(&[DiscordMessage]) -> Option<T>) -> T {
        self.shared.wait_for(what, |state| found(&state.sent))
    }

    /// Waits for a message whose text contains `words`.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_text(&self, words: &str) -> DiscordMessage {
        self.wait_for(words, |sent| {
            sent.iter().find(|message| message.text().contains(words)).cloned()
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    fn push(&self, push: Push) {
        if let Some((_, socket, _)) = &self.lock().socket {
            let _ = socket.send(push);
        }
    }

    fn converse(&self, stream: TcpStream) {
        let Ok(mut writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            if self.shared.is_down.load(Ordering::SeqCst) {
                return;
            }
            if request.path.starts_with("/gateway") {
                return self.serve_gateway(writer, &request);
            }
            let Some((status, headers, body)) = self.respond(&request) else { return };
            if !answer(&mut writer, status, &headers, &body) {
                return;
            }
        }
    }

    fn serve_gateway(&self, writer: TcpStream, request: &Request) {
        let (pushes, outbox) = mpsc::channel();
        let id = {
            let mut state = self.lock();
            if !request.path.ends_with("/?v=10&encoding=json") {
                state.mistakes.push(format!("the path of the socket: {}", request.path));
            }
            let hello = json!({"op": 10, "d": {"heartbeat_interval": state.heartbeat_ms}});
            let _ = pushes.send(Push::Text(hello.to_string()));
            state.next += 1;
            state.next
        };
        serve_socket(writer, request, &outbox, |text| {
            self.lock().heard(id, &pushes, &text);
        });
        let mut state = self.lock();
        if state.socket.as_ref().is_some_and(|(other, ..)| *other == id) {
            state.socket = None;
        }
    }

    /// Status, headers and body; `None` breaks the connection.
    fn respond(&self, request: &Request) -> Option<(u16, String, Vec<u8>)> {
        let json_of = |(status, body): (u16, Value)| {
            let bytes = if status == 204 { Vec::new() } else { body.to_string().into_bytes() };
            Some((status, "content-type: application/json\r\n".to_owned(), bytes))
        };
        if let Some(number) = request.path.strip_prefix("/attachments/") {
            let mut state = self.lock();
            if !request.header("authorization").is_empty() {
                state.mistakes.push("the token goes to the place of a file".to_owned());
            }
            let bytes = number.parse::<usize>().ok().and_then(|at| state.files.get(at).cloned());
            return Some((
                bytes.as_ref().map_or(404, |_| 200),
                String::new(),
                bytes.unwrap_or_default(),
            ));
        }
        let mut state = self.lock();
        let call = match route::check(request) {
            Ok(call) => call,
            Err((status, error, is_mistake)) => {
                if is_mistake {
                    state.mistakes.push(format!("{} {}: {error}", request.method, request.path));
                }
                return json_of((status, error));
            }
        };
        state.calls.push((call.name.clone(), call.body.clone()));
        let fault = state.faults.iter().position(|(of, _)| *of == call.name);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(_, fault)| fault);
        match fault {
            Some(DiscordFault::TooMany(seconds, global)) => {
                let body = json!({"message": "You are being rate limited.", "retry_after": seconds, "global": global});
                return json_of((429, body));
            }
            Some(DiscordFault::Refuse(status, code)) => {
                return json_of((status, json!({"message": "refused", "code": code})));
            }
            Some(DiscordFault::Break) => return None,
            Some(DiscordFault::Silence) => {
                let _ = route::carry_out(&mut state, call);
                self.shared.changed.notify_all();
                return None;
            }
            None => {}
        }
        let done = route::carry_out(&mut state, call);
        self.shared.changed.notify_all();
        json_of(done)
    }
}

impl State {
    /// An id that holds the time.
    fn snowflake(&mut self) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        self.next += 1;
        ((now.saturating_sub(EPOCH) << 22) + self.next).to_string()
    }

    /// What happens in a session is kept for it; without one, nobody gets it.
    fn push_event(&mut self, kind: &str, data: &Value) {
        if self.session.is_some() {
            let seq = self.events.len() + 1;
            self.events.push(json!({"op": 0, "s": seq, "t": kind, "d": data}));
        }
    }

    /// Sends what the socket has not got.
    fn flush(&mut self) {
        let Some((_, socket, count)) = &mut self.socket else { return };
        for event in &self.events[*count..] {
            let _ = socket.send(Push::Text(event.to_string()));
        }
        *count = self.events.len();
    }

    /// A word of the bot.
    fn heard(&mut self, id: u64, pushes: &Sender<Push>, text: &str) {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let data = &value["d"];
        match value["op"].as_u64() {
            Some(1) => {
                self.heartbeats += 1;
                if !data.is_null() && !data.is_u64() {
                    self.mistakes.push(format!("a heartbeat: {text}"));
                }
                if !self.is_deaf {
                    let _ = pushes.send(Push::Text(json!({"op": 11}).to_string()));
                }
            }
            Some(2) => {
                let properties = &data["properties"];
                let is_named =
                    ["os", "browser", "device"].iter().all(|key| properties[key].is_string());
                if data["intents"] != INTENTS || !is_named {
                    self.mistakes.push(format!("an identification: {text}"));
                }
                if data["token"] != TOKEN {
                    let _ = pushes.send(Push::Close(4004));
                    return;
                }
                if let Some(code) = self.close_with {
                    let _ = pushes.send(Push::Close(code));
                    return;
                }
                self.identified += 1;
                self.session = Some(format!("session{id}"));
                self.events.clear();
                self.socket = Some((id, pushes.clone(), 0));
                self.ready();
            }
            Some(6) => {
                let seq = data["seq"].as_u64().and_then(|seq| usize::try_from(seq).ok());
                let is_known = data["token"] == TOKEN
                    && data["session_id"].as_str() == self.session.as_deref()
                    && seq.is_some_and(|seq| seq <= self.events.len());
                if !is_known {
                    let _ = pushes.send(Push::Text(json!({"op": 9, "d": false}).to_string()));
                    return;
                }
                self.resumed += 1;
                self.socket = Some((id, pushes.clone(), seq.unwrap_or_default()));
                self.push_event("RESUMED", &json!({}));
                self.flush();
            }
            _ => self.mistakes.push(format!("on the socket: {text}")),
        }
    }

    fn ready(&mut self) {
        let session = self.session.clone();
        let data = json!({
            "v": 10, "user": {"id": BOT, "username": "claw", "bot": true}, "guilds": [],
            "session_id": session, "resume_gateway_url": format!("ws://127.0.0.1:{}/gateway-of-session", self.port), "application": {"id": BOT, "flags": 0},
        });
        self.push_event("READY", &data);
        self.flush();
    }
}
