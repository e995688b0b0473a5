//! The keys that the program knows, and their removal from what tools return.
//!
//! A model, and everybody who reads its session, sees results of tools. A key that the program uses itself has no place in
//! them, whichever tool came across it. This keeps keys out that somebody stumbles over, also in the usual encodings. It is no
//! barrier against a program that changes a key in a way of its own before it prints it.

mod encoded;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use myclaw_llm::ContentBlock;
use parking_lot::RwLock;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::ToolOutput;

/// Stands for what was removed.
const REMOVED: &str = "[redacted]";
/// Shortest key that is removed, in bytes. Shorter ones are placeholders, and words of ordinary text.
const MIN_BYTES: usize = 8;
/// Shortest key that is removed in capitals or in small letters: a shorter one may be a word that begins a sentence.
const MIN_FOLDED: usize = 16;
/// Digits with which programs write bytes, and the bits of each: hexadecimal digits, base 64, the digits of uuencode, and base 32,
/// each with the alphabets in use.
const BASES: [(&[u8], usize); 9] = [
    (b"0123456789abcdef", 4),
    (b"0123456789ABCDEF", 4),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 6),
    (b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_", 6),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5),
    (b"abcdefghijklmnopqrstuvwxyz234567", 5),
    (b"0123456789ABCDEFGHIJKLMNOPQRSTUV", 5),
    (b"0123456789abcdefghijklmnopqrstuv", 5),
];
/// Characters that stay as they are in a URL, besides letters and digits.
const URL_SAFE: &percent_encoding::AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The keys. Runs of a program share them; a clone of the `Arc` sees what is added.
#[derive(Default)]
pub struct KnownSecrets(RwLock<State>);

#[derive(Default)]
struct State {
    values: BTreeSet<String>,
    /// Made when a text is looked through: most turns begin without one.
    finder: OnceLock<Option<AhoCorasick>>,
}

/// The keys are not shown.
impl fmt::Debug for KnownSecrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KnownSecrets")
    }
}

impl KnownSecrets {
    /// Adds keys for as long as the program runs: what was once secret stays so. Those of fewer than 8 bytes are left out.
    /// Costs a comparison; the next text that is looked through costs some milliseconds more if one is new.
    pub fn learn<'s>(&self, secrets: impl IntoIterator<Item = &'s str>) {
        let secrets: Vec<&str> = secrets.into_iter().map(str::trim).collect();
        let is_new = |state: &State, secret: &&str| {
            secret.len() >= MIN_BYTES && !state.values.contains(*secret)
        };
        let known = self.0.read();
        if !secrets.iter().any(|secret| is_new(&known, secret)) {
            return;
        }
        drop(known);
        let mut state = self.0.write();
        let new: Vec<&str> = secrets.into_iter().filter(|secret| is_new(&state, secret)).collect();
        state.values.extend(new.into_iter().map(str::to_owned));
        state.finder = OnceLock::new();
    }

    /// Removes the keys from the text and the details of a result.
    pub fn remove_from(&self, output: &mut ToolOutput) {
        for block in &mut output.content {
            if let ContentBlock::Text(text) = block
                && let Cow::Owned(clean) = self.without(&text.text)
            {
                text.text = clean;
            }
        }
        if let Some(details) = &mut output.details {
            self.remove_from_value(details);
        }
    }

    /// Removes the keys from the texts of a value, and from its names.
    pub fn remove_from_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.without(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.remove_from_value(item)),
            Value::Object(fields) => {
                let renamed: Vec<(String, String)> = fields
                    .keys()
                    .filter_map(|name| match self.without(name) {
                        Cow::Owned(clean) => Some((name.clone(), clean)),
                        Cow::Borrowed(_) => None,
                    })
                    .collect();
                for (old, new) in renamed {
                    if let Some(value) = fields.remove(&old) {
                        fields.insert(new, value);
                    }
                }
                fields.values_mut().for_each(|value| self.remove_from_value(value));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `text` without the keys: as they are, backwards, in capitals, with letters turned by 13 places, as JSON, with escapes (of URLs,
    /// HTML, mail, JSON, shells and C), with control sequences or blanks in them, in base 64, in base 32, by uuencode, in
    /// hexadecimal digits and as lists of numbers, also in several lines and as the usual dumps of bytes. At the ends of the text, where a tool may have cut it, also without
    /// a part of a key of at least 8 bytes. Everything else stays, byte by byte.
    pub fn without<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let state = self.0.read();
        let Some(finder) = state.finder.get_or_init(|| finder_of(&state.values)) else {
            return Cow::Borrowed(text);
        };
        let (begins, ends) = parts_at_ends(text, &state.values);
        let mut places: Vec<Range<usize>> = finder.find_iter(text).map(|it| it.range()).collect();
        places.extend(encoded::places(text, finder));
        places.extend([0..begins, text.len() - ends..text.len()]);
        places.retain(|place| !place.is_empty());
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable_by_key(|place| place.start);
        let mut clean = String::with_capacity(text.len());
        let mut done = 0;
        for place in places {
            // What overlaps goes as one.
            if place.start >= done {
                clean.push_str(&text[done..place.start]);
                clean.push_str(REMOVED);
            }
            done = done.max(place.end);
        }
        clean.push_str(&text[done..]);
        Cow::Owned(clean)
    }
}

/// Finds the keys in all their forms; `None` if there is none. An NFA, because it is built faster and
/// takes less memory than a DFA, and results are short.
fn finder_of(values: &BTreeSet<String>) -> Option<AhoCorasick> {
    if values.is_empty() {
        return None;
    }
    let forms: BTreeSet<String> = values.iter().flat_map(|value| forms(value)).collect();
    // The text that is found longest goes: one key may be the beginning of another.
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::ContiguousNFA));
    builder.build(forms).ok()
}

/// How many bytes at the beginning and at the end of `text` are the end and the beginning of a key. Both are 0 for a text
/// that is one part of a key at both of its ends at once; then it is taken to be the beginning.
fn parts_at_ends(text: &str, values: &BTreeSet<String>) -> (usize, usize) {
    let longest = |is_part: &dyn Fn(&str, usize) -> bool| {
        let of_value = |value: &String| {
            let lengths = (MIN_BYTES..value.len().min(text.len() + 1)).rev();
            lengths.into_iter().find(|length| is_part(value, *length)).unwrap_or(0)
        };
        values.iter().map(of_value).max().unwrap_or(0)
    };
    let begins = longest(&|value, length| {
        text.as_bytes().starts_with(&value.as_bytes()[value.len() - length..])
            && text.is_char_boundary(length)
    });
    let ends = longest(&|value, length| {
        text.as_bytes().ends_with(&value.as_bytes()[..length])
            && text.is_char_boundary(text.len() - length)
    });
    if begins + ends > text.len() { (begins, 0) } else { (begins, ends) }
}

/// How a key may be written.
fn forms(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let percent = utf8_percent_encode(secret, URL_SAFE).to_string();
    let mut forms = vec![json.replace('/', "\\/"), json, lower_escapes(&percent), percent];
    for (alphabet, bits) in BASES {
        // What comes before a key decides how its bytes fall into digits, and each digit at its ends also holds bits of what
        // surrounds it.
        let period = (1..=bits).find(|bytes| bytes * 8 % bits == 0).unwrap_or(bits);
        forms.extend(
            (0..period).map(|skipped| digits_of(secret.as_bytes(), skipped * 8, alphabet, bits)),
        );
    }
    forms.push(secret.chars().rev().collect());
    forms.push(secret.chars().map(turned).collect());
    if secret.len() >= MIN_FOLDED {
        forms.extend([secret.to_ascii_uppercase(), secret.to_ascii_lowercase()]);
    }
    // A text that is read without its blanks and quotes has none of the key's own either.
    let is_left_out = |letter: char| {
        letter.is_ascii_whitespace() || encoded::BETWEEN.iter().any(|it| letter == char::from(*it))
    };
    forms.extend(secret.contains(is_left_out).then(|| secret.replace(is_left_out, "")));
    forms.push(secret.to_owned());
    // A form that is cut short could be found in ordinary text.
    forms.retain(|form| form.len() >= MIN_BYTES);
    forms
}

/// The digits of `bits` bits that hold bits of `bytes` and nothing else, if `before` bits precede them.
fn digits_of(bytes: &[u8], before: usize, alphabet: &[u8], bits: usize) -> String {
    let first = before.next_multiple_of(bits) - before;
    let bit = |at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
    let digits = (first..).step_by(bits).take_while(|start| start + bits <= bytes.len() * 8);
    let value =
        |start: usize| (start..start + bits).fold(0, |value, at| value << 1 | usize::from(bit(at)));
    digits.map(|start| char::from(alphabet[value(start)])).collect()
}

/// The letter 13 places further (ROT13).
fn turned(letter: char) -> char {
    match letter {
        'a'..='m' | 'A'..='M' => char::from(letter as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(letter as u8 - 13),
        _ => letter,
    }
}

/// The same escapes of a URL with small letters.
fn lower_escapes(percent: &str) -> String {
    let mut pieces = percent.split('%');
    let mut lower = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at(piece.len().min(2));
        lower.push_str(&format!("%{}{rest}", digits.to_lowercase()));
    }
    lower
}

#[cfg(test)]
mod tests;
