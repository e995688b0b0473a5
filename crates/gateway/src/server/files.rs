//! Files that the agent sends to the web chat and to programs.

use std::io::Read;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::Response;
use myclaw_delivery::route::WEB;
use myclaw_delivery::rows::{Outgoing, PartId, SentFile};
use serde_json::{Value, json};

use super::Server;
use crate::GatewayError;

/// Bytes of a file that are read at once.
const AT_ONCE: usize = 64 * 1024;

/// A file in the words of clients. The address needs the token, as all others.
pub(super) fn link(part: &str, name: &str) -> Value {
    json!({"name": name, "url": format!("/api/files/{part}")})
}

/// The files of an answer.
pub(super) fn links(parts: &[PartId], rows: &[Outgoing]) -> Vec<Value> {
    let files = parts.iter().zip(rows).filter_map(|(part, row)| {
        row.refers.file.as_ref().map(|file| link(part.as_str(), &file.name))
    });
    files.collect()
}

/// Sends a file of an answer. Pictures have their type; everything else is bytes, which no browser opens by itself.
pub(super) async fn download(
    State(server): State<Arc<Server>>,
    Path(part): Path<String>,
) -> Result<Response, GatewayError> {
    let file = file_of(&server, &part).await?;
    let (files, blob) = (Arc::clone(&server.delivery.outbox().files), file.blob);
    let opening = tokio::task::spawn_blocking(move || files.open(&blob));
    let opened = opening.await.ok().and_then(Result::ok).ok_or_else(gone)?;
    let size = opened.bytes;
    Ok(answer(opened, size, &file.name))
}

/// The content of a file of this name as it is downloaded.
pub(super) fn answer(file: impl Read + Send + 'static, bytes: u64, name: &str) -> Response {
    let chunks = futures_util::stream::try_unfold(file, |mut file| async {
        let reading = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; AT_ONCE];
            let read = file.read(&mut chunk)?;
            chunk.truncate(read);
            Ok::<_, std::io::Error>((read > 0).then_some((chunk, file)))
        });
        reading.await?
    });
    let mut answer = Response::new(Body::from_stream(chunks));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    // The name is in the link. Here it would need an encoding of its own.
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    answer
}

/// What a file of an answer is called.
pub(super) async fn name_of(server: &Server, part: &str) -> Result<String, GatewayError> {
    Ok(file_of(server, part).await?.name)
}

async fn file_of(server: &Server, part: &str) -> Result<SentFile, GatewayError> {
    let row = server.delivery.ledger().part(&PartId::from_text(part)).await?;
    let file = row.filter(|row| row.route.channel == WEB).and_then(|row| row.refers.file);
    file.ok_or_else(gone)
}

fn gone() -> GatewayError {
    GatewayError::NotFound("there is no such file, or it is gone".to_owned())
}

/// Nothing that could run as a script.
fn media_type(name: &str) -> &'static str {
    let end = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    match end.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "application/octet-stream",
    }
}
