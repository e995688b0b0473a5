//! A strict daemon of signal-cli with its HTTP interface, written from the man page signal-cli-jsonrpc(5) and the sources of its
//! commands. A parameter that a command does not know is refused here, where signal-cli ignores it, so that a misspelt one
//! fails a test.

use std::collections::VecDeque;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::vendor::{Request, Shared, answer, serve};

/// How often a stream looks whether it has to end.
const TICK: Duration = Duration::from_millis(100);
/// How long Signal waits for a phone.
const LINK_TIME: Duration = Duration::from_secs(60);
const ACCOUNT: &str = "+4915112345678";

/// What the daemon does with the next message, instead of sending it.
#[derive(Debug, Clone)]
pub enum SignalFault {
    /// Refuses it with this code and message.
    Refuse(i64, &'static str),
    /// Nobody gets it, for this reason.
    Outcome(&'static str),
    /// Sends it and breaks the connection before it answers.
    Silence,
}

/// A daemon on a free port. It ends with the process.
#[derive(Debug, Clone)]
pub struct SignalServer {
    shared: Arc<Shared<State>>,
    port: u16,
}

#[derive(Debug, Default)]
struct State {
    /// All events so far; the number of one is its place.
    events: Vec<Value>,
    /// Calls that were carried out: method and parameters.
    calls: Vec<(String, Value)>,
    faults: VecDeque<SignalFault>,
    files: Vec<String>,
    contacts: Value,
    refused: Vec<String>,
    linking: Option<Linking>,
}

/// A daemon for several accounts, which has none until a phone is linked.
#[derive(Debug, Default)]
struct Linking {
    /// What phones scan, the newest last.
    addresses: Vec<String>,
    /// The address that a phone has scanned, and the account that it gives.
    scanned: Option<(String, Value)>,
    names: Vec<String>,
}

impl SignalServer {
    /// Starts a daemon.
    pub fn start() -> Self {
        let shared = Arc::<Shared<State>>::default();
        let serving = Arc::clone(&shared);
        let port = serve(move |stream| converse(&serving, stream));
        Self { shared, port }
    }

    /// Starts a daemon without an account (`-a`), which can be linked to a phone.
    pub fn start_without_account() -> Self {
        let server = Self::start();
        server.lock().linking = Some(Linking::default());
        server
    }

    /// A phone scans a code; it gives its account, with a number or without.
    pub fn scan(&self, address: &str, account: &Value) {
        if let Some(linking) = &mut self.lock().linking {
            linking.scanned = Some((address.to_owned(), account.clone()));
        }
        self.shared.changed.notify_all();
    }

    /// Waits for the next address that a phone can scan.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_address(&self, number: usize) -> String {
        self.shared.wait_for("an address to scan", |state| {
            state.linking.as_ref()?.addresses.get(number).cloned()
        })
    }

    /// What linked devices were called.
    pub fn linked_names(&self) -> Vec<String> {
        self.lock().linking.as_ref().map(|linking| linking.names.clone()).unwrap_or_default()
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The number of its account.
    pub fn account(&self) -> &'static str {
        ACCOUNT
    }

    /// While it is down, it closes every connection.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
        self.shared.changed.notify_all();
    }

    /// Somebody says something, with further fields of the data message.
    pub fn say(&self, person: &str, time: u64, text: &str, fields: &Value) {
        let mut data =
            json!({"timestamp": time, "message": text, "expiresInSeconds": 0, "viewOnce": false});
        for (key, value) in fields.as_object().into_iter().flatten() {
            data[key] = value.clone();
        }
        self.deliver(person, time, &json!({"dataMessage": data}));
    }

    /// Something arrives from somebody.
    pub fn deliver(&self, person: &str, time: u64, fields: &Value) {
        let mut envelope = json!({
            "source": person, "sourceNumber": person, "sourceUuid": format!("uuid-of-{person}"),
            "sourceName": "Ann", "sourceDevice": 1, "timestamp": time, "serverReceivedTimestamp": time,
            "serverDeliveredTimestamp": time,
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            envelope[key] = value.clone();
        }
        self.lock().events.push(json!({"envelope": envelope, "account": ACCOUNT}));
        self.shared.changed.notify_all();
    }

    /// Keeps a file, given in base64; gives its id.
    pub fn keep_file(&self, base64: &str) -> String {
        let mut state = self.lock();
        state.files.push(base64.to_owned());
        format!("file{}", state.files.len() - 1)
    }

    /// The daemon knows these contacts.
    pub fn know(&self, contacts: &Value) {
        self.lock().contacts = contacts.clone();
    }

    /// The next message meets a fault.
    pub fn fail_next(&self, fault: SignalFault) {
        self.lock().faults.push_back(fault);
    }

    /// The parameters of the calls of a method that were carried out.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        self.lock().calls(method)
    }

    /// What was refused because the request was wrong. Faults are not in it.
    pub fn refused(&self) -> Vec<String> {
        self.lock().refused.clone()
    }

    /// Waits until `found` gives something about the messages that were sent.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for<T>(&self, what: &str, found: impl Fn(&[Value]) -> Option<T>) -> T {
        self.shared.wait_for(what, |state| found(&state.calls("send")))
    }

    /// Waits for a message that contains `words`.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_text(&self, words: &str) -> Value {
        let is_it =
            |call: &&Value| call["message"].as_str().is_some_and(|text| text.contains(words));
        self.wait_for(words, |sent| sent.iter().find(is_it).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }
}

fn converse(shared: &Shared<State>, stream: TcpStream) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader) {
        if shared.is_down.load(Ordering::SeqCst) {
            return;
        }
        let (status, body) = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/api/v1/check") => (200, Vec::new()),
            ("GET", "/api/v1/events") if request.query == "account=%2B4915112345678" => {
                return shared.stream(writer, request.header("last-event-id"));
            }
            ("GET", "/api/v1/events") => (400, Vec::new()),
            ("POST", "/api/v1/rpc") if request.header("content-type") == "application/json" => {
                match shared.respond(&request.body) {
                    Some(body) => (200, body.to_string().into_bytes()),
                    None => return,
                }
            }
            _ => (404, Vec::new()),
        };
        if answer(&mut writer, status, &body).is_err() {
            return;
        }
    }
}

impl Shared<State> {
    /// Writes events until the connection or the daemon ends. Without a last event only new ones are written.
    fn stream(&self, mut writer: TcpStream, last: &str) {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n:\n\n";
        let mut state = self.lock();
        let mut next = match last.strip_prefix("1000-").map(str::parse) {
            Some(Ok(number)) => number,
            _ if !last.is_empty() => 0,
            _ => state.events.len(),
        };
        let mut text = head.to_owned();
        while !self.is_down.load(Ordering::SeqCst) {
            for event in state.events.iter().skip(next) {
                next += 1;
                text.push_str(&format!("id:1000-{next}\nevent:receive\ndata:{event}\n\n"));
            }
            drop(state);
            // An empty comment shows whether somebody is there.
            text.push_str(":\n\n");
            if writer.write_all(std::mem::take(&mut text).as_bytes()).is_err() {
                return;
            }
            state = self.lock();
            if state.events.len() <= next {
                let waited = self.changed.wait_timeout(state, TICK);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Begins to link a phone, or waits until it has scanned the code.
    fn link(&self, method: &str, params: &Value) -> Result<Value, String> {
        let mut state = self.lock();
        let linking = state.linking.get_or_insert_default();
        if method == "startLink" {
            let number = linking.addresses.len();
            let address = format!("sgnl://linkdevice?uuid=u{number}&pub_key=BQ%2Bkey{number}");
            linking.addresses.push(address.clone());
            self.changed.notify_all();
            return Ok(json!({"deviceLinkUri": address}));
        }
        let address = params["deviceLinkUri"].as_str().unwrap_or_default().to_owned();
        if !linking.addresses.contains(&address) {
            return Err("Unknown device link uri.".to_owned());
        }
        let begun = Instant::now();
        loop {
            let linking = state.linking.get_or_insert_default();
            match linking.scanned.take_if(|(scanned, _)| *scanned == address) {
                Some((_, account)) if account["error"].is_string() => {
                    return Err(account["error"].as_str().unwrap_or_default().to_owned());
                }
                Some((_, account)) => {
                    linking.names.push(params["deviceName"].as_str().unwrap_or("cli").to_owned());
                    return Ok(account);
                }
                None if begun.elapsed() > LINK_TIME => {
                    return Err("Link request timed out, please try again.".to_owned());
                }
                None => {}
            }
            let waited = self.changed.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// `None` closes the connection.
    fn respond(&self, body: &[u8]) -> Option<Value> {
        let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        let id = request["id"].clone();
        let error = |code: i64, message: &str, data: Value| {
            Some(
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}),
            )
        };
        if request["jsonrpc"] != "2.0" || !id.is_string() {
            return error(-32_600, "Invalid request", Value::Null);
        }
        let mut state = self.lock();
        let params = request["params"].clone();
        if state.linking.is_some() && ["startLink", "finishLink"].contains(&method.as_str()) {
            drop(state);
            return match self.link(&method, &params) {
                Ok(result) => Some(json!({"jsonrpc": "2.0", "id": id, "result": result})),
                Err(why) => error(-1, &why, Value::Null),
            };
        }
        if let Err((code, why)) = state.check(&method, &params) {
            state.refused.push(format!("{method}: {why}"));
            return error(code, &why, Value::Null);
        }
        let fault = if method == "send" { state.faults.pop_front() } else { None };
        match fault {
            Some(SignalFault::Refuse(code, message)) => return error(code, message, Value::Null),
            Some(SignalFault::Outcome(outcome)) => {
                let results = json!([{"recipientAddress": {"number": "+1"}, "type": outcome, "retryAfterSeconds": 1}]);
                return error(
                    -1,
                    "Failed to send message",
                    json!({"response": {"results": results, "timestamp": 1}}),
                );
            }
            _ => {}
        }
        let result = state.carry_out(&method, params);
        self.changed.notify_all();
        if matches!(fault, Some(SignalFault::Silence)) {
            return None;
        }
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

/// The parameters of a method, next to the account; `None` if there is no such method.
fn parameters(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        "version" | "listGroups" => &[],
        "listContacts" => &["allRecipients"],
        "send" => &[
            "recipient",
            "groupId",
            "message",
            "attachments",
            "textStyles",
            "quoteTimestamp",
            "quoteAuthor",
            "quoteMessage",
            "editTimestamp",
        ],
        "sendReaction" => &["recipient", "groupId", "emoji", "targetAuthor", "targetTimestamp"],
        "remoteDelete" => &["recipient", "groupId", "targetTimestamp"],
        "sendTyping" => &["recipient", "groupId"],
        "sendReceipt" => &["recipient", "targetTimestamp", "type"],
        "getAttachment" => &["id", "recipient", "groupId"],
        _ => return None,
    })
}

impl State {
    fn calls(&self, method: &str) -> Vec<Value> {
        self.calls.iter().filter(|(name, _)| name == method).map(|(_, it)| it.clone()).collect()
    }

    fn check(&self, method: &str, params: &Value) -> Result<(), (i64, String)> {
        let Some(known) = parameters(method) else {
            return Err((-32_601, "Method not implemented".to_owned()));
        };
        let is_linked = self.linking.as_ref().is_none_or(|linking| !linking.names.is_empty());
        if params["account"] != ACCOUNT || !is_linked {
            return Err((-32_602, "Specified account does not exist".to_owned()));
        }
        let wrong = |why: &str| Err((-1, why.to_owned()));
        let mut keys = params.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        if let Some(key) = keys.find(|key| *key != "account" && !known.contains(key)) {
            return Err((-1, format!("there is no parameter {key}")));
        }
        let needs_receiver = known.contains(&"groupId");
        let is_person = |it: &Value| it.as_str().is_some_and(|it| it.starts_with('+'));
        let has_person =
            params["recipient"].as_array().is_some_and(|all| all.iter().all(is_person));
        if needs_receiver && has_person == params["groupId"].is_string() {
            return wrong("No recipients given");
        }
        let is_missing = |key: &str| params[key].is_null();
        match method {
            "send" => {
                let text = params["message"].as_str().unwrap_or_default();
                if text.is_empty() && is_missing("attachments") {
                    return wrong("Sending empty message is not allowed");
                }
                let units = text.encode_utf16().count();
                for style in params["textStyles"].as_array().into_iter().flatten() {
                    let parts: Vec<&str> = style.as_str().unwrap_or_default().split(':').collect();
                    let [start, length, name] = parts.as_slice() else {
                        return wrong("Invalid textStyle syntax");
                    };
                    let end = start.parse::<usize>().ok().zip(length.parse::<usize>().ok());
                    let names = ["BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE", "SPOILER"];
                    if end.is_none_or(|(start, length)| start + length > units)
                        || !names.contains(name)
                    {
                        return wrong("Invalid textStyle syntax");
                    }
                }
                let has_time = params["quoteTimestamp"].is_u64();
                if has_time == is_missing("quoteAuthor") || has_time == is_missing("quoteMessage") {
                    return wrong("a quote needs a time, an author and a text");
                }
                let is_data = |it: &Value| {
                    it.as_str().is_some_and(|it| it.starts_with("data:") && it.contains(";base64,"))
                };
                if !params["attachments"].as_array().into_iter().flatten().all(is_data) {
                    return wrong("the file is not there");
                }
            }
            "sendReaction" if is_missing("emoji") || is_missing("targetAuthor") => {
                return wrong("emoji is missing");
            }
            "sendReaction" | "remoteDelete" | "sendReceipt"
                if !params["targetTimestamp"].is_u64() =>
            {
                return wrong("targetTimestamp is missing");
            }
            _ => {}
        }
        Ok(())
    }

    fn carry_out(&mut self, method: &str, params: Value) -> Value {
        if method == "getAttachment" {
            let id = params["id"].as_str().unwrap_or_default();
            let file = self.files.iter().enumerate().find(|(at, _)| format!("file{at}") == id);
            let answer = json!({"data": file.map(|(_, data)| data)});
            self.calls.push((method.to_owned(), params));
            return answer;
        }
        if method == "listContacts" {
            return self.contacts.clone();
        }
        if method == "version" {
            return json!({"version": "0.13.18"});
        }
        self.calls.push((method.to_owned(), params));
        let time = 1_700_000_000_000 + self.calls.len() as u64;
        json!({"timestamp": time, "results": [{"recipientAddress": {"number": "+1"}, "type": "SUCCESS"}]})
    }
}
