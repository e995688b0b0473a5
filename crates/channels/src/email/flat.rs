//! Mails without mails in them, for the parser.
//!
//! The parser reads attached mails too, and those attached to them. It recurses where it copies and drops them, and a stack
//! that overflows ends the process. Anybody can send a mail with 100,000 levels. An attached mail is a file here, so it
//! gets a type that the parser does not know. All bytes keep their places.

/// Most parts that name an encoding. One without an end is decoded up to the end of the mail, so each costs much time.
const MOST_ENCODED: usize = 200;
/// The words that make a part a mail, and what may follow them.
const WORDS: [(&[u8], &[u8]); 2] = [(b"message", b"/("), (b"digest", b";(")];
/// The last byte of such a word when it is changed.
const CHANGED: u8 = b'x';
/// The type of attached mails for the parser.
const MESSAGE: &str = "messagx";

/// A mail without mails in it; `None` if it has too many encoded parts.
pub(super) fn flat(mail: &[u8]) -> Option<Vec<u8>> {
    let mut flat = Vec::with_capacity(mail.len());
    let (mut encoded, mut is_type) = (0, false);
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        encoded += count_of(b"content-transfer-encoding", line);
        let goes_on = line.starts_with(b" ") || line.starts_with(b"\t");
        is_type = count_of(b"content-type", line) > 0 || (is_type && goes_on);
        let start = flat.len();
        flat.extend_from_slice(line);
        if is_type {
            change(&mut flat[start..]);
        }
    }
    (encoded <= MOST_ENCODED).then_some(flat)
}

/// The first half of a media type, as the sender wrote it.
pub(super) fn original_type(main: &str) -> &str {
    if main == MESSAGE { "message" } else { main }
}

/// An attached mail, as the sender wrote it.
pub(super) fn original(mail: &[u8]) -> Vec<u8> {
    let mut original = mail.to_vec();
    for (word, _) in WORDS {
        let (last, head) = word.split_last().unwrap_or((&0, word));
        for at in 0..mail.len().saturating_sub(head.len()) {
            if mail[at..at + head.len()].eq_ignore_ascii_case(head)
                && mail[at + head.len()] == CHANGED
            {
                original[at + head.len()] = *last;
            }
        }
    }
    original
}

/// How often a line names a field. As the parser does, it leaves out spaces in names, and a field may also begin within a
/// line: behind a boundary.
fn count_of(field: &[u8], line: &[u8]) -> usize {
    let mut count = 0;
    let mut letters = Vec::new();
    for byte in line.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        if *byte != b':' {
            letters.push(byte.to_ascii_lowercase());
            continue;
        }
        count += usize::from(letters.ends_with(field));
        letters.clear();
    }
    count
}

/// Changes the words that make a part a mail in a line of its type. Names and boundaries with such a word stay.
fn change(line: &mut [u8]) {
    let is_gap = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\\');
    for (word, followers) in WORDS {
        for at in 0..(line.len() + 1).saturating_sub(word.len()) {
            let end = at + word.len();
            if !line[at..end].eq_ignore_ascii_case(word) {
                continue;
            }
            let begins = line[..at]
                .last()
                .is_none_or(|byte| is_gap(byte) || matches!(byte, b':' | b')' | b'/'));
            let is_value = line[..at].iter().rev().find(|byte| !is_gap(byte)) == Some(&b'=');
            let next = line[end..].iter().find(|byte| !is_gap(byte));
            if begins && !is_value && next.is_none_or(|byte| followers.contains(byte)) {
                line[end - 1] = CHANGED;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::{flat, original};

    #[test]
    fn attached_mails_are_files_in_whatever_way_their_type_is_written() {
        for (field, changed) in [
            ("Content-Type: message/rfc822", "Content-Type: messagx/rfc822"),
            (
                "content- type:\r\n \"MESSAGE\" (a) / global",
                "content- type:\r\n \"MESSAGx\" (a) / global",
            ),
            (":Content-Type: (a)message\r\n /rfc822", ":Content-Type: (a)messagx\r\n /rfc822"),
            ("--bContent-Type: message/rfc822", "--bContent-Type: messagx/rfc822"),
            (
                "Content-Type: multipart/Digest; boundary=b",
                "Content-Type: multipart/Digesx; boundary=b",
            ),
        ] {
            let bytes = flat(field.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), changed);
        }
        for field in [
            "Content-Type: text/plain; name=\"message.txt\"; boundary=\"a-message\"",
            "Content-Type: multipart/mixed; boundary=message",
            "Subject: message/rfc822",
        ] {
            assert_eq!(flat(field.as_bytes()).unwrap(), field.as_bytes());
        }
        assert_eq!(original(b"a messagx/rfc822 digesx"), b"a message/rfc822 digest");
    }

    #[test]
    fn a_mail_with_very_many_levels_is_read() {
        let levels = "Content-Type: message/rfc822\r\n\r\n".repeat(200_000);
        let bytes = flat(format!("From: a@b\r\n{levels}hello").as_bytes()).unwrap();
        let mail = MessageParser::default().parse(&bytes).unwrap();
        assert_eq!((mail.parts.len(), mail.attachment_count()), (1, 1));
        let encoded = "--b\r\nContent-Transfer-Encoding: base64\r\n\r\n".repeat(1_000);
        assert_eq!(flat(encoded.as_bytes()), None);
    }
}
