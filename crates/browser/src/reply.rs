//! Turns the answers of `agent-browser` into text for the model.

use myclaw_llm::outside::visible;
use serde::Deserialize;
use serde_json::Value;

use crate::error::BrowserError;

/// Longest quotation of a single value, such as an address or the text of an error.
const MAX_QUOTED_CHARS: usize = 500;

/// The answer to one command.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply {
    success: bool,
    #[serde(alias = "data")]
    result: Option<Value>,
    error: Option<String>,
    warning: Option<String>,
}

impl Reply {
    /// The answers to the commands of one call, in their order.
    ///
    /// # Errors
    /// The output is not what `agent-browser` prints.
    pub(crate) fn parse(output: &str) -> Result<Vec<Self>, BrowserError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Answer {
            Batch(Vec<Reply>),
            /// What is printed when the commands could not be passed on.
            Whole(Reply),
        }
        match serde_json::from_str(output.trim()) {
            Ok(Answer::Batch(replies)) => Ok(replies),
            Ok(Answer::Whole(reply)) => Ok(vec![reply]),
            Err(error) => Err(BrowserError::Answer(error.to_string())),
        }
    }

    /// The text of the error, if the command failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        (!self.success).then(|| self.error.as_deref().unwrap_or("no reason given"))
    }

    /// A warning of the program, such as one about a dialog that waits for an answer.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// A value of the answer.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.result.as_ref()?.get(key)
    }

    /// A text of the answer.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Whether the browser had to be started anew for the command: it has lost its pages then.
    pub(crate) fn has_lost_pages(&self) -> bool {
        let lifecycle = self.get("lifecycle");
        ["launched", "relaunchedBrowser", "restartedBackground"].iter().any(|key| {
            lifecycle.and_then(|lifecycle| lifecycle.get(key)) == Some(&Value::Bool(true))
        })
    }
}

/// A value from a page on one line, in quotes: it cannot pose as anything but a quotation.
pub(crate) fn quoted(text: &str) -> String {
    let text = visible(text);
    let start: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}

/// The console's messages, one a line.
pub(crate) fn console_lines(messages: &[Value]) -> String {
    let lines: Vec<String> = messages
        .iter()
        .map(|message| {
            let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
            match text("type") {
                "" => text("text").to_owned(),
                kind => format!("[{kind}] {}", text("text")),
            }
        })
        .collect();
    lines.join("\n")
}

/// The open tabs, one a line.
pub(crate) fn tab_lines(tabs: &[Value]) -> String {
    let lines: Vec<String> = tabs
        .iter()
        .map(|tab| {
            let text = |key: &str| tab.get(key).and_then(Value::as_str).unwrap_or_default();
            let active = tab.get("active") == Some(&Value::Bool(true));
            let mark = if active { " (active)" } else { "" };
            format!("{}{mark}: {} {}", text("tabId"), quoted(text("title")), quoted(text("url")))
        })
        .collect();
    lines.join("\n")
}
