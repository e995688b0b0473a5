//! What must hold for whatever an IMAP server sends.

use myclaw_channels::imap_response::{Response, literal_after, parse};

/// A response says nothing that is longer than itself, and what follows its end changes nothing.
///
/// # Panics
/// When this does not hold.
pub fn response(input: &[u8]) {
    let _ = literal_after(input);
    let Some(parsed) = parse(input) else { return };
    if let Response::Fetch(fetch) = &parsed {
        let length = |bytes: Option<usize>| bytes.unwrap_or_default();
        let said = length(fetch.body.as_ref().map(Vec::len))
            + length(fetch.date.as_ref().map(String::len));
        assert!(said <= input.len());
        let mut longer = input.to_vec();
        longer.extend_from_slice(b"\r\nx");
        assert_eq!(parse(&longer), Some(parsed));
    }
}
