//! An error that a server reports, and which ones are new.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Most characters of one error.
const MAX_CHARS: usize = 300;
/// The severity of an error in the protocol; without one it counts as an error.
const ERROR: u64 = 1;

/// An error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// From 1.
    line: u64,
    /// From 1.
    column: u64,
    message: String,
}

impl Problem {
    /// The errors among what a server reports of a file.
    pub(super) fn read(items: &Value) -> Vec<Self> {
        let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
        let is_error = |item: &&Value| item["severity"].as_u64().unwrap_or(ERROR) == ERROR;
        items.iter().filter(is_error).map(Self::of).collect()
    }

    fn of(item: &Value) -> Self {
        let start = &item["range"]["start"];
        let place = |name: &str| start[name].as_u64().unwrap_or_default() + 1;
        let words = item["message"].as_str().unwrap_or_default();
        let is_gap = |char: char| char.is_control() || char.is_whitespace();
        let words: Vec<&str> = words.split(is_gap).filter(|word| !word.is_empty()).collect();
        let mut message: String = words.join(" ").chars().take(MAX_CHARS).collect();
        let code = &item["code"];
        let code = code.as_str().map(str::to_owned).or(code.as_u64().map(|code| code.to_string()));
        if let Some(code) = code.filter(|code| code.len() < 80 && !code.contains(char::is_control))
        {
            message.push_str(&format!(" ({code})"));
        }
        Self { line: place("line"), column: place("character"), message }
    }

    /// For the model.
    pub(super) fn shown(&self) -> String {
        format!("line {}:{}: {}", self.line, self.column, self.message)
    }
}

/// The errors of `now` that `before` does not have. Lines move with every edit, so only the words count, and how often.
pub(super) fn added(before: &[Problem], now: &[Problem]) -> Vec<Problem> {
    let mut left: Vec<&str> = before.iter().map(|problem| problem.message.as_str()).collect();
    let is_new = |problem: &&Problem| match left.iter().position(|old| *old == problem.message) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    now.iter().filter(is_new).cloned().collect()
}

/// The address of a file in the protocol.
pub(super) fn address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

/// The file at an address, however its characters are written.
pub(super) fn path_of(address: &str) -> Option<PathBuf> {
    use myclaw_files::portable::OsStringExt as _;
    let mut rest = address.strip_prefix("file://")?.as_bytes();
    let mut bytes = Vec::new();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%');
        let escaped =
            escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests;
