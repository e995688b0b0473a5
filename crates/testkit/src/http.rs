//! The part of HTTP/1.1 servers that model clients use: kept connections, bodies with a length or in chunks.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request line with headers. Far above what any client of a model sends.
const MAX_HEAD: usize = 64 * 1024;

/// Longest body. A session of 100,000 messages sent whole is a few tens of megabytes.
const MAX_BODY: usize = 256 * 1024 * 1024;

/// Bytes asked from the kernel at a time.
const READ_SIZE: usize = 64 * 1024;

/// A request, read whole.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) head_arrived: Instant,
    pub(crate) arrived: Instant,
}

/// Reads requests from one connection.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// Bytes that were read but not yet used.
    buffer: Vec<u8>,
}

impl RequestReader {
    /// Reads one request; `None` when the client has closed the connection between two.
    ///
    /// # Errors
    /// The connection broke within a request, or this server cannot read the request.
    pub(crate) async fn next(&mut self, stream: &mut TcpStream) -> io::Result<Option<HttpRequest>> {
        let Some(head) = self.head(stream).await? else { return Ok(None) };
        let head_arrived = Instant::now();
        let (method, path, headers) = parse_head(&head)?;
        let value = |name: &str| {
            headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        if value("expect").is_some_and(|expect| expect.eq_ignore_ascii_case("100-continue")) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = if value("transfer-encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"))
        {
            self.chunked_body(stream).await?
        } else {
            let length = match value("content-length") {
                Some(length) => {
                    length.parse().map_err(|_| invalid(format!("content-length {length:?}")))?
                }
                None => 0,
            };
            self.take(stream, length).await?
        };
        Ok(Some(HttpRequest { method, path, headers, body, head_arrived, arrived: Instant::now() }))
    }

    async fn head(&mut self, stream: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0_usize;
        loop {
            let from = searched.saturating_sub(3);
            if let Some(found) = self.buffer[from..].windows(4).position(|four| four == b"\r\n\r\n")
            {
                let head = self.buffer[..from + found].to_vec();
                self.buffer.drain(..from + found + 4);
                return Ok(Some(head));
            }
            searched = self.buffer.len();
            if searched > MAX_HEAD {
                return Err(invalid("the headers are too long"));
            }
            if self.fill(stream).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    async fn chunked_body(&mut self, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line(stream).await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| invalid(format!("chunk size {line:?}")))?;
            if size == 0 {
                while !self.line(stream).await?.is_empty() {}
                return Ok(body);
            }
            if body.len() + size > MAX_BODY {
                return Err(invalid("the body is too long"));
            }
            body.extend_from_slice(&self.take(stream, size).await?);
            self.line(stream).await?;
        }
    }

    async fn line(&mut self, stream: &mut TcpStream) -> io::Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
                self.buffer.drain(..end + 2);
                return Ok(line);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid("a line is too long"));
            }
            if self.fill(stream).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn take(&mut self, stream: &mut TcpStream, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(invalid("the body is too long"));
        }
        while self.buffer.len() < length {
            if self.fill(stream).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn fill(&mut self, stream: &mut TcpStream) -> io::Result<usize> {
        self.buffer.reserve(READ_SIZE);
        stream.read_buf(&mut self.buffer).await
    }
}

type Head = (String, String, Vec<(String, String)>);

fn parse_head(head: &[u8]) -> io::Result<Head> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let request_line = lines.next().unwrap_or_default();
    let mut words = request_line.split(' ');
    let (Some(method), Some(path), Some("HTTP/1.1" | "HTTP/1.0")) =
        (words.next(), words.next(), words.next())
    else {
        return Err(invalid(format!("request line {request_line:?}")));
    };
    let headers = lines
        .map(|line| {
            let (name, value) =
                line.split_once(':').ok_or_else(|| invalid(format!("header {line:?}")))?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect::<io::Result<Vec<_>>>()?;
    Ok((method.to_owned(), path.to_owned(), headers))
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not a request this server reads: {}", what.into()),
    )
}
