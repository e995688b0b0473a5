//! Moves old parts of logs to the object storage: the rows before the last summary of sessions that nobody has written to for
//! a while, or that have many of them.
//!
//! The content is uploaded first. Then one statement adds the segment and removes its rows, under the epoch that the session
//! had before its rows were read, so a later owner wins. A content that no segment names is dropped or, after a
//! crash, swept. Without an object storage nothing moves.

use std::sync::atomic::Ordering;

use myclaw_files::now_ms;
use myclaw_session::{Entry, SessionError, rows};
use tokio_postgres::types::Type;

use super::core::{Core, column, failed_io};
use super::segments::{Facts, Sealed, encode};
use super::sql::{self, segments as statements};
use crate::pool::Parameter;
use crate::read::{number, stored};

/// Most rows of a segment, and most bytes unless one row has more.
const SEGMENT_ROWS: i64 = 1_000;
const SEGMENT_BYTES: usize = 4 * 1024 * 1024;
/// Summaries that are looked at: those without a text may be ignored by a turn, which reads on then.
const MOST_SUMMARIES: usize = 8;

/// After so many sessions with a failure it is left to the next time.
const MOST_FAILURES: u32 = 3;

/// A session with rows to seal.
struct Session {
    id: i64,
    epoch: i64,
    sealed: i64,
    last: i64,
    tried: std::time::SystemTime,
}

impl Core {
    /// Seals what is old of some sessions. Returns how many segments that made.
    pub(super) fn seal_old_parts(&self) -> Result<usize, SessionError> {
        let is_stopped = [&self.is_changing, &self.keeps_old_parts];
        let is_stopped = is_stopped.iter().any(|is| is.load(Ordering::SeqCst));
        if self.elsewhere.get().is_none() || is_stopped {
            return Ok(0);
        }
        let limits = &self.sealing;
        let [kept, least, most] = [limits.kept, limits.least, limits.most].map(stored);
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let quiet_since = stored(now_ms().saturating_sub(millis(limits.quiet)));
        let mine: Vec<i64> = self.opened.lock().values().map(|here| here.id).collect();
        let again = stored(millis(limits.again));
        let parameters: [Parameter<'_>; 7] = [
            (&self.partition, Type::INT8),
            (&kept, Type::INT8),
            (&least, Type::INT8),
            (&quiet_since, Type::INT8),
            (&most, Type::INT8),
            (&mine, Type::INT8_ARRAY),
            (&again, Type::INT8),
        ];
        let (mut count, mut failures) = (0, 0);
        for row in &self.rows("seal", statements::TAKE_SEALABLE, &parameters)? {
            let session = Session {
                id: column(row, 0)?,
                epoch: column(row, 1)?,
                sealed: column(row, 2)?,
                last: column(row, 3)?,
                tried: column(row, 4)?,
            };
            if !column::<bool>(row, 5)? {
                continue;
            }
            match self.seal_session(session) {
                Ok(more) => count += more,
                // One that cannot be read keeps no others from it.
                Err(error) if failures == MOST_FAILURES => return Err(error),
                Err(error) => {
                    failures += 1;
                    tracing::warn!(%error, "old rows of a session cannot be moved to the object storage");
                }
            }
        }
        Ok(count)
    }

    fn seal_session(&self, mut session: Session) -> Result<usize, SessionError> {
        let (bound, mut count) = (self.bound(&session)?, 0);
        let least = stored(self.sealing.least);
        while bound - session.sealed >= least {
            if !self.seal_part(&mut session, bound)? {
                return Ok(count);
            }
            count += 1;
        }
        let done: [Parameter<'_>; 2] =
            [(&session.id, Type::INT8), (&session.tried, Type::TIMESTAMPTZ)];
        self.rows("seal", statements::ALL_SEALED, &done)?;
        Ok(count)
    }

    /// The last row that may be sealed: a turn reads none before it, and the newest rows stay.
    fn bound(&self, session: &Session) -> Result<i64, SessionError> {
        let newest = session.last - stored(self.sealing.kept);
        let mut before = session.last + 1;
        for _ in 0..MOST_SUMMARIES {
            let end = before - 1;
            let wanted: [Parameter<'_>; 4] = [
                (&session.id, Type::INT8),
                (&"compaction", Type::TEXT),
                (&session.sealed, Type::INT8),
                (&end, Type::INT8),
            ];
            let found = self.rows("seal", sql::LAST_OF_KIND, &wanted)?;
            let Some(row) = found.first() else { break };
            let (place, body): (i64, &str) = (column(row, 0)?, column(row, 1)?);
            before = place;
            let Some(Entry::Compaction(summary)) = rows::read_entry(body.as_bytes(), number(place))
            else {
                continue;
            };
            if summary.summary.is_empty() {
                continue;
            }
            if summary.first_kept_id == summary.id {
                return Ok(newest.min(place - 1));
            }
            let kept = summary.first_kept_id.as_str();
            let wanted: [Parameter<'_>; 3] =
                [(&session.id, Type::INT8), (&kept, Type::TEXT), (&place, Type::INT8)];
            let found = self.rows("seal", sql::PLACE, &wanted)?;
            // What a summary keeps from a sealed part on leaves nothing to seal.
            return match found.first() {
                Some(row) => Ok(newest.min(column::<i64>(row, 0)? - 1)),
                None => Ok(session.sealed),
            };
        }
        Ok(if self.sealing.only_summarised { session.sealed } else { newest })
    }

    /// Seals the next part, up to `bound` at most. False if the session has another owner now, or the object storage cannot be
    /// used.
    fn seal_part(&self, session: &mut Session, bound: i64) -> Result<bool, SessionError> {
        let end = bound.min(session.sealed + SEGMENT_ROWS);
        let wanted: [Parameter<'_>; 3] =
            [(&session.id, Type::INT8), (&session.sealed, Type::INT8), (&end, Type::INT8)];
        let (mut part, mut bytes) = (Vec::new(), 0);
        for row in &self.rows("seal", statements::TO_SEAL, &wanted)? {
            let row = Sealed { id: column(row, 0)?, kind: column(row, 1)?, body: column(row, 2)? };
            bytes += row.body.len();
            if bytes > SEGMENT_BYTES && !part.is_empty() {
                break;
            }
            part.push(row);
        }
        if part.is_empty() {
            return Ok(false);
        }
        let to = session.sealed + stored(part.len() as u64);
        let facts = Facts::of(session.sealed + 1, &part);
        let Some(blob) = self.put_rows(&part)? else { return Ok(false) };
        let about = facts.about();
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&session.id, Type::INT8),
            (&session.epoch, Type::INT8),
            (&session.sealed, Type::INT8),
            (&to, Type::INT8),
            (&blob.id, Type::INT8),
            (&blob.digest, Type::TEXT),
        ];
        parameters.extend(facts.parameters(&about));
        let is_sealed = !self.rows("seal", statements::SEAL, &parameters)?.is_empty();
        if !is_sealed {
            // Somebody else has the session; or an attempt without an answer has done it, and the content has a name.
            self.drop_blobs(&[blob.id]);
        }
        session.sealed = to;
        Ok(is_sealed)
    }

    /// Uploads rows. `None` if the object storage cannot be used.
    pub(super) fn put_rows(
        &self,
        rows: &[Sealed],
    ) -> Result<Option<super::blobs::Blob>, SessionError> {
        let content = encode(rows).map_err(|error| failed_io("seal", &error.to_string()))?;
        self.put_large(content.as_slice())
    }
}
