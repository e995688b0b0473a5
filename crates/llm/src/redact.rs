//! Removes keys from messages, because servers often quote the key that they refuse.

/// Stands for what was removed.
const REDACTED: &str = "[redacted]";

/// How keys of the known providers begin.
const KEY_PREFIXES: [&str; 9] =
    ["sk-", "sk_", "gsk_", "xai-", "AIza", "hf_", "nvapi-", "csk-", "pplx-"];

/// Fewest characters after a prefix that make it a key and not a word.
const MIN_KEY_TAIL: usize = 6;

/// Shortest key that is searched for. Keys of local servers are often placeholders such as `ollama`, which are not
/// secret and may be a word of the message.
const MIN_KEY: usize = 8;

/// `text` without `secrets` of at least 8 characters, and without anything that looks like a key, whole or masked in its
/// middle.
pub fn redact<'s>(text: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    let long_enough = |secret: &&str| secret.len() >= MIN_KEY;
    let mut secrets: Vec<&str> = secrets.into_iter().map(str::trim).filter(long_enough).collect();
    // One secret may be a part of another; nothing of the longer one may remain.
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret, REDACTED);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(character) = rest.chars().next() {
        let at_word_start =
            !clean.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        match key_length(rest).filter(|_| at_word_start) {
            Some(length) => {
                clean.push_str(REDACTED);
                rest = &rest[length..];
            }
            None => {
                clean.push(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    clean
}

/// The length of the key that `text` begins with.
fn key_length(text: &str) -> Option<usize> {
    let prefix = KEY_PREFIXES.into_iter().find(|prefix| text.starts_with(prefix))?;
    // Masked keys show their ends: `sk-abc***xyz`, `sk-abc...xyz`.
    let is_key_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'*' | b'.');
    let mut tail = text[prefix.len()..].bytes().take_while(is_key_byte).count();
    while text[..prefix.len() + tail].ends_with('.') {
        tail -= 1;
    }
    (tail >= MIN_KEY_TAIL).then_some(prefix.len() + tail)
}

#[cfg(test)]
mod tests;
