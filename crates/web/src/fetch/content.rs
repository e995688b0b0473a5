//! What a download is, and its text.

use std::time::Duration;

use myclaw_engine::ToolError;
use myclaw_exec::{ChildSpec, EnvironmentPolicy, ErrorOutput, ExecError, Exit, OutputLimits};
use myclaw_tools::run_blocking;
use reqwest::StatusCode;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{Download, charset, to_markdown};

/// Longest text of a PDF document that is kept, in bytes.
const MAX_PDF_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Pages of a PDF document that are read.
const MAX_PDF_PAGES: &str = "300";
/// Bytes at the beginning of a body that are searched for signs of HTML where the header does not say what it is.
const SNIFFED_BYTES: usize = 1024;
/// Bytes at the beginning of a file that are searched for a zero, which text does not have.
const BINARY_BYTES: usize = 8 * 1024;

/// A page as text.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    /// Such as `text/html`.
    pub(super) kind: String,
    /// Size of the body.
    pub(super) bytes: usize,
    pub(super) title: String,
    pub(super) text: String,
    /// Number of characters in `text`.
    pub(super) chars: usize,
    /// Whether its end was left out.
    pub(super) is_cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Text,
    Pdf,
    Picture,
    Binary,
}

/// Reads a download as text.
///
/// # Errors
/// It has no text, or the text cannot be taken out.
pub(super) async fn read(
    download: Download,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<Page, ToolError> {
    let kind = kind_of(&download);
    let media_type = shown_media_type(&download, kind);
    let (url, status, bytes) = (download.url.clone(), download.status, download.body.len());
    let mut is_cut = download.is_cut;
    let (title, text) = match kind {
        Kind::Html => {
            let readable = run_blocking(move || {
                let html = charset::decode(&download.body, download.content_type.as_deref());
                Ok(to_markdown(&html, &download.url))
            })
            .await?;
            is_cut |= readable.is_cut;
            (readable.title, readable.markdown)
        }
        Kind::Text => {
            let text = charset::decode(&download.body, download.content_type.as_deref());
            (String::new(), text)
        }
        Kind::Pdf => (String::new(), pdf_text(download, limit, cancel).await?),
        Kind::Picture => {
            return Err(ToolError::Failed(format!(
                "the address is a picture ({media_type}); look at it with the image tool"
            )));
        }
        Kind::Binary => {
            let size = if is_cut { "more than 5 MB".to_owned() } else { format!("{bytes} bytes") };
            return Err(ToolError::Failed(format!(
                "the address is not text ({media_type}, {size}); if the file itself is needed, download it with a command"
            )));
        }
    };
    let chars = text.chars().count();
    Ok(Page { url, status, kind: media_type, bytes, title, text, chars, is_cut })
}

/// The media type, as far as it may be shown: the header is written by the server.
fn shown_media_type(download: &Download, kind: Kind) -> String {
    let media_type = download.media_type();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/+-._".contains(char);
    match kind {
        _ if media_type.len() <= 100
            && media_type.contains('/')
            && media_type.chars().all(is_plain) =>
        {
            media_type
        }
        Kind::Html => "text/html".to_owned(),
        Kind::Text => "text/plain".to_owned(),
        Kind::Pdf => "application/pdf".to_owned(),
        Kind::Picture | Kind::Binary => "of unknown type".to_owned(),
    }
}

fn kind_of(download: &Download) -> Kind {
    let (media_type, body) = (download.media_type(), &download.body);
    if body.starts_with(b"%PDF-") {
        return Kind::Pdf;
    }
    let (family, subtype) = media_type.split_once('/').unwrap_or(("", ""));
    match (family, subtype) {
        _ if has_zeros(download) => match family {
            "image" => Kind::Picture,
            _ => Kind::Binary,
        },
        ("text", "html") | ("application", "xhtml+xml") => Kind::Html,
        ("image", "svg+xml") | ("text", _) => Kind::Text,
        ("image", _) => Kind::Picture,
        ("audio" | "video" | "font", _) => Kind::Binary,
        _ if looks_like_html(body) => Kind::Html,
        ("application", "json" | "xml" | "javascript" | "yaml" | "toml") => Kind::Text,
        _ => match std::str::from_utf8(body) {
            Ok(_) => Kind::Text,
            // A character may be cut off at the end.
            Err(error) if error.error_len().is_none() => Kind::Text,
            Err(_) if subtype.ends_with("+xml") || subtype.ends_with("+json") => Kind::Text,
            Err(_) => Kind::Binary,
        },
    }
}

/// Whether there are zeros in the beginning, which no text has but UTF-16.
fn has_zeros(download: &Download) -> bool {
    let body = &download.body;
    let is_utf16 = body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff");
    let names_utf16 = download
        .content_type
        .as_deref()
        .is_some_and(|header| header.to_ascii_lowercase().contains("utf-16"));
    !is_utf16 && !names_utf16 && body[..body.len().min(BINARY_BYTES)].contains(&0)
}

fn looks_like_html(body: &[u8]) -> bool {
    let start =
        String::from_utf8_lossy(&body[..body.len().min(SNIFFED_BYTES)]).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The text of a PDF document, by the program `pdftotext`. A library for it would add a fifth to this program's
/// dependencies, and a separate process can be ended when a document is made to exhaust it.
async fn pdf_text(
    download: Download,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    if download.is_cut {
        return Err(ToolError::Failed(format!(
            "{} is a PDF document larger than 5 MB, which is too large to read here; download it with a command",
            download.url
        )));
    }
    let arguments = ["-q", "-enc", "UTF-8", "-nopgbrk", "-l", MAX_PDF_PAGES, "-", "-"];
    let spec = ChildSpec {
        program: "pdftotext".into(),
        args: arguments.map(Into::into).into(),
        directory: std::env::temp_dir(),
        environment: EnvironmentPolicy::inherited(),
        input: download.body,
        timeout: Some(limit),
        output: OutputLimits {
            keep_tail_bytes: MAX_PDF_TEXT_BYTES,
            keep_tail_chars: MAX_PDF_TEXT_BYTES,
            keep_tail_lines: MAX_PDF_TEXT_BYTES,
            side_file: None,
        },
        errors: ErrorOutput::Apart,
    };
    let failed =
        |why: String| ToolError::Failed(format!("{} is a PDF document, but {why}", download.url));
    let finished = myclaw_exec::run(spec, cancel, &mut |_| {}).await.map_err(|error| match error {
        ExecError::ProgramNotFound { .. } => failed(
            "the program pdftotext is not installed; the user can install it (Debian: apt-get install \
             poppler-utils, macOS: brew install poppler)"
                .to_owned(),
        ),
        error => failed(error.to_string()),
    })?;
    match finished.exit {
        Exit::Code(0) if finished.output.truncated => {
            Err(failed("it has more text than can be read here".to_owned()))
        }
        Exit::Code(0) => Ok(finished.output.tail),
        _ => Err(failed(format!(
            "its text cannot be taken out: it is damaged, protected or too intricate. {}",
            finished.errors.tail.trim()
        ))),
    }
}
