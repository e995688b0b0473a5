//! The dates in a certificate, which the TLS library checks in clients only.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// From when and until when a certificate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// Tags of DER.
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

impl Validity {
    /// Reads it in a certificate in DER form (RFC 5280, section 4.1).
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let (SEQUENCE, certificate, _) = element(certificate)? else { return None };
        let (SEQUENCE, mut rest, _) = element(certificate)? else { return None };
        if let (VERSION, _, after) = element(rest)? {
            rest = after;
        }
        // The serial number, the algorithm of the signature, and the issuer.
        for expected in [INTEGER, SEQUENCE, SEQUENCE] {
            let (tag, _, after) = element(rest)?;
            if tag != expected {
                return None;
            }
            rest = after;
        }
        let (SEQUENCE, dates, _) = element(rest)? else { return None };
        let (from, rest) = time(dates)?;
        let (until, _) = time(rest)?;
        Some(Self { from, until })
    }
}

/// The tag and the content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // Up to four bytes of length: more than any certificate has.
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A time in the form `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`, and what follows it.
fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (tag, text, rest) = element(bytes)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        // Two digits stand for the years from 1950 to 2049.
        UTC_TIME if text >= "50" => format!("19{text}"),
        UTC_TIME => format!("20{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp(), rest))
}

#[cfg(test)]
mod tests;
