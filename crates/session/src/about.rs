//! The title and labels that an owner gives a session. They are an entry of the log, so that the index can be rebuilt
//! from it.

use std::fs::File;
use std::io;

use serde::{Deserialize, Serialize};

use crate::backward::BackwardLines;
use crate::error::SessionError;
use crate::line::{self, Line};
use crate::reader::Positioned;
use crate::{
    AUTOMATIC_TITLE, Entry, EntryId, LockWait, MetaPatch, SessionKey, SessionStore, UpdatedAt,
    now_ms,
};

/// Occurs in every line that holds such an entry, and in few others.
const TYPE_NAME: &[u8] = b"\"about\"";

/// A title and labels. The latest such entry of a log replaces all earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct About {
    /// What to call the session in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is called in lists while it has no such title: made of the first exchange, and kept in the index alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatic_title: Option<String>,
    /// Words to find it by, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Sets the title and labels of the session from here on.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "about", rename_all = "camelCase")]
pub struct AboutEntry {
    /// Unique within the session.
    pub id: EntryId,
    /// Milliseconds since the Unix epoch; 0 if the line has none.
    pub ts: u64,
    /// The title and the labels.
    #[serde(flatten)]
    pub about: About,
}

impl AboutEntry {
    /// A new entry.
    pub fn new(about: About) -> Self {
        Self { id: EntryId::generate(), ts: now_ms(), about }
    }
}

impl From<AboutEntry> for Entry {
    fn from(about: AboutEntry) -> Self {
        Self::About(about)
    }
}

impl SessionStore {
    /// Changes the title and labels of an existing session, in its log and in the index. Returns the new ones.
    ///
    /// # Errors
    /// There is no such session, another process has it open, or an I/O error.
    pub fn change_about(
        &self,
        key: &SessionKey,
        wait: LockWait,
        change: impl FnOnce(&mut About),
    ) -> Result<About, SessionError> {
        let mut log = self.open(key, wait)?;
        let reader = self.reader(key)?.filter(|_| self.exists(key));
        let reader = reader.ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })?;
        let before = reader.about()?;
        let mut about = before.clone();
        change(&mut about);
        if about != before {
            log.append(&[AboutEntry::new(about.clone()).into()])?;
            log.sync_handle().sync()?;
        }
        let extra = Some(about.to_extra());
        let updated_at = UpdatedAt::Keep;
        self.index().record(key, MetaPatch { extra, updated_at, ..MetaPatch::default() })?;
        Ok(about)
    }
}

impl About {
    /// Whether the labels are all of `with` and none of `without`.
    pub fn fits(&self, with: &[&str], without: &[&str]) -> bool {
        let has = |label: &&str| self.labels.iter().any(|own| own == label);
        with.iter().all(has) && !without.iter().any(has)
    }

    /// The index's `extra` fields. The names of what the owner gives are included in any case, so that they replace the old
    /// values.
    pub(crate) fn to_extra(&self) -> serde_json::Map<String, serde_json::Value> {
        let fields = [("title", self.title.clone().into()), ("labels", self.labels.clone().into())];
        let made = self.automatic_title.clone().map(|title| (AUTOMATIC_TITLE, title.into()));
        fields.into_iter().chain(made).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Reads the title and labels from the index's `extra`.
    pub fn from_extra(extra: Option<&serde_json::Map<String, serde_json::Value>>) -> Self {
        let field =
            |name: &str| extra.and_then(|extra| extra.get(name)).cloned().unwrap_or_default();
        Self {
            title: serde_json::from_value(field("title")).unwrap_or_default(),
            automatic_title: serde_json::from_value(field(AUTOMATIC_TITLE)).unwrap_or_default(),
            labels: serde_json::from_value(field("labels")).unwrap_or_default(),
        }
    }
}

/// Reads the latest title and labels from the log in `file`.
pub(crate) fn read_about(file: &File) -> io::Result<About> {
    let mut lines = BackwardLines::new(Positioned::new(file))?;
    while let Some(found) = lines.next_line()? {
        if memchr::memmem::find(found.bytes, TYPE_NAME).is_none() {
            continue;
        }
        if let Line::Entry(Entry::About(entry)) = line::decode(found.bytes, found.offset) {
            return Ok(entry.about);
        }
    }
    Ok(About::default())
}
