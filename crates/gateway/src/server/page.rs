//! The web chat: the files of `web-ui/dist`, which are in the program.
//!
//! They hold no secret and are the same for everybody, so they need no token. The policy of the page forbids the browser
//! to run anything but its script, and to load from or connect to any other place.

use myclaw_files::hex;
use std::io::Read as _;
use std::sync::LazyLock;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use ring::digest::{SHA256, digest};

/// What the page may do. Styles and scripts come from their own files, pictures also from the session.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data: blob:; media-src blob:; manifest-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify worker";
/// What the frame may do that draws diagrams: run its script. It is a stranger to the page, and connects to nothing.
const FRAME_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; \
                            form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts";
const FRAME: &str = "/mermaid.html";
/// The script of that frame.
pub(super) const MERMAID: &str = "/mermaid.js";
const RESOURCE_POLICY: &str = "cross-origin-resource-policy";
/// What every other answer may do in a browser: nothing.
const NO_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// A file of the page.
struct File {
    path: &'static str,
    content_type: &'static str,
    /// `None` for a large one, which hardly anybody asks for uncompressed.
    plain: Option<&'static [u8]>,
    /// The same, compressed.
    gzip: &'static [u8],
}

macro_rules! file {
    ($path:expr, $name:literal, $type:literal) => {
        File {
            path: $path,
            content_type: $type,
            plain: Some(include_bytes!(concat!("../../../../web-ui/dist/", $name))),
            gzip: include_bytes!(concat!("../../../../web-ui/dist/", $name, ".gz")),
        }
    };
}

/// A script.
macro_rules! script {
    ($name:literal) => {
        file!(concat!("/", $name), $name, "text/javascript; charset=utf-8")
    };
}

static FILES: [File; 21] = [
    file!("/", "index.html", "text/html; charset=utf-8"),
    script!("app.js"),
    // These load when they are used.
    script!("common.js"),
    script!("config.js"),
    script!("diagrams.js"),
    script!("highlight.js"),
    script!("math.js"),
    script!("more-pages.js"),
    script!("usage.js"),
    script!("voice.js"),
    // What shows notifications.
    script!("worker.js"),
    // The frame that draws diagrams.
    file!("/mermaid.html", "mermaid.html", "text/html; charset=utf-8"),
    File {
        path: MERMAID,
        content_type: "text/javascript; charset=utf-8",
        plain: None,
        gzip: include_bytes!("../../../../web-ui/dist/mermaid.js.gz"),
    },
    file!("/licenses-of-mermaid.md", "licenses-of-mermaid.md", "text/plain; charset=utf-8"),
    file!("/app.css", "app.css", "text/css; charset=utf-8"),
    file!("/manifest.webmanifest", "manifest.webmanifest", "application/manifest+json"),
    file!("/icon.svg", "icon.svg", "image/svg+xml"),
    file!("/icon-192.png", "icon-192.png", "image/png"),
    file!("/icon-512.png", "icon-512.png", "image/png"),
    file!("/icon-maskable.png", "icon-maskable.png", "image/png"),
    file!("/licenses.md", "licenses.md", "text/plain; charset=utf-8"),
];

/// A hash of each file.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |file: &File| {
        let hash = digest(&SHA256, file.plain.unwrap_or(file.gzip));
        hex(&hash.as_ref()[..16])
    };
    FILES.iter().map(tag).collect()
});

/// Whether a path is one of the page.
pub(super) fn is_file(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// The paths of the page.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// A file of the page.
pub(super) async fn file(request: Request) -> Response {
    let path = request.uri().path();
    let Some((number, file)) = FILES.iter().enumerate().find(|(_, file)| file.path == path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let takes_gzip = accepts_gzip(request.headers());
    let encoding = if takes_gzip { "-gzip" } else { "" };
    let tag = format!("\"{}{encoding}\"", TAGS.get(number).map_or("", String::as_str));
    let is_known = request.headers().get_all(IF_NONE_MATCH).iter().any(|value| {
        let tags = value.to_str().unwrap_or_default().split(',');
        tags.map(str::trim).any(|known| known.strip_prefix("W/").unwrap_or(known) == tag)
    });
    let body = match file.plain {
        _ if takes_gzip => Bytes::from_static(file.gzip),
        Some(plain) => Bytes::from_static(plain),
        None => expanded(file.gzip),
    };
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => body.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    match file.path {
        FRAME => {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(FRAME_POLICY));
            headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
        }
        // For the frame everything is of a stranger, its script too.
        MERMAID => {
            let policy = HeaderName::from_static(RESOURCE_POLICY);
            headers.insert(policy, HeaderValue::from_static("cross-origin"));
        }
        _ => {}
    }
    // Asked again each time: a new version of the program has a new page.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if takes_gzip && !is_known {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}

fn expanded(gzip: &[u8]) -> Bytes {
    let mut plain = Vec::new();
    // It is in the program, and a test reads it.
    let _ = GzDecoder::new(gzip).read_to_end(&mut plain);
    plain.into()
}

/// Headers that every answer has.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // Documents of answers, and what draws diagrams, are for frames of the page.
    headers.entry(X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("DENY"));
    headers
        .entry(HeaderName::from_static(RESOURCE_POLICY))
        .or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(NO_POLICY));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(ACCEPT_ENCODING).iter();
    offers.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let is_refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

#[cfg(test)]
mod tests;
