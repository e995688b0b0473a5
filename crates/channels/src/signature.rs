//! Signatures of webhooks: HMAC-SHA256 over a time and a body, so that neither can be changed and old ones expire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ring::digest::SHA256_OUTPUT_LEN;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

/// The header with the time of signing, in seconds since the Unix epoch.
pub(crate) const TIME_HEADER: &str = "x-myclaw-timestamp";
/// The header with the signature.
pub(crate) const SIGNATURE_HEADER: &str = "x-myclaw-signature";
/// What the value of that header begins with.
const SCHEME: &str = "sha256=";
/// How far the time may be from that of this machine.
pub(crate) const WINDOW: Duration = Duration::from_secs(5 * 60);

/// Seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The value of the signature header.
pub(crate) fn sign(secret: &SecretString, time: u64, body: &[u8]) -> String {
    let tag = hmac::sign(&key(secret), &signed(&time.to_string(), body));
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SCHEME}{digits}")
}

/// Whether the headers of a signature are there. The body is not known yet.
///
/// # Errors
/// As for [`check`].
pub(crate) fn check_head(time: Option<&str>, signature: Option<&str>) -> Result<(), String> {
    let missing = |name: &str| format!("the header {name} is missing");
    time.ok_or_else(|| missing(TIME_HEADER))?;
    let signature = signature.ok_or_else(|| missing(SIGNATURE_HEADER))?;
    is_signature(signature).then_some(()).ok_or_else(wrong)
}

/// Whether the value of a header looks like a signature.
pub(crate) fn is_signature(value: &str) -> bool {
    let digits = value.strip_prefix(SCHEME).and_then(bytes_of);
    digits.is_some_and(|tag| tag.len() == SHA256_OUTPUT_LEN)
}

fn wrong() -> String {
    format!(
        "the signature is wrong; {SIGNATURE_HEADER} is `{SCHEME}` and the HMAC-SHA256, in hexadecimal digits, of the \
         timestamp, a dot and the body"
    )
}

/// Checks a signature.
///
/// # Errors
/// It is missing, wrong or too old; the text says which, for the sender.
pub(crate) fn check(
    secret: &SecretString,
    time: Option<&str>,
    signature: Option<&str>,
    body: &[u8],
) -> Result<(), String> {
    let missing = |name: &str| format!("the header {name} is missing");
    let time = time.ok_or_else(|| missing(TIME_HEADER))?;
    let signature = signature.ok_or_else(|| missing(SIGNATURE_HEADER))?;
    // The time is checked after it, so that nobody learns anything about it without the secret.
    let is_right = is_signed(secret, signature, &signed(time, body));
    if !is_right {
        return Err(wrong());
    }
    let apart = time.parse::<u64>().ok().map(|time| time.abs_diff(now()));
    if apart.is_none_or(|apart| apart > WINDOW.as_secs()) {
        let window = WINDOW.as_secs();
        return Err(format!(
            "the timestamp is more than {window} s from this machine's time; sign again"
        ));
    }
    Ok(())
}

/// Whether `signature`, the value of a header, is that of `signed`. In constant time.
pub(crate) fn is_signed(secret: &SecretString, signature: &str, signed: &[u8]) -> bool {
    let digits = signature.strip_prefix(SCHEME).and_then(bytes_of);
    digits.is_some_and(|tag| hmac::verify(&key(secret), signed, &tag).is_ok())
}

fn key(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

fn signed(time: &str, body: &[u8]) -> Vec<u8> {
    let mut signed = Vec::with_capacity(time.len() + 1 + body.len());
    signed.extend_from_slice(time.as_bytes());
    signed.push(b'.');
    signed.extend_from_slice(body);
    signed
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}
