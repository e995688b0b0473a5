//! The totals of the day, in one record to which all nodes add.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use myclaw_session::rows::DayTotals;
use myclaw_session::{SessionError, Spending, Spent};
use myclaw_store::{Change, Records, StoreError};
use parking_lot::Mutex;

use crate::blocking::Blocking;

const TOTALS: Records<DayTotals> = Records::new(KIND);
pub(crate) const KIND: &str = "spending";
/// The key of the only one.
pub(crate) const KEY: &str = "day";

/// How long usage that no limit needs waits for more. The totals guard a budget, and a crash may lose the last of them.
const GATHERED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct RecordedSpending(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    records: Arc<Blocking>,
    /// The runs of this process add one after the other, so only other nodes can be in the way.
    adding: Mutex<()>,
    /// What is not in the record yet, with its day.
    noted: Mutex<Option<(String, Spent)>>,
}

impl RecordedSpending {
    pub(crate) fn new(records: Arc<Blocking>) -> Self {
        Self(Arc::new(Shared { records, adding: Mutex::default(), noted: Mutex::default() }))
    }
}

impl Shared {
    /// Adds usage and what was noted before to the record.
    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        let _one_by_one = self.adding.lock();
        let noted = self.noted.lock().take();
        let mut total = Spent::default();
        let decide = |before: Option<DayTotals>| {
            let mut after = before.unwrap_or_default();
            if let Some((day, used)) = &noted {
                after = after.plus(day, *used).0;
            }
            (after, total) = after.plus(day, used);
            Change::put(after, None)
        };
        let added = self.records.wait(|store| TOTALS.update(store, KEY, decide));
        if let (Err(_), Some((day, used))) = (&added, noted) {
            // It is noted again, unless it was stored after all.
            self.note(&day, used);
        }
        added.map_err(|error| self.failed("add to", error))?;
        Ok(total)
    }

    /// Whether nothing was noted before.
    fn note(&self, day: &str, used: Spent) -> bool {
        let mut noted = self.noted.lock();
        let is_first = noted.is_none();
        let (_, sum) = noted.get_or_insert_with(|| (day.to_owned(), Spent::default()));
        sum.tokens += used.tokens;
        sum.micro_dollars += used.micro_dollars;
        is_first
    }

    fn store_noted(&self) -> Result<(), SessionError> {
        let day = self.noted.lock().as_ref().map(|(day, _)| day.clone());
        day.map_or(Ok(()), |day| self.add(&day, Spent::default()).map(drop))
    }

    fn failed(&self, action: &'static str, error: StoreError) -> SessionError {
        let path = PathBuf::from("the day's usage");
        SessionError::Io { action, path, source: std::io::Error::other(error) }
    }
}

impl Spending for RecordedSpending {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        let noted = self.0.noted.lock().clone();
        let found = self.0.records.wait(|store| TOTALS.get(store, KEY));
        let stored = found.map_err(|error| self.0.failed("read", error))?;
        match stored {
            Some(stored) if stored.row.is_ahead_of(day) => self.add(day, Spent::default()),
            stored => {
                let stored = stored.map(|stored| stored.row).unwrap_or_default();
                let (noted_on, used) = noted.unwrap_or_else(|| (day.to_owned(), Spent::default()));
                Ok(stored.plus(&noted_on, used).0.spent_on(day))
            }
        }
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        self.0.add(day, used)
    }

    fn note(&self, day: &str, used: Spent) -> Result<(), SessionError> {
        if self.0.note(day, used) {
            let this = Arc::downgrade(&self.0);
            std::thread::spawn(move || {
                std::thread::sleep(GATHERED);
                if let Some(this) = this.upgrade()
                    && let Err(error) = this.store_noted()
                {
                    tracing::warn!(%error, "the day's usage is stored later");
                }
            });
        }
        Ok(())
    }

    fn damage(&self) -> Option<(String, String)> {
        None
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Without the database it is lost, as in a crash.
        drop(self.store_noted());
    }
}
