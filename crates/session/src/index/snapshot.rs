//! Reading and replacing `sessions.json`.
//!
//! A list of many sessions shows few of them. So the file is not parsed as a whole: one pass finds the place and the
//! time of each entry, and an entry is parsed only when it is needed. That works for the layout in which this program
//! writes the file; a file in another layout is parsed and laid out again first.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use memchr::memmem::Finder;
use myclaw_files::portable::MetadataExt;
use myclaw_files::{Durability, NewFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EntriesByKey, SessionEntry};
use crate::About;
use crate::error::{IoContext, SessionError};

/// Identifies a state of a file. Each change creates a new file, so even two states with one length within one tick of
/// the clock differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stamp {
    modified_seconds: i64,
    modified_nanoseconds: i64,
    length: u64,
    inode: u64,
}

impl Stamp {
    /// The present state of the file; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }
}

impl Stamp {
    /// The length of the file in bytes.
    pub(super) fn length(self) -> u64 {
        self.length
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            modified_seconds: metadata.mtime(),
            modified_nanoseconds: metadata.mtime_nsec(),
            length: metadata.len(),
            inode: metadata.ino(),
        }
    }
}

/// The content of the index file.
pub(super) enum Loaded {
    /// There is no file.
    Missing,
    /// It could be read.
    Sound(Snapshot),
    /// Some of it could not be read; these are the readable entries.
    Corrupt(EntriesByKey),
}

/// The content of the file, and the places of its entries.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    text: Vec<u8>,
    pub(super) spans: Vec<Span>,
    /// What the entries with labels are about, by their places in `spans`.
    labelled: OnceLock<HashMap<usize, About>>,
}

/// The place of an entry.
#[derive(Debug, Clone)]
pub(super) struct Span {
    /// The key as JSON writes it, with its quotes.
    key: Range<usize>,
    /// The entry, from brace to brace.
    body: Range<usize>,
    /// When the entry changed last, in milliseconds since the Unix epoch.
    pub(super) updated_at: u64,
    /// Whether a turn has begun and not ended.
    pub(super) in_turn: bool,
}

impl Snapshot {
    /// Reads the index.
    pub(super) fn load(path: &Path) -> Result<Loaded, SessionError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Loaded::Missing),
            Err(error) => return Err(SessionError::from_io("read the session index", path, error)),
        };
        if let Some(spans) = scan(&text) {
            return Ok(Loaded::Sound(Self { text, spans, labelled: OnceLock::new() }));
        }
        parse(&text, path)
    }

    /// Whether it is of no file: a file has at least two braces.
    pub(super) fn is_unread(&self) -> bool {
        self.text.is_empty()
    }

    /// The key of an entry; `None` if it is invalid text.
    pub(super) fn key(&self, span: &Span) -> Option<std::borrow::Cow<'_, str>> {
        let quoted = &self.text[span.key.clone()];
        if memchr::memchr(b'\\', quoted).is_some() {
            return serde_json::from_slice(quoted).ok().map(std::borrow::Cow::Owned);
        }
        std::str::from_utf8(&quoted[1..quoted.len() - 1]).ok().map(std::borrow::Cow::Borrowed)
    }

    /// An entry; `None` if it lacks required fields.
    pub(super) fn entry(&self, span: &Span) -> Option<SessionEntry> {
        serde_json::from_slice(&self.text[span.body.clone()]).ok()
    }

    /// What the entries with labels are about, by their places. They are parsed once, since the page asks again and again.
    pub(super) fn labelled(&self) -> &HashMap<usize, About> {
        self.labelled.get_or_init(|| {
            // The list is not empty: a line feed follows.
            let labels = Finder::new(b"\"labels\": [\n");
            let entries = self.spans.iter().enumerate();
            let about = entries.filter_map(|(place, span)| {
                labels.find(&self.text[span.body.clone()])?;
                Some((place, About::from_extra(self.entry(span)?.extra.as_ref())))
            });
            about.collect()
        })
    }

    /// The entries that have all required fields.
    pub(super) fn readable_entries(&self) -> EntriesByKey {
        let pair = |span| Some((self.key(span)?.into_owned(), self.entry(span)?));
        self.spans.iter().filter_map(pair).collect()
    }

    /// The key and body of an entry as they are written in the file.
    pub(super) fn lines(&self, span: &Span) -> (&[u8], &[u8]) {
        (&self.text[span.key.clone()], &self.text[span.body.clone()])
    }
}

/// Parses an index in any layout.
fn parse(text: &[u8], path: &Path) -> Result<Loaded, SessionError> {
    let Ok(values) = serde_json::from_slice::<Map<String, Value>>(text) else {
        return Ok(Loaded::Corrupt(EntriesByKey::new()));
    };
    let count = values.len();
    let entries: EntriesByKey = values
        .into_iter()
        .filter_map(|(key, value)| Some((key, serde_json::from_value::<SessionEntry>(value).ok()?)))
        .collect();
    if entries.len() < count {
        return Ok(Loaded::Corrupt(entries));
    }
    let mut writer = SnapshotWriter::default();
    for (key, entry) in &entries {
        writer.entry(key, entry, path)?;
    }
    let text = writer.finish();
    Ok(match scan(&text) {
        Some(spans) => Loaded::Sound(Snapshot { text, spans, labelled: OnceLock::new() }),
        None => Loaded::Corrupt(entries),
    })
}

/// Finds the entries of a file in this program's layout: keys are indented by two spaces, fields by four.
fn scan(text: &[u8]) -> Option<Vec<Span>> {
    if text == b"{}\n" {
        return Some(Vec::new());
    }
    let body_end = Finder::new(b"\n  }");
    let updated_at = Finder::new(b"\n    \"updatedAt\": ");
    let in_turn = Finder::new(b"\n    \"inTurn\": true");
    let mut spans = Vec::new();
    let mut at = text.strip_prefix(b"{\n").map(|_| 2)?;
    loop {
        text[at..].strip_prefix(b"  \"")?;
        let key_start = at + 2;
        let key_end = key_start + 1 + closing_quote(&text[key_start + 1..])? + 1;
        text[key_end..].strip_prefix(b": {\n")?;
        let body_start = key_end + 2;
        let end = body_start + body_end.find(&text[body_start..])? + b"\n  }".len();
        let body = &text[body_start..end];
        let time = updated_at.find(body)? + b"\n    \"updatedAt\": ".len();
        spans.push(Span {
            key: key_start..key_end,
            body: body_start..end,
            updated_at: leading_number(&body[time..])?,
            in_turn: in_turn.find(body).is_some(),
        });
        match text.get(end..)? {
            [b',', b'\n', ..] => at = end + 2,
            b"\n}\n" | b"\n}" => return Some(spans),
            _ => return None,
        }
    }
}

/// The position of the quote that ends a JSON string. `text` begins with the first character of that string.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some(at);
        }
        at = (at + 2).min(text.len());
    }
}

fn leading_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Composes the file: pretty-printed JSON, one entry after another.
#[derive(Debug, Default)]
pub(super) struct SnapshotWriter {
    text: Vec<u8>,
}

impl SnapshotWriter {
    /// Adds an entry.
    pub(super) fn entry(
        &mut self,
        key: &str,
        entry: &SessionEntry,
        path: &Path,
    ) -> Result<(), SessionError> {
        let encode = |source| SessionError::Encode { path: path.to_path_buf(), source };
        let key = serde_json::to_vec(key).map_err(encode)?;
        let body = serde_json::to_string_pretty(entry).map_err(encode)?;
        // A line feed within a text is escaped, so all of these belong to the layout.
        self.lines(&key, body.replace('\n', "\n  ").as_bytes());
        Ok(())
    }

    /// Adds an entry that is already laid out.
    pub(super) fn lines(&mut self, key: &[u8], body: &[u8]) {
        self.text.extend_from_slice(if self.text.is_empty() { b"{\n  " } else { b",\n  " });
        self.text.extend_from_slice(key);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(body);
    }

    fn finish(mut self) -> Vec<u8> {
        self.text.extend_from_slice(if self.text.is_empty() { b"{}\n" } else { b"\n}\n" });
        self.text
    }

    /// Replaces the file at `path` as a whole. `before_rename` gets the stamp that the file will have. The caller holds
    /// the exclusive lock, so the temporary name can always be the same.
    ///
    /// The file is not synced to disk: entries lost in a power cut are rebuilt from the logs.
    pub(super) fn put_at(
        self,
        path: &Path,
        before_rename: impl FnOnce(Stamp) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let write = || -> io::Result<_> {
            let mut file = NewFile::named(&path.with_extension("json.new"))?;
            file.write_all(&self.finish())?;
            let stamp = Stamp::from(&file.as_file().metadata()?);
            Ok((file, stamp))
        };
        let (file, stamp) = write().context("write the session index", path)?;
        before_rename(stamp)?;
        file.put_at(path, Durability::Unsynced).context("write the session index", path)?;
        Ok(())
    }
}
