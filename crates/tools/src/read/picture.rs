//! Files that are pictures, shown to the model.

use std::fs::File;
use std::io::Read;

use image::ImageError;
use myclaw_engine::{ToolError, ToolOutput};
use myclaw_llm::ContentBlock;
use serde_json::json;

use crate::files::{ImageKind, shown_size};
use crate::picture::Picture;
use crate::support::{ResolvedPath, io_failure};

/// Largest file that is opened as a picture.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Shows a picture, scaled down where it is too large. `start` are the bytes already taken from `rest`.
///
/// # Errors
/// If it cannot be read, is too large to decode or damaged.
pub(super) fn read(
    path: &ResolvedPath,
    rest: File,
    start: &[u8],
    kind: ImageKind,
) -> Result<ToolOutput, ToolError> {
    let mut bytes = start.to_vec();
    rest.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| io_failure("read", path, &error))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(
            path,
            &format!("the file is larger than {}", shown_size(MAX_FILE_BYTES)),
        ));
    }
    let file_bytes = bytes.len();
    let sent = Picture::prepare(bytes, kind)
        .map_err(|error| refusal(path, kind, file_bytes as u64, &error))?;
    let (width, height) = sent.original;
    let mut note = format!("{}: {} picture, {width}x{height}", path.shown, kind.mime_type());
    if (sent.width, sent.height) != (width, height) {
        note.push_str(&format!(
            ", shown scaled down to {}x{} (1 pixel here is {:.2} there)",
            sent.width,
            sent.height,
            f64::from(width) / f64::from(sent.width)
        ));
    }
    let details = json!({
        "path": path.shown, "mimeType": kind.mime_type(), "bytes": file_bytes, "width": width, "height": height,
        "sent": {"mimeType": sent.mime_type, "bytes": sent.bytes.len(), "width": sent.width, "height": sent.height}
    });
    Ok(ToolOutput {
        content: vec![ContentBlock::text(note), ContentBlock::Image(sent.to_content())],
        details: Some(details),
        is_error: false,
    })
}

fn refusal(path: &ResolvedPath, kind: ImageKind, bytes: u64, error: &ImageError) -> ToolError {
    match error {
        ImageError::Limits(_) => too_large(path, "it has too many pixels"),
        error => ToolError::Failed(format!(
            "cannot show {}: it starts like a picture ({}, {}) but is damaged or cut off: {error}. Get the file \
             again, or look at its bytes with bash: xxd {} | head",
            path.shown,
            kind.mime_type(),
            shown_size(bytes),
            path.shown
        )),
    }
}

fn too_large(path: &ResolvedPath, why: &str) -> ToolError {
    ToolError::Failed(format!(
        "cannot show {}: {why}. With bash, make a smaller copy first: convert {} -resize 2000x2000 small.png",
        path.shown, path.shown
    ))
}
