//! Sends an answer's bytes to the client, with faults on request.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{AnswerEnd, Gate};

/// Bytes that are gathered for one write if pieces need not be sent separately: about as many as a fast server passes
/// to the kernel at a time.
const WRITE_BUFFER: usize = 64 * 1024;

/// A comment line, which clients of event streams must skip.
const KEEP_ALIVE_COMMENT: &[u8] = b": keep-alive\n\n";

/// How to send a body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delivery {
    pub(crate) delay: Duration,
    pub(crate) pause: Duration,
    /// A gate, and the bytes of the body that are sent while it is closed.
    pub(crate) hold: Option<(usize, Gate)>,
    pub(crate) pieces: Pieces,
    pub(crate) fault: Option<(usize, Fault)>,
    pub(crate) crlf: bool,
    pub(crate) drop_final_blank_line: bool,
    pub(crate) close_afterwards: bool,
}

/// The pieces of a body.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Pieces {
    /// One chunk per event of a stream, any other body whole; as few writes as possible.
    #[default]
    Natural,
    /// One write per event.
    Events,
    /// One chunk and one write per this many bytes.
    Bytes(usize),
}

/// What goes wrong after a number of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    Close,
    Reset,
    Stall { keep_alive: Option<Duration> },
}

/// A response before it is framed.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) kind: BodyKind,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// Sent with its length.
    Whole,
    /// Server-sent events, in chunks.
    EventStream,
    /// Amazon's binary framing of events, in chunks. Comments have no place in it, and it has no lines to reshape.
    BinaryEventStream,
}

/// What the server does with the connection next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) end: AnswerEnd,
    pub(crate) connection: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    KeepOpen,
    Close,
}

impl Sent {
    fn closed(end: AnswerEnd) -> Self {
        Self { end, connection: Next::Close }
    }
}

/// Sends `response` according to `delivery`. A client that disconnects is not an error but an
/// [`AnswerEnd::ClientGone`].
pub(crate) async fn send(
    stream: &mut TcpStream,
    mut response: Response,
    delivery: &Delivery,
) -> Sent {
    if response.kind == BodyKind::EventStream {
        delivery.reshape(&mut response.body);
    }
    match try_send(stream, &response, delivery).await {
        Ok(sent) => sent,
        Err(_gone) => Sent::closed(AnswerEnd::ClientGone),
    }
}

/// Sends bytes that need not be HTTP, then closes the connection.
pub(crate) async fn send_raw(stream: &mut TcpStream, bytes: &[u8], delivery: &Delivery) -> Sent {
    let send = async {
        wait(stream, delivery.delay).await?;
        delivery.hold_at(stream, 0).await?;
        let piece = match delivery.pieces {
            Pieces::Bytes(size) => size,
            Pieces::Natural | Pieces::Events => bytes.len().max(1),
        };
        let limit = delivery.limit(bytes);
        for piece in bytes[..limit].chunks(piece) {
            stream.write_all(piece).await?;
            wait(stream, delivery.pause).await?;
        }
        match delivery.fault {
            Some((_, fault)) => fail(stream, fault, Framing::Length).await,
            None => {
                stream.shutdown().await?;
                Ok(Sent::closed(AnswerEnd::Complete))
            }
        }
    };
    send.await.unwrap_or_else(|_: io::Error| Sent::closed(AnswerEnd::ClientGone))
}

async fn try_send(
    stream: &mut TcpStream,
    response: &Response,
    delivery: &Delivery,
) -> io::Result<Sent> {
    wait(stream, delivery.delay).await?;
    delivery.hold_at(stream, 0).await?;
    let framing = Framing::of(response, delivery);
    let limit = delivery.limit(&response.body);
    let mut out = head(response, delivery, framing);
    let mut sent = 0;
    for (number, piece) in
        delivery.divide(&response.body[..limit], response.kind).into_iter().enumerate()
    {
        if number > 0 {
            wait(stream, delivery.pause).await?;
        }
        if delivery.is_held_at(sent) {
            stream.write_all(&out).await?;
            out.clear();
            delivery.hold_at(stream, sent).await?;
        }
        sent += piece.len();
        framing.add(&mut out, piece);
        if delivery.writes_each_piece() || out.len() >= WRITE_BUFFER {
            stream.write_all(&out).await?;
            out.clear();
            // Gives the client a chance to read this piece alone.
            tokio::task::yield_now().await;
        }
    }
    if delivery.fault.is_none() {
        framing.finish(&mut out);
    }
    stream.write_all(&out).await?;
    match delivery.fault {
        Some((_, fault)) => fail(stream, fault, framing).await,
        None if delivery.close_afterwards => {
            stream.shutdown().await?;
            Ok(Sent::closed(AnswerEnd::Complete))
        }
        None => Ok(Sent { end: AnswerEnd::Complete, connection: Next::KeepOpen }),
    }
}

async fn fail(stream: &mut TcpStream, fault: Fault, framing: Framing) -> io::Result<Sent> {
    match fault {
        Fault::Close => {
            stream.shutdown().await?;
            Ok(Sent::closed(AnswerEnd::Cut))
        }
        Fault::Reset => {
            // With a linger of zero, closing sends RST instead of FIN.
            stream.set_zero_linger()?;
            Ok(Sent::closed(AnswerEnd::Cut))
        }
        Fault::Stall { keep_alive: None } => {
            until_gone(stream).await;
            Ok(Sent::closed(AnswerEnd::ClientGone))
        }
        Fault::Stall { keep_alive: Some(interval) } => {
            let mut comment = Vec::new();
            framing.add(&mut comment, KEEP_ALIVE_COMMENT);
            loop {
                wait(stream, interval).await?;
                stream.write_all(&comment).await?;
            }
        }
    }
}

impl Delivery {
    fn is_held_at(&self, sent: usize) -> bool {
        self.hold.as_ref().is_some_and(|(bytes, gate)| *bytes <= sent && !gate.is_open())
    }

    /// Waits for the gate that holds what comes after `sent` bytes of the body.
    async fn hold_at(&self, stream: &mut TcpStream, sent: usize) -> io::Result<()> {
        match &self.hold {
            Some((bytes, gate)) if *bytes <= sent => tokio::select! {
                () = gate.opened() => Ok(()),
                () = until_gone(stream) => Err(io::ErrorKind::ConnectionAborted.into()),
            },
            _ => Ok(()),
        }
    }
}

/// Waits, but only as long as the client is connected.
async fn wait(stream: &mut TcpStream, duration: Duration) -> io::Result<()> {
    if duration.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = tokio::time::sleep(duration) => Ok(()),
        () = until_gone(stream) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Completes when the client has closed the connection. Bytes that a client sends meanwhile are discarded: our clients
/// never send a request before the last answer is complete.
async fn until_gone(stream: &mut TcpStream) {
    let mut ignored = [0; 1024];
    while matches!(stream.read(&mut ignored).await, Ok(count) if count > 0) {}
}

impl Delivery {
    fn writes_each_piece(&self) -> bool {
        match self.pieces {
            Pieces::Natural => !self.pause.is_zero(),
            Pieces::Events | Pieces::Bytes(_) => true,
        }
    }

    /// How many bytes of `body` are sent.
    fn limit(&self, body: &[u8]) -> usize {
        match self.fault {
            None => body.len(),
            Some((0, _)) => 0,
            // A comment within an event would break the event, which is a different fault than silence.
            Some((after, Fault::Stall { keep_alive: Some(_) })) => {
                let mut ends = events(body).into_iter().scan(0, |end, event| {
                    *end += event.len();
                    Some(*end)
                });
                ends.find(|end| *end >= after).unwrap_or(body.len())
            }
            Some((after, _)) => after.min(body.len()),
        }
    }

    /// Applies what changes the bytes of a stream.
    fn reshape(&self, body: &mut Vec<u8>) {
        if self.drop_final_blank_line {
            while body.last() == Some(&b'\n') {
                body.pop();
            }
        }
        if self.crlf {
            let mut with_crlf = Vec::with_capacity(body.len() + body.len() / 16);
            for &byte in body.iter() {
                if byte == b'\n' {
                    with_crlf.push(b'\r');
                }
                with_crlf.push(byte);
            }
            *body = with_crlf;
        }
    }

    fn divide<'a>(&self, body: &'a [u8], kind: BodyKind) -> Vec<&'a [u8]> {
        match (self.pieces, kind) {
            _ if body.is_empty() => Vec::new(),
            (Pieces::Bytes(size), _) => body.chunks(size).collect(),
            (Pieces::Natural | Pieces::Events, BodyKind::EventStream) => events(body),
            (Pieces::Natural | Pieces::Events, BodyKind::BinaryEventStream) => messages(body),
            (Pieces::Natural | Pieces::Events, BodyKind::Whole) => vec![body],
        }
    }
}

/// Cuts a stream after each blank line.
fn events(mut body: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let mut line_start = 0;
    let mut from = 0;
    while let Some(newline) = body[from..].iter().position(|&byte| byte == b'\n') {
        let next_line = from + newline + 1;
        let is_blank = matches!(&body[line_start..next_line], b"\n" | b"\r\n");
        if is_blank {
            let (event, rest) = body.split_at(next_line);
            events.push(event);
            body = rest;
            (line_start, from) = (0, 0);
        } else {
            (line_start, from) = (next_line, next_line);
        }
    }
    if !body.is_empty() {
        events.push(body);
    }
    events
}

/// Cuts a binary stream after each message, whose length is in its first four bytes.
fn messages(mut body: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let Some((length, _)) = body.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let (message, rest) = body.split_at(length.clamp(1, body.len()));
        messages.push(message);
        body = rest;
    }
    if !body.is_empty() {
        messages.push(body);
    }
    messages
}

/// How the end of a body is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
}

impl Framing {
    fn of(response: &Response, delivery: &Delivery) -> Self {
        match (response.kind, delivery.pieces) {
            (BodyKind::EventStream | BodyKind::BinaryEventStream, _)
            | (BodyKind::Whole, Pieces::Bytes(_)) => Self::Chunked,
            (BodyKind::Whole, Pieces::Natural | Pieces::Events) => Self::Length,
        }
    }

    fn add(self, out: &mut Vec<u8>, piece: &[u8]) {
        match self {
            Self::Length => out.extend_from_slice(piece),
            Self::Chunked => {
                out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                out.extend_from_slice(piece);
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn finish(self, out: &mut Vec<u8>) {
        match self {
            Self::Length => {}
            Self::Chunked => out.extend_from_slice(b"0\r\n\r\n"),
        }
    }
}

fn head(response: &Response, delivery: &Delivery, framing: Framing) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
    let has = |name: &str| response.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    if !has("content-type") {
        head.push_str(match response.kind {
            BodyKind::Whole => "content-type: application/json\r\n",
            BodyKind::EventStream => "content-type: text/event-stream; charset=utf-8\r\n",
            BodyKind::BinaryEventStream => "content-type: application/vnd.amazon.eventstream\r\n",
        });
    }
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match framing {
        Framing::Length => head.push_str(&format!("content-length: {}\r\n", response.body.len())),
        Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
    }
    if delivery.close_afterwards {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// The phrase after a status; clients ignore it, but people who read a trace see it.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
