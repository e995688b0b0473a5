//! HTML and PDF files of an answer or of the workspace, shown in a frame of the page: without scripts, without a network, and as a stranger to
//! the page.
//!
//! A frame cannot send the token, so it gets an address of its own that works once, for a minute.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue,
};
use axum::response::Response;
use serde_json::{Value, json};

use super::request::Params;
use super::{Server, files, workspace};
use crate::GatewayError;
use crate::one_time::OneTime;

/// Below it are the documents.
pub(super) const VIEW_PATH: &str = "/view/";
/// How long an address can be used.
const VIEW_TIME: Duration = Duration::from_secs(60);
const MOST_VIEWS: usize = 100;
/// What a document may do: be seen, with its own styles and the pictures in it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'self'; sandbox";

const HTML: &str = "text/html; charset=utf-8";
/// Largest HTML document of a frame, in bytes.
const MOST_HTML: usize = 16 * 1024 * 1024;
/// Says that a text is UTF-8, whatever else it says of itself.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Elements that let a browser connect to another server before it looks at the policy. `frame` begins `frameset` too.
const CONNECTING: [&[u8]; 5] = [b"iframe", b"frame", b"fencedframe", b"link", b"portal"];

/// The addresses that wait for a frame.
pub(super) struct Views(OneTime<View>);

struct View {
    source: Source,
    media_type: &'static str,
}

/// Where a document is.
enum Source {
    /// In an answer.
    Part(String),
    Workspace(workspace::Place),
}

impl Default for Views {
    fn default() -> Self {
        Self(OneTime::new(VIEW_TIME, MOST_VIEWS))
    }
}

/// Makes an address for a frame.
pub(super) async fn make(
    State(server): State<Arc<Server>>,
    Path(part): Path<String>,
) -> Result<Json<Value>, GatewayError> {
    let name = files::name_of(&server, &part).await?;
    address(&server, Source::Part(part), &name)
}

/// Makes an address for a frame with a document of a workspace.
pub(super) async fn make_of_workspace(
    State(server): State<Arc<Server>>,
    Params(place): Params<workspace::Place>,
) -> Result<Json<Value>, GatewayError> {
    let name = place.name();
    address(&server, Source::Workspace(place), &name)
}

/// Makes an address for a document of this name.
fn address(server: &Server, source: Source, name: &str) -> Result<Json<Value>, GatewayError> {
    let media_type = media_type(name).ok_or_else(|| {
        let why = "a frame shows HTML (.html, .htm) and PDF (.pdf); download the file";
        GatewayError::Unusable(why.to_owned())
    })?;
    let secret = server.views.0.make(View { source, media_type });
    Ok(Json(json!({"url": format!("{VIEW_PATH}{secret}")})))
}

/// The document behind an address, once.
pub(super) async fn show(
    State(server): State<Arc<Server>>,
    Path(secret): Path<String>,
) -> Result<Response, GatewayError> {
    let View { source, media_type } = server.views.0.take(&secret).ok_or_else(|| {
        GatewayError::NotFound(
            "this address was used or is too old; open the document again".to_owned(),
        )
    })?;
    let mut answer = match source {
        Source::Part(part) => files::download(State(server), Path(part)).await?,
        Source::Workspace(place) => workspace::download(State(server), Params(place)).await?,
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.remove(CONTENT_DISPOSITION);
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    for (name, value) in [("x-frame-options", "SAMEORIGIN"), ("x-dns-prefetch-control", "off")] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if media_type == HTML {
        let body = std::mem::take(answer.body_mut());
        let document = to_bytes(body, MOST_HTML).await.map_err(|_| {
            let why = "the document is too large for a frame, or cannot be read; download the file";
            GatewayError::Unusable(why.to_owned())
        })?;
        *answer.body_mut() = Body::from([BYTE_ORDER_MARK, &unconnected(document.into())].concat());
    }
    Ok(answer)
}

/// Renames the elements that connect. In UTF-8 a tag is written in no other way, so none is missed.
fn unconnected(mut document: Vec<u8>) -> Vec<u8> {
    for at in 1..document.len() {
        let begins = |name: &[u8]| {
            document.get(at..at + name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        if document[at - 1] == b'<' && CONNECTING.into_iter().any(begins) {
            document[at] = b'x';
        }
    }
    document
}

fn media_type(name: &str) -> Option<&'static str> {
    let end = name.rsplit('.').next().unwrap_or_default();
    let is = |known: &str| end.eq_ignore_ascii_case(known);
    if is("html") || is("htm") { Some(HTML) } else { is("pdf").then_some("application/pdf") }
}

#[cfg(test)]
mod tests;
