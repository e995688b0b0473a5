//! Messages of the Language Server Protocol: headers with a length, then JSON.

use serde_json::Value;

/// Longest message of a server, in bytes: the diagnostics of one file are much shorter.
const MAX_MESSAGE: usize = 8 << 20;
/// Longest headers of a message, in bytes.
const MAX_HEADERS: usize = 4 << 10;

/// What a server has printed and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct Frames(Vec<u8>);

/// What a server printed is no message, or too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoMessage;

impl Frames {
    /// Adds what was printed.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next message; `None` if it is not complete.
    pub(super) fn next(&mut self) -> Result<Option<Value>, NoMessage> {
        const END: &[u8] = b"\r\n\r\n";
        let Some(at) = self.0.windows(END.len()).position(|found| found == END) else {
            return if self.0.len() > MAX_HEADERS { Err(NoMessage) } else { Ok(None) };
        };
        let headers = std::str::from_utf8(&self.0[..at]).map_err(|_| NoMessage)?;
        let length = headers.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let length: usize = length.filter(|length| *length <= MAX_MESSAGE).ok_or(NoMessage)?;
        let (begin, end) = (at + END.len(), at + END.len() + length);
        if self.0.len() < end {
            return Ok(None);
        }
        let message = serde_json::from_slice(&self.0[begin..end]).map_err(|_| NoMessage)?;
        self.0.drain(..end);
        Ok(Some(message))
    }
}

/// A message as it is sent.
pub(super) fn encode(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

#[cfg(test)]
mod tests;
