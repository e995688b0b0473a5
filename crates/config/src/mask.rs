//! Blanks secrets in settings text before any of it is shown.
//!
//! The text may be broken, which is why it is shown, so this looks at words and quotes rather than at a parsed tree. It
//! blanks rather too much than too little. Every secret keeps its length, so places in the text stay what they were.

use std::ops::Range;

use crate::substitute::is_one_reference;
use crate::suggest;

/// What a secret is shown as, character by character.
const MASK: char = '*';
/// Keys of settings that hold a secret; a misspelled one counts as well.
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
    let mut secrets = Vec::new();
    for word in words(text) {
        let key = &text[word.clone()];
        if is_secret_key(key) {
            secrets.extend(values_after(text, word.end, Depth::All));
        } else if is_profile_key(key) {
            secrets.extend(values_after(text, word.end, Depth::ListOnly));
        }
        if looks_like_secret(key) {
            secrets.push(word);
        }
    }
    secrets.extend(passwords_in_urls(text));
    blank(text, &secrets)
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

/// The text values that belong to a key which ends at `at`.
fn values_after(text: &str, at: usize, depth: Depth) -> Vec<Range<usize>> {
    let mut at = at;
    if text[at..].starts_with(['"', '\'']) {
        at += 1;
    }
    at = skip_blanks(text, at);
    let has_separator = text[at..].starts_with([':', '=']);
    if has_separator {
        at = skip_blanks(text, at + 1);
    }
    match text[at..].chars().next() {
        Some('"' | '\'' | '`') => unless_reference(text, quoted(text, at)).into_iter().collect(),
        Some('[' | '{') if has_separator => strings_within(text, at, depth),
        Some(_) if has_separator => {
            let length =
                text[at..].find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']'));
            unless_reference(text, at..length.map_or(text.len(), |length| at + length))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
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

/// Every string in the object or list that opens at `at`, to its end or that of the text.
fn strings_within(text: &str, at: usize, depth: Depth) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    let mut at = at;
    while let Some(character) = text[at..].chars().next() {
        match character {
            '"' | '\'' => {
                let span = quoted(text, at);
                at = span.end.max(at);
                if depth == Depth::All || !open.contains(&'{') {
                    found.extend(unless_reference(text, span));
                }
                if at >= text.len() {
                    break;
                }
                at += text[at..].chars().next().map_or(0, char::len_utf8);
                continue;
            }
            '[' | '{' => open.push(character),
            ']' | '}' => {
                open.pop();
            }
            _ => {}
        }
        if open.is_empty() {
            break;
        }
        at += character.len_utf8();
    }
    found
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
