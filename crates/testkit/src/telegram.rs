//! A strict Bot API server, written from the published schema: what a real one refuses, it refuses.

mod schema;

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::schema::{check_buttons, check_text};
use crate::vendor::{PATIENCE, Shared};
use crate::wire::{Request, answer};

/// What the server does with the next call of a method, instead of carrying it out.
#[derive(Debug, Clone)]
pub enum TelegramFault {
    /// Refuses it with 429 and this many seconds.
    TooMany(u64),
    /// Carries it out and breaks the connection before it answers.
    Silence,
    /// Carries it out and does not answer for a minute.
    Hang,
    /// Answers this status and description.
    Refuse(u16, &'static str),
    /// Refuses it, because the group has become a supergroup with this id.
    Moved(i64),
}

/// A message that a bot has sent, as it is now.
#[derive(Debug, Clone)]
pub struct BotMessage {
    /// Its id.
    pub id: i64,
    /// The parameters of the call that sent it; the text is that of the last edit.
    pub params: Value,
    /// How often it was edited.
    pub edits: usize,
}

impl BotMessage {
    /// Its text.
    pub fn text(&self) -> &str {
        self.params["text"].as_str().unwrap_or_default()
    }

    /// The commands of its buttons.
    pub fn buttons(&self) -> Vec<String> {
        let rows = self.params["reply_markup"]["inline_keyboard"].as_array();
        let keys = rows.into_iter().flatten().filter_map(Value::as_array).flatten();
        keys.filter_map(|key| key["callback_data"].as_str().map(str::to_owned)).collect()
    }
}

/// A Bot API server on a free port, for one bot. It ends with the process.
#[derive(Debug, Clone)]
pub struct TelegramServer {
    shared: Arc<Shared<State>>,
    port: u16,
}

#[derive(Debug, Default)]
struct State {
    updates: VecDeque<Value>,
    next_update: i64,
    next_message: i64,
    sent: Vec<BotMessage>,
    calls: Vec<(String, Value)>,
    faults: VecDeque<(String, TelegramFault)>,
    files: Vec<Vec<u8>>,
    webhook: Option<Value>,
}

/// The token that the server knows.
const TOKEN: &str = "12345:secret-of-the-bot";
/// The bot's own id and name.
const BOT: (i64, &str) = (12_345, "claw_bot");

impl TelegramServer {
    /// Starts a server.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = State { next_update: 100, next_message: 1_000, ..State::default() };
        let shared = Arc::new(Shared::new(state));
        let server = Self { shared, port };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.converse(stream));
            }
        });
        server
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The token of the bot.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// While it is down, it closes every connection.
    pub fn set_down(&self, is_down: bool) {
        self.shared.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Somebody writes to the bot: a message in a private chat. Gives its id.
    pub fn write(&self, person: i64, text: &str) -> i64 {
        let chat = json!({"id": person, "type": "private", "first_name": "Ann"});
        self.deliver(person, &chat, &json!({"text": text}))
    }

    /// A message of somebody in a chat, with further fields.
    pub fn deliver(&self, person: i64, chat: &Value, fields: &Value) -> i64 {
        let mut state = self.lock();
        state.next_message += 1;
        let id = state.next_message;
        state.happen("message", &said(id, person, chat, fields));
        self.shared.changed.notify_all();
        id
    }

    /// Somebody edits a message.
    pub fn edit(&self, id: i64, person: i64, chat: &Value, fields: &Value) {
        self.lock().happen("edited_message", &said(id, person, chat, fields));
        self.shared.changed.notify_all();
    }

    /// Somebody presses the button of a message of the bot that stands for this command. Gives the id of the press.
    ///
    /// # Panics
    /// The message has no such button.
    pub fn press(&self, person: i64, chat: &Value, message: &BotMessage, command: &str) -> String {
        let found = message.buttons().into_iter().find(|it| it.starts_with(command));
        let found = found.unwrap_or_else(|| panic!("no button {command}: {message:?}"));
        self.press_with(person, chat, message.id, &found)
    }

    /// Somebody presses a button that says whatever that person's client likes.
    pub fn press_with(&self, person: i64, chat: &Value, message: i64, data: &str) -> String {
        let mut state = self.lock();
        state.next_message += 1;
        let id = format!("press{}", state.next_message);
        let on = json!({
            "message_id": message, "date": 1_700_000_000, "chat": chat, "text": "whatever it says",
            "from": {"id": BOT.0, "is_bot": true, "first_name": "Claw"},
        });
        let from = json!({"id": person, "is_bot": false, "first_name": format!("Person {person}")});
        let press = json!({"id": id, "from": from, "message": on, "data": data});
        state.happen("callback_query", &press);
        self.shared.changed.notify_all();
        id
    }

    /// The parameters with which the bot asked for requests, if it did.
    pub fn webhook(&self) -> Option<Value> {
        self.lock().webhook.clone()
    }

    /// Keeps a file that messages can name by the id `file<number>`.
    pub fn keep_file(&self, bytes: &[u8]) -> String {
        let mut state = self.lock();
        state.files.push(bytes.to_vec());
        format!("file{}", state.files.len() - 1)
    }

    /// The next call of `method` meets a fault.
    pub fn fail_next(&self, method: &str, fault: TelegramFault) {
        self.lock().faults.push_back((method.to_owned(), fault));
    }

    /// The messages of the bot, as they are now.
    pub fn sent(&self) -> Vec<BotMessage> {
        self.lock().sent.clone()
    }

    /// All calls so far: method and parameters.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.lock().calls.clone()
    }

    /// Updates that the bot has not confirmed.
    pub fn waiting(&self) -> usize {
        self.lock().updates.len()
    }

    /// Waits until `found` gives something about the state of the messages.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for<T>(&self, what: &str, found: impl Fn(&[BotMessage]) -> Option<T>) -> T {
        self.shared.wait_for(what, |state| found(&state.sent))
    }

    /// Waits for a message whose text contains `words`.
    ///
    /// # Panics
    /// It takes too long.
    pub fn wait_for_text(&self, words: &str) -> BotMessage {
        self.wait_for(words, |sent| {
            sent.iter().find(|message| message.text().contains(words)).cloned()
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    fn converse(&self, stream: TcpStream) {
        let Ok(mut writer) = stream.try_clone() else { return };
        let mut reader = BufReader::new(stream);
        while let Some(request) = Request::read(&mut reader) {
            if self.shared.is_down.load(Ordering::SeqCst) {
                return;
            }
            let found = match request.path.strip_prefix("/file/bot") {
                Some(rest) => self.file(rest),
                None => self
                    .api(&request.path, request.header("content-type"), &request.body)
                    .map(|(status, answer)| (status, answer.to_string().into_bytes())),
            };
            let Some((status, bytes)) = found else { return };
            if !answer(&mut writer, status, "", &bytes) {
                return;
            }
        }
    }

    fn file(&self, rest: &str) -> Option<(u16, Vec<u8>)> {
        let number = rest.strip_prefix(TOKEN)?.strip_prefix("/files/")?;
        let bytes = number.parse::<usize>().ok().and_then(|at| self.lock().files.get(at).cloned());
        Some(bytes.map_or_else(|| (404, Vec::new()), |bytes| (200, bytes)))
    }

    /// `None` closes the connection.
    fn api(&self, path: &str, content_type: &str, body: &[u8]) -> Option<(u16, Value)> {
        let method = match path.strip_prefix("/bot").and_then(|rest| rest.strip_prefix(TOKEN)) {
            Some(rest) => rest.trim_start_matches('/').to_owned(),
            None => return Some(refusal(401, "Unauthorized")),
        };
        let params = if content_type.starts_with("multipart/form-data") {
            json!({"multipart": String::from_utf8_lossy(body)})
        } else {
            serde_json::from_slice(body).unwrap_or(Value::Null)
        };
        let mut state = self.lock();
        state.calls.push((method.clone(), params.clone()));
        let fault = state.faults.iter().position(|(of, _)| *of == method);
        let fault = fault.and_then(|at| state.faults.remove(at)).map(|(_, fault)| fault);
        match fault {
            Some(TelegramFault::TooMany(seconds)) => {
                let mut answer = refusal(429, "Too Many Requests").1;
                answer["parameters"] = json!({"retry_after": seconds});
                return Some((429, answer));
            }
            Some(TelegramFault::Refuse(status, why)) => return Some(refusal(status, why)),
            Some(TelegramFault::Moved(chat)) => {
                let mut answer =
                    refusal(400, "Bad Request: group chat was upgraded to a supergroup chat").1;
                answer["parameters"] = json!({"migrate_to_chat_id": chat});
                return Some((400, answer));
            }
            Some(TelegramFault::Silence) => {
                let _ = state.carry_out(&method, &params);
                self.shared.changed.notify_all();
                return None;
            }
            Some(TelegramFault::Hang) => {
                let _ = state.carry_out(&method, &params);
                drop(state);
                self.shared.changed.notify_all();
                thread::sleep(PATIENCE);
                return None;
            }
            None => {}
        }
        if method == "getUpdates" {
            let answer = self.updates(state, &params);
            return Some((200, json!({"ok": true, "result": answer})));
        }
        let outcome = state.carry_out(&method, &params);
        self.shared.changed.notify_all();
        Some(match outcome {
            Ok(result) => (200, json!({"ok": true, "result": result})),
            Err(why) => refusal(400, &format!("Bad Request: {why}")),
        })
    }

    fn updates(&self, mut state: MutexGuard<'_, State>, params: &Value) -> Value {
        let offset = params["offset"].as_i64().unwrap_or(0);
        // The offset confirms everything before it.
        state.updates.retain(|update| update["update_id"].as_i64() >= Some(offset));
        let end = Instant::now() + Duration::from_secs(params["timeout"].as_u64().unwrap_or(0));
        while state.updates.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.shared.is_down.load(Ordering::SeqCst) {
                return json!([]);
            }
            let waited = self.shared.changed.wait_timeout(state, left.min(Duration::from_secs(1)));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.updates.iter().take(100).cloned().collect()
    }
}

impl State {
    fn happen(&mut self, kind: &str, message: &Value) {
        self.next_update += 1;
        self.updates.push_back(json!({"update_id": self.next_update, kind: message}));
    }

    fn carry_out(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        match method {
            "getMe" => Ok(json!({
                "id": BOT.0, "is_bot": true, "first_name": "Claw", "username": BOT.1,
            })),
            "deleteWebhook" => {
                self.webhook = None;
                Ok(json!(true))
            }
            "setWebhook" => {
                self.webhook = Some(params.clone());
                Ok(json!(true))
            }
            "sendChatAction" => Ok(json!(true)),
            "getFile" => {
                let id = params["file_id"].as_str().unwrap_or_default();
                let number = id.strip_prefix("file").ok_or("wrong file_id")?;
                Ok(json!({"file_id": id, "file_path": format!("files/{number}")}))
            }
            "answerCallbackQuery" => {
                params["callback_query_id"].as_str().ok_or("query is too old")?;
                Ok(json!(true))
            }
            "sendMessage" => {
                check_text(params)?;
                check_buttons(params)?;
                Ok(self.store(params.clone()))
            }
            "sendPhoto" | "sendDocument" | "sendVoice" | "sendAudio" => {
                Ok(self.store(params.clone()))
            }
            "sendPoll" => {
                let options = params["options"].as_array().ok_or("options are missing")?;
                let are_texts = options.iter().all(|option| option["text"].is_string());
                if !(2..=10).contains(&options.len()) || !are_texts {
                    return Err("poll must have 2 to 10 options".to_owned());
                }
                params["question"].as_str().ok_or("question is missing")?;
                Ok(self.store(params.clone()))
            }
            "setMessageReaction" => {
                params["message_id"].as_i64().ok_or("message_id is missing")?;
                let emoji = params["reaction"][0]["emoji"].as_str().unwrap_or_default();
                let known = ["\u{1f44d}", "\u{1f440}", "\u{2764}"];
                let is_known = params["reaction"][0]["type"] == "emoji" && known.contains(&emoji);
                is_known.then(|| json!(true)).ok_or_else(|| "REACTION_INVALID".to_owned())
            }
            "deleteMessage" => {
                let id = params["message_id"].as_i64().ok_or("message_id is missing")?;
                let at = self.sent.iter().position(|message| message.id == id);
                self.sent.remove(at.ok_or("message to delete not found")?);
                Ok(json!(true))
            }
            "editMessageText" => {
                check_text(params)?;
                check_buttons(params)?;
                let id = params["message_id"].as_i64().ok_or("message_id is missing")?;
                let message = self.sent.iter_mut().find(|message| message.id == id);
                let message = message.ok_or("message to edit not found")?;
                let of = |params: &Value| (params["text"].clone(), params["reply_markup"].clone());
                if of(&message.params) == of(params) {
                    return Err("message is not modified".to_owned());
                }
                for name in ["text", "reply_markup"] {
                    message.params[name] = params[name].clone();
                }
                message.edits += 1;
                Ok(json!({"message_id": id}))
            }
            other => Err(format!("method {other} not found")),
        }
    }

    fn store(&mut self, params: Value) -> Value {
        self.next_message += 1;
        let id = self.next_message;
        self.sent.push(BotMessage { id, params, edits: 0 });
        json!({"message_id": id, "date": 1_700_000_000, "chat": {"id": 1}})
    }
}

/// A message of somebody in a chat, with further fields.
fn said(id: i64, person: i64, chat: &Value, fields: &Value) -> Value {
    let mut message = json!({
        "message_id": id,
        "date": 1_700_000_000,
        "chat": chat,
        "from": {"id": person, "is_bot": false, "first_name": format!("Person {person}")},
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        message[key] = value.clone();
    }
    message
}

fn refusal(status: u16, description: &str) -> (u16, Value) {
    (status, json!({"ok": false, "error_code": status, "description": description}))
}
