//! What the servers of vendors share: their state, reading requests, and serving each connection on a thread of its own.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for something that a test expects.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What the connections of a server share with the test.
#[derive(Debug, Default)]
pub(crate) struct Shared<S> {
    pub(crate) state: Mutex<S>,
    /// Wakes those who wait for a change of the state.
    pub(crate) changed: Condvar,
    /// Whether every connection is closed.
    pub(crate) is_down: AtomicBool,
}

impl<S: fmt::Debug> Shared<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new(), is_down: AtomicBool::new(false) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `found` gives something about the state.
    ///
    /// # Panics
    /// It takes too long.
    pub(crate) fn wait_for<T>(&self, what: &str, found: impl Fn(&S) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            if let Some(value) = found(&state) {
                return value;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not come: {state:#?}");
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

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

/// Serves connections on a free port forever; gives the port.
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
