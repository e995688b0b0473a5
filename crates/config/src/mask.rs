//! Masks secrets in config text before any of it is shown.
//!
//! The text is shown because it may be broken, so this searches words and quotes rather than a parsed tree. When in
//! doubt it masks. The length of each secret is kept, so positions in the text stay valid.

use std::ops::Range;

use crate::substitute::is_one_reference;
use crate::suggest;

/// Characters that may quote a string. The last is not JSON5, but users try it.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// Replaces each character of a secret.
const MASK: char = '*';
/// Keys whose values are secrets; misspelt variants count as well.
const SECRET_KEYS: [&str; 3] = ["apiKey", "botToken", "token"];
/// A key that contains one of these words has a secret value.
const SECRET_WORDS: [&str; 6] = ["apikey", "token", "secret", "password", "passwd", "credential"];
/// Keys whose entries are objects that contain a secret. A string directly in their place is most likely the secret.
const PROFILE_KEYS: [&str; 2] = ["authprofiles", "authprofile"];
/// Prefixes of the keys of well-known services.
const SECRET_PREFIXES: [&str; 14] = [
    "sk-",
    "sk_",
    "pk-",
    "gsk_",
    "xai-",
    "AIza",
    "ghp_",
    "gho_",
    "github_pat_",
    "xoxb-",
    "xapp-",
    "hf_",
    "pplx-",
    "AKIA",
];
/// Even with a known prefix, shorter text is not a key.
const MIN_PREFIXED: usize = 12;
/// Unbroken text of this many letters and digits, containing both, is masked: no word or model name is this long.
const MIN_UNBROKEN: usize = 24;

/// The text with every secret blanked, of the same length in bytes.
pub(crate) fn mask_secrets(text: &str) -> String {
    let mut search =
        Search { text, secrets: passwords_in_urls(text), blanked_to: 0, all_to: 0, lists_to: 0 };
    for word in words(text) {
        search.word(word);
    }
    blank(text, &search.secrets)
}

/// Whether a config text contains a literal secret, rather than a reference to one.
pub fn holds_literal_secret(text: &str) -> bool {
    mask_secrets(text) != text
}

/// The findings so far. The marks keep text from being searched again for every key in it.
struct Search<'a> {
    text: &'a str,
    secrets: Vec<Range<usize>>,
    /// End of the text that is masked since the last key.
    blanked_to: usize,
    /// End of the range in which every string is a secret.
    all_to: usize,
    /// End of the range in which the strings in lists are secrets.
    lists_to: usize,
}

impl Search<'_> {
    fn word(&mut self, word: Range<usize>) {
        if word.start < self.blanked_to {
            return;
        }
        let key = &self.text[word.clone()];
        if is_secret_key(key) {
            self.value_of_key(word.end, Depth::All);
        } else if is_profile_key(key) {
            self.value_of_key(word.end, Depth::ListOnly);
        }
        if looks_like_secret(key) {
            self.secrets.push(word);
        }
    }

    fn value_of_key(&mut self, key_end: usize, depth: Depth) {
        let Some(at) = value_after(self.text, key_end) else {
            return;
        };
        if !self.text[at..].starts_with(['[', '{']) {
            if let Some(span) = unless_reference(self.text, scalar(self.text, at)) {
                self.blanked_to = span.end;
                self.secrets.push(span);
            }
            return;
        }
        let looked_to = match depth {
            Depth::All => &mut self.all_to,
            Depth::ListOnly => &mut self.lists_to,
        };
        if at >= *looked_to {
            let (strings, end) = strings_within(self.text, at, depth);
            *looked_to = end;
            self.secrets.extend(strings);
        }
    }
}

/// How deep to look for secrets in an object or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Every string in it.
    All,
    /// Strings directly in a list, but not those in its objects.
    ListOnly,
}

fn blank(text: &str, secrets: &[Range<usize>]) -> String {
    let mut hidden = vec![false; text.len()];
    for secret in secrets {
        hidden[secret.clone()].fill(true);
    }
    let mut masked = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        if hidden[at] && !matches!(character, '\n' | '\r') {
            masked.extend(std::iter::repeat_n(MASK, character.len_utf8()));
        } else {
            masked.push(character);
        }
    }
    masked
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

/// Runs of letters, digits, `_`, `-` and `$`.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(is_word_character)?;
        let end = text[start..]
            .find(|c| !is_word_character(c))
            .map_or(text.len(), |length| start + length);
        at = end;
        Some(start..end)
    })
}

fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether the value under this key is a secret, to judge by the key.
pub fn is_secret_key(word: &str) -> bool {
    let plain = plain(word);
    // "maxTokens" means a different kind of token.
    let named =
        SECRET_WORDS.iter().any(|secret| plain.contains(secret)) && !plain.ends_with("tokens");
    named || plain.ends_with("key") || suggest::nearest(word, SECRET_KEYS).is_some()
}

fn is_profile_key(word: &str) -> bool {
    PROFILE_KEYS.contains(&plain(word).as_str())
}

fn looks_like_secret(word: &str) -> bool {
    let prefixed =
        word.len() >= MIN_PREFIXED && SECRET_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
    prefixed
        || word.split(['_', '-', '$']).any(|run| {
            run.len() >= MIN_UNBROKEN
                && run.contains(|c: char| c.is_ascii_digit())
                && run.contains(|c: char| c.is_ascii_alphabetic())
        })
}

/// Start of the value of a key that ends at `at`. Without a separator only a quoted value may follow.
fn value_after(text: &str, at: usize) -> Option<usize> {
    let after_quote = if text[at..].starts_with(['"', '\'']) { at + 1 } else { at };
    let separator = skip_blanks(text, after_quote);
    if text[separator..].starts_with([':', '=']) {
        let value = skip_blanks(text, separator + 1);
        return (value < text.len()).then_some(value);
    }
    text[separator..].starts_with(QUOTES).then_some(separator)
}

/// The string or bare word at `at`, without its quotes.
fn scalar(text: &str, at: usize) -> Range<usize> {
    if text[at..].starts_with(QUOTES) {
        return quoted(text, at);
    }
    let length = text[at..].find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']'));
    at..length.map_or(text.len(), |length| at + length)
}

/// A reference is not a secret, and the user needs to see the variable that it names.
fn unless_reference(text: &str, span: Range<usize>) -> Option<Range<usize>> {
    (!span.is_empty() && !is_one_reference(&text[span.clone()])).then_some(span)
}

/// The text between the quote at `at` and the next quote of that kind, or the end of the line.
fn quoted(text: &str, at: usize) -> Range<usize> {
    let start = at + 1;
    let quote = text[at..].chars().next().unwrap_or('"');
    let mut characters = text[start..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            // After an escaped line end the string continues.
            '\\' => {
                characters.next();
            }
            '\n' => return start..start + offset,
            _ if character == quote => return start..start + offset,
            _ => {}
        }
    }
    start..text.len()
}

/// The strings in the object or list that opens at `at`, and the position of its end.
fn strings_within(text: &str, at: usize, depth: Depth) -> (Vec<Range<usize>>, usize) {
    let mut found = Vec::new();
    let (mut lists, mut objects) = (0_usize, 0_usize);
    let mut read_to = at;
    for (offset, character) in text[at..].char_indices() {
        let here = at + offset;
        if here < read_to {
            continue;
        }
        match character {
            '[' => lists += 1,
            '{' => objects += 1,
            ']' => lists = lists.saturating_sub(1),
            '}' => objects = objects.saturating_sub(1),
            _ if QUOTES.contains(&character) => {
                let span = quoted(text, here);
                read_to = span.end + 1;
                if depth == Depth::All || objects == 0 {
                    found.extend(unless_reference(text, span));
                }
            }
            _ => {}
        }
        if lists + objects == 0 {
            return (found, here);
        }
    }
    (found, text.len())
}

/// Skips blanks, line ends and comments.
fn skip_blanks(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        let comment = match rest.get(blanks..blanks + 2) {
            Some("//") => rest[blanks..].find('\n').unwrap_or(rest.len() - blanks),
            Some("/*") => rest[blanks..].find("*/").map_or(rest.len() - blanks, |end| end + 2),
            _ => 0,
        };
        if blanks + comment == 0 {
            return at;
        }
        at += blanks + comment;
    }
}

/// The part between `://` and `@` in addresses such as `https://name:password@host`.
fn passwords_in_urls(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let host = &text[start..];
        let host = &host[..host
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''))
            .unwrap_or(host.len())];
        if let Some(length) = host.rfind('@') {
            found.push(start..start + length);
        }
    }
    found
}

#[cfg(test)]
mod tests;
