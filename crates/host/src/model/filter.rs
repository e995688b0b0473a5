//! Bytes without a secret, wherever the chunks end.

/// Replaces a secret in a stream by as many stars. It holds back only what may be the beginning of the secret.
#[derive(Debug)]
pub(super) struct SecretFilter {
    secret: Vec<u8>,
    held: Vec<u8>,
}

impl SecretFilter {
    /// Without this secret; an empty one means that there is none.
    pub(super) fn new(secret: &str) -> Self {
        Self { secret: secret.as_bytes().to_vec(), held: Vec::new() }
    }

    /// The bytes that can be passed on after `chunk` has come.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        if self.secret.is_empty() {
            return chunk.to_vec();
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        while let Some(at) = memchr::memmem::find(&bytes, &self.secret) {
            bytes[at..at + self.secret.len()].fill(b'*');
        }
        let most = bytes.len().min(self.secret.len() - 1);
        let begun = (1..=most).rev().find(|count| bytes.ends_with(&self.secret[..*count]));
        self.held = bytes.split_off(bytes.len() - begun.unwrap_or(0));
        bytes
    }

    /// What was held back, at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::SecretFilter;

    #[test]
    fn a_secret_does_not_pass_wherever_the_chunks_end() {
        let text = b"a sk-12 sk-123 sk-sk-123x sk-12";
        let expected = b"a sk-12 ****** sk-******x sk-12";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let mut filter = SecretFilter::new("sk-123");
                let mut passed = filter.push(&text[..first]);
                passed.extend(filter.push(&text[first..second]));
                passed.extend(filter.push(&text[second..]));
                passed.extend(filter.finish());
                assert_eq!(passed, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_cannot_be_the_secret_is_not_held_back() {
        let mut filter = SecretFilter::new("sk-123");
        assert_eq!(filter.push(b"data: {}\n\n"), b"data: {}\n\n");
        assert_eq!(SecretFilter::new("").push(b"x"), b"x");
    }
}
