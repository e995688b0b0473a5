//! What kind of failure a provider's error is: the one place that decides.
//!
//! The provider's own structured code decides first, then the HTTP status, then the words of the error. Words are
//! searched only in what the provider said about the error, never in anything a model said, and numbers in them mean
//! nothing: a request id may hold `500`.

mod advice;
mod body;

use std::time::Duration;

use reqwest::header::HeaderMap;

use crate::{ErrorClass, ModelError};

pub(crate) use body::one_line;
use body::{ErrorBody, parse};

/// Codes and types whose meaning leaves no doubt. What is not here (such as `invalid_request_error`) leaves the
/// decision to the status and the words.
const CODES: &[(ErrorClass, &[&str])] = &[
    (
        ErrorClass::Quota,
        &[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "quota_exceeded",
            "servicequotaexceededexception",
        ],
    ),
    (
        ErrorClass::ContextOverflow,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "model_context_window_exceeded",
            "exceed_context_size_error",
            "request_too_large",
        ],
    ),
    (
        ErrorClass::Auth,
        &[
            "accessdeniedexception",
            "authentication_error",
            "expiredtokenexception",
            "incompletesignature",
            "invalidsignatureexception",
            "missingauthenticationtokenexception",
            "requestexpired",
            "requesttimetooskewed",
            "signaturedoesnotmatch",
            "unrecognizedclientexception",
            "invalid_api_key",
            "invalid_authentication",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
        ],
    ),
    (
        ErrorClass::Billing,
        &["billing_error", "billing_not_active", "insufficient_balance", "payment_required"],
    ),
    (
        ErrorClass::RateLimit,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limited",
            "too_many_requests",
            "resource_exhausted",
            "throttlingexception",
        ],
    ),
    (
        ErrorClass::Timeout,
        &[
            "deadline_exceeded",
            "engine_overloaded_error",
            "internalserverexception",
            "modelerrorexception",
            "modelnotreadyexception",
            "modelstreamerrorexception",
            "modeltimeoutexception",
            "overloaded_error",
            "service_unavailable",
            "serviceunavailableexception",
            "timeout_error",
            "unavailable",
        ],
    ),
    (
        ErrorClass::Unknown,
        &[
            "invalid_function_parameters",
            "model_not_found",
            "unsupported_parameter",
            "unsupported_value",
        ],
    ),
];

/// Codes that say no more than status 500 does, and are trusted no more: some hosts send them with any status.
const SERVER_FAILURES: [&str; 4] =
    ["api_error", "internal_error", "internal_server_error", "server_error"];

/// Words of an error, lower-cased, for a request that is too long.
const OVERFLOW_PHRASES: [&str; 12] = [
    "context_length_exceeded",
    "context window",
    "context length",
    "maximum context",
    "token limit",
    "too many tokens",
    "too many input tokens",
    "input is too long",
    "prompt is too long",
    "request too large",
    "max_tokens",
    "maximum number of tokens",
];

/// Words for a time-out or a broken connection.
const TIMEOUT_PHRASES: [&str; 7] = [
    "timeout",
    "timed out",
    "etimedout",
    "econnreset",
    "econnaborted",
    "socket hang up",
    "network error",
];

/// Words for a quota that is used up.
const QUOTA_PHRASES: [&str; 4] =
    ["quota", "exceeded your current", "insufficient_quota", "billing hard limit"];

/// Longest text of a provider that is shown, in characters.
const MAX_SHOWN: usize = 400;

/// The class of an error with this HTTP status, these codes and types (the most telling first), and these words.
pub fn classify<'a>(
    status: Option<u16>,
    codes: impl IntoIterator<Item = &'a str>,
    text: &str,
) -> ErrorClass {
    // A request that is too long for a rate limit is not helped by waiting; hosts that say 413 mean its size.
    if status == Some(413) {
        return ErrorClass::ContextOverflow;
    }
    let mut server_failed = matches!(status, Some(500..=599));
    for code in codes {
        if let Some(class) = class_of_code(code) {
            return class;
        }
        server_failed |= status.is_none() && is_any_of(code, &SERVER_FAILURES);
    }
    let text = text.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    match status {
        Some(401 | 403) => ErrorClass::Auth,
        Some(429) => ErrorClass::RateLimit,
        Some(402) => ErrorClass::Billing,
        _ if says(&OVERFLOW_PHRASES) => ErrorClass::ContextOverflow,
        Some(408) => ErrorClass::Timeout,
        _ if says(&TIMEOUT_PHRASES) => ErrorClass::Timeout,
        _ if says(&QUOTA_PHRASES) => ErrorClass::Quota,
        _ if server_failed => ErrorClass::Timeout,
        _ => ErrorClass::Unknown,
    }
}

fn class_of_code(code: &str) -> Option<ErrorClass> {
    CODES.iter().find(|(_, codes)| is_any_of(code, codes)).map(|&(class, _)| class)
}

fn is_any_of(code: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(code))
}

/// Amazon's name for the error of an answer, which stands in its headers: before what may follow a colon.
pub(crate) fn amazon_error_name(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("x-amzn-errortype")?.to_str().ok()?;
    value.split(':').next().map(str::trim).filter(|name| !name.is_empty())
}

/// The error of an answer with a status that is no success. `name` and `retry_after` are what the headers said.
pub(crate) fn http_error(
    status: u16,
    name: Option<&str>,
    body: &str,
    retry_after: Option<Duration>,
) -> ModelError {
    let mut parsed = parse(body);
    if let Some(name) = name {
        parsed.add_code(name);
    }
    let code = parsed.code().map(str::to_owned);
    let message = match (&parsed, &code) {
        (ErrorBody { message, .. }, _) if message.is_empty() => {
            format!("answered {status} without a reason")
        }
        (ErrorBody { is_web_page: true, message, .. }, _) => {
            format!("answered {status} with a web page instead of JSON ({})", shown(message))
        }
        (ErrorBody { message, .. }, Some(code)) => {
            format!("answered {status} ({code}): {}", shown(message))
        }
        (ErrorBody { message, .. }, None) => format!("answered {status}: {}", shown(message)),
    };
    let class = classify(Some(status), parsed.codes(), &parsed.words);
    let advice = advice::on(parsed.codes(), &parsed.words);
    let hint = match (class, status) {
        _ if advice.is_some() => "",
        (_, 404) => "; check the base URL and the model id",
        (_, 405) => "; check the base URL",
        (ErrorClass::Auth, _) => "; check the API key",
        (ErrorClass::Billing, _) => "; check the credit of the account",
        (ErrorClass::Quota, _) => "; check the plan and the limits of the account",
        _ => "",
    };
    ModelError {
        class,
        status: Some(status),
        code,
        retry_after: retry_after.or(parsed.retry_after),
        message: match advice {
            Some(advice) => format!("{}; {advice}", message.trim_end_matches('.')),
            None => format!("{}{hint}", message.trim_end_matches('.')),
        },
    }
}

/// The error inside an answer whose status was 200.
pub(crate) fn stream_error(data: &str) -> ModelError {
    error_in_answer(&parse(data))
}

/// The same, where the framing of the stream names the error.
pub(crate) fn reported_error(code: &str, data: &str) -> ModelError {
    let mut parsed = parse(data);
    parsed.add_code(code);
    error_in_answer(&parsed)
}

fn error_in_answer(parsed: &ErrorBody) -> ModelError {
    let code = parsed.code().map(str::to_owned);
    let message = match (&parsed, &code) {
        (ErrorBody { message, .. }, Some(code)) if message.is_empty() => {
            format!("reported an error ({code}) without a reason")
        }
        (ErrorBody { message, .. }, None) if message.is_empty() => {
            "the answer is neither a message nor an error that can be read".to_owned()
        }
        (ErrorBody { is_web_page: true, message, .. }, _) => {
            format!(
                "answered with a web page instead of JSON ({}); check the base URL",
                shown(message)
            )
        }
        (ErrorBody { message, .. }, Some(code)) => {
            format!("reported an error ({code}): {}", shown(message))
        }
        (ErrorBody { message, .. }, None) => format!("reported an error: {}", shown(message)),
    };
    ModelError {
        class: classify(parsed.status, parsed.codes(), &parsed.words),
        status: Some(200),
        code,
        retry_after: parsed.retry_after,
        message,
    }
}

fn shown(text: &str) -> String {
    one_line(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests;
