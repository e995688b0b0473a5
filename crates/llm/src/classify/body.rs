//! Reads error bodies, which have another shape at every host.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::retry_after;

/// How deep errors inside errors are followed: gateways pass on the JSON of the host behind them as text.
const MAX_NESTED_ERRORS: usize = 2;

/// What an error body says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ErrorBody {
    /// The provider's own code, type and status name, the most specific first.
    codes: Vec<String>,
    /// For a person.
    pub(super) message: String,
    /// The text in which phrases may be searched.
    pub(super) words: String,
    /// A status inside the body, for answers whose HTTP status says nothing.
    pub(super) status: Option<u16>,
    /// The field of the request that is the cause, where a member of its own names it.
    pub(super) field: Option<String>,
    pub(super) retry_after: Option<Duration>,
    /// The body is HTML; the message is its title.
    pub(super) is_web_page: bool,
}

impl ErrorBody {
    pub(super) fn code(&self) -> Option<&str> {
        self.codes.first().map(String::as_str)
    }

    pub(super) fn codes(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().map(String::as_str)
    }

    /// Adds a code from outside the body, the most specific of all.
    pub(super) fn add_code(&mut self, code: &str) {
        if is_code(code) {
            self.codes.insert(0, code.to_owned());
        }
    }

    /// Uses the error of the host behind a gateway instead, because it is more specific.
    fn add_nested(&mut self, inner: Self) {
        self.codes.splice(0..0, inner.codes);
        if !inner.message.is_empty() {
            let separator = if self.message.is_empty() { "" } else { ": " };
            self.message = format!("{}{separator}{}", self.message, inner.message);
            self.words = format!("{}\n{}", self.words, inner.words);
        }
        self.status = self.status.or(inner.status);
        self.field = inner.field.or(self.field.take());
        self.retry_after = inner.retry_after.or(self.retry_after);
    }
}

/// Reads a body of any shape; `now` is what its dates are compared with.
pub(super) fn parse(body: &str, now: SystemTime) -> ErrorBody {
    parse_nested(body, now, MAX_NESTED_ERRORS)
}

fn parse_nested(body: &str, now: SystemTime, depth: usize) -> ErrorBody {
    let text = body.trim();
    if is_web_page(text) {
        let title = page_title(text).unwrap_or("no title").to_owned();
        return ErrorBody {
            words: title.clone(),
            message: title,
            is_web_page: true,
            ..ErrorBody::default()
        };
    }
    // Some gateways add words of their own after the JSON.
    match serde_json::Deserializer::from_str(text).into_iter::<Value>().next() {
        Some(Ok(Value::Array(mut items))) if !items.is_empty() => {
            from_json(&items.swap_remove(0), text, now, depth)
        }
        Some(Ok(value @ (Value::Object(_) | Value::String(_)))) => {
            from_json(&value, text, now, depth)
        }
        _ => ErrorBody {
            words: text.to_owned(),
            message: text.to_owned(),
            retry_after: retry_after::from_words(text, now),
            ..ErrorBody::default()
        },
    }
}

/// Whether `value` says that something failed, in the shape of any host.
pub(crate) fn reports_an_error(value: &Value) -> bool {
    let value = value.get(0).unwrap_or(value);
    if !value.is_object() {
        return value.is_string();
    }
    let text = value.to_string();
    let body = from_json(value, &text, SystemTime::UNIX_EPOCH, 0);
    let has = |member: &str| !value[member].is_null();
    has("error") || has("code") || has("__type") || body.status.is_some() || body.message != text
}

/// The object that holds the error: hosts wrap it in `error`, events of the Responses API in `response` as well.
fn error_object(value: &Value) -> &Value {
    [&value["error"], &value["response"]["error"], &value["detail"]["error"], &value["detail"]]
        .into_iter()
        .find(|inner| inner.is_object())
        .unwrap_or(value)
}

fn from_json(value: &Value, text: &str, now: SystemTime, depth: usize) -> ErrorBody {
    let error = error_object(value);
    let message = [
        &error["message"],
        &error["errorMessage"],
        &error["Message"],
        &value["error"],
        &value["message"],
        &value["detail"],
        &value["errors"][0]["message"],
        &value["base_resp"]["status_msg"],
        value,
    ]
    .into_iter()
    .find_map(|candidate| candidate.as_str().filter(|message| !message.trim().is_empty()))
    .map(str::to_owned)
    .or_else(|| field_errors(value, error))
    .unwrap_or_else(|| if error.is_object() { text.to_owned() } else { String::new() });
    // Gateways pass on the error of the host behind them as text, some of them as the message itself.
    let (message, nested) = match message.trim_start().starts_with('{') && message != text {
        true => (String::new(), Some(message)),
        false => (message, error["metadata"]["raw"].as_str().map(str::to_owned)),
    };
    let mut body = ErrorBody {
        codes: codes(value, error),
        words: format!("{message}{}", quota_ids(error)),
        status: [
            &error["code"],
            &error["status"],
            &error["status_code"],
            &value["status_code"],
            &value["status"],
        ]
        .into_iter()
        .find_map(http_status),
        field: [&error["param"], &value["param"]].into_iter().find_map(field_name),
        retry_after: delay(error, &message, now),
        message,
        is_web_page: false,
    };
    if depth > 0
        && let Some(nested) = nested
    {
        body.add_nested(parse_nested(&nested, now, depth - 1));
    }
    body
}

/// The name of a field, where there is one.
fn field_name(value: &Value) -> Option<String> {
    let name = value.as_str()?.trim();
    (!name.is_empty() && !matches!(name, "None" | "null")).then(|| name.to_owned())
}

/// Most errors of single fields that are read.
const MAX_FIELD_ERRORS: usize = 5;

/// The errors of single fields, as FastAPI and the hosts that are built with it list them: each with its place.
fn field_errors(value: &Value, error: &Value) -> Option<String> {
    let lists = [
        &value["detail"],
        &error["detail"],
        &value["message"],
        &error["message"],
        &value["message"]["detail"],
        &error["message"]["detail"],
    ];
    let list = lists.into_iter().find_map(Value::as_array)?;
    let lines = list.iter().take(MAX_FIELD_ERRORS).filter_map(|error| {
        let reason = error["msg"].as_str()?;
        let steps = error["loc"].as_array().into_iter().flatten();
        let place = steps.map(|step| match step.as_str() {
            Some(name) => name.to_owned(),
            None => step.to_string(),
        });
        let place = place.collect::<Vec<_>>().join(".");
        Some(if place.is_empty() { reason.to_owned() } else { format!("{place}: {reason}") })
    });
    let lines = lines.collect::<Vec<_>>().join("; ");
    (!lines.is_empty()).then_some(lines)
}

/// The values that may be codes, the most specific first.
fn codes(value: &Value, error: &Value) -> Vec<String> {
    let reasons = error["details"].as_array().into_iter().flatten().map(|detail| &detail["reason"]);
    reasons
        .chain([
            &error["code"],
            &error["type"],
            &error["status"],
            &error["reason"],
            &error["__type"],
            &error["innererror"]["code"],
            &value["code"],
        ])
        .filter_map(|code| match code {
            Value::Number(number) => Some(number.to_string()),
            code => code.as_str().map(|code| code.rsplit('#').next().unwrap_or(code).to_owned()),
        })
        .filter(|code| is_code(code))
        .fold(Vec::new(), |mut codes, code| {
            if !codes.contains(&code) {
                codes.push(code);
            }
            codes
        })
}

/// The names of Google's quotas that are used up, such as `GenerateRequestsPerDayPerProjectPerModel-FreeTier`.
fn quota_ids(error: &Value) -> String {
    let details = error["details"].as_array().into_iter().flatten();
    details
        .flat_map(|detail| detail["violations"].as_array().into_iter().flatten())
        .filter_map(|violation| violation["quotaId"].as_str())
        .fold(String::new(), |ids, id| ids + "\n" + id)
}

/// How long to wait, from a field or from the words.
fn delay(error: &Value, message: &str, now: SystemTime) -> Option<Duration> {
    let limits = || {
        let headers = error["metadata"]["headers"].as_object()?;
        retry_after::limits_reset_in_body(headers, now)
    };
    retry_after::from_fields(&error["resets_in_seconds"], &error["resets_at"], now)
        .or_else(|| retry_info(error))
        .or_else(limits)
        .or_else(|| retry_after::from_words(message, now))
}

/// Google's `RetryInfo`, such as `"retryDelay": "34.5s"`. It refers to the limit per minute alone, so it is wrong when
/// the quota of a day is used up.
fn retry_info(error: &Value) -> Option<Duration> {
    if quota_ids(error).contains("PerDay") {
        return None;
    }
    let mut details = error["details"].as_array()?.iter();
    retry_after::from_span(details.find_map(|detail| detail["retryDelay"].as_str())?)
}

/// Whether it is a name rather than a sentence (some hosts put one there), or one of the numeric error codes, which are
/// longer than a status.
fn is_code(text: &str) -> bool {
    let is_number = (4..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    is_number || is_name
}

fn http_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..=599).contains(status))
}

/// Whether it is HTML. Some hosts begin an error with `<400>`.
pub(crate) fn is_web_page(text: &str) -> bool {
    text.trim_start()
        .strip_prefix('<')
        .is_some_and(|rest| rest.starts_with(|c: char| c == '!' || c.is_ascii_alphabetic()))
}

fn page_title(html: &str) -> Option<&str> {
    // ASCII folding keeps every offset.
    let folded = html.to_ascii_lowercase();
    let start = folded.find("<title")?;
    let start = start + folded[start..].find('>')? + 1;
    let end = start + folded[start..].find("</title")?;
    Some(html[start..end].trim()).filter(|title| !title.is_empty())
}

/// `text` as one line without control characters, cut to `limit` characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => {
            line.truncate(end);
            line.push('…');
            line
        }
        None => line,
    }
}
