//! The rows of a log in their order, wherever they are.

use std::collections::VecDeque;

use myclaw_session::{SessionError, SessionKey};
use tokio_postgres::types::Type;

use super::core::{Core, column};
use super::sql;
use crate::pool::Parameter;
use crate::read::stored;

/// Rows that are read at once: first few, because most need the end only.
const FIRST_ROWS: i64 = 32;
const MOST_ROWS: i64 = 512;

/// No place.
pub(super) const END_UNKNOWN: i64 = i64::MAX;

/// Which rows of a session are read, and in which direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Those behind this place, up to another one; up to [`END_UNKNOWN`], as many as there are.
    Forward(i64, i64),
    /// Those before this place, the newest first, down to another one.
    Backward(i64, i64),
}

/// Rows in one direction, each with its place. They are read with several statements, so somebody may delete the session
/// in between: then the call fails, and no reader takes a part of a log for all of it.
pub(super) struct Lines<'c> {
    core: &'c Core,
    key: &'c SessionKey,
    session: i64,
    direction: Direction,
    page: i64,
    read: VecDeque<(i64, String)>,
}

impl<'c> Lines<'c> {
    pub(super) fn new(
        core: &'c Core,
        key: &'c SessionKey,
        session: i64,
        direction: Direction,
    ) -> Self {
        Self { core, key, session, direction, page: FIRST_ROWS, read: VecDeque::new() }
    }

    /// The next row; `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<(i64, String)>, SessionError> {
        if self.read.is_empty() {
            self.read_page()?;
        }
        Ok(self.read.pop_front())
    }

    /// The place of the row that comes next; `None` at the end.
    fn next_place(&self) -> Option<i64> {
        match self.direction {
            Direction::Forward(at, last) => (at < last).then_some(at + 1),
            Direction::Backward(at, first) => (at > first).then_some(at - 1),
        }
    }

    fn read_page(&mut self) -> Result<(), SessionError> {
        let Some(next) = self.next_place() else { return Ok(()) };
        let (at, last) = match self.direction {
            Direction::Forward(at, last) => (at, last),
            Direction::Backward(at, _) => (at, at),
        };
        let wanted: [Parameter<'_>; 4] = [
            (&self.session, Type::INT8),
            (&at, Type::INT8),
            (&self.page, Type::INT8),
            (&last, Type::INT8),
        ];
        let found = match self.direction {
            Direction::Forward(..) => self.core.rows("read", sql::FORWARD, &wanted)?,
            Direction::Backward(..) => self.core.rows("read", sql::BACKWARD, &wanted[..3])?,
        };
        self.page = (self.page * 2).min(MOST_ROWS);
        let first: Option<i64> = found.first().map(|row| column(row, 0)).transpose()?;
        if first != Some(next) {
            // It is sealed, unless there is none.
            if self.read_segment(next)? {
                return Ok(());
            }
            if first.is_some() || last != END_UNKNOWN {
                return Err(self.core.missing_row(self.key, self.session, next)?);
            }
        }
        for row in &found {
            let place = column(row, 0)?;
            // Behind a missing row, the next page begins with it.
            if self.next_place() != Some(place) {
                break;
            }
            self.push(place, column(row, 1)?);
        }
        Ok(())
    }

    /// Reads the rest of the segment with this row; false if there is none.
    fn read_segment(&mut self, next: i64) -> Result<bool, SessionError> {
        let Some(segment) = self.core.segment_with(self.session, next)? else { return Ok(false) };
        let rows = segment.rows(self.core, self.key)?.into_iter().enumerate();
        let rows = rows.map(|(number, row)| (segment.from + stored(number as u64), row.body));
        match self.direction {
            Direction::Forward(at, last) => rows
                .filter(|(place, _)| *place > at && *place <= last)
                .for_each(|(place, body)| self.push(place, body)),
            Direction::Backward(at, first) => rows
                .rev()
                .filter(|(place, _)| *place < at && *place >= first)
                .for_each(|(place, body)| self.push(place, body)),
        }
        Ok(true)
    }

    fn push(&mut self, place: i64, body: String) {
        match &mut self.direction {
            Direction::Forward(at, _) | Direction::Backward(at, _) => *at = place,
        }
        self.read.push_back((place, body));
    }
}
