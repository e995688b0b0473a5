//! Where people write from: the last route of each session, and all routes that were used.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use myclaw_store::{Place, Records, Store, Write};
use parking_lot::Mutex;

use crate::DeliveryError;
use crate::ledger::now_ms;
use crate::route::Route;

/// The last routes, by session.
const LAST: Records<Route> = Records::new("last-route");
/// All routes.
const KNOWN: Records<Route> = Records::new("known-route");
/// Queue of all routes, by the time of their first use.
const BY_USE: &str = "known-route";
/// Most routes that are known, and most sessions whose last route is in memory.
const MOST: usize = 1_000;

/// The routes.
pub struct Routes {
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
    /// The routes in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, memory: Mutex::default() }
    }

    /// What has to be stored with a message that was written to a session from a route. Usually it was the same route as
    /// before, and that is nothing.
    pub async fn notes(&self, session: &str, route: &Route) -> Result<Vec<Write>, DeliveryError> {
        if self.memory.lock().last.get(session) == Some(route) {
            return Ok(Vec::new());
        }
        let stored = LAST.get(&*self.store, session).await?;
        let mut writes = Vec::new();
        if stored.as_ref().is_some_and(|last| last.row == *route) {
            self.noted(session, route);
        } else {
            writes.push(LAST.put(session, stored.map(|last| last.version), route, None)?);
        }
        if !self.memory.lock().known.contains(route) {
            let known = self.known().await?;
            if !known.contains(route) && known.len() < MOST {
                let place = Place::new(BY_USE, now_ms());
                writes.push(KNOWN.put(&key(route), None, route, place)?);
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
    pub async fn last(&self, session: &str) -> Result<Option<Route>, DeliveryError> {
        if let Some(route) = self.memory.lock().last.get(session) {
            return Ok(Some(route.clone()));
        }
        Ok(LAST.get(&*self.store, session).await?.map(|last| last.row))
    }

    /// All routes that were used, the oldest first.
    pub async fn known(&self) -> Result<Vec<Route>, DeliveryError> {
        let known = KNOWN.first(&*self.store, BY_USE, MOST).await?;
        Ok(known.into_iter().map(|route| route.row).collect())
    }

    /// The newest route of a channel.
    pub(crate) async fn of_channel(&self, channel: &str) -> Result<Option<Route>, DeliveryError> {
        let known = self.known().await?;
        Ok(known.into_iter().rev().find(|route| route.channel == channel))
    }
}

/// Unique among routes, however long their parts are.
fn key(route: &Route) -> String {
    crate::rows::hash("r", &[&route.channel, &route.account, &route.chat])
}
