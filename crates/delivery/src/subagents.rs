//! The sub-agents: which there are, and what is known about them.
//!
//! A sub-agent is a record in the store, which begins with its first message and ends with the transaction that stores
//! its result as a message of its parent. This registry holds the running ones, and some that have ended, because their
//! sessions keep the rules of those on whose behalf they worked.

use std::collections::HashMap;

use myclaw_agent::SUBAGENT_CHANNEL;
use myclaw_agent::permissions::Principal;
use myclaw_agent::subagents::{Ending, Named};
use myclaw_session::SessionKey;
use myclaw_store::{Place, Records, Stored, Write};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::DeliveryError;
use crate::ledger::{Ledger, OVER, now_ms};
use crate::route::Route;
use crate::rows::{MessageId, hash};

const CHILDREN: Records<Child> = Records::new("subagent");
/// Queue of the running ones, by the time of their beginning.
const RUNNING: &str = "subagents";
/// Most that are in memory. Running ones stay in any case; their number is limited for each session.
const MOST_KNOWN: usize = 1_000;
/// Most that a parent is shown.
const MOST_LISTED: usize = 50;
/// Most that run at the same time, of all sessions together.
const MOST_RUNNING: usize = 500;

/// A sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// Derived from the session and the call that began it.
    pub id: String,
    /// The key of its session.
    pub session: String,
    /// The key of the session that began it.
    pub parent: String,
    /// How many sub-agents are above it, with itself.
    pub depth: u32,
    /// Its name for people and for its parent.
    pub label: Option<String>,
    /// The same for equal tasks.
    pub(crate) order: String,
    /// Its model, if not that of the config.
    pub(crate) model: Option<String>,
    /// Its thinking level, if not that of the config.
    pub thinking: Option<String>,
    /// Where its parent's answer to its result goes.
    pub route: Route,
    /// The sessions above it, its parent last.
    pub(crate) principals: Vec<Principal>,
    /// Milliseconds since the Unix epoch.
    pub started_at: u64,
    /// When it is stopped.
    pub(crate) deadline: u64,
    /// How far it is.
    pub state: ChildState,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChildState {
    /// It has no result yet.
    Running,
    /// Its result is a message of its parent.
    Ended {
        /// How.
        how: Ending,
        /// When, in milliseconds since the Unix epoch.
        at: u64,
        /// The message.
        message: MessageId,
    },
}

impl Child {
    /// The id of the sub-agent that a call begins. Some models use the id of a call again, so `attempt` counts those that
    /// have ended.
    pub(crate) fn id_of(parent: &str, call: &str, attempt: usize) -> String {
        hash("s", &[parent, call, &attempt.to_string()])
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == ChildState::Running
    }

    /// Its name, or its id.
    pub fn name(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.id)
    }

    /// It, as it is spoken of.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { name: self.name(), session: &self.session }
    }

    /// Whether a session is above it.
    pub fn works_for(&self, session: &str) -> bool {
        self.principals.iter().any(|one| one.session.as_str() == session)
    }
}

/// The sub-agents.
pub struct Children {
    ledger: Ledger,
    /// By session.
    known: Mutex<HashMap<String, Known>>,
}

struct Known {
    child: Child,
    is_timed_out: bool,
}

/// The end of a sub-agent, which is to be stored.
pub(crate) struct ChildEnd {
    pub(crate) child: Child,
    pub(crate) write: Write,
}

impl Children {
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { ledger, known: Mutex::default() }
    }

    /// Reads the running ones, and those that other gateways have ended meanwhile.
    pub async fn load(&self) -> Result<(), DeliveryError> {
        let running = CHILDREN.all(self.ledger.store(), RUNNING).await?;
        let over = {
            let mut known = self.known.lock();
            for Stored { row, .. } in &running {
                known.entry(row.session.clone()).or_insert_with(|| Known::of(row));
            }
            let is_there = |child: &Child| running.iter().any(|other| other.row.id == child.id);
            let all = known.values().map(|known| &known.child);
            let over = all.filter(|child| child.is_running() && !is_there(child));
            over.map(|child| child.id.clone()).collect::<Vec<_>>()
        };
        for id in over {
            // One that has just been begun may not be stored yet.
            if let Some(child) = self.record(&id).await?.filter(|child| !child.is_running()) {
                self.ended(&child);
            }
        }
        Ok(())
    }

    /// Reads them again after each change, for ever.
    pub async fn follow(&self) {
        self.ledger.follow(RUNNING, || Box::pin(self.load())).await;
    }

    /// Reads the sub-agent of a session, if it is the session of one.
    pub async fn know(&self, session: &str) -> Result<Option<Child>, DeliveryError> {
        if let Some(child) = self.get(session) {
            return Ok(Some(child));
        }
        let Some(id) = child_id(session) else { return Ok(None) };
        let Some(child) = self.record(&id).await? else { return Ok(None) };
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, one| one.child.is_running());
        }
        known.entry(session.to_owned()).or_insert_with(|| Known::of(&child));
        Ok(Some(child))
    }

    /// The record with this id.
    pub async fn record(&self, id: &str) -> Result<Option<Child>, DeliveryError> {
        Ok(CHILDREN.get(self.ledger.store(), id).await?.map(|child| child.row))
    }

    /// The sub-agent of a session, if it is in memory.
    pub fn get(&self, session: &str) -> Option<Child> {
        self.known.lock().get(session).map(|known| known.child.clone())
    }

    /// The running ones for which `is_wanted`, the oldest first.
    pub fn running(&self, is_wanted: impl Fn(&Child) -> bool) -> Vec<Child> {
        let known = self.known.lock();
        let all = known.values().map(|known| &known.child);
        let mut found: Vec<Child> =
            all.filter(|child| child.is_running() && is_wanted(child)).cloned().collect();
        found.sort_by_key(|child| child.started_at);
        found
    }

    /// Those that a session has begun, as far as they are in memory: the running ones, and ended ones. The newest first.
    pub fn of(&self, parent: &str) -> Vec<Child> {
        let known = self.known.lock();
        let all = known.values().map(|known| &known.child);
        let mut found: Vec<Child> = all.filter(|child| child.parent == parent).cloned().collect();
        found.sort_by_key(|child| std::cmp::Reverse(child.started_at));
        found.truncate(MOST_LISTED);
        found
    }

    /// Takes the place of a new one, and gives the write that stores it.
    pub(crate) fn reserve(&self, child: &Child, most: usize) -> Result<Write, DeliveryError> {
        let write = CHILDREN.put(&child.id, None, child, Place::new(RUNNING, child.started_at))?;
        let mut known = self.known.lock();
        let running = || known.values().map(|known| &known.child).filter(|one| one.is_running());
        let of_parent = running().filter(|one| one.parent == child.parent).count();
        if of_parent >= most {
            return Err(DeliveryError::Unusable(format!(
                "{of_parent} sub-agents of this session run already, which is the limit \
                 (subagents.maxChildrenPerAgent); wait until one ends, or stop one with the tool `subagents`"
            )));
        }
        if running().count() >= MOST_RUNNING {
            return Err(DeliveryError::Unusable(format!(
                "{MOST_RUNNING} sub-agents run already; try again later"
            )));
        }
        known.insert(child.session.clone(), Known::of(child));
        Ok(write)
    }

    /// Gives the place of one back that was not stored.
    pub fn forget(&self, session: &str) {
        self.known.lock().remove(session);
    }

    /// Notes that the time of a sub-agent is over.
    pub(crate) fn timed_out(&self, session: &str) {
        if let Some(known) = self.known.lock().get_mut(session) {
            known.is_timed_out = true;
        }
    }

    pub(crate) fn is_timed_out(&self, session: &str) -> bool {
        self.known.lock().get(session).is_some_and(|known| known.is_timed_out)
    }

    /// The end of a running one, with the write that stores it. `None` if it has ended before.
    pub(crate) async fn end(
        &self,
        session: &str,
        how: Ending,
    ) -> Result<Option<ChildEnd>, DeliveryError> {
        let Some(id) = child_id(session) else { return Ok(None) };
        let known = CHILDREN.get(self.ledger.store(), &id).await?;
        let Some(Stored { version, row: child, .. }) = known else { return Ok(None) };
        if !child.is_running() {
            return Ok(None);
        }
        let message = MessageId::of(&Route::internal("subagent-result"), &child.id);
        let at = now_ms();
        let child = Child { state: ChildState::Ended { how, at, message }, ..child };
        let write = CHILDREN.put(&child.id, Some(version), &child, Place::new(OVER, at))?;
        Ok(Some(ChildEnd { child, write }))
    }

    /// Notes an end that is stored.
    pub fn ended(&self, child: &Child) {
        self.known.lock().insert(child.session.clone(), Known::of(child));
    }
}

impl Known {
    fn of(child: &Child) -> Self {
        Self { child: child.clone(), is_timed_out: false }
    }
}

/// Whether a session is one of a sub-agent.
pub(crate) fn is_of_child(session: &str) -> bool {
    child_id(session).is_some()
}

/// The id of the sub-agent with this session.
fn child_id(session: &str) -> Option<String> {
    // Most sessions are others, and this is asked about every message.
    session.contains(SUBAGENT_CHANNEL).then_some(())?;
    let parts = SessionKey::parse(session).ok()?.parts();
    (parts.channel == SUBAGENT_CHANNEL).then_some(parts.peer_id)
}
