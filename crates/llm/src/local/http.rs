//! One bounded request over an open connection.
//!
//! The usual HTTP client sets up certificates and proxies before the first byte. A loopback port needs neither, and
//! this runs at every start without a config.

use std::io::{Error, ErrorKind, Result};

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::LocalFacts;

/// Largest status line and headers together, in bytes.
const MAX_HEAD: u64 = 16 * 1024;

/// Largest body, in bytes; a server with a thousand models stays far below.
const MAX_BODY: usize = 1024 * 1024;

/// Most models that are taken from a list.
const MAX_MODELS: usize = 1000;

/// Longest model id, in bytes.
const MAX_ID: usize = 256;

/// How the end of a body is found.
enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

/// What an OpenAI-compatible server answers; anything else fails to parse.
#[derive(Deserialize)]
struct ModelList {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    #[serde(flatten)]
    rest: Value,
}

/// One model of a server's list.
pub(super) struct ListedModel {
    pub(super) id: String,
    pub(super) facts: LocalFacts,
}

/// The models of a list in the server's order. Invalid ids (empty, very long, with control characters) are left out.
///
/// # Errors
/// It is not a list of models.
pub(super) fn listed_models(body: &[u8]) -> Result<Vec<ListedModel>> {
    let list: ModelList = serde_json::from_slice(body)?;
    let entries = list.data.into_iter().filter(|entry| is_sane(&entry.id)).take(MAX_MODELS);
    let listed =
        |entry: Entry| ListedModel { facts: LocalFacts::from_entry(&entry.rest), id: entry.id };
    Ok(entries.map(listed).collect())
}

/// Makes one request, a `POST` if there is a JSON body to send, and returns the body of the answer.
///
/// # Errors
/// The connection failed, or the status is not a success.
pub(super) async fn fetch(
    mut stream: TcpStream,
    host: &str,
    path: &str,
    json: Option<&str>,
) -> Result<Vec<u8>> {
    let method = if json.is_some() { "POST" } else { "GET" };
    let content = json.map_or_else(String::new, |json| {
        format!("Content-Type: application/json\r\nContent-Length: {}\r\n", json.len())
    });
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n{content}Connection: close\r\n\r\n{}",
        json.unwrap_or_default()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut reader = BufReader::new(stream);
    let framing = read_head(&mut reader).await?;
    match framing {
        Framing::Length(length) => read_exactly(&mut reader, length).await,
        Framing::Chunked => read_chunks(&mut reader).await,
        Framing::UntilClosed => read_until_closed(&mut reader).await,
    }
}

async fn read_head(reader: &mut BufReader<TcpStream>) -> Result<Framing> {
    let mut head = reader.take(MAX_HEAD);
    let status_line = read_line(&mut head).await?;
    let mut parts = status_line.split(' ');
    let is_http = parts.next().is_some_and(|version| version.starts_with("HTTP/1."));
    if !is_http || parts.next() != Some("200") {
        return Err(malformed("no success"));
    }
    let mut framing = Framing::UntilClosed;
    loop {
        let line = read_line(&mut head).await?;
        if line.is_empty() {
            return Ok(framing);
        }
        let (name, value) =
            line.split_once(':').ok_or_else(|| malformed("a header without a colon"))?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length")
            && !matches!(framing, Framing::Chunked)
        {
            framing = Framing::Length(
                value.parse().map_err(|_| malformed("a length that is not a number"))?,
            );
        }
    }
}

/// One line without its end.
async fn read_line<R: AsyncBufReadExt + Unpin>(reader: &mut R) -> Result<String> {
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).await?;
    if line.pop() != Some(b'\n') {
        return Err(malformed("a line that does not end"));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| malformed("a line that is not text"))
}

async fn read_exactly(reader: &mut BufReader<TcpStream>, length: usize) -> Result<Vec<u8>> {
    if length > MAX_BODY {
        return Err(malformed("too large a body"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok(body)
}

async fn read_chunks(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size_line = read_line(&mut reader.take(MAX_HEAD)).await?;
        let digits = size_line.split(';').next().unwrap_or_default().trim();
        let size =
            usize::from_str_radix(digits, 16).map_err(|_| malformed("a chunk without a size"))?;
        if size == 0 {
            return Ok(body);
        }
        if size > MAX_BODY - body.len() {
            return Err(malformed("too large a body"));
        }
        body.extend(read_exactly(reader, size).await?);
        if !read_line(&mut reader.take(MAX_HEAD)).await?.is_empty() {
            return Err(malformed("a chunk longer than its size"));
        }
    }
}

async fn read_until_closed(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    // One byte more than allowed distinguishes a body that is too large from one that just fits.
    let limit = MAX_BODY as u64 + 1;
    reader.take(limit).read_to_end(&mut body).await?;
    if body.len() > MAX_BODY {
        return Err(malformed("too large a body"));
    }
    Ok(body)
}

fn is_sane(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID && !id.chars().any(char::is_control)
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}
