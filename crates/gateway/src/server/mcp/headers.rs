//! The headers of the revision without sessions, which say again what the message says.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use myclaw_agent::mcp::serve::{Client, Refusal, Request};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Whether a request belongs to the revision without sessions, or to one that is not known.
pub(super) fn is_stateless(request: &Request, headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|value| value.to_str().ok());
    Client::is_stateless_request(request)
        || version.is_some_and(|version| !Client::has_sessions(version))
}

/// Whether the headers say what the message says. What the message lacks is reported as such.
///
/// # Errors
/// One of them does not.
pub(super) fn check(request: &Request, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(version) = Client::version_in(request) else { return Ok(()) };
    let name = match request.method.as_str() {
        "tools/call" | "prompts/get" => request.text("name"),
        "resources/read" => request.text("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => request.text("taskId"),
        _ => None,
    };
    let wanted = [(VERSION, Some(version)), (METHOD, Some(&*request.method)), (NAME, name)];
    for (header, wanted) in wanted {
        let Some(wanted) = wanted else { continue };
        let mut given = headers.get_all(header).iter();
        let (only, more) = (given.next(), given.next());
        let only = only.and_then(|value| decoded(value.to_str().ok()?));
        if more.is_some() || only.as_deref() != Some(wanted) {
            return Err(Refusal::header(header));
        }
    }
    Ok(())
}

/// The text that a header means: one that is no plain ASCII is written in base64.
fn decoded(value: &str) -> Option<String> {
    let encoded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests;
