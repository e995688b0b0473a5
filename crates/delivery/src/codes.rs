//! Short codes that a person reads on one screen and types on another.

use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::{Choice, ConstantTimeEq as _};

use crate::DeliveryError;

/// Characters of a code: 40 random bits, which nobody guesses while it holds.
pub(crate) const CODE_CHARS: usize = 8;
/// Without characters that look alike.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// A new code.
///
/// # Errors
/// The system gives no random numbers.
pub fn code() -> Result<String, DeliveryError> {
    let mut bytes = [0; CODE_CHARS];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| DeliveryError::Internal("the system gives no random numbers".to_owned()))?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect())
}

/// Whether `typed` is the code, in capital letters or not. Takes the same time wherever the two differ.
pub fn is_code(code: &str, typed: &str) -> Choice {
    code.as_bytes().ct_eq(typed.trim().to_ascii_uppercase().as_bytes())
}
