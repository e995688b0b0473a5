//! Masks secrets in config text before any of it is shown.
//!
//! The text may be broken, which is why it is shown, so this looks at words and quotes rather than at a parsed tree. It
//! blanks rather too much than too little. Every secret keeps its length, so places in the text stay what they were.

use std::ops::Range;

use crate::substitute::is_one_reference;
use crate::suggest;

/// What a string may stand in; the last is no JSON5, but people try it.
const QUOTES: [char; 3] = ['"', '\'', '`'];
/// What a secret is shown as, character by character.
const MASK: char = '*';
/// Keys whose values are secrets; a misspelled one counts as well.
const SECRET_KEYS: [&str; 3] = ["apiKey", "botToken", "token"];
/// A key with one of these in it holds a secret, whoever made it up.
const SECRET_WORDS: [&str; 6] = ["apikey", "token", "secret", "password", "passwd", "credential"];
/// Keys whose entries are objects with a secret in them; text that stands there directly is most likely that secret.
const PROFILE_KEYS: [&str; 2] = ["authprofiles", "authprofile"];
/// What the keys of well-known services begin with.
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
/// Shorter than this even a known prefix is no key.
const MIN_PREFIXED: usize = 12;
/// Letters and digits without a break, with both in them: no word or model name is so long.
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

/// Whether a config text holds a secret itself, rather than a reference to one.
pub fn holds_literal_secret(text: &str) -> bool {
    mask_secrets(text) != text
}

/// What was found so far. The marks keep text that was looked through once from being looked through again for every
/// key in it.
struct Search<'a> {
    text: &'a str,
    secrets: Vec<Range<usize>>,
    /// Up to here everything since the last key is a secret.
    blanked_to: usize,
    /// Up to here every string is a secret.
    all_to: usize,
    /// Up to here the strings in lists are secrets.
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

/// How far into a value that is no string secrets are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Every string in it.
    All,
    /// Strings that stand in a list, not those in its objects.
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

fn is_secret_key(word: &str) -> bool {
    let plain = plain(word);
    // "maxTokens" counts tokens of another kind.
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

/// Where the value begins that belongs to a key which ends at `at`. Only a quoted one may follow without a separator.
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

/// A reference is no secret, and which variable it names is what one wants to see.
fn unless_reference(text: &str, span: Range<usize>) -> Option<Range<usize>> {
    (!span.is_empty() && !is_one_reference(&text[span.clone()])).then_some(span)
}

/// What stands between the quote at `at` and the next one like it, or the end of the line.
fn quoted(text: &str, at: usize) -> Range<usize> {
    let start = at + 1;
    let quote = text[at..].chars().next().unwrap_or('"');
    let mut characters = text[start..].char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            // An escaped line end goes on with the same string.
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

/// The strings in the object or list that opens at `at`, and where it ends.
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
