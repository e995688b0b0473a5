//! The transport of 2024-11-05: all answers come on one stream, which first says where requests go.

use std::sync::Arc;

use myclaw_llm::sse::SseDecoder;
use reqwest::{Method, Response};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::answer::{Stream, media_type};
use super::{Endpoint, Form, Http, NOTE_LIMIT};
use crate::exchange::Exchange;
use crate::failure::{Failure, Kind};
use crate::spec::Address;

impl Http {
    /// Opens the stream, and waits until it says where requests go.
    ///
    /// # Errors
    /// The server does not speak this.
    pub(crate) async fn old(address: Address) -> Result<Self, Failure> {
        let (exchange, queue) = Exchange::new();
        let asking = Endpoint::new(address.clone(), Form::Streamable, Arc::clone(&exchange));
        let opening = async {
            let mut response = asking.send(Method::GET, None, &[]).await?;
            let url = post_address(&mut response, &address.url).await?;
            Ok::<_, Failure>((response, url))
        };
        let late = |_| Failure::other("the server does not say where requests go");
        let (mut response, url) = timeout(NOTE_LIMIT, opening).await.map_err(late)??;
        let http = Self::with(Endpoint::new(address, Form::OneStream(url), exchange), queue);
        let endpoint = Arc::clone(&http.endpoint);
        let reading = tokio::spawn(async move {
            let read = endpoint.read_stream(&mut response, &mut Stream::default(), None).await;
            let ended = Failure::new(Kind::Ended, "the server has closed the connection");
            endpoint.exchange.end(read.err().unwrap_or(ended));
        });
        *http.listening.lock() = Some(AbortOnDropHandle::new(reading));
        Ok(http)
    }
}

/// The address in the first event, which must be of the same origin: the headers go there too.
async fn post_address(response: &mut Response, base: &Url) -> Result<Url, Failure> {
    let none = || Failure::other("the server does not speak the transport of 2024-11-05");
    if !response.status().is_success() || media_type(response) != "text/event-stream" {
        return Err(none());
    }
    let mut decoder = SseDecoder::default();
    while let Ok(Some(chunk)) = response.chunk().await {
        decoder.push(&chunk);
        while let Ok(Some(frame)) = decoder.next_frame() {
            if frame.event != "endpoint" {
                continue;
            }
            let url = base.join(frame.data.trim()).map_err(|_| none())?;
            return match url.origin() == base.origin() {
                true => Ok(url),
                false => Err(Failure::new(
                    Kind::Refused,
                    "the server wants requests at another origin, where headers and logins are not sent",
                )),
            };
        }
    }
    Err(none())
}
