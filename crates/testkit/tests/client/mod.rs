//! The least HTTP client that can look at everything a server does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response, as far as it came.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Chunks with content.
    pub(crate) chunks: usize,
    /// Whether the end that HTTP asks for was seen.
    pub(crate) complete: bool,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send_post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) {
        let body = body.to_string();
        let mut head =
            format!("POST {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
    }

    pub(crate) fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
        self.send_post(path, headers, body);
        self.response()
    }

    /// Everything the server sends until it closes.
    pub(crate) fn post_raw(&mut self, path: &str, body: &Value) -> Vec<u8> {
        self.send_post(path, &[], body);
        while self.fill() {}
        std::mem::take(&mut self.buffer)
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes())
            .unwrap();
        self.response()
    }

    pub(crate) fn send_raw(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until the connection ends; the error says how if it did not end properly.
    pub(crate) fn read_to_end(&mut self) -> Result<(), std::io::ErrorKind> {
        self.stream.read_to_end(&mut self.buffer).map(|_| ()).map_err(|error| error.kind())
    }

    pub(crate) fn read_until(&mut self, bytes: &[u8]) {
        while !self.buffer.windows(bytes.len()).any(|window| window == bytes) {
            assert!(self.fill(), "closed before {bytes:?}");
        }
    }

    /// Whether bytes have arrived that were not read.
    pub(crate) fn has_more(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        peeked.is_ok()
    }

    fn fill(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).unwrap_or(0);
        self.buffer.extend_from_slice(&bytes[..count]);
        count > 0
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8(self.buffer[..end].to_vec()).unwrap();
                self.buffer.drain(..end + 2);
                return Some(line);
            }
            if !self.fill() {
                return None;
            }
        }
    }

    /// Moves up to `length` bytes to `body`; whether there were as many.
    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> bool {
        while self.buffer.len() < length && self.fill() {}
        let there = length.min(self.buffer.len());
        body.extend(self.buffer.drain(..there));
        there == length
    }

    pub(crate) fn response(&mut self) -> Response {
        let status_line = self.line().unwrap();
        let status = status_line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").unwrap();
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut response =
            Response { status, headers, body: Vec::new(), chunks: 0, complete: false };
        if status == 100 {
            // No body, and the answer itself follows.
            response.complete = true;
            return response;
        }
        if let Some(length) = response.header("content-length") {
            let length = length.parse().unwrap();
            response.complete = self.take(length, &mut response.body);
            return response;
        }
        while let Some(size) = self.line() {
            let size = usize::from_str_radix(&size, 16).unwrap();
            if !self.take(size, &mut response.body) {
                break;
            }
            self.line();
            if size == 0 {
                response.complete = true;
                break;
            }
            response.chunks += 1;
        }
        response
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The data of each event that is JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}
