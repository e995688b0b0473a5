//! Error bodies: every host has its own shape.

use std::time::Duration;

use serde_json::Value;

/// How deep errors inside errors are followed: gateways pass on the JSON of the host behind them as text.
const MAX_NESTED_ERRORS: usize = 2;

/// What an error body says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ErrorBody {
    /// The provider's own code, type and status name, the most telling first.
    codes: Vec<String>,
    /// For a person.
    pub(super) message: String,
    /// What phrases may be searched in.
    pub(super) words: String,
    /// A status inside the body, where the HTTP one said nothing.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// The body is HTML; the message is its title.
    pub(super) is_web_page: bool,
}

impl ErrorBody {
    pub(super) fn code(&self) -> Option<&str> {
        self.codes.first().map(String::as_str)
    }

    /// Adds the most telling code of all, which was not in the body.
    pub(super) fn add_code(&mut self, code: &str) {
        if is_code(code) {
            self.codes.insert(0, code.to_owned());
        }
    }

    pub(super) fn codes(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().map(String::as_str)
    }
}

/// Reads a body of any shape.
pub(super) fn parse(body: &str) -> ErrorBody {
    parse_nested(body, MAX_NESTED_ERRORS)
}

fn parse_nested(body: &str, depth: usize) -> ErrorBody {
    let text = body.trim();
    if text.starts_with('<') {
        let title = page_title(text).unwrap_or("no title").to_owned();
        return ErrorBody {
            words: title.clone(),
            message: title,
            is_web_page: true,
            ..ErrorBody::default()
        };
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(mut items)) if !items.is_empty() => {
            from_json(&items.swap_remove(0), text, depth)
        }
        Ok(value) => from_json(&value, text, depth),
        Err(_) => {
            ErrorBody { words: text.to_owned(), message: text.to_owned(), ..ErrorBody::default() }
        }
    }
}

fn from_json(value: &Value, text: &str, depth: usize) -> ErrorBody {
    let error = match &value["error"] {
        inner @ Value::Object(_) => inner,
        _ => value,
    };
    let message = [
        &error["message"],
        &error["errorMessage"],
        &value["error"],
        &value["message"],
        &value["detail"],
    ]
    .into_iter()
    .chain([&value["detail"][0]["msg"], &value["errors"][0]["message"], value])
    .find_map(|candidate| candidate.as_str().filter(|message| !message.trim().is_empty()))
    .map_or_else(|| if error.is_object() { text.to_owned() } else { String::new() }, str::to_owned);
    let mut body = ErrorBody {
        codes: [&error["code"], &error["type"], &error["status"], &error["__type"]]
            .into_iter()
            // Amazon writes a namespace before its names.
            .filter_map(|code| code.as_str()?.rsplit('#').next().filter(|code| is_code(code)))
            .map(str::to_owned)
            .collect(),
        words: message.clone(),
        message,
        status: [&error["code"], &error["status"], &error["status_code"]]
            .into_iter()
            .find_map(http_status),
        retry_after: retry_info(error),
        is_web_page: false,
    };
    if depth > 0
        && let Some(raw) = error["metadata"]["raw"].as_str()
    {
        body.add_nested(parse_nested(raw, depth - 1));
    }
    body
}

impl ErrorBody {
    /// Takes over what the host behind a gateway said: it knows more.
    fn add_nested(&mut self, inner: Self) {
        self.codes.splice(0..0, inner.codes);
        if !inner.message.is_empty() {
            self.message = format!("{}: {}", self.message, inner.message);
            self.words = format!("{}\n{}", self.words, inner.words);
        }
        self.retry_after = self.retry_after.or(inner.retry_after);
    }
}

/// Whether it is a name rather than a sentence (some hosts put one there) or a number.
fn is_code(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

fn http_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..=599).contains(status))
}

/// Google's `RetryInfo`, such as `"retryDelay": "34.5s"`.
fn retry_info(error: &Value) -> Option<Duration> {
    let delay =
        error["details"].as_array()?.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
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
pub(crate) fn one_line(text: &str, limit: usize) -> String {
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
