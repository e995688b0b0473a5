//! Classifies the errors of providers. No other code decides about classes.
//!
//! The order, each a table in [`rules`]: codes of the provider that say exactly what is wrong, a request that is larger
//! than a whole limit, sentences of known hosts that say what is wrong, codes that say no more than a status, the HTTP
//! status, words, and at last whether the server failed. Words are searched only in what the provider said about the
//! error, never in anything a model said, and a number in them never counts as a status: a request id may hold `500`.

mod body;
mod hint;
mod rules;

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use crate::retry_after::{limits_reset, retry_after};
use crate::wire::optional::Refusal;
use crate::{ErrorClass, ModelError};

pub use body::one_line;
use body::{ErrorBody, parse};
pub(crate) use body::{is_web_page, reports_an_error};

/// Longest text of a provider that is shown, in characters.
const MAX_SHOWN: usize = 400;

/// Where AWS puts the name of an error: `ThrottlingException:http://internal.amazon.com/…`.
const AWS_ERROR_HEADER: &str = "x-amzn-errortype";

/// The class of an error with this HTTP status, these codes and types (the most specific first), and these words.
pub fn classify<'a>(
    status: Option<u16>,
    codes: impl IntoIterator<Item = &'a str>,
    text: &str,
) -> ErrorClass {
    let codes: Vec<&str> = codes.into_iter().collect();
    rules::decide(status, &codes, text)
}

/// The name of an error as AWS's headers state it.
pub fn aws_error_name(headers: &HeaderMap) -> Option<&str> {
    headers.get(AWS_ERROR_HEADER)?.to_str().ok()?.split(':').next()
}

/// The error of an answer with a status that is no success.
pub(crate) fn http_error(
    status: u16,
    headers: &HeaderMap,
    body: &str,
    now: SystemTime,
) -> ModelError {
    let mut parsed = parse(body, now);
    if let Some(name) = aws_error_name(headers) {
        parsed.add_code(name);
    }
    let class = parsed.class(Some(status));
    let message = match &parsed {
        ErrorBody { message, .. } if message.is_empty() => {
            format!("answered {status} without a reason")
        }
        ErrorBody { is_web_page: true, message, .. } => {
            format!("answered {status} with a web page instead of JSON ({})", shown(message))
        }
        ErrorBody { message, .. } => match parsed.code() {
            Some(code) => format!("answered {status} ({code}): {}", shown(message)),
            None => format!("answered {status}: {}", shown(message)),
        },
    };
    let hint = parsed.hint(class, status);
    let delay =
        retry_after(headers, now).or(parsed.retry_after).or_else(|| limits_reset(headers, now));
    ModelError {
        status: Some(status),
        code: parsed.code().map(str::to_owned),
        retry_after: delay_for(class, delay),
        ..ModelError::new(class, with_hint(&message, hint))
    }
}

/// What a body says about the fields of the request.
pub(crate) fn refusal(body: &str) -> Refusal {
    let ErrorBody { field, words, .. } = parse(body, SystemTime::UNIX_EPOCH);
    Refusal { field, words }
}

/// The error inside an answer whose status was 200.
pub(crate) fn stream_error(data: &str) -> ModelError {
    error_in_answer(&parse(data, SystemTime::now()))
}

/// The same, where the framing of the stream names the error.
pub(crate) fn reported_error(code: &str, data: &str) -> ModelError {
    let mut parsed = parse(data, SystemTime::now());
    parsed.add_code(code);
    error_in_answer(&parsed)
}

fn error_in_answer(parsed: &ErrorBody) -> ModelError {
    let class = parsed.class(parsed.status);
    let message = match parsed {
        ErrorBody { message, .. } if message.is_empty() => match parsed.code() {
            Some(code) => format!("reported an error ({code}) without a reason"),
            None => "the answer is neither a message nor an error that can be read".to_owned(),
        },
        ErrorBody { is_web_page: true, message, .. } => {
            format!("answered with a web page instead of JSON ({})", shown(message))
        }
        ErrorBody { message, .. } => match parsed.code() {
            Some(code) => format!("reported an error ({code}): {}", shown(message)),
            None => format!("reported an error: {}", shown(message)),
        },
    };
    let status = parsed.status.unwrap_or(200);
    let hint = parsed.hint(class, status);
    ModelError {
        status: Some(200),
        code: parsed.code().map(str::to_owned),
        retry_after: delay_for(class, parsed.retry_after),
        ..ModelError::new(class, with_hint(&message, hint))
    }
}

impl ErrorBody {
    /// What to do about it.
    fn hint(&self, class: ErrorClass, status: u16) -> Option<&'static str> {
        if self.is_web_page {
            return Some(hint::page_hint(class, status));
        }
        let codes: Vec<&str> = self.codes().collect();
        hint::hint(class, status, &codes, &self.words)
    }

    fn class(&self, status: Option<u16>) -> ErrorClass {
        classify(status, self.codes(), &self.words)
    }
}

/// The delay, for the classes that a wait can help. A delay of zero (`retry-after: 0`, or a date that has passed) is
/// ignored: the caller's own back-off applies then.
fn delay_for(class: ErrorClass, delay: Option<Duration>) -> Option<Duration> {
    delay.filter(|delay| !delay.is_zero()).filter(|_| match class {
        ErrorClass::RateLimit | ErrorClass::Timeout | ErrorClass::Quota => true,
        ErrorClass::Auth
        | ErrorClass::Billing
        | ErrorClass::ContextOverflow
        | ErrorClass::Unknown => false,
    })
}

fn with_hint(message: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!("{}; {hint}", message.trim_end_matches('.')),
        None => message.trim_end_matches('.').to_owned(),
    }
}

fn shown(text: &str) -> String {
    one_line(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests;
