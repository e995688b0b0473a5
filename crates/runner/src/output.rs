//! The blocks on standard output, and whether somebody still reads them.

use std::io::Write;

use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

#[cfg_attr(unix, path = "output/unix.rs")]
#[cfg_attr(windows, path = "output/windows.rs")]
mod basis;

pub(crate) use basis::watch_standard_output;

/// Characters with which a marker cannot begin, because JSON has them outside its texts too.
const JSON_CHARS: &str = "{}[],:\"\\";

/// The lines around each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    start: String,
    end: String,
}

/// Markers that cannot be told from what is between them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the marker {0:?} cannot be used: write one line that begins with a sign such as - or =, and two different ones"
)]
pub struct MarkersError(String);

impl Default for Markers {
    fn default() -> Self {
        Self {
            start: "---NANOCLAW_OUTPUT_START---".to_owned(),
            end: "---NANOCLAW_OUTPUT_END---".to_owned(),
        }
    }
}

impl Markers {
    /// Markers other than the usual ones.
    ///
    /// # Errors
    /// One of them cannot be told from the JSON between them, or from the other.
    pub fn new(start: String, end: String) -> Result<Self, MarkersError> {
        let usable = |marker: &str| {
            let first = marker.chars().next();
            first.is_some_and(|first| first.is_ascii_punctuation() && !JSON_CHARS.contains(first))
                && !marker.contains(char::is_control)
        };
        let unusable = [&start, &end].into_iter().find(|marker| !usable(marker));
        match unusable {
            Some(marker) => Err(MarkersError(marker.clone())),
            None if start.contains(&end) || end.contains(&start) => Err(MarkersError(end)),
            None => Ok(Self { start, end }),
        }
    }

    /// A block. A marker within the JSON can only be in a text, so its first character is written as an escape there.
    fn around(&self, json: &str) -> String {
        let mut json = json.to_owned();
        for marker in [&self.start, &self.end] {
            if let Some(first) = marker.chars().next().filter(|_| json.contains(marker.as_str())) {
                let escaped = format!("\\u{:04x}{}", u32::from(first), &marker[first.len_utf8()..]);
                json = json.replace(marker.as_str(), &escaped);
            }
        }
        format!("{}\n{json}\n{}\n", self.start, self.end)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Success<'a> {
    status: &'static str,
    result: Option<&'a str>,
    new_session_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Failure<'a> {
    status: &'static str,
    result: Option<&'a str>,
    error: &'a str,
}

/// Writes blocks.
pub(crate) struct Output {
    markers: Markers,
    sink: Mutex<Box<dyn Write + Send>>,
    /// Fires when nobody reads the output any more.
    gone: CancellationToken,
}

impl Output {
    pub(crate) fn new(markers: Markers, sink: Box<dyn Write + Send>) -> Self {
        Self { markers, sink: Mutex::new(sink), gone: CancellationToken::new() }
    }

    /// Fires when nobody reads the output any more.
    pub(crate) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// A text of the model, as far as it is.
    pub(crate) fn partial(&self, text: &str, session_id: &str) {
        let (status, result) = ("partial", Some(text));
        self.write(&Success { status, result, new_session_id: session_id, inputs: None });
    }

    /// A text of the model.
    pub(crate) fn text(&self, text: &str, session_id: &str) {
        let (status, result) = ("success", Some(text));
        self.write(&Success { status, result, new_session_id: session_id, inputs: None });
    }

    /// The end of a query that took the messages of `inputs`, with its text unless that was sent already.
    pub(crate) fn end(&self, unsent: Option<&str>, session_id: &str, inputs: Option<&[String]>) {
        let (status, result) = ("success", unsent);
        self.write(&Success { status, result, new_session_id: session_id, inputs });
    }

    pub(crate) fn failure(&self, error: &str) {
        self.write(&Failure { status: "error", result: None, error });
    }

    fn write(&self, block: &impl Serialize) {
        // These structs have texts only, which cannot fail to be encoded.
        let block = self.markers.around(&serde_json::to_string(block).unwrap_or_default());
        let mut sink = self.sink.lock();
        let written = sink.write_all(block.as_bytes()).and_then(|()| sink.flush());
        if written.is_err() {
            self.gone.cancel();
        }
    }
}

#[cfg(test)]
mod tests;
