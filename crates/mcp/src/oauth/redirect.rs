//! The answer of an authorization server: a request to a port of this machine, or the same address as text.

use std::time::Duration;

use myclaw_llm::access::one_line;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use super::SHOWN;

/// Longest request line.
const MAX_LINE: usize = 16 << 10;
/// How long a request may take to arrive.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// What the person sees at the end.
const PAGE: &str = "<!doctype html><meta charset=utf-8><title>MyClaw</title><p>The answer has arrived. You can close this page and go back to the terminal.";

/// An answer, unchecked.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Option<String>,
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
    /// The id that the server gives this program, for servers that register it in passing.
    pub(super) client: Option<String>,
    /// Where the answer came.
    pub(super) path: String,
}

impl Answer {
    /// Reads the address that the person was sent to.
    ///
    /// # Errors
    /// It is no such address.
    pub(super) fn pasted(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|_| {
            format!(
                "{:?} is no address; paste the whole one, http://127.0.0.1:…?code=…",
                one_line(text, SHOWN)
            )
        })?;
        Ok(Self::of(&url))
    }

    fn of(url: &Url) -> Self {
        let mut answer = Self { path: url.path().to_owned(), ..Self::default() };
        let mut why = Vec::new();
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            match &*name {
                "code" => answer.code = Some(value),
                "state" => answer.state = Some(value),
                "iss" => answer.issuer = Some(value),
                "client_id" => answer.client = Some(value),
                "error" | "error_description" => why.push(value),
                _ => {}
            }
        }
        answer.error = (!why.is_empty()).then(|| why.join(": "));
        answer
    }
}

/// Waits for the request to this path with this state, if there is one. Others, which any page can make, change nothing.
///
/// # Errors
/// The port cannot be listened at any more.
pub(super) async fn arrival(
    listener: &TcpListener,
    path: &str,
    state: Option<&str>,
) -> Result<Answer, String> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(|error| error.to_string())?;
        let asked = timeout(READ_LIMIT, request(&mut stream)).await.ok().flatten();
        let answer = asked.filter(|url| url.path() == path).map(|url| Answer::of(&url));
        let answer = answer.filter(|answer| state.is_none() || answer.state.as_deref() == state);
        let (status, body) = match answer {
            Some(_) => ("200 OK", PAGE),
            None => ("404 Not Found", ""),
        };
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
             referrer-policy: no-referrer\r\n\r\n{body}",
            body.len()
        );
        // The person sees the terminal too.
        let _ = timeout(READ_LIMIT, stream.write_all(response.as_bytes())).await;
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
}

/// The address in the request line.
async fn request(stream: &mut TcpStream) -> Option<Url> {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
        if bytes.len() > MAX_LINE {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let path = text.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    Url::parse("http://127.0.0.1").ok()?.join(path).ok()
}
