//! The totals of the day, in one record to which all nodes add.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_session::rows::DayTotals;
use myclaw_session::{SessionError, Spending, Spent};
use myclaw_store::{Change, Records, StoreError};
use parking_lot::Mutex;

use crate::blocking::Blocking;

const TOTALS: Records<DayTotals> = Records::new(KIND);
pub(crate) const KIND: &str = "spending";
/// The key of the only one.
pub(crate) const KEY: &str = "day";

#[derive(Debug)]
pub(crate) struct RecordedSpending {
    records: Arc<Blocking>,
    /// The runs of this process add one after the other, so only other nodes can be in the way.
    adding: Mutex<()>,
}

impl RecordedSpending {
    pub(crate) fn new(records: Arc<Blocking>) -> Self {
        Self { records, adding: Mutex::default() }
    }

    fn failed(&self, action: &'static str, error: StoreError) -> SessionError {
        let path = PathBuf::from("the day's usage");
        SessionError::Io { action, path, source: std::io::Error::other(error) }
    }
}

impl Spending for RecordedSpending {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        let found = self.records.wait(|store| TOTALS.get(store, KEY));
        let stored = found.map_err(|error| self.failed("read", error))?;
        match stored {
            Some(stored) if stored.row.is_ahead_of(day) => self.add(day, Spent::default()),
            Some(stored) => Ok(stored.row.spent_on(day)),
            None => Ok(Spent::default()),
        }
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        let _one_by_one = self.adding.lock();
        let mut total = Spent::default();
        let decide = |before: Option<DayTotals>| {
            let (after, sum) = before.unwrap_or_default().plus(day, used);
            total = sum;
            Change::put(after, None)
        };
        let added = self.records.wait(|store| TOTALS.update(store, KEY, decide));
        added.map_err(|error| self.failed("add to", error))?;
        Ok(total)
    }

    fn damage(&self) -> Option<(String, String)> {
        None
    }
}
