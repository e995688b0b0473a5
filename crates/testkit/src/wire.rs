//! The wire of strict servers: requests over HTTP, and WebSockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::Role;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, Message, WebSocket};

/// How often a socket looks for something to send.
const TICK: Duration = Duration::from_millis(10);

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// Names are in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Reads the next request; `None` if there is none.
    pub(crate) fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
            let header = header.trim();
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Self { method, path, headers, body: Vec::new() };
        request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }
}

/// Writes an answer; false if nobody takes it.
pub(crate) fn answer(writer: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
    writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body)).is_ok()
}

/// What a server does on a socket by itself.
#[derive(Debug)]
pub(crate) enum Push {
    Text(String),
    Binary(Vec<u8>),
    /// Ends it, as the protocol says.
    Close(u16),
    /// Breaks it.
    Break,
}

/// Makes a WebSocket of the connection on which `request` came, and serves it until it ends: `pushes` go out, and `heard`
/// gets what comes in.
pub(crate) fn serve_socket(
    mut stream: TcpStream,
    request: &Request,
    pushes: &Receiver<Push>,
    mut heard: impl FnMut(String),
) {
    let accept = derive_accept_key(request.header("sec-websocket-key").as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    if stream.write_all(head.as_bytes()).is_err() || stream.set_read_timeout(Some(TICK)).is_err() {
        return;
    }
    let mut socket = WebSocket::from_raw_socket(stream, Role::Server, None);
    loop {
        let is_taken = match pushes.try_recv() {
            Ok(Push::Text(text)) => socket.send(Message::text(text)).is_ok(),
            Ok(Push::Binary(bytes)) => socket.send(Message::binary(bytes)).is_ok(),
            Ok(Push::Close(code)) => {
                let frame = CloseFrame { code: CloseCode::from(code), reason: "".into() };
                socket.close(Some(frame)).is_ok()
            }
            Ok(Push::Break) | Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => true,
        };
        if !is_taken {
            return;
        }
        match socket.read() {
            Ok(Message::Text(text)) => heard(text.to_string()),
            Ok(_) => {}
            Err(Error::Io(error))
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => return,
        }
    }
}
