//! Where jobs are written down.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_exec::TreeTrace;

use super::record::JobRecord;

/// Where the commands that run and the jobs of sessions are written down. All calls but [`JobStore::end_leftovers`] block.
pub trait JobStore: fmt::Debug + Send + Sync {
    /// The records of a session's jobs, the oldest first. A job whose process is gone counts as lost.
    fn all(&self, session: &str) -> Vec<JobRecord>;

    /// The record of a session's job with this id, which may be any text.
    fn find(&self, session: &str, id: &str) -> Option<JobRecord> {
        self.all(session).into_iter().find(|record| record.id == id.trim())
    }

    /// Adds a record under the first free id of its session from `number` on, and gives it that id.
    ///
    /// # Errors
    /// It cannot be written.
    fn insert(&self, record: &mut JobRecord, number: u64) -> io::Result<()>;

    /// Writes a record in place of an older one.
    ///
    /// # Errors
    /// It cannot be written.
    fn save(&self, record: &JobRecord) -> io::Result<()>;

    /// Removes a record and the file with the output.
    ///
    /// # Errors
    /// They cannot be removed.
    fn remove(&self, record: &JobRecord) -> io::Result<()>;

    /// Writes down that a command runs, with its job if it is one, so that the next process ends it if this one is killed.
    /// Returns its number.
    ///
    /// # Errors
    /// It cannot be written down.
    fn begin(&self, trace: TreeTrace, job: Option<&JobRecord>) -> io::Result<u64>;

    /// Writes down that a command has ended.
    fn end(&self, number: u64);

    /// Called when a program or one of its parts runs no more commands: what says that none runs may go.
    fn close(&self);

    /// Ends what processes that were killed left running, with everything it started, and returns the jobs among it, whose
    /// sessions do not know yet that they ended.
    fn end_leftovers(&self) -> BoxFuture<'_, Vec<JobRecord>>;
}

/// A command that is written down; dropped when it has ended.
#[derive(Debug)]
pub(crate) struct Noted {
    store: Arc<dyn JobStore>,
    number: u64,
}

impl Noted {
    /// # Errors
    /// It cannot be written down.
    pub(super) fn begin(
        store: &Arc<dyn JobStore>,
        trace: TreeTrace,
        job: Option<&JobRecord>,
    ) -> io::Result<Self> {
        let number = store.begin(trace, job)?;
        Ok(Self { store: Arc::clone(store), number })
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.store.end(self.number);
    }
}

#[cfg(test)]
mod tests;
