//! A model server that says exactly what a test scripts, byte for byte, and keeps what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use myclaw_llm::{
    Api, AssistantMessage, CallFailure, CallLimits, HttpOptions, HttpProvider, InputKind, Message,
    Model, ModelError, ModelRequest, PairedMessages, Price, Provider, Quirks, StreamEvent,
    ThinkingLevel, ThinkingLevels, ToolSchema, ToolUse, UserMessage,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Waits until the client closes the connection.
    WaitForClose,
    Close,
    Reset,
}

pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec())
}

/// What a request looked like.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) connection: usize,
    pub(crate) head: String,
    /// The body as it came.
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

#[derive(Debug, Default)]
struct State {
    answers: std::collections::VecDeque<Vec<Step>>,
    requests: Vec<Recorded>,
    connections: usize,
    closed_by_client: usize,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl Server {
    /// Answers the n-th request with the n-th script.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            answers: answers.into_iter().collect(),
            ..State::default()
        }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let connection = {
                    let mut state = shared.lock().unwrap();
                    state.connections += 1;
                    state.connections
                };
                tokio::spawn(serve(socket, connection, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    pub(crate) async fn wait_until_client_closed(&self) {
        tokio::time::timeout(Duration::from_secs(60), async {
            while self.state.lock().unwrap().closed_by_client == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .expect("the client closes its connection");
    }
}

async fn serve(mut socket: TcpStream, connection: usize, state: Arc<Mutex<State>>) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = read_request(&mut socket, &mut buffer).await {
        let steps = {
            let mut state = state.lock().unwrap();
            // A form is kept as text.
            let text = String::from_utf8_lossy(&body).into_owned();
            let body = serde_json::from_slice(&body).unwrap_or_else(|_| Value::from(text.clone()));
            state.requests.push(Recorded { connection, head, text, body });
            state.answers.pop_front().unwrap_or_default()
        };
        for step in steps {
            match step {
                Step::Send(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                    let _ = socket.flush().await;
                }
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::WaitForClose => {
                    let mut byte = [0];
                    let _ = socket.read(&mut byte).await;
                    state.lock().unwrap().closed_by_client += 1;
                    return;
                }
                Step::Close => return,
                Step::Reset => {
                    socket.set_zero_linger().unwrap();
                    return;
                }
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let head_end = loop {
        if let Some(position) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break position;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned)
        })
        .map_or(0, |length| length.parse::<usize>().unwrap());
    while buffer.len() < head_end + 4 + length {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let rest = buffer.split_off(head_end + 4 + length);
    let body = buffer[head_end + 4..].to_vec();
    *buffer = rest;
    Some((head, body))
}

/// A head with these header lines, without a length: the caller adds one.
pub(crate) fn head(status: &str, headers: &[&str]) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{}\r\n",
        headers.iter().map(|line| format!("{line}\r\n")).collect::<String>()
    )
}

/// A whole answer with its length.
pub(crate) fn answer(status: &str, content_type: &str, body: &str) -> Vec<Step> {
    let lines =
        [&format!("content-type: {content_type}"), &format!("content-length: {}", body.len())];
    let mut bytes = head(status, &lines.map(String::as_str)).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    vec![Step::Send(bytes)]
}

/// A stream of events in chunks, properly ended.
pub(crate) fn stream(body: impl AsRef<[u8]>) -> Vec<Step> {
    let mut steps = vec![send(chunked_head())];
    steps.extend(body.as_ref().chunks(700).map(|piece| Step::Send(chunk(piece))));
    steps.push(send("0\r\n\r\n"));
    steps
}

pub(crate) fn chunked_head() -> String {
    head("200 OK", &["content-type: text/event-stream", "transfer-encoding: chunked"])
}

pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}

pub(crate) fn model(api: Api, base_url: &str) -> Model {
    Model {
        id: "test-model".to_owned(),
        provider: "testing".to_owned(),
        api,
        base_url: base_url.to_owned(),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text, InputKind::Image],
        price: Some(Price { input: 1.0, output: 10.0, cache_read: 0.1, cache_write: 1.25 }),
        context_window: 200_000,
        max_output: 8192,
        quirks: Quirks::default(),
    }
}

pub(crate) fn tools() -> Vec<ToolSchema> {
    vec![ToolSchema {
        name: "read".to_owned(),
        description: "Reads a file.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    }]
}

pub(crate) fn hello() -> PairedMessages {
    PairedMessages::repair(vec![Message::User(UserMessage::text("hello", 1))])
}

/// How a call went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Result<AssistantMessage, CallFailure>,
    pub(crate) events: Vec<StreamEvent>,
}

impl Outcome {
    pub(crate) fn error(&self) -> &ModelError {
        match &self.result {
            Err(CallFailure::Failed { error, .. }) => error,
            other => panic!("expected a failure, got {other:?}"),
        }
    }

    pub(crate) fn message(&self) -> &AssistantMessage {
        self.result.as_ref().expect("a message")
    }
}

pub(crate) fn provider() -> HttpProvider {
    HttpProvider::new(HttpOptions {
        user_agent: "myclaw-test/1".to_owned(),
        extra_ca_files: Vec::new(),
        ..HttpOptions::default()
    })
}

pub(crate) async fn call(provider: &HttpProvider, model: &Model) -> Outcome {
    call_with(provider, model, &hello(), CallLimits::default(), &CancellationToken::new()).await
}

pub(crate) async fn call_with(
    provider: &HttpProvider,
    model: &Model,
    messages: &PairedMessages,
    limits: CallLimits,
    cancel: &CancellationToken,
) -> Outcome {
    let key = SecretString::from(KEY);
    let tools = tools();
    let request = ModelRequest {
        model,
        system_prompt: "You help.",
        messages,
        tools: &tools,
        tool_use: ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: Some(&key),
        limits,
    };
    let mut events = Vec::new();
    let result = provider.call(request, cancel, &mut |event| events.push(event)).await;
    Outcome { result, events }
}
