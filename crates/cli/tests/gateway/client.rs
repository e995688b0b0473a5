//! A client that does exactly what a test says: one connection for each request.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::PATIENCE;

/// A program that knows the token.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) port: u16,
    pub(super) token: String,
}

impl Client {
    /// Sends the bytes of a request; gives status and body.
    pub(super) fn raw(&self, request: &str) -> io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.ok_or(io::ErrorKind::InvalidData)?, body.to_owned()))
    }

    /// The head of a request with everything that the gateway wants, without its last line.
    pub(super) fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n",
            self.port, self.token
        )
    }

    pub(super) fn get(&self, path: &str) -> io::Result<(u16, Value)> {
        let (status, body) = self.raw(&format!("{}\r\n", self.head("GET", path)))?;
        Ok((status, value(&body)))
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        self.post_with(path, "", body)
    }

    /// Like `post`, with more header lines.
    pub(super) fn post_with(
        &self,
        path: &str,
        headers: &str,
        body: &Value,
    ) -> io::Result<(u16, Value)> {
        let (head, body) = (self.head("POST", path), body.to_string());
        let length = body.len();
        let request = format!(
            "{head}{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (status, body) = self.raw(&request)?;
        Ok((status, value(&body)))
    }

    /// Sends a message; gives its id.
    pub(super) fn send(&self, session: &str, id: &str, text: &str) -> io::Result<String> {
        let body = json!({"session": session, "id": id, "text": text});
        let (status, answer) = self.post("/api/messages", &body)?;
        if status != 202 {
            return Err(io::Error::other(format!("{status}: {answer}")));
        }
        Ok(answer["messageId"].as_str().unwrap().to_owned())
    }

    /// Waits for the end of a message.
    pub(super) fn outcome(&self, message: &str) -> io::Result<Value> {
        self.state_within(message, 55)
    }

    /// What has become of a message within some seconds.
    pub(super) fn state_within(&self, message: &str, seconds: u32) -> io::Result<Value> {
        let (status, answer) = self.get(&format!("/api/messages/{message}?wait={seconds}"))?;
        if status != 200 {
            return Err(io::Error::other(format!("{status}: {answer}")));
        }
        Ok(answer)
    }
}

fn value(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|_| json!(body))
}
