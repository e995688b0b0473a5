//! The bare relay, with which the gateway is compared: HTTP in, JSON parsed, WebSocket out, and nothing else. It has no
//! sessions, no log, no limits, and knows no mistakes. `relay MODEL_PORT` prints the port on which it listens.
#![forbid(unsafe_code)]

use std::error::Error;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Fallible<()> {
    let model: u16 = std::env::args().nth(1).ok_or("usage: relay MODEL_PORT")?.parse()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on {}", listener.local_addr()?.port());
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let upgrade = async |upgrade: WebSocketUpgrade, State(model): State<u16>| {
        upgrade.on_upgrade(async move |socket| drop(serve(socket, model).await))
    };
    axum::serve(listener, Router::new().route("/ws", get(upgrade)).with_state(model)).await?;
    Ok(())
}

/// Each text is a question to the model; its deltas are the answers.
async fn serve(mut socket: WebSocket, model: u16) -> Fallible<()> {
    while let Some(Ok(message)) = socket.recv().await {
        let Message::Text(text) = message else { continue };
        let question: Value = serde_json::from_str(&text)?;
        let text = question["params"]["text"].as_str().unwrap_or_default();
        relay(&mut socket, model, text).await?;
    }
    Ok(())
}

async fn relay(socket: &mut WebSocket, model: u16, text: &str) -> Fallible<()> {
    let body = json!({"stream": true, "messages": [{"role": "user", "content": text}]}).to_string();
    let stream = TcpStream::connect(("127.0.0.1", model)).await?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{model}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    let mut chunk = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let length = usize::from_str_radix(line.trim(), 16)?;
        chunk.resize(length + 2, 0);
        stream.read_exact(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        for line in chunk.split(|byte| *byte == b'\n') {
            let Some(data) = line.strip_prefix(b"data: ") else { continue };
            let event: Value = serde_json::from_slice(data)?;
            if let Some(delta) = event["delta"]["text"].as_str() {
                let frame = json!({"type": "event", "delta": delta}).to_string();
                socket.send(Message::text(frame)).await?;
            }
        }
    }
}
