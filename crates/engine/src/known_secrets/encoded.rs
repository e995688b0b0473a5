//! Finds keys in encodings that spread them over a text: over several lines, between blanks, with the numbers of a dump.
//!
//! Each way of reading the text gives bytes and where each of them begins in the text, and costs time in proportion to the
//! length of the text, however many keys there are.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use myclaw_files::{after_escape_sequence, is_invisible};

/// Shortest form that counts in a text without its blanks, in bytes: a shorter one may be two words of a sentence.
const MIN_SPREAD: usize = 16;
/// Bytes in a line of a dump; behind them is the same as text.
const DUMPED: usize = 16;
/// Bytes after which `hexdump -C` leaves a wider gap.
const HALF: usize = 8;
/// Fewest digits of an address at the beginning of a line. The numbers of bytes are shorter.
const ADDRESS: usize = 6;
/// What stands between the letters of a key that is written as a list, besides blanks.
pub(super) const BETWEEN: [u8; 5] = *b",;|\"'";

/// Escapes of one character: what they begin with, the base of the number that follows, its fewest and its most digits, and
/// what they end with, which may be missing in HTML. The first one that fits counts.
const ESCAPES: [(&str, u32, usize, usize, &str); 12] = [
    ("%", 16, 2, 2, ""),
    ("=", 16, 2, 2, ""),
    ("%u", 16, 4, 4, ""),
    ("&#x", 16, 1, 7, ";"),
    ("&#X", 16, 1, 7, ";"),
    ("&#", 10, 1, 7, ";"),
    ("\\x", 16, 2, 2, ""),
    ("\\u", 16, 4, 4, ""),
    ("\\x{", 16, 1, 6, "}"),
    ("\\u{", 16, 1, 6, "}"),
    ("\\0", 8, 3, 3, ""),
    ("\\", 8, 3, 3, ""),
];
/// How each of them begins.
const ESCAPED_BY: [char; 4] = ['%', '=', '&', '\\'];
/// Named characters of HTML that a key may have.
const NAMED: [(&str, u8); 6] = [
    ("&amp;", b'&'),
    ("&lt;", b'<'),
    ("&gt;", b'>'),
    ("&quot;", b'"'),
    ("&apos;", b'\''),
    ("&equals;", b'='),
];

const READINGS: [Reading; 8] = [
    Reading::Shown,
    Reading::WithoutBlanks,
    Reading::Digits,
    Reading::Unescaped,
    Reading::Dumped,
    Reading::Uuencoded,
    Reading::Numbers(10),
    Reading::Numbers(8),
];

/// The ways of reading a text.
#[derive(Clone, Copy)]
enum Reading {
    /// As a terminal shows it: without control sequences, and without characters that cannot be seen. The NULs of UTF-16 are
    /// such characters.
    Shown,
    /// That, without its blanks, line ends, commas and quotes: base 64 and plain digits in lines of any length, and letters one
    /// by one.
    WithoutBlanks,
    /// The hexadecimal digits of `73 6b`, `73:6b`, `\x73\x6b`, `0x73, 0x6b` and `%73%6b`, in small letters.
    Digits,
    /// With its escapes read, whichever characters are escaped: see [`ESCAPES`].
    Unescaped,
    /// The bytes of dumps: `xxd`, `hexdump -C` and `od -t x1` write an address, the bytes, and the same as text.
    Dumped,
    /// The digits of uuencode, without the length that begins each line.
    Uuencoded,
    /// Lists of the numbers of bytes, in this base: `115, 107` or `163 153`.
    Numbers(u32),
}

/// The parts of `text` that are keys in one of these encodings.
pub(super) fn places(text: &str, finder: &AhoCorasick) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut bytes = Vec::with_capacity(text.len());
    for reading in READINGS {
        bytes.clear();
        reading.read(text, &mut |_, byte| bytes.push(byte));
        let least = reading.shortest();
        let mut found = finder.find_iter(&bytes).filter(|it| it.len() >= least).peekable();
        if found.peek().is_none() {
            continue;
        }
        // Where each byte begins matters to few texts.
        let mut starts = Vec::with_capacity(bytes.len());
        reading.read(text, &mut |start, _| starts.push(start));
        places
            .extend(found.map(|it| starts[it.start()]..reading.end_of(text, starts[it.end() - 1])));
    }
    places
}

impl Reading {
    /// Shortest form that counts, in bytes.
    fn shortest(self) -> usize {
        match self {
            Self::WithoutBlanks | Self::Digits => MIN_SPREAD,
            _ => 0,
        }
    }

    /// Where a byte ends that begins at `start`.
    fn end_of(self, text: &str, start: usize) -> usize {
        match self {
            Self::Unescaped => start + escape(text, start).map_or(1, |(_, length)| length),
            // The text at the end of the line shows the same bytes.
            Self::Dumped => text[start..].find('\n').map_or(text.len(), |length| start + length),
            Self::Numbers(_) => start + digits_at(text.as_bytes(), start),
            _ => text.ceil_char_boundary(start + 1),
        }
    }

    /// Gives each byte, with the place where it begins in the text. A NUL stands where nothing may be joined.
    fn read(self, text: &str, give: &mut impl FnMut(usize, u8)) {
        match self {
            Self::Shown if !text.contains(is_unseen) => {}
            Self::Shown | Self::WithoutBlanks => self.read_shown(text, give),
            Self::Digits => read_digits(text.as_bytes(), give),
            Self::Unescaped => read_unescaped(text, give),
            Self::Dumped => read_dumps(text, give),
            Self::Uuencoded => read_uuencoded(text, give),
            Self::Numbers(base) => read_numbers(text.as_bytes(), base, give),
        }
    }

    fn read_shown(self, text: &str, give: &mut impl FnMut(usize, u8)) {
        let joins = matches!(self, Self::WithoutBlanks);
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut begins_line = joins;
        while let Some(byte) = bytes.get(at) {
            if begins_line && byte.is_ascii_digit() {
                let digits = digits_at(bytes, at);
                if digits >= ADDRESS && bytes.get(at + digits) == Some(&b' ') {
                    at += digits;
                }
            }
            begins_line = joins && *byte == b'\n';
            match bytes[at] {
                0x1b => {
                    let after = after_escape_sequence(&text[at + 1..]);
                    at = text.len() - after.len();
                    continue;
                }
                byte if joins && (byte.is_ascii_whitespace() || BETWEEN.contains(&byte)) => {}
                byte @ (b' '..=b'~' | b'\t' | b'\n' | b'\r' | b'\x0c') => give(at, byte),
                0..=0x7f => {}
                _ => {
                    let end = text.ceil_char_boundary(at + 1);
                    if !text[at..end].contains(is_unseen) {
                        (at..end).for_each(|at| give(at, bytes[at]));
                    }
                    at = end;
                    continue;
                }
            }
            at += 1;
        }
    }
}

/// Whether a person who looks at the text does not see the character.
fn is_unseen(char: char) -> bool {
    char.is_control() && !char.is_ascii_whitespace()
        || char == char::REPLACEMENT_CHARACTER
        || is_invisible(char)
}

/// How many decimal digits are there.
fn digits_at(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn read_uuencoded(text: &str, give: &mut impl FnMut(usize, u8)) {
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let digits = line.trim_end_matches(['\n', '\r']).as_bytes();
        let begin = digits.first().map_or(0, |first| usize::from(first.wrapping_sub(b' ') & 63));
        let is_digit = |byte: &u8| (b' '..=b'`').contains(byte);
        if begin > 0 && digits.len() == 1 + begin.div_ceil(3) * 4 && digits.iter().all(is_digit) {
            // Programs write the digit 0 as a blank or as this.
            let digit = |byte: u8| if byte == b'`' { b' ' } else { byte };
            (1..digits.len()).for_each(|at| give(from + at, digit(digits[at])));
        } else {
            give(from, 0);
        }
        from += line.len();
    }
}

fn read_numbers(bytes: &[u8], base: u32, give: &mut impl FnMut(usize, u8)) {
    let mut is_apart = true;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let count = digits_at(bytes, at);
        let digits = std::str::from_utf8(&bytes[at..at + count]).unwrap_or_default();
        let value = if count <= 3 { u8::from_str_radix(digits, base).ok() } else { None };
        match value {
            Some(value) => {
                give(at, value);
                is_apart = false;
            }
            None if count >= ADDRESS => {}
            None if (count > 0 || byte.is_ascii_alphabetic()) && !is_apart => {
                give(at, 0);
                is_apart = true;
            }
            None => {}
        }
        at += count.max(1);
    }
}

fn read_digits(bytes: &[u8], give: &mut impl FnMut(usize, u8)) {
    let mut is_apart = true;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let is_prefix = matches!(byte, b'0' | b'\\') && bytes.get(at + 1) == Some(&b'x');
        match byte {
            _ if is_prefix => at += 1,
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => {
                give(at, byte.to_ascii_lowercase());
                is_apart = false;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b';' | b'-' | b'%' | b'"' | b'\'' => {}
            _ if is_apart => {}
            _ => {
                give(at, 0);
                is_apart = true;
            }
        }
        at += 1;
    }
}

/// Gives nothing for a text without escapes.
fn read_unescaped(text: &str, give: &mut impl FnMut(usize, u8)) {
    let mut escapes = text
        .match_indices(ESCAPED_BY)
        .filter_map(|(at, _)| escape(text, at).map(|escape| (at, escape)))
        .peekable();
    if escapes.peek().is_none() {
        return;
    }
    let mut done = 0;
    let plain = |from: usize, to: usize, give: &mut dyn FnMut(usize, u8)| {
        (from..to).for_each(|at| give(at, text.as_bytes()[at]));
    };
    for (at, (byte, length)) in escapes {
        // An escape does not begin in another one.
        if at >= done {
            plain(done, at, give);
            give(at, byte);
            done = at + length;
        }
    }
    plain(done, text.len(), give);
}

/// The byte of the escape that is at this place of the text, and the length of the escape. What stands for more than a byte is
/// no part of a key.
fn escape(text: &str, at: usize) -> Option<(u8, usize)> {
    let rest = text.get(at..)?;
    let number = |(start, base, least, most, end): &(&str, u32, usize, usize, &str)| {
        let digits = rest.strip_prefix(start)?;
        let count =
            digits.bytes().take(*most).take_while(|it| char::from(*it).is_digit(*base)).count();
        let (digits, after) = digits.split_at_checked(count).filter(|_| count >= *least)?;
        let byte = u32::from_str_radix(digits, *base).ok().and_then(|it| u8::try_from(it).ok())?;
        let end = if after.starts_with(end) { end.len() } else { 0 };
        Some((byte, start.len() + count + end))
    };
    let named = |(name, byte): &(&str, u8)| rest.starts_with(name).then_some((*byte, name.len()));
    ESCAPES.iter().find_map(number).or_else(|| NAMED.iter().find_map(named))
}

fn read_dumps(text: &str, give: &mut impl FnMut(usize, u8)) {
    let mut is_apart = true;
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        let is_dump = read_dump(line, from, give);
        // What is no dump ends one.
        if !is_dump && !is_apart {
            give(from, 0);
        }
        is_apart = !is_dump;
        from += line.len();
    }
}

/// Reads a line that begins at `from`. Whether it is one of a dump.
fn read_dump(line: &str, from: usize, give: &mut impl FnMut(usize, u8)) -> bool {
    let is_gap = |letter: char| matches!(letter, ' ' | '\t' | '\r' | '\n');
    let mut at = line.len() - line.trim_start().len();
    let mut read = 0;
    let mut is_first = true;
    while at < line.len() {
        let rest = &line[at..];
        let word = rest.split(is_gap).next().unwrap_or_default();
        let digits = word.strip_suffix(':').unwrap_or(word);
        let is_digits = digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        // An address has more digits than a group of bytes.
        let is_address = is_first && is_digits && (digits.len() < word.len() || digits.len() > 5);
        if !is_address {
            if !is_digits || digits.len() < word.len() || !digits.len().is_multiple_of(2) {
                break;
            }
            for place in (0..digits.len()).step_by(2) {
                if let Some(byte) = pair(&digits[place..place + 2]) {
                    give(from + at + place, byte);
                    read += 1;
                }
            }
        }
        is_first = false;
        at += word.len();
        let gap = line[at..].len() - line[at..].trim_start_matches(is_gap).len();
        if read >= DUMPED || gap > 1 && read > 0 && read != HALF {
            break;
        }
        at += gap;
    }
    read > 0
}

/// The byte of two hexadecimal digits.
fn pair(digits: &str) -> Option<u8> {
    let is_digits = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_digits)
}
