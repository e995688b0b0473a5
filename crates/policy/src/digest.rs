//! The digest that binds an approval to what was approved.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ring::digest::{Context, SHA256};

/// Changed when the fields or their order change, so that no old approval fits a new meaning.
const COMMAND_FORMAT: &[u8] = b"myclaw approval of a command, format 1";
const TOOL_CALL_FORMAT: &[u8] = b"myclaw approval of a tool call, format 1";

/// A SHA-256 digest of everything that an approval is about. Two calls have the same digest only if they are the same
/// in all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalDigest([u8; 32]);

/// A command as it is about to run.
#[derive(Debug, Clone, Copy)]
pub struct CommandSubject<'a> {
    /// The command line, as the shell gets it.
    pub command: &'a str,
    /// For each simple command the file that runs and the words it gets; empty if the line could not be taken apart.
    /// A program that was not found, or is part of the shell, has an empty path.
    pub programs: &'a [(&'a Path, Vec<&'a str>)],
    /// Where it runs.
    pub directory: &'a Path,
    /// Every variable that it gets.
    pub environment: &'a BTreeMap<String, String>,
}

impl ApprovalDigest {
    /// The digest of a command.
    pub fn of_command(subject: &CommandSubject<'_>) -> Self {
        let CommandSubject { command, programs, directory, environment } = subject;
        let mut fields = Fields::new(COMMAND_FORMAT);
        fields.text(command.as_bytes());
        fields.count(programs.len());
        for (path, words) in *programs {
            fields.text(path.as_os_str().as_encoded_bytes());
            fields.count(words.len());
            for word in words {
                fields.text(word.as_bytes());
            }
        }
        fields.text(directory.as_os_str().as_encoded_bytes());
        fields.count(environment.len());
        for (name, value) in *environment {
            fields.text(name.as_bytes());
            fields.text(value.as_bytes());
        }
        fields.finish()
    }

    /// The digest of a call of any other tool. `arguments` is the text of its arguments as they will be passed, so the
    /// caller writes equal arguments the same way each time.
    pub fn of_tool_call(tool: &str, arguments: &str, directory: &Path) -> Self {
        let mut fields = Fields::new(TOOL_CALL_FORMAT);
        fields.text(crate::canonical_tool_name(tool).as_bytes());
        fields.text(arguments.as_bytes());
        fields.text(directory.as_os_str().as_encoded_bytes());
        fields.finish()
    }

    /// The digest that [`ApprovalDigest`]'s `Display` wrote; `None` if the text is no such digest.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ApprovalDigest {
    /// 64 lower-case hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// Feeds fields to the digest. Each is preceded by its length, so that no two lists of fields give the same bytes.
struct Fields(Context);

impl Fields {
    fn new(format: &[u8]) -> Self {
        let mut fields = Self(Context::new(&SHA256));
        fields.text(format);
        fields
    }

    fn text(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_be_bytes());
    }

    fn finish(self) -> ApprovalDigest {
        let mut bytes = [0; 32];
        // SHA-256 has 32 bytes.
        for (to, from) in bytes.iter_mut().zip(self.0.finish().as_ref()) {
            *to = *from;
        }
        ApprovalDigest(bytes)
    }
}

#[cfg(test)]
mod tests;
