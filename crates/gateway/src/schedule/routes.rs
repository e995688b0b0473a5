//! Where people write from: the last route of each session, and all routes that were used.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_store::{Batch, Commit, Place, RecordId, Refusal, Store, Write};

use crate::GatewayError;
use crate::ledger::{decode, encode, now_ms};
use crate::rows::Route;

/// Kind of the records of last routes, by session.
const LAST: &str = "last-route";
/// Kind and queue of the records of all routes, by the time of their first use.
const KNOWN: &str = "known-route";
/// Most routes that are known, and most sessions whose last route is in memory.
const MOST: usize = 1_000;

/// The routes.
pub(crate) struct Routes {
    store: Arc<dyn Store>,
    /// The last routes, as they are in the store.
    last: Mutex<HashMap<String, Route>>,
}

impl Routes {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, last: Mutex::default() }
    }

    /// Notes that somebody wrote to a session. Usually it was from the same route as before, and nothing is stored.
    pub(crate) async fn used(&self, session: &str, route: &Route) -> Result<(), GatewayError> {
        if self.memory().get(session) == Some(route) {
            return Ok(());
        }
        let id = RecordId::new(LAST, session);
        let value = encode(route)?;
        let mut write = Write::Insert { id: id.clone(), value: value.clone(), place: None };
        // Two messages at once may come from two places; either may count as the last.
        while let Commit::Refused(refusal) = self.store.commit(Batch::of(write)).await? {
            write = match refusal {
                Refusal::Exists(now) => Write::Replace {
                    id: id.clone(),
                    expected: now.version,
                    value: value.clone(),
                    place: None,
                },
                _ => Write::Insert { id: id.clone(), value: value.clone(), place: None },
            };
        }
        let known = self.known().await?;
        if !known.contains(route) && known.len() < MOST {
            let id = RecordId::new(KNOWN, key(route));
            let place = Some(Place::new(KNOWN, now_ms()));
            // Refused if another message has just done the same.
            let _ = self.store.commit(Batch::of(Write::Insert { id, value, place })).await?;
        }
        let mut memory = self.memory();
        if memory.len() >= MOST {
            memory.clear();
        }
        memory.insert(session.to_owned(), route.clone());
        Ok(())
    }

    /// From where somebody wrote to the session last.
    pub(crate) async fn last(&self, session: &str) -> Result<Option<Route>, GatewayError> {
        if let Some(route) = self.memory().get(session) {
            return Ok(Some(route.clone()));
        }
        let record = self.store.get(RecordId::new(LAST, session)).await?;
        record.as_ref().map(decode).transpose()
    }

    /// All routes that were used, the oldest first.
    pub(crate) async fn known(&self) -> Result<Vec<Route>, GatewayError> {
        let records = self.store.scan(KNOWN.to_owned(), None, MOST).await?;
        records.iter().map(decode).collect()
    }

    /// The newest route of a channel.
    pub(crate) async fn of_channel(&self, channel: &str) -> Result<Option<Route>, GatewayError> {
        let known = self.known().await?;
        Ok(known.into_iter().rev().find(|route| route.channel == channel))
    }

    fn memory(&self) -> MutexGuard<'_, HashMap<String, Route>> {
        // The map is whole after every statement, so a panic elsewhere does not spoil it.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unique among routes, however long their parts are.
fn key(route: &Route) -> String {
    crate::rows::hash("r", &[&route.channel, &route.account, &route.chat])
}
