//! The digest that binds an approval to what was approved.

use std::fmt;

use ring::digest::{Context, SHA256};

/// Changed when the meaning of the fields changes, so that no old approval fits a new one.
const FORMAT: &[u8] = b"myclaw approval, format 2";

/// A SHA-256 digest of everything that an approval is about. Two calls have the same digest only if they are the same
/// in all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalDigest([u8; 32]);

impl ApprovalDigest {
    /// The digest of a call of `tool` with these fields, each a name and a value. Their order counts, and so does where
    /// one ends and the next begins.
    pub fn of(tool: &str, fields: &[(&str, &[u8])]) -> Self {
        let mut digest = Fields::new(FORMAT);
        digest.text(crate::canonical_tool_name(tool).as_bytes());
        digest.count(fields.len());
        for (name, value) in fields {
            digest.text(name.as_bytes());
            digest.text(value);
        }
        digest.finish()
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
