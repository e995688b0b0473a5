//! Ids of tool calls: each server has its own form, and some send none.
//!
//! An id in a request must have the form that the host allows. It is derived from the original id alone, so a session
//! has the same bytes in every request.

use std::borrow::Cow;

use uuid::Uuid;

/// What a host accepts as the id of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolIdRule {
    /// Letters, digits, `_` and `-`, at most this many bytes.
    Token(usize),
    /// Visible ASCII, at most this many bytes.
    Printable(usize),
    /// Exactly nine letters and digits (Mistral).
    NineAlphanumeric,
}

/// FNV-1a's parameters for 64 bits: a hash that stays the same in every version of this program.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The number that the second call of one id gets.
pub(crate) const SECOND: u64 = 2;

/// An id for a call whose server sent none.
pub(crate) fn made_up() -> String {
    format!("call_{}", Uuid::new_v4().simple())
}

/// `id` with a number appended, the first one from `first` on that makes it unique; and that number.
pub(crate) fn numbered(id: &str, first: u64, is_taken: impl Fn(&str) -> bool) -> (String, u64) {
    let mut number = first;
    loop {
        let candidate = format!("{id}_{number}");
        if !is_taken(&candidate) {
            return (candidate, number);
        }
        number += 1;
    }
}

impl ToolIdRule {
    /// `id` in the form that the host accepts. Different ids stay different (except for hash collisions).
    pub(crate) fn apply(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Token(limit)
                if !id.is_empty() && id.len() <= limit && id.bytes().all(is_token_byte) =>
            {
                Cow::Borrowed(id)
            }
            Self::Printable(limit)
                if !id.is_empty()
                    && id.len() <= limit
                    && id.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Cow::Borrowed(id)
            }
            Self::Token(limit) | Self::Printable(limit) => {
                let hash = base36(fnv1a(id), 13);
                let kept = id
                    .chars()
                    .map(|c| if c.is_ascii() && is_token_byte(c as u8) { c } else { '_' });
                let mut token: String = kept.take(limit.saturating_sub(hash.len() + 1)).collect();
                token.push('_');
                token.push_str(&hash);
                Cow::Owned(token)
            }
            Self::NineAlphanumeric
                if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                Cow::Borrowed(id)
            }
            Self::NineAlphanumeric => Cow::Owned(base36(fnv1a(id), 9)),
        }
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

fn base36(mut number: u64, digits: usize) -> String {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(digits);
    for _ in 0..digits {
        text.push(char::from(ALPHABET[(number % 36) as usize]));
        number /= 36;
    }
    text
}

#[cfg(test)]
mod tests;
