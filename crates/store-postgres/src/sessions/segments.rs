//! Old parts of logs, which are in the object storage.
//!
//! A segment is the rows of a session from one place to another, as one compressed content. The rows go from the table of
//! entries in the transaction that adds the segment, so every row is in one of the two, and who misses a row in one finds it in
//! the other.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use myclaw_session::{EntryId, SessionError, SessionKey};
use ring::digest::{SHA256, digest};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::blobs::Blob;
use super::core::{Core, column, failed_io};
use super::sql::segments as sql;
use crate::pool::Parameter;
use crate::read::stored;

/// Characters of a group.
const GROUP: usize = 3;

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) session: i64,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) blob: Blob,
}

/// A row of a log with its columns.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) id: Option<String>,
    pub(super) kind: String,
    pub(super) body: String,
}

/// What the database keeps of a segment.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) ids: Vec<i64>,
    pub(super) grams: Vec<i32>,
    /// The place of the last title, and its row.
    pub(super) about: Option<(i64, String)>,
}

impl Facts {
    /// Those of the rows from this place on.
    pub(super) fn of(from: i64, rows: &[Sealed]) -> Self {
        let ids = rows.iter().map(|row| row.id.as_deref().map_or(0, number_of)).collect();
        let mut found = BTreeSet::new();
        for row in rows.iter().filter(|row| row.kind == "message") {
            found.extend(grams(&plain(&row.body)));
        }
        let about = rows.iter().rposition(|row| row.kind == "about");
        let about = about.map(|at| (from + stored(at as u64), rows[at].body.clone()));
        Self { ids, grams: found.into_iter().collect(), about }
    }

    /// The last columns of a segment. Those of the title are separate, because they may be missing.
    pub(super) fn parameters<'f>(
        &'f self,
        about: &'f (Option<i64>, Option<&'f str>),
    ) -> [Parameter<'f>; 4] {
        [
            (&self.ids, Type::INT8_ARRAY),
            (&self.grams, Type::INT4_ARRAY),
            (&about.0, Type::INT8),
            (&about.1, Type::TEXT),
        ]
    }

    pub(super) fn about(&self) -> (Option<i64>, Option<&str>) {
        self.about.as_ref().map_or((None, None), |(at, body)| (Some(*at), Some(body)))
    }
}

/// The number by which the id of a sealed row is found. 0 is none.
fn number_of(id: &str) -> i64 {
    let digest = digest(&SHA256, id.as_bytes());
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    i64::from_be_bytes(first) | 1
}

/// The text of a message as searches compare it, as in `sql::PLAIN`.
fn plain(body: &str) -> String {
    body.replace('\u{17f}', "s").replace('\u{212a}', "k").to_ascii_lowercase()
}

/// The groups of characters in a text that JSON writes in one way only, each as a number.
pub(super) fn grams(text: &str) -> impl Iterator<Item = i32> + '_ {
    let groups = text.as_bytes().windows(GROUP);
    let printable = groups.filter(|group| group.iter().all(|byte| matches!(byte, b' '..=b'~')));
    printable.map(|group| group.iter().fold(0, |number, byte| number << 8 | i32::from(*byte)))
}

/// The rows as a content: a line for each, with its kind and its id in front.
pub(super) fn encode(rows: &[Sealed]) -> std::io::Result<Vec<u8>> {
    let mut content = GzEncoder::new(Vec::new(), Compression::default());
    for Sealed { id, kind, body } in rows {
        serde_json::to_writer(&mut content, &(kind, id))?;
        for part in ["\t", body, "\n"] {
            content.write_all(part.as_bytes())?;
        }
    }
    content.finish()
}

fn decode(content: &[u8]) -> Option<Vec<Sealed>> {
    let mut text = String::new();
    GzDecoder::new(content).read_to_string(&mut text).ok()?;
    let line = |line: &str| {
        let (columns, body) = line.split_once('\t')?;
        let (kind, id) = serde_json::from_str(columns).ok()?;
        Some(Sealed { id, kind, body: body.to_owned() })
    };
    text.split_terminator('\n').map(line).collect()
}

impl Segment {
    fn of(row: &Row) -> Result<Self, SessionError> {
        let blob = Blob { id: column(row, 3)?, digest: column(row, 4)?, place: column(row, 5)? };
        Ok(Self { session: column(row, 0)?, from: column(row, 1)?, to: column(row, 2)?, blob })
    }

    /// Its rows, the oldest first, of the session with this key.
    ///
    /// # Errors
    /// The object storage cannot be used now, or the session is gone.
    pub(super) fn rows(&self, core: &Core, key: &SessionKey) -> Result<Vec<Sealed>, SessionError> {
        let content = match core.read_blob(&self.blob) {
            // It may have been replaced by another one a moment ago.
            Err(error) => match core.segment_with(self.session, self.from)? {
                Some(other) if other != *self => return other.rows(core, key),
                Some(_) => return Err(self.unavailable(&error.to_string())),
                None => return Err(core.missing_row(key, self.session, self.from)?),
            },
            Ok(content) => content,
        };
        let rows = decode(&content).filter(|rows| rows.len() as u64 == self.len());
        rows.ok_or_else(|| self.unavailable("it is damaged"))
    }

    fn len(&self) -> u64 {
        crate::read::number(self.to - self.from + 1)
    }

    fn unavailable(&self, why: &str) -> SessionError {
        let Self { from, to, .. } = self;
        failed_io(
            "read",
            &format!("its old rows {from} to {to} are unavailable now ({why}); try again later"),
        )
    }
}

impl Core {
    /// The segment with a row of a session.
    pub(super) fn segment_with(
        &self,
        session: i64,
        place: i64,
    ) -> Result<Option<Segment>, SessionError> {
        let wanted: [Parameter<'_>; 2] = [(&session, Type::INT8), (&place, Type::INT8)];
        let found = self.rows("read", &sql::with_entry(), &wanted)?;
        found.first().map(Segment::of).transpose()
    }

    /// The segments of a session, the oldest first.
    pub(super) fn segments_of(&self, session: i64) -> Result<Vec<Segment>, SessionError> {
        let found = self.rows("read", &sql::of_session(), &[(&session, Type::INT8)])?;
        found.iter().map(Segment::of).collect()
    }

    /// The segments of all sessions whose messages may have all texts of one of these. Without texts all segments.
    pub(super) fn segments_with(
        &self,
        alternatives: &[Vec<String>],
    ) -> Result<Vec<Segment>, SessionError> {
        let groups = |texts: &Vec<String>| {
            let all: BTreeSet<i32> = texts.iter().flat_map(|text| grams(text)).collect();
            all.into_iter().collect::<Vec<i32>>()
        };
        let lists: Vec<Vec<i32>> = alternatives.iter().map(groups).collect();
        let mut wanted: Vec<Parameter<'_>> = vec![(&self.partition, Type::INT8)];
        for list in &lists {
            wanted.push((list, Type::INT4_ARRAY));
        }
        let found = self.rows("search", &sql::with_grams(lists.len()), &wanted)?;
        found.iter().map(Segment::of).collect()
    }

    /// How many of the first rows of a session are sealed.
    ///
    /// # Errors
    /// The session is gone.
    pub(super) fn sealed_of(&self, key: &SessionKey, session: i64) -> Result<i64, SessionError> {
        let found = self.rows("read", sql::SEALED, &[(&session, Type::INT8)])?;
        let row = found.first().ok_or_else(|| SessionError::NoSuchSession { key: key.clone() })?;
        column(row, 0)
    }

    /// Why a row that a session has is neither in the table nor in a segment.
    pub(super) fn missing_row(
        &self,
        key: &SessionKey,
        session: i64,
        place: i64,
    ) -> Result<SessionError, SessionError> {
        self.sealed_of(key, session)?;
        let why =
            format!("row {place} of session {key} is missing; restore the database from a backup");
        Ok(failed_io("read", &why))
    }

    /// The place and the kind of the sealed row with this id.
    pub(super) fn sealed_place(
        &self,
        key: &SessionKey,
        session: i64,
        id: EntryId,
    ) -> Result<Option<(i64, String)>, SessionError> {
        let number = number_of(id.as_str());
        let wanted: [Parameter<'_>; 2] = [(&session, Type::INT8), (&number, Type::INT8)];
        let found = self.rows("read", sql::SEALED_PLACE, &wanted)?;
        let Some(row) = found.first() else { return Ok(None) };
        let place: i64 = column(row, 0)?;
        let Some(segment) = self.segment_with(session, place)? else { return Ok(None) };
        let at = usize::try_from(place - segment.from).unwrap_or_default();
        let row = segment.rows(self, key)?.into_iter().nth(at);
        Ok(row.filter(|row| row.id.as_deref() == Some(id.as_str())).map(|row| (place, row.kind)))
    }
}

#[cfg(test)]
mod tests;
