//! One kept connection that posts a body and reads the answer line by line.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::Fallible;

/// Bytes asked from the kernel at a time.
const READ_SIZE: usize = 64 * 1024;

/// A connection to the model server.
pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    base_path: String,
    /// Bytes read but not yet used are `raw[used..filled]`.
    raw: Box<[u8]>,
    used: usize,
    filled: usize,
    body: BodyState,
    /// The line being put together, and whether it has been handed out.
    line: Vec<u8>,
    line_is_whole: bool,
}

/// The position of the next byte in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    ChunkSize,
    Chunk { left: usize },
    Over,
}

impl Connection {
    pub(crate) fn open(base_url: &str) -> Fallible<Self> {
        let rest =
            base_url.strip_prefix("http://").ok_or("the base URL must begin with http://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            host: host.to_owned(),
            base_path: path.trim_end_matches('/').to_owned(),
            raw: vec![0; READ_SIZE].into(),
            used: 0,
            filled: 0,
            body: BodyState::Over,
            line: Vec::new(),
            line_is_whole: false,
        })
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> Fallible<()> {
        let head = format!(
            "POST {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nX-Api-Key: none\r\n\
             Anthropic-Version: 2023-06-01\r\nAuthorization: Bearer none\r\nContent-Length: {}\r\n\r\n",
            self.base_path,
            self.host,
            body.len()
        );
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body)?;
        let status = self.head_line()?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the server answered {status}").into());
        }
        let mut chunked = false;
        loop {
            let line = self.head_line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        if !chunked {
            return Err("the answer is no stream".into());
        }
        self.body = BodyState::ChunkSize;
        Ok(())
    }

    /// The next line of the body without its end; `None` when the body is over.
    pub(crate) fn line(&mut self) -> Fallible<Option<&[u8]>> {
        if std::mem::take(&mut self.line_is_whole) {
            self.line.clear();
        }
        loop {
            match self.body {
                BodyState::Over => {
                    let rest = (!self.line.is_empty()).then_some(self.line.as_slice());
                    self.line_is_whole = true;
                    return Ok(rest);
                }
                BodyState::ChunkSize => {
                    let size = self.head_line()?;
                    let left = usize::from_str_radix(
                        size.split(';').next().unwrap_or_default().trim(),
                        16,
                    )?;
                    self.body = BodyState::Chunk { left };
                    if left == 0 {
                        self.head_line()?;
                        self.body = BodyState::Over;
                    }
                }
                BodyState::Chunk { left: 0 } => {
                    self.head_line()?;
                    self.body = BodyState::ChunkSize;
                }
                BodyState::Chunk { left } => {
                    if self.used == self.filled {
                        self.fill()?;
                    }
                    let there = &self.raw[self.used..self.filled.min(self.used + left)];
                    let newline = there.iter().position(|&byte| byte == b'\n');
                    let part = newline.map_or(there.len(), |at| at + 1);
                    self.line.extend_from_slice(&there[..part]);
                    self.used += part;
                    self.body = BodyState::Chunk { left: left - part };
                    if newline.is_some() {
                        self.line_is_whole = true;
                        return Ok(Some(self.line.trim_ascii_end()));
                    }
                }
            }
        }
    }

    /// A line of the head or of the chunk framing.
    fn head_line(&mut self) -> Fallible<String> {
        let mut line = Vec::new();
        loop {
            if self.used == self.filled {
                self.fill()?;
            }
            let there = &self.raw[self.used..self.filled];
            let newline = there.iter().position(|&byte| byte == b'\n');
            let part = newline.map_or(there.len(), |at| at + 1);
            line.extend_from_slice(&there[..part]);
            self.used += part;
            if newline.is_some() {
                return Ok(String::from_utf8(line)?.trim_end().to_owned());
            }
        }
    }

    fn fill(&mut self) -> Fallible<()> {
        self.used = 0;
        self.filled = self.stream.read(&mut self.raw)?;
        if self.filled == 0 {
            return Err("the connection closed within an answer".into());
        }
        Ok(())
    }
}
