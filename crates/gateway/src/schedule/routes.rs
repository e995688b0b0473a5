//! Where people write from: the last route of each session, and all routes that were used.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use myclaw_store::{Place, RecordId, Store, Write};
use parking_lot::Mutex;

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
    memory: Mutex<Memory>,
}

/// What was read or written lately. All of it is in the store.
#[derive(Default)]
struct Memory {
    /// The last routes, by session.
    last: HashMap<String, Route>,
    known: HashSet<Route>,
}

impl Routes {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, memory: Mutex::default() }
    }

    /// What has to be stored with a message that was written to a session from a route. Usually it was the same route as
    /// before, and that is nothing.
    pub(crate) async fn notes(
        &self,
        session: &str,
        route: &Route,
    ) -> Result<Vec<Write>, GatewayError> {
        if self.memory.lock().last.get(session) == Some(route) {
            return Ok(Vec::new());
        }
        let id = RecordId::new(LAST, session);
        let stored = self.store.get(id.clone()).await?;
        let last: Option<Route> = stored.as_ref().map(decode).transpose()?;
        let mut writes = Vec::new();
        if last.as_ref() == Some(route) {
            self.noted(session, route);
        } else {
            let value = encode(route)?;
            writes.push(match stored {
                Some(now) => Write::Replace { id, expected: now.version, value, place: None },
                None => Write::Insert { id, value, place: None },
            });
        }
        if !self.memory.lock().known.contains(route) {
            let known = self.known().await?;
            if !known.contains(route) && known.len() < MOST {
                let id = RecordId::new(KNOWN, key(route));
                let place = Some(Place::new(KNOWN, now_ms()));
                writes.push(Write::Insert { id, value: encode(route)?, place });
            }
            self.memory.lock().known.extend(known);
        }
        Ok(writes)
    }

    /// Notes that [`Routes::notes`] are stored.
    pub(crate) fn noted(&self, session: &str, route: &Route) {
        let mut memory = self.memory.lock();
        if memory.last.len() >= MOST {
            memory.last.clear();
        }
        memory.last.insert(session.to_owned(), route.clone());
    }

    /// From where somebody wrote to the session last.
    pub(crate) async fn last(&self, session: &str) -> Result<Option<Route>, GatewayError> {
        if let Some(route) = self.memory.lock().last.get(session) {
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
}

/// Unique among routes, however long their parts are.
fn key(route: &Route) -> String {
    crate::rows::hash("r", &[&route.channel, &route.account, &route.chat])
}
