//! A model server that does what the newest message says.
//!
//! A message holds an order in angle brackets: `<m7 say>` is answered at once, `<m7 stream 100 10>` with 100 deltas, ten
//! a second, `<m7 wait 2000>` after so many milliseconds. Each delta is `@NUMBER:TIME@`, where the time is in
//! nanoseconds since the start of the load.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval_at};

/// Longest request, in bytes.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The clock of the load, and what the model has seen.
pub(crate) struct Model {
    begun: Instant,
    /// By the number of the message: when the head of its first request came, and how many requests there were.
    seen: Mutex<HashMap<u64, (u64, u32)>>,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Say,
    Stream { count: u64, rate: u64 },
    Wait { milliseconds: u64 },
}

impl Model {
    /// Starts it on a free port.
    pub(crate) async fn start() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let model = Arc::new(Self { begun: Instant::now(), seen: Mutex::default(), port });
        let serving = Arc::clone(&model);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let model = Arc::clone(&serving);
                // A connection that breaks was closed by the client.
                tokio::spawn(async move { drop(model.serve(stream).await) });
            }
        });
        Ok(model)
    }

    /// Nanoseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// When the first request with a message came, and how many there were.
    pub(crate) fn seen(&self, message: u64) -> Option<(u64, u32)> {
        self.seen.lock().get(&message).copied()
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut bytes = Vec::new();
        loop {
            let Some((head, length)) = request_head(&mut stream, &mut bytes).await? else {
                return Ok(());
            };
            let arrived = self.now();
            while bytes.len() < head + length {
                if stream.read_buf(&mut bytes).await? == 0 {
                    return Ok(());
                }
            }
            let (number, order) = order(&bytes[head..head + length]);
            bytes.drain(..head + length);
            self.seen.lock().entry(number).or_insert((arrived, 0)).1 += 1;
            self.answer(&mut stream, number, order).await?;
        }
    }

    async fn answer(&self, stream: &mut TcpStream, number: u64, order: Order) -> io::Result<()> {
        const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                            Transfer-Encoding: chunked\r\n\r\n";
        let mut first = HEAD.to_owned();
        chunk(
            &mut first,
            "message_start",
            r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-20250514","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#,
        );
        chunk(
            &mut first,
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        );
        if let Order::Wait { milliseconds } = order {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        match order {
            Order::Say | Order::Wait { .. } => delta(&mut first, &format!("re: [m{number}]")),
            Order::Stream { count, rate } => {
                stream.write_all(std::mem::take(&mut first).as_bytes()).await?;
                let pause = Duration::from_nanos(1_000_000_000 / rate.max(1));
                let mut ticks = interval_at(tokio::time::Instant::now() + pause, pause);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for number in 0..count {
                    ticks.tick().await;
                    let mut event = String::new();
                    delta(&mut event, &format!("@{number}:{}@", self.now()));
                    stream.write_all(event.as_bytes()).await?;
                }
            }
        }
        chunk(&mut first, "content_block_stop", r#"{"type":"content_block_stop","index":0}"#);
        chunk(
            &mut first,
            "message_delta",
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}"#,
        );
        chunk(&mut first, "message_stop", r#"{"type":"message_stop"}"#);
        first.push_str("0\r\n\r\n");
        stream.write_all(first.as_bytes()).await
    }
}

/// The length of the head of the next request, and that of its body; `None` at the end of the connection.
async fn request_head(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<(usize, usize)>> {
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
            return Ok(Some((at + 4, length)));
        }
        if bytes.len() > MOST_BYTES || stream.read_buf(bytes).await? == 0 {
            return Ok(None);
        }
    }
}

/// The newest order in the body of a request.
fn order(body: &[u8]) -> (u64, Order) {
    let nothing = (u64::MAX, Order::Say);
    let Some(at) = body.windows(2).rposition(|two| two == b"<m") else { return nothing };
    let rest = &body[at + 2..];
    let end = rest.iter().position(|byte| *byte == b'>').unwrap_or(0);
    let text = String::from_utf8_lossy(&rest[..end]);
    let mut words = text.split(' ');
    let mut next = || words.next().unwrap_or_default().to_owned();
    let Ok(number) = next().parse() else { return nothing };
    let order = match next().as_str() {
        "stream" => {
            Order::Stream { count: next().parse().unwrap_or(1), rate: next().parse().unwrap_or(1) }
        }
        "wait" => Order::Wait { milliseconds: next().parse().unwrap_or(0) },
        _ => Order::Say,
    };
    (number, order)
}

fn delta(out: &mut String, text: &str) {
    let data = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    );
    chunk(out, "content_block_delta", &data);
}

fn chunk(out: &mut String, name: &str, data: &str) {
    use std::fmt::Write as _;
    let event = format!("event: {name}\ndata: {data}\n\n");
    let _ = write!(out, "{:x}\r\n{event}\r\n", event.len());
}
