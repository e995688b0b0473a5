//! The one driver of every wire format: it owns the connection, the time limits and the abort.

mod left_out;
mod models;
pub mod oauth;
mod refusal;
mod timer;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use url::Url;

use crate::access::{Access, Caller};
use crate::http::{Clients, is_broken_connection, model_transport_error};
use crate::redact::redact;
use crate::wire::{self, AnswerBody, Decoder, EncodedRequest, Progress, cut_stream, host_label};
use crate::{
    Apart, AssistantMessage, CallFailure, ErrorClass, EventSink, HttpOptions, ModelError,
    ModelRequest, Provider, StopReason, StreamEvent, Trouble,
};

use left_out::{Failure, LeftOut, MAX_LEFT_OUT, Options};
pub use models::list_models;
use refusal::no_answer;
pub use refusal::{read_capped, read_refusal};
use timer::EventTimer;

/// Most bytes, and the longest time, between the end of the stream and the end of the body. If the body is read to its
/// end, the connection can serve the next call; beyond these limits a new connection is cheaper.
const MAX_TRAILER: usize = 64 * 1024;
const TRAILER_LIMIT: Duration = Duration::from_millis(250);

/// The error text of a partial message after an abort.
const ABORTED: &str = "aborted";

/// The provider of all models behind HTTP servers. Use one per process: it keeps connections between calls.
#[derive(Debug, Default)]
pub struct HttpProvider {
    clients: Clients,
    /// Whether a call was answered before, so that the next one may go over a connection that was kept.
    has_answered: AtomicBool,
    /// The authentication of calls that need more than a key.
    access: Vec<Box<dyn Access>>,
    /// The options that hosts have refused.
    left_out: LeftOut,
}

impl HttpProvider {
    /// A provider that has opened no connection yet.
    pub fn new(options: HttpOptions) -> Self {
        Self { clients: Clients::new(options), ..Self::default() }
    }

    /// This provider with `access` for models that need more than a key; the first one that serves a model is used.
    #[must_use]
    pub fn with_access(self, access: Vec<Box<dyn Access>>) -> Self {
        Self { access, ..self }
    }

    /// The client for its requests.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Gets the credential of the call.
    async fn caller(&self, request: &ModelRequest<'_>) -> Result<Caller, ModelError> {
        let caller = match self.access.iter().find(|access| access.serves(request.model)) {
            Some(access) => access.caller(&self.clients, request).await,
            None => Ok(Caller::default()),
        };
        caller.map_err(|error| unsent(request, error))
    }

    /// One call, from credentials to the whole message. `place` receives the decoder, so that the caller can still read
    /// what has arrived if this ends early. A token that is refused before it expires is replaced once.
    async fn attempt<'a>(
        &self,
        request: &ModelRequest<'a>,
        place: &mut Option<Decoder<'a>>,
        sink: EventSink<'_>,
    ) -> Result<(AssistantMessage, Response), ModelError> {
        let caller = self.caller(request).await?;
        let outcome = self.attempt_with(&caller, request, place, sink).await;
        let Err(error) = &outcome else { return outcome };
        if !caller.may_replace(error).await {
            return outcome;
        }
        debug!("the access token was refused; asking for another");
        let caller = self.caller(request).await?;
        let outcome = self.attempt_with(&caller, request, place, sink).await;
        if let Err(error) = &outcome {
            // There is no third attempt: the refused credential is discarded for the next call.
            caller.may_replace(error).await;
        }
        outcome
    }

    async fn attempt_with<'a>(
        &self,
        caller: &Caller,
        request: &ModelRequest<'a>,
        place: &mut Option<Decoder<'a>>,
        sink: EventSink<'_>,
    ) -> Result<(AssistantMessage, Response), ModelError> {
        let unsent = |error| unsent(request, error);
        let prepared = caller.apply(*request);
        let history = request.messages.as_slice();
        let mut options = self.left_out.options_of(prepared.model);
        let mut retries = 0;
        loop {
            let encoded = encode(&prepared, &options).map_err(unsent)?;
            let decoder =
                Decoder::new(prepared.model, history, now_in_milliseconds()).map_err(unsent)?;
            let decoder = place.insert(decoder);
            let failure = match self.exchange(&prepared, caller, encoded, decoder, sink).await {
                Ok(answer) => {
                    self.left_out.learn(prepared.model, options);
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            let refused = match retries < MAX_LEFT_OUT && !decoder.has_visible_output() {
                // Encoded once more, so that nothing holds the body while an answer comes.
                true if failure.is_refusal() => {
                    let body = encode(&prepared, &options).map_err(unsent)?.body;
                    options.refuse(prepared.model.api, &body, &failure)
                }
                _ => None,
            };
            let Some(option) = refused else {
                if !failure.is_refusal() {
                    self.left_out.learn(prepared.model, options);
                }
                return Err(caller.explain(failure.error));
            };
            debug!(option, "the host refuses an option; asking again without it");
            sink(StreamEvent::OptionLeftOut { option, error: failure.error.message });
            retries += 1;
        }
    }

    async fn exchange(
        &self,
        request: &ModelRequest<'_>,
        caller: &Caller,
        encoded: EncodedRequest,
        decoder: &mut Decoder<'_>,
        sink: EventSink<'_>,
    ) -> Result<(AssistantMessage, Response), Failure> {
        let limits = request.limits;
        let server = Server { request, url: encoded.url.clone() };
        let mut timer = EventTimer::start(limits);
        let client = self.clients.client(&encoded.url, limits.connect).await?;
        debug!(host = host_label(&encoded.url), bytes = encoded.body.len(), "sending the request");
        let mut response = tokio::select! {
            biased;
            sent = self.ask(&client, &server, caller, encoded) => sent?,
            () = timer.expired() => return Err(server.silent(&timer).into()),
        };
        debug!(status = response.status().as_u16(), "the server answers");
        if !response.status().is_success() {
            return Err(server.refused(response).await);
        }
        if let Some(error) = no_answer(&response) {
            return Err(server.said(error).into());
        }
        // They lie in a buffer of the connection, which would be held for as long as the answer comes.
        drop(std::mem::take(response.headers_mut()));
        let mut body = AnswerBody::default();
        let message =
            read_answer(&server, &mut response, &mut body, &mut timer, decoder, sink).await?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok((message, response))
    }

    /// Sends the signed request, and once more if the refusal shows how to sign it correctly.
    async fn ask(
        &self,
        client: &Client,
        server: &Server<'_>,
        caller: &Caller,
        encoded: EncodedRequest,
    ) -> Result<Response, ModelError> {
        let sent = async |encoded| {
            let signed = caller.sign(encoded).map_err(|error| server.unsent(error))?;
            self.send(client, signed).await.map_err(|error| server.transport(&error))
        };
        let response = sent(encoded.clone()).await?;
        match caller.learns_from(response.status(), response.headers()) {
            true => sent(encoded).await,
            false => Ok(response),
        }
    }

    /// Sends the request. Servers close kept connections without notice, some after each answer, and this is noticed
    /// only when the next request is sent. Then the request is sent once more, over a new connection. If the first
    /// request of a connection breaks, the server has failed.
    async fn send(
        &self,
        client: &Client,
        encoded: EncodedRequest,
    ) -> Result<Response, reqwest::Error> {
        let request = client.post(encoded.url).headers(encoded.headers).body(encoded.body);
        let again =
            self.has_answered.load(Ordering::Relaxed).then(|| request.try_clone()).flatten();
        match (request.send().await, again) {
            (Err(error), Some(again)) if is_broken_connection(&error) => {
                debug!("the server had closed the connection; sending once more");
                again.send().await
            }
            (sent, _) => sent,
        }
    }
}

impl Provider for HttpProvider {
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        cancel: &'a CancellationToken,
        sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>> {
        Box::pin(async move {
            let mut decoder = None;
            let cancelled = pin!(cancel.cancelled());
            let outcome = tokio::select! {
                biased;
                () = Apart::new(cancelled) => None,
                outcome = self.attempt(&request, &mut decoder, sink) => Some(outcome),
            };
            match outcome {
                Some(Ok((message, response))) => {
                    debug!(stop = ?message.stop_reason, "the message is whole");
                    read_trailer(response).await;
                    Ok(message)
                }
                Some(Err(error)) => {
                    debug!(class = error.name(), status = error.status, "the call failed");
                    Err(failed(error, decoder.as_ref(), sink))
                }
                None => {
                    debug!("the call was aborted");
                    Err(aborted(decoder.as_ref(), sink))
                }
            }
        })
    }
}

/// The request in the wire format of its model, without what its host refuses.
fn encode(request: &ModelRequest<'_>, options: &Options) -> Result<EncodedRequest, ModelError> {
    let mut encoded = wire::encode(request)?;
    options.leave_out(&mut encoded);
    Ok(encoded)
}

/// Reports a failed call, with what had arrived.
fn failed(
    mut error: ModelError,
    decoder: Option<&Decoder<'_>>,
    sink: EventSink<'_>,
) -> CallFailure {
    // What had arrived is kept with the reason, and shown to others than the owner.
    let reason = error.message_without_address().to_owned();
    let mut partial = decoder.and_then(|decoder| decoder.partial(StopReason::Error, &reason));
    sink(StreamEvent::Error { reason: StopReason::Error, error: reason });
    if !decoder.is_some_and(Decoder::has_visible_output) {
        // Content that was not shown is dropped; it may still have cost something.
        error.usage = partial.take().map(|unseen| Box::new(unseen.usage));
    }
    CallFailure::Failed { error: Box::new(error), partial: partial.map(Box::new) }
}

/// Reports an abort, with what had arrived.
fn aborted(decoder: Option<&Decoder<'_>>, sink: EventSink<'_>) -> CallFailure {
    sink(StreamEvent::Error { reason: StopReason::Aborted, error: ABORTED.to_owned() });
    let partial = decoder.and_then(|decoder| decoder.partial(StopReason::Aborted, ABORTED));
    CallFailure::Aborted { partial: partial.map(Box::new) }
}

/// An error of a call that was not sent.
fn unsent(request: &ModelRequest<'_>, mut error: ModelError) -> ModelError {
    error.message = format!("{}: {}", request.model.provider, error.message);
    error
}

/// Reads events until the message is whole.
async fn read_answer(
    server: &Server<'_>,
    response: &mut Response,
    body: &mut AnswerBody,
    timer: &mut EventTimer,
    decoder: &mut Decoder<'_>,
    sink: EventSink<'_>,
) -> Result<AssistantMessage, ModelError> {
    let mut complete = false;
    loop {
        let progress = match next_chunk(response, timer).await {
            Next::Chunk(chunk) => {
                body.feed(&chunk, decoder, sink).map_err(|error| server.said(error))?
            }
            Next::End => {
                // Only the counters of a whole message matter here; they may lack their last line end.
                let ended = body.end(decoder, sink);
                if !complete {
                    ended.map_err(|error| server.said(error))?;
                }
                break;
            }
            Next::Broken | Next::Silent if complete => break,
            Next::Broken => return Err(server.said(cut_stream())),
            Next::Silent => return Err(server.silent(timer)),
        };
        match progress {
            None => {}
            Some(Progress::KeepAlive) => timer.keep_alive(),
            Some(Progress::Advanced) => {
                complete = false;
                timer.advance();
            }
            Some(Progress::Complete) => {
                complete = true;
                timer.complete();
            }
            Some(Progress::Ended) => break,
        }
    }
    decoder.finish(sink).map_err(|error| server.said(error))
}

enum Next {
    Chunk(Bytes),
    End,
    Broken,
    Silent,
}

async fn next_chunk(response: &mut Response, timer: &mut EventTimer) -> Next {
    tokio::select! {
        biased;
        chunk = response.chunk() => match chunk {
            Ok(Some(chunk)) => Next::Chunk(chunk),
            Ok(None) => Next::End,
            Err(_) => Next::Broken,
        },
        () = timer.expired() => Next::Silent,
    }
}

/// Reads the rest of the body after the end of the stream, so that the connection can be used again.
async fn read_trailer(mut response: Response) {
    let to_the_end = async {
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            read += chunk.len();
            if read > MAX_TRAILER {
                return;
            }
        }
    };
    // Whether it took too long does not matter: the connection is closed then.
    let _ = tokio::time::timeout(TRAILER_LIMIT, to_the_end).await;
}

/// The called server, for error messages.
struct Server<'a> {
    request: &'a ModelRequest<'a>,
    url: Url,
}

impl Server<'_> {
    fn transport(&self, error: &reqwest::Error) -> ModelError {
        let provider = &self.request.model.provider;
        let mut error = model_transport_error(error, &self.url, self.request.limits.connect);
        error.without_address =
            Some(format!("{provider}: the server of the model cannot be reached").into());
        self.unsent(error)
    }

    /// An error that did not come from a server.
    fn unsent(&self, mut error: ModelError) -> ModelError {
        error.message = format!("{}: {}", self.request.model.provider, error.message);
        self.without_secrets(error)
    }

    /// An error that the server reported, or an unusable answer.
    fn said(&self, mut error: ModelError) -> ModelError {
        let (provider, said) = (&self.request.model.provider, &error.message);
        let without_address = format!("{provider}: {said}");
        error.message = format!("{provider} at {}: {said}", host_label(&self.url));
        error.without_address = Some(without_address.into());
        self.without_secrets(error)
    }

    fn silent(&self, timer: &EventTimer) -> ModelError {
        let message = if timer.began {
            format!(
                "no event for {} s: the answer was given up",
                self.request.limits.between_events.as_secs_f32()
            )
        } else {
            format!(
                "no event within {} s of the request",
                self.request.limits.first_event.as_secs_f32()
            )
        };
        let error = ModelError::new(ErrorClass::Timeout, message);
        self.said(ModelError { trouble: Trouble::Silence, ..error })
    }

    async fn refused(&self, response: Response) -> Failure {
        let (error, refusal) = refusal::read(response).await;
        let mut error = self.said(error);
        if matches!(error.status, Some(404 | 405)) {
            // The query may hold a key.
            let mut url = self.url.clone();
            url.set_query(None);
            error.message = format!("{} (the call went to {url})", error.message);
        }
        Failure { error: self.without_secrets(error), refusal: Some(refusal) }
    }

    fn without_secrets(&self, mut error: ModelError) -> ModelError {
        error.message = redact(&error.message, self.secrets());
        error.without_address =
            error.without_address.map(|message| redact(&message, self.secrets()).into());
        error.code = error.code.map(|code| redact(&code, self.secrets()));
        error
    }

    /// The secrets that a server may quote from the request: the key, and the values of the user's own headers, whole
    /// and without the scheme in front of a token.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let headers = self.request.model.quirks.headers.iter();
        let in_headers = headers.flat_map(|(_, value)| {
            let value = value.expose_secret();
            [Some(value), value.split_once(' ').map(|(_, token)| token)]
        });
        let key = self.request.api_key.map(SecretString::expose_secret);
        std::iter::once(key).chain(in_headers).flatten()
    }
}

fn now_in_milliseconds() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}
