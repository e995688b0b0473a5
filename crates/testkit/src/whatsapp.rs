//! A strict Cloud API of WhatsApp, written from the vendor's published reference: what the real one refuses, it refuses,
//! with the same codes. An unknown field of a request is a refusal too, so that a misspelt one fails a test.

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::thread;

use serde_json::{Value, json};

use crate::vendor::{PATIENCE, Request, Shared, answer, serve};

/// Longest text ("Text messages").
const MOST_CHARS: usize = 4_096;
const VERSION: &str = "v26.0";
const TOKEN: &str = "EAAsecret";
/// The ids of the numbers that the token is for.
const NUMBERS: [&str; 2] = ["106540352242922", "106540352242923"];

/// What the server does with the next message, instead of sending it.
#[derive(Debug, Clone, Copy)]
pub enum WhatsAppFault {
    /// Refuses it with this status and code.
    Refuse(u16, u32),
    /// Sends it and breaks the connection before it answers.
    Silence,
    /// Sends it and does not answer for a minute.
    Hang,
}

/// A message that was sent.
#[derive(Debug, Clone)]
pub struct WhatsAppMessage {
    /// Its id.
    pub id: String,
    /// The id of the number that sent it.
    pub number: String,
    /// The body of the request.
    pub body: Value,
}

impl WhatsAppMessage {
    /// Its text.
    pub fn text(&self) -> &str {
        self.body["text"]["body"].as_str().unwrap_or_default()
    }
}

/// A Cloud API on a free port. It ends with the process.
#[derive(Debug, Clone)]
pub struct WhatsAppServer {
    shared: Arc<Shared<State>>,
    port: u16,
}

#[derive(Debug, Default)]
struct State {
    sent: Vec<WhatsAppMessage>,
    /// The ids of messages that were marked as read.
    read: Vec<String>,
    faults: VecDeque<WhatsAppFault>,
    /// Files that people have sent, and those that were uploaded: media type and bytes.
    files: Vec<(String, Vec<u8>)>,
    /// Another address for files.
    file_base: Option<String>,
    refused: Vec<String>,
}

/// Why a request is refused: status, code and details.
type Refusal = (u16, u32, String);

impl WhatsAppServer {
    /// Starts a server.
    pub fn start() -> Self {
        let shared = Arc::<Shared<State>>::default();
        let serving = Arc::clone(&shared);
        let port = serve(move |stream| converse(&serving, stream));
        Self { shared, port }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The token that it knows.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// The ids of its numbers.
    pub fn numbers(&self) -> [&'static str; 2] {
        NUMBERS
    }

    /// While it is down, it closes every connection.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Keeps a file that a person sends; gives its id.
    pub fn keep_file(&self, media_type: &str, bytes: &[u8]) -> String {
        self.lock().keep(media_type, bytes)
    }

    /// Says from now on that files are at another server.
    pub fn move_files(&self, base: &str) {
        self.lock().file_base = Some(base.to_owned());
    }

    /// The bytes of a file, with its media type.
    pub fn file(&self, id: &str) -> (String, Vec<u8>) {
        let at: usize = id.trim_start_matches("media").parse().expect("the id of a file");
        self.lock().files[at].clone()
    }

    /// The next message meets a fault.
    pub fn fail_next(&self, fault: WhatsAppFault) {
        self.lock().faults.push_back(fault);
    }

    /// The messages that were sent.
    pub fn sent(&self) -> Vec<WhatsAppMessage> {
        self.lock().sent.clone()
    }

    /// The ids of messages that were marked as read, with the indicator of typing.
    pub fn read(&self) -> Vec<String> {
        self.lock().read.clone()
    }

    /// What was refused because the request was wrong. Faults are not in it.
    pub fn refused(&self) -> Vec<String> {
        self.lock().refused.clone()
    }

    /// Waits until `found` gives something about the messages that were sent.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for<T>(&self, what: &str, found: impl Fn(&[WhatsAppMessage]) -> Option<T>) -> T {
        self.shared.wait_for(what, |state| found(&state.sent))
    }

    /// Waits for a text that contains `words`.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_text(&self, words: &str) -> WhatsAppMessage {
        self.wait_for(words, |sent| sent.iter().find(|it| it.text().contains(words)).cloned())
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
        let Some((status, body)) = shared.respond(&request) else { return };
        if answer(&mut writer, status, &body).is_err() {
            return;
        }
    }
}

impl Shared<State> {
    /// `None` closes the connection.
    fn respond(&self, request: &Request) -> Option<(u16, Vec<u8>)> {
        let json = |status: u16, body: &Value| Some((status, body.to_string().into_bytes()));
        let refuse = |(status, code, details): Refusal| {
            let error = json!({
                "message": format!("(#{code}) refused"), "type": "OAuthException", "code": code,
                "error_data": {"messaging_product": "whatsapp", "details": details},
                "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam",
            });
            json(status, &json!({"error": error}))
        };
        if request.header("authorization") != format!("Bearer {TOKEN}") {
            return refuse((401, 190, "Access token could not be decrypted".to_owned()));
        }
        let mut state = self.lock();
        if let Some(id) = request.path.strip_prefix("/files/") {
            let file = state.files.iter().enumerate().find(|(at, _)| format!("media{at}") == id);
            return Some(file.map_or((404, Vec::new()), |(_, (_, bytes))| (200, bytes.clone())));
        }
        let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let outcome = match (request.method.as_str(), parts.as_slice()) {
            ("POST", [VERSION, number, "messages"]) if NUMBERS.contains(number) => {
                let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
                let checked = state.check(&body);
                let is_read = body["status"] == "read";
                let fault =
                    if checked.is_ok() && !is_read { state.faults.pop_front() } else { None };
                match (checked, fault) {
                    (Err(refusal), _) => Err(refusal),
                    (Ok(()), Some(WhatsAppFault::Refuse(status, code))) => {
                        return refuse((status, code, "as the test wants it".to_owned()));
                    }
                    (Ok(()), Some(WhatsAppFault::Silence)) => {
                        state.carry_out(number, body);
                        self.changed.notify_all();
                        return None;
                    }
                    (Ok(()), Some(WhatsAppFault::Hang)) => {
                        state.carry_out(number, body);
                        drop(state);
                        self.changed.notify_all();
                        thread::sleep(PATIENCE);
                        return None;
                    }
                    (Ok(()), None) => Ok(state.carry_out(number, body)),
                }
            }
            ("POST", [VERSION, number, "media"]) if NUMBERS.contains(number) => {
                state.upload(request)
            }
            ("GET", [VERSION, number]) if NUMBERS.contains(number) => Ok(json!({
                "id": number, "display_phone_number": "+1 555-078-3881", "verified_name": "Claw",
            })),
            ("GET", [VERSION, id]) => state.place(id, request),
            _ => Err((400, 100, format!("Unsupported request: {}", request.path))),
        };
        self.changed.notify_all();
        match outcome {
            Ok(body) => json(200, &body),
            Err(refusal) => {
                state.refused.push(refusal.2.clone());
                refuse(refusal)
            }
        }
    }
}

impl State {
    fn keep(&mut self, media_type: &str, bytes: &[u8]) -> String {
        self.files.push((media_type.to_owned(), bytes.to_vec()));
        format!("media{}", self.files.len() - 1)
    }

    fn place(&self, id: &str, request: &Request) -> Result<Value, Refusal> {
        let at = id.strip_prefix("media").and_then(|at| at.parse::<usize>().ok());
        let (media_type, bytes) = at
            .and_then(|at| self.files.get(at))
            .ok_or_else(|| (400, 100, "Unsupported get request".to_owned()))?;
        let base =
            self.file_base.clone().unwrap_or_else(|| format!("http://{}", request.header("host")));
        Ok(json!({
            "messaging_product": "whatsapp", "url": format!("{base}/files/{id}"), "id": id,
            "mime_type": media_type, "sha256": "x", "file_size": bytes.len(),
        }))
    }

    fn upload(&mut self, request: &Request) -> Result<Value, Refusal> {
        let wrong = |why: &str| (400, 100, why.to_owned());
        let boundary =
            request.header("content-type").strip_prefix("multipart/form-data; boundary=");
        let boundary = boundary.ok_or_else(|| wrong("Param file is required"))?;
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let field = |name: &str| {
            let start = format!("name=\"{name}\"\r\n\r\n");
            text.split(&start).nth(1).and_then(|rest| rest.split("\r\n").next()).map(str::to_owned)
        };
        if field("messaging_product").as_deref() != Some("whatsapp") {
            return Err(wrong("Param messaging_product must be whatsapp"));
        }
        let media_type = field("type").ok_or_else(|| wrong("Param type is required"))?;
        let known = ["image/jpeg", "image/png", "text/plain", "application/pdf", "audio/ogg"];
        if !known.contains(&media_type.as_str()) {
            return Err(wrong("Param file must be a file with one of the following types"));
        }
        let head =
            text.find("name=\"file\"; filename=").ok_or_else(|| wrong("Param file is required"))?;
        let is_typed = text[head..].contains(&format!("content-type: {media_type}\r\n"));
        if !is_typed || !text.ends_with(&format!("\r\n--{boundary}--\r\n")) {
            return Err(wrong("the form is broken"));
        }
        let find = |from: usize, what: &[u8]| {
            request.body[from..].windows(what.len()).position(|it| it == what).map(|at| at + from)
        };
        let file = find(0, b"name=\"file\"").and_then(|at| find(at, b"\r\n\r\n")).map(|at| at + 4);
        let end = request.body.len() - format!("\r\n--{boundary}--\r\n").len();
        let bytes = request.body[file.ok_or_else(|| wrong("the form is broken"))?..end].to_vec();
        Ok(json!({"id": self.keep(&media_type, &bytes)}))
    }

    /// Refuses what the reference does not know.
    fn check(&self, body: &Value) -> Result<(), Refusal> {
        let wrong = |why: String| (400, 100, why);
        let fields = body.as_object().ok_or_else(|| wrong("the body is no object".to_owned()))?;
        let text =
            |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if text("/messaging_product") != "whatsapp" {
            return Err(wrong("messaging_product must be whatsapp".to_owned()));
        }
        let only = |value: &Value, known: &[&str]| {
            let keys = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            match keys.into_iter().find(|key| !known.contains(key)) {
                Some(key) => Err((400, 100, format!("Unexpected key \"{key}\""))),
                None => Ok(()),
            }
        };
        if fields.contains_key("status") {
            only(body, &["messaging_product", "status", "message_id", "typing_indicator"])?;
            let is_right = text("/status") == "read"
                && text("/message_id").starts_with("wamid.")
                && text("/typing_indicator/type") == "text";
            return is_right.then_some(()).ok_or_else(|| wrong("Invalid status".to_owned()));
        }
        let kind = text("/type");
        let known = [
            "messaging_product",
            "recipient_type",
            "to",
            "recipient",
            "type",
            "context",
            "biz_opaque_callback_data",
            kind,
        ];
        only(body, &known)?;
        let is_addressed = match (text("/recipient_type"), text("/to"), text("/recipient")) {
            ("individual", to, "") => !to.is_empty() && to.bytes().all(|it| it.is_ascii_digit()),
            ("individual", "", person) => person.split('.').count() >= 2,
            ("group", group, "") => !group.is_empty(),
            _ => false,
        };
        if !is_addressed {
            return Err(wrong("Param to is wrong".to_owned()));
        }
        if !body["context"].is_null() && !text("/context/message_id").starts_with("wamid.") {
            return Err(wrong("Param context is wrong".to_owned()));
        }
        if text("/biz_opaque_callback_data").len() > 512 {
            return Err(wrong("biz_opaque_callback_data is too long".to_owned()));
        }
        let content = &body[kind];
        let is_kept =
            || self.files.iter().enumerate().any(|(at, _)| content["id"] == format!("media{at}"));
        let is_right = match kind {
            "text" => {
                only(content, &["body", "preview_url"])?;
                let count = text("/text/body").chars().count();
                (1..=MOST_CHARS).contains(&count) && !text("/text/body").trim().is_empty()
            }
            "image" => only(content, &["id", "caption"]).is_ok() && is_kept(),
            "document" => only(content, &["id", "caption", "filename"]).is_ok() && is_kept(),
            "audio" => only(content, &["id"]).is_ok() && is_kept(),
            "reaction" => {
                only(content, &["message_id", "emoji"])?;
                text("/reaction/message_id").starts_with("wamid.") && content["emoji"].is_string()
            }
            "template" => {
                only(content, &["name", "language"])?;
                content["name"].is_string() && content["language"]["code"].is_string()
            }
            _ => false,
        };
        is_right.then_some(()).ok_or_else(|| wrong(format!("Param {kind} is wrong")))
    }

    fn carry_out(&mut self, number: &str, body: Value) -> Value {
        if body["status"] == "read" {
            self.read.push(body["message_id"].as_str().unwrap_or_default().to_owned());
            return json!({"success": true});
        }
        let id = format!("wamid.OUT{}", self.sent.len());
        let to = body["to"].clone();
        self.sent.push(WhatsAppMessage { id: id.clone(), number: number.to_owned(), body });
        json!({
            "messaging_product": "whatsapp", "contacts": [{"input": to, "wa_id": to}],
            "messages": [{"id": id}],
        })
    }
}
