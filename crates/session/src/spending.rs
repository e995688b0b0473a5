//! Tokens and money that all runs of a day have used, over all sessions and processes.
//!
//! One small file holds the totals of one day. Each change reads, adds and writes it in place under a lock on the file
//! itself, so the cost of a change does not depend on the totals. The totals guard a budget and are not an invoice: a
//! power cut may lose the last of them. The cost of each call is in the log.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use myclaw_files::portable::FileExt;
use myclaw_files::{create_private_directory, parent_of, private_options, set_aside};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::error::{IoContext, SessionError};

/// Length of the file in every state, so that new content always covers the old content.
const FILE_BYTES: usize = 160;

/// Days by which the stored day may be ahead: a clock that is an hour fast at midnight stores the date of tomorrow.
const DAYS_AHEAD: i64 = 1;

/// Tokens and money that were used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens read and written, cached ones included.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
}

/// The totals of the present day, to which all runs add. All calls block: callers decide on which thread they run.
pub trait Spending: fmt::Debug + Send + Sync {
    /// The totals of `day`, written as `2026-01-31`, so far.
    ///
    /// # Errors
    /// The totals cannot be read.
    fn of(&self, day: &str) -> Result<Spent, SessionError>;

    /// Adds `used` to the totals of `day`, and returns the totals. If the stored day is earlier, the totals start at
    /// zero. If it is later, they continue, because a clock that jumps back must not reset a budget. But if the stored
    /// day is later than tomorrow, its totals become those of `day`: a clock that was ahead for a moment must not block
    /// all days until then.
    ///
    /// # Errors
    /// The totals cannot be read or written.
    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError>;

    /// Adds `used` to the totals of `day` for a run that does not need them, at the latest a moment later.
    ///
    /// # Errors
    /// The totals cannot be read or written.
    fn note(&self, day: &str, used: Spent) -> Result<(), SessionError> {
        self.add(day, used).map(drop)
    }

    /// Like [`Spending::add`], or [`Spending::of`] if nothing was used, but only if that takes no longer than a few system
    /// calls; `None` otherwise, as where another run is using the totals.
    ///
    /// # Errors
    /// The totals cannot be read or written.
    fn add_at_once(&self, day: &str, used: Spent) -> Result<Option<Spent>, SessionError> {
        let _ = (day, used);
        Ok(None)
    }

    /// If the totals were damaged and had to start at zero: where they are and where a copy of the damaged ones is, in words
    /// for people.
    fn damage(&self) -> Option<(String, String)>;
}

/// Totals in the memory of this process. They start at zero.
#[derive(Debug, Default)]
pub struct MemorySpending(Mutex<DayTotals>);

/// The totals of the present day in a file.
#[derive(Debug, Clone)]
pub struct DaySpending {
    path: PathBuf,
    /// Where a damaged file was copied to.
    set_aside: Arc<OnceLock<PathBuf>>,
}

/// The totals of a day, as they are stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DayTotals {
    day: String,
    tokens: u64,
    micro_dollars: u64,
}

impl DaySpending {
    /// The totals in the file at `path`, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), set_aside: Arc::default() }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a copy of the file, if it was damaged and the totals had to start at zero.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.get().map(PathBuf::as_path)
    }

    /// The totals of `day`, written as `2026-01-31`, so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(&self, day: &str) -> Result<Spent, SessionError> {
        Ok(self.read_total(day, Patience::Waits)?.unwrap_or_default())
    }

    /// As [`Spending::add_at_once`].
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add_at_once(&self, day: &str, used: Spent) -> Result<Option<Spent>, SessionError> {
        match used == Spent::default() {
            true => self.read_total(day, Patience::Gives),
            false => self.change(day, used, Patience::Gives),
        }
    }

    fn read_total(&self, day: &str, patience: Patience) -> Result<Option<Spent>, SessionError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Some(Spent::default()));
            }
            Err(error) => {
                return Err(SessionError::from_io("read the day's usage", &self.path, error));
            }
        };
        let is_locked = match patience {
            Patience::Waits => file.lock_shared().map(|()| true),
            Patience::Gives => got(file.try_lock_shared()),
        };
        if !is_locked.context("lock the day's usage", &self.path)? {
            return Ok(None);
        }
        let stored = read(&file).context("read the day's usage", &self.path)?;
        if stored.as_ref().is_none_or(|stored| stored.is_ahead_of(day)) {
            drop(file);
            return self.change(day, Spent::default(), patience);
        }
        Ok(Some(stored.unwrap_or_default().spent_on(day)))
    }

    /// As [`Spending::add`].
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        Ok(self.change(day, used, Patience::Waits)?.unwrap_or_default())
    }

    fn change(
        &self,
        day: &str,
        used: Spent,
        patience: Patience,
    ) -> Result<Option<Spent>, SessionError> {
        let directory = parent_of(&self.path);
        create_private_directory(&directory).context("create the state directory", &directory)?;
        let file = private_options()
            .read(true)
            .write(true)
            .create(true)
            .open(&self.path)
            .context("open the day's usage", &self.path)?;
        let is_locked = match patience {
            Patience::Waits => file.lock().map(|()| true),
            Patience::Gives => got(file.try_lock()),
        };
        if !is_locked.context("lock the day's usage", &self.path)? {
            return Ok(None);
        }
        let before = match read(&file).context("read the day's usage", &self.path)? {
            Some(before) => before,
            None => {
                let copy = set_aside(&self.path).map_err(|(copy, source)| {
                    SessionError::from_io("save the damaged usage of the day to", &copy, source)
                })?;
                let _ = self.set_aside.set(copy);
                file.set_len(0).context("write the day's usage", &self.path)?;
                DayTotals::default()
            }
        };
        let (after, total) = before.plus(day, used);
        let mut line = serde_json::to_string(&after)
            .map_err(|source| SessionError::Encode { path: self.path.clone(), source })?;
        line.push_str(&" ".repeat(FILE_BYTES.saturating_sub(line.len() + 1)));
        line.push('\n');
        file.write_all_at(line.as_bytes(), 0).context("write the day's usage", &self.path)?;
        Ok(Some(total))
    }
}

/// What happens while another run is using the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// It is waited for.
    Waits,
    /// The caller does something else.
    Gives,
}

/// Whether the lock was free.
fn got(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Spending for DaySpending {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        Self::of(self, day)
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        Self::add(self, day, used)
    }

    fn add_at_once(&self, day: &str, used: Spent) -> Result<Option<Spent>, SessionError> {
        Self::add_at_once(self, day, used)
    }

    fn damage(&self) -> Option<(String, String)> {
        let copy = self.set_aside()?.display().to_string();
        Some((self.path.display().to_string(), copy))
    }
}

impl Spending for MemorySpending {
    fn of(&self, day: &str) -> Result<Spent, SessionError> {
        {
            let stored = self.0.lock();
            if !stored.is_ahead_of(day) {
                return Ok(stored.spent_on(day));
            }
        }
        self.add(day, Spent::default())
    }

    fn add(&self, day: &str, used: Spent) -> Result<Spent, SessionError> {
        let mut stored = self.0.lock();
        let (after, total) = std::mem::take(&mut *stored).plus(day, used);
        *stored = after;
        Ok(total)
    }

    fn add_at_once(&self, day: &str, used: Spent) -> Result<Option<Spent>, SessionError> {
        if used == Spent::default() { self.of(day) } else { self.add(day, used) }.map(Some)
    }

    fn damage(&self) -> Option<(String, String)> {
        None
    }
}

impl DayTotals {
    /// As [`Spending::add`]: what is stored then, and the totals.
    pub fn plus(self, day: &str, used: Spent) -> (Self, Spent) {
        let spent = self.spent_on(day);
        let total = Spent {
            tokens: spent.tokens.saturating_add(used.tokens),
            micro_dollars: spent.micro_dollars.saturating_add(used.micro_dollars),
        };
        let is_ahead = self.is_ahead_of(day);
        let day = if is_ahead { day.to_owned() } else { self.day.max(day.to_owned()) };
        (Self { day, tokens: total.tokens, micro_dollars: total.micro_dollars }, total)
    }

    /// The totals of `day`, unless [`Self::is_ahead_of`] it.
    pub fn spent_on(&self, day: &str) -> Spent {
        if self.day.as_str() < day {
            Spent::default()
        } else {
            Spent { tokens: self.tokens, micro_dollars: self.micro_dollars }
        }
    }

    /// True if the stored day is later than the day after `day`.
    pub fn is_ahead_of(&self, day: &str) -> bool {
        let (stored, today) = (days_since_1970(&self.day), days_since_1970(day));
        stored.zip(today).is_some_and(|(stored, today)| stored > today + DAYS_AHEAD)
    }
}

/// The number of a day written as `2026-01-31`, in the proleptic Gregorian calendar: years are counted from March on, so
/// that the leap day is the last of its year.
fn days_since_1970(day: &str) -> Option<i64> {
    let numbers: Vec<i64> = day.splitn(3, '-').filter_map(|part| part.parse().ok()).collect();
    let [year, month, day] = numbers[..] else { return None };
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (century, year) = (year.div_euclid(100), year.rem_euclid(100));
    Some(146_097 * century / 4 + 1_461 * year / 4 + (153 * month + 2) / 5 + day - 719_469)
}

/// The content of the file: zero if the file is new, `None` if it cannot be read as totals.
fn read(file: &File) -> io::Result<Option<DayTotals>> {
    let mut bytes = [0; FILE_BYTES];
    let mut length = 0;
    while length < FILE_BYTES {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            count => length += count,
        }
    }
    if length == 0 {
        return Ok(Some(DayTotals::default()));
    }
    Ok(serde_json::from_slice(&bytes[..length]).ok())
}

#[cfg(test)]
mod tests;
