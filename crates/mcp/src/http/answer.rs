//! What a server answers over HTTP: a message, a stream of messages, or a failure.

use std::sync::Arc;
use std::time::Duration;

use myclaw_llm::access::{one_line, read_capped};
use myclaw_llm::sse::SseDecoder;
use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{Endpoint, LAST_EVENT};
use crate::exchange::{Asked, answer_of};
use crate::failure::{Failure, Kind};
use crate::lines::QUOTED;
use crate::lines::{Line, MAX_LINE};
use crate::oauth::parameter;

/// Most bytes that are read of a failure, and the longest time.
const MAX_REFUSAL: usize = 64 << 10;
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of the streams that answer one request.
const MAX_STREAM: usize = 256 << 20;
/// Most times that a stream is taken up again without anything new on it.
const MAX_RESUMES: u32 = 5;
/// The pause before a stream is taken up again, if the server does not say one, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the end of a stream may take to come after the answer, so that the connection can be used again.
const TRAILER_LIMIT: Duration = Duration::from_millis(250);
/// The code of JSON-RPC for a method that does not exist.
const NO_METHOD: i64 = -32601;
/// Most characters of a server's words in a sentence.
const SHOWN: usize = 200;

/// A stream that may go on over several responses.
#[derive(Default)]
pub(super) struct Stream {
    /// The number of the last event that arrived.
    last_event: String,
    pause: Option<Duration>,
    bytes: usize,
}

impl Endpoint {
    /// Takes what answers a request.
    pub(super) async fn take_answer(
        &self,
        response: Response,
        asked: &Asked,
    ) -> Result<(), Failure> {
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        match media_type(&response).as_str() {
            "application/json" => {
                self.exchange.take(read_line(response).await?)?;
                match self.exchange.is_waiting(asked.id) {
                    true => Err(Failure::other("the server did not answer what was asked")),
                    false => Ok(()),
                }
            }
            "text/event-stream" => self.take_stream(response, asked).await,
            kind => {
                let status = response.status().as_u16();
                let what = match kind {
                    "" => format!("{} without an answer", self.status_words(status)),
                    kind => format!(
                        "{} with {}, which is no answer of an MCP server: check `url`",
                        self.status_words(status),
                        one_line(kind, SHOWN)
                    ),
                };
                let body = read_capped(response, MAX_REFUSAL, REFUSAL_LIMIT).await;
                Err(Failure::new(Kind::Status(status), what).saying(beginning(&body)))
            }
        }
    }

    /// Takes a stream that answers a request. If it breaks off, it is taken up again where the server permits that.
    async fn take_stream(&self, mut response: Response, asked: &Asked) -> Result<(), Failure> {
        let mut stream = Stream::default();
        let mut resumes = 0;
        loop {
            let had = stream.last_event.clone();
            self.read_stream(&mut response, &mut stream, Some(asked)).await?;
            if !self.exchange.is_waiting(asked.id) {
                return Ok(());
            }
            resumes = if had == stream.last_event { resumes + 1 } else { 1 };
            if stream.last_event.is_empty() || self.is_stateless() || resumes > MAX_RESUMES {
                let what = format!("{} broke off before the answer was whole", self.host());
                return Err(Failure::new(Kind::BrokenOff, what));
            }
            response = self.resume(&stream).await?;
            if !response.status().is_success() {
                return Err(self.refusal(response).await);
            }
        }
    }

    /// Connects again to a stream that broke off.
    async fn resume(&self, stream: &Stream) -> Result<Response, Failure> {
        sleep(stream.pause.unwrap_or(PAUSE).min(LONGEST_PAUSE)).await;
        let last = HeaderValue::try_from(stream.last_event.as_str()).ok();
        let last = last.filter(|last| !last.is_empty()).map(|last| (LAST_EVENT, last));
        self.send(Method::GET, None, last.as_slice()).await
    }

    /// Takes the messages of a response, until it ends or has brought what was asked for.
    ///
    /// # Errors
    /// It brings too much.
    pub(super) async fn read_stream(
        &self,
        response: &mut Response,
        stream: &mut Stream,
        asked: Option<&Asked>,
    ) -> Result<(), Failure> {
        let mut decoder = SseDecoder::default();
        let mut is_answered = false;
        loop {
            let chunk = match is_answered {
                false => response.chunk().await,
                true => timeout(TRAILER_LIMIT, response.chunk()).await.unwrap_or(Ok(None)),
            };
            let Ok(Some(chunk)) = chunk else { return Ok(()) };
            if asked.is_some() {
                stream.bytes += chunk.len();
                if stream.bytes > MAX_STREAM {
                    return Err(too_large(MAX_STREAM));
                }
            }
            decoder.push(&chunk);
            loop {
                let data = match decoder.next_frame() {
                    Ok(Some(frame)) => frame.data.into_owned().into_bytes(),
                    Ok(None) => break,
                    Err(_) => return Err(too_large(MAX_LINE)),
                };
                // The first event of a stream may only say its number.
                if !data.is_empty() {
                    self.exchange.take(Line::Whole(data))?;
                }
            }
            if !decoder.last_id().is_empty() {
                stream.last_event = decoder.last_id().into_owned();
            }
            stream.pause = decoder.retry().or(stream.pause);
            is_answered = asked.is_some_and(|asked| !self.exchange.is_waiting(asked.id));
        }
    }

    /// Reads what a server with sessions says without having been asked. Ends when the server does not do so.
    /// Sends `is_open` when the server has answered.
    pub(super) async fn listen(self: Arc<Self>, is_open: oneshot::Sender<()>) {
        let mut stream = Stream::default();
        let mut opened = self.send(Method::GET, None, &[]).await;
        // Nobody may wait any more.
        let _ = is_open.send(());
        let mut failures = 0_u32;
        loop {
            let had = stream.last_event.clone();
            match opened {
                Ok(response) if self.is_lost(response.status().as_u16()) => {
                    return self.exchange.retire(lost());
                }
                Ok(response) if media_type(&response) != "text/event-stream" => return,
                Ok(mut response) => {
                    if self.read_stream(&mut response, &mut stream, None).await.is_err() {
                        return;
                    }
                }
                Err(failure) if failure.kind == Kind::Login => return,
                Err(_) => {}
            }
            failures = if had == stream.last_event { failures.saturating_add(1) } else { 0 };
            let pause = PAUSE * 2_u32.pow(failures.min(5));
            stream.pause = Some(stream.pause.unwrap_or_default().max(pause));
            opened = self.resume(&stream).await;
        }
    }

    /// Whether a status says that the session is over.
    fn is_lost(&self, status: u16) -> bool {
        status == 404 && self.agreed.lock().session.is_some()
    }

    /// What a response without success means.
    async fn refusal(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        if response.status().is_redirection() {
            return self.redirect(&response);
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE).cloned();
        let body = read_capped(response, MAX_REFUSAL, REFUSAL_LIMIT).await;
        if matches!(status, 401 | 403) {
            return self.unauthorized(status, challenge.as_ref()).saying(beginning(&body));
        }
        let answer = serde_json::from_slice::<Value>(&body).ok();
        let answer = answer.filter(|answer| answer["error"]["code"].is_i64());
        let of_session = answer.as_ref().is_some_and(|answer| {
            let words = answer["error"]["message"].as_str().unwrap_or_default();
            words.to_lowercase().contains("session")
        });
        let is_unknown_method =
            answer.as_ref().is_some_and(|answer| answer["error"]["code"] == NO_METHOD);
        // Some servers say 400 in place of 404.
        let has_session = self.agreed.lock().session.is_some();
        if self.is_lost(status) && !is_unknown_method || status == 400 && of_session && has_session
        {
            self.exchange.retire(lost());
            return lost();
        }
        match answer.map(answer_of) {
            // A server with sessions, which has not understood what it was asked.
            Some(Err(failure)) if of_session => Failure { kind: Kind::Status(status), ..failure },
            Some(Err(failure)) => failure,
            _ => Failure::new(Kind::Status(status), self.status_words(status))
                .saying(beginning(&body)),
        }
    }

    fn status_words(&self, status: u16) -> String {
        format!("{} answered HTTP {status}", self.host())
    }

    fn redirect(&self, response: &Response) -> Failure {
        let target = response.headers().get(LOCATION).and_then(|target| target.to_str().ok());
        let what = format!(
            "{} sends requests on to {}, where headers and logins are not sent: if that is right, make it `url` of the server",
            self.host(),
            one_line(target.unwrap_or("another address"), SHOWN)
        );
        Failure::new(Kind::Status(response.status().as_u16()), what)
    }

    fn unauthorized(&self, status: u16, challenge: Option<&HeaderValue>) -> Failure {
        let challenge = challenge.and_then(|challenge| challenge.to_str().ok()).unwrap_or_default();
        let (host, login) = (self.host(), self.address.login.as_ref());
        let what = match login.map(|login| login.command()) {
            Some(command) if challenge.contains("insufficient_scope") => {
                let wanted = parameter(challenge, "scope").filter(|scope| is_plain(scope));
                let wanted = wanted.map(|scope| format!(" --scope '{scope}'")).unwrap_or_default();
                format!(
                    "{host} wants a login that permits more (HTTP {status}): `{command}{wanted}` asks for it"
                )
            }
            Some(command) => format!(
                "{host} wants a login (HTTP {status}): log in with `{command}`, or give a key in `headers`"
            ),
            None => format!(
                "{host} refuses the key in `headers` (HTTP {status}): correct it in the config"
            ),
        };
        Failure::new(Kind::Login, what)
    }
}

/// Whether a scope can stand in a command between quotes.
fn is_plain(scope: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b" _-.:/+*".contains(&byte);
    scope.len() <= SHOWN && scope.bytes().all(is_usual)
}

fn lost() -> Failure {
    Failure::new(Kind::SessionLost, "the server has forgotten the session")
}

fn too_large(limit: usize) -> Failure {
    Failure::other(format!(
        "the answer of the server is too large: at most {} MB are read. Ask for less at once",
        limit >> 20
    ))
}

/// The kind of a body, without its parameters.
pub(super) fn media_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The body as one message.
async fn read_line(mut response: Response) -> Result<Line, Failure> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > MAX_LINE => {
                return Err(too_large(MAX_LINE));
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(Line::Whole(body)),
            Err(_) => {
                let what = "the server broke off before the answer was whole";
                return Err(Failure::new(Kind::BrokenOff, what));
            }
        }
    }
}

/// The beginning of a body, as text.
fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().chars().take(QUOTED).collect()
}
