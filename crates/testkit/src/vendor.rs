//! What the servers of vendors share: reading requests, and serving each connection on a thread of its own.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    /// With names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The next request of a connection; `None` at its end.
    pub(crate) fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split(' ');
        let (method, address) = (words.next()?.to_owned(), words.next()?);
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let mut headers = HashMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = header.trim().split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, path, query, headers, body })
    }
}

/// Writes an answer.
pub(crate) fn answer(writer: &mut TcpStream, status: u16, body: &[u8]) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
    writer.write_all(head.as_bytes())?;
    writer.write_all(body)
}

/// Serves connections on a free port for ever; gives the port.
pub(crate) fn serve(converse: impl Fn(TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let converse = converse.clone();
            thread::spawn(move || converse(stream));
        }
    });
    port
}
