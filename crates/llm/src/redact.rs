//! Removes keys from texts: from error messages, because servers often quote the key that they refuse, from the log, and
//! from what leaves the program as a document.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

/// Stands for what was removed.
const REDACTED: &str = "[redacted]";

/// How keys of well-known services begin, and the fewest characters after that which make it a key and not a word. The
/// services' own documents give the forms.
const KEYS: [(&str, usize); 40] = [
    // Models.
    ("sk-", 6),
    ("sk_", 6),
    ("gsk_", 6),
    ("xai-", 6),
    ("AIza", 6),
    ("hf_", 6),
    ("nvapi-", 6),
    ("csk-", 6),
    ("pplx-", 6),
    ("r8_", 20),
    ("tvly-", 12),
    // Code and packages.
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("npm_", 24),
    ("pypi-", 24),
    ("dckr_pat_", 16),
    // Messages.
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxa-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("SG.", 24),
    // Clouds and payments.
    ("AKIA", 16),
    ("ASIA", 16),
    ("ya29.", 16),
    ("GOCSPX-", 16),
    ("dop_v1_", 24),
    ("pk_live_", 12),
    ("rk_live_", 12),
    ("whsec_", 16),
    ("shpat_", 16),
    ("AGE-SECRET-KEY-", 24),
    ("lin_api_", 16),
    ("ntn_", 24),
    // The beginning of a JSON object in base 64, with which signed tokens begin.
    ("eyJ", 40),
];

/// Words before a key that says nothing by itself.
const SCHEMES: [&str; 2] = ["Bearer ", "bearer "];
/// Fewest characters of a key after such a word.
const MIN_BEARER: usize = 16;
/// Fewest digits of a Telegram bot's id, which stands before the colon of its token, and most.
const BOT_ID: Range<usize> = 8..12;
/// Characters of the rest of such a token.
const BOT_SECRET: usize = 35;
/// Around a private key.
const PRIVATE_KEY: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY-----");
/// Longest kind of a private key, such as `OPENSSH`, in bytes.
const MOST_KIND_OF_KEY: usize = 24;
/// Longest private key that is looked for, in bytes.
const MOST_PRIVATE_KEY: usize = 16 * 1024;
/// Longest user name and password in an address, in bytes.
const MOST_CREDENTIALS: usize = 256;

/// Shortest key that is searched for. Keys of local servers are often placeholders such as `ollama`, which are not
/// secret and may be a word of the message.
const MIN_KEY: usize = 8;

/// Fields of content blocks that are not read: pictures, and what only its provider understands.
const OPAQUE: [&str; 4] = ["data", "textSignature", "thinkingSignature", "thoughtSignature"];

/// `text` without `secrets` of at least 8 characters, and without anything that looks like a key, whole or masked in its
/// middle.
pub fn redact<'s>(text: &str, secrets: impl IntoIterator<Item = &'s str>) -> String {
    Redactor::new(secrets).clean(text).into_owned()
}

/// Removes keys and counts them.
#[derive(Default)]
pub struct Redactor {
    /// The longest first: one may be a part of another, and nothing of the longer one may remain.
    secrets: Vec<String>,
    removed: usize,
}

/// The keys are not shown.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Redactor").field("removed", &self.removed).finish_non_exhaustive()
    }
}

impl Redactor {
    /// Removes these secrets, if they have at least 8 characters, and what looks like a key.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let secrets = secrets.into_iter().map(str::trim).filter(|secret| secret.len() >= MIN_KEY);
        let mut secrets: Vec<String> = secrets.map(str::to_owned).collect();
        secrets.sort_unstable_by(|one, other| {
            other.len().cmp(&one.len()).then_with(|| one.cmp(other))
        });
        secrets.dedup();
        Self { secrets, removed: 0 }
    }

    /// How many places were replaced so far.
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// Does `work` without counting what it removes: another part of the text is the same once more, or is not shown.
    pub fn uncounted(&mut self, work: impl FnOnce(&mut Self)) {
        let counted = self.removed;
        work(self);
        self.removed = counted;
    }

    /// `text` without keys. Everything else stays, byte by byte.
    pub fn clean<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in &self.secrets {
            let found = text.matches(secret.as_str()).count();
            if found > 0 {
                self.removed += found;
                text = Cow::Owned(text.replace(secret, REDACTED));
            }
        }
        match self.without_key_like(&text) {
            Some(clean) => Cow::Owned(clean),
            None => text,
        }
    }

    /// [`Redactor::clean`] for a text that is owned.
    pub fn clean_in_place(&mut self, text: &mut String) {
        if let Cow::Owned(clean) = self.clean(text) {
            *text = clean;
        }
    }

    /// [`Redactor::clean`] for all texts of a value, but pictures and signatures.
    pub fn clean_value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.clean_in_place(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if !OPAQUE.contains(&name.as_str()) {
                        self.clean_value(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `None` if there is nothing to remove.
    fn without_key_like(&mut self, text: &str) -> Option<String> {
        let mut clean = String::new();
        let (mut done, mut position) = (0, 0);
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let mut is_in_word = false;
        while let Some(byte) = text.as_bytes().get(position) {
            // The colon of an address stands behind a word.
            let may_begin = byte.is_ascii() && (!is_in_word || *byte == b':');
            let key = may_begin.then(|| key_like(&text[position..])).flatten();
            if let Some(key) = key {
                clean.push_str(&text[done..position + key.start]);
                clean.push_str(REDACTED);
                self.removed += 1;
                position += key.end;
                done = position;
                is_in_word = false;
            } else {
                is_in_word = is_word(*byte);
                position += 1;
            }
        }
        (done > 0).then(|| clean + &text[done..])
    }
}

/// Where the key is with which `text` begins, behind a word that announces it.
fn key_like(text: &str) -> Option<Range<usize>> {
    match text.as_bytes()[0] {
        b':' => return credentials(text),
        b'-' => return private_key(text),
        b'0'..=b'9' => return bot_token(text),
        first if !first.is_ascii_alphabetic() => return None,
        _ => {}
    }
    if let Some(scheme) = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme)) {
        let length = key_bytes(&text[scheme.len()..]);
        let key = scheme.len()..scheme.len() + length;
        return (length >= MIN_BEARER && looks_random(&text[key.clone()])).then_some(key);
    }
    let (prefix, least) = KEYS.into_iter().find(|(prefix, _)| text.starts_with(prefix))?;
    let length = key_bytes(&text[prefix.len()..]);
    let key = prefix.len()..prefix.len() + length;
    (length >= least && looks_random(&text[key])).then_some(0..prefix.len() + length)
}

/// The bytes of a key that begins here. Masked keys show their ends: `sk-abc***xyz`, `sk-abc...xyz`.
fn key_bytes(text: &str) -> usize {
    let is_key_byte =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'*' | b'.');
    let length = text.bytes().take_while(is_key_byte).count();
    text[..length].trim_end_matches('.').len()
}

/// Keys are random, so they have digits; names of functions and files seldom do. A masked key has its mask.
fn looks_random(key: &str) -> bool {
    key.bytes().any(|byte| byte.is_ascii_digit() || byte == b'*') || key.contains("..")
}

/// The user's name and password in `://name:password@host`.
fn credentials(text: &str) -> Option<Range<usize>> {
    let rest = text.strip_prefix("://")?;
    let is_part = |byte: &u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'"' | b'<' | b'>' | b'\'' | b'`')
    };
    let length = rest.bytes().take(MOST_CREDENTIALS).take_while(is_part).count();
    let (_, password) =
        rest[..length].split_once(':').filter(|_| rest[length..].starts_with('@'))?;
    let end = 3 + length;
    // A placeholder such as `${PASSWORD}` is no secret.
    (!password.is_empty() && !password.starts_with(['$', '{'])).then(|| end - password.len()..end)
}

fn private_key(text: &str) -> Option<Range<usize>> {
    let (begin, end) = PRIVATE_KEY;
    let near = &text[..text.floor_char_boundary(MOST_PRIVATE_KEY)];
    let rest = near.strip_prefix(begin)?;
    let at = rest.find(end).filter(|at| *at < MOST_KIND_OF_KEY)?;
    let body = &rest[at + end.len()..];
    let length = body.find("-----END ")?;
    let from = near.len() - body.len();
    (!body[..length].trim().is_empty()).then(|| from..from + length)
}

fn bot_token(text: &str) -> Option<Range<usize>> {
    let digits = text.bytes().take(BOT_ID.end).take_while(u8::is_ascii_digit).count();
    let secret = text[digits..].strip_prefix(':')?;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = secret.bytes().take_while(is_part).count();
    (digits >= BOT_ID.start && length == BOT_SECRET).then_some(0..digits + 1 + length)
}

#[cfg(test)]
mod tests;
