//! Several gateways on one store: what each of them has to hold before it does something that only one may do.

use std::sync::Arc;
use std::time::Duration;

use myclaw_store::{BoxFuture, Claims, RecordId, Store};
use serde_json::Value;

/// Whether other gateways use the same store at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sharing {
    /// None does: a lock keeps them out.
    #[default]
    Alone,
    /// Others do.
    Shared {
        /// The name of this gateway, which no other one has at the same time.
        holder: String,
        /// How long what it holds stays its own after its death.
        lease: Duration,
    },
}

impl Sharing {
    /// What this gateway has to hold, in a store.
    pub fn claims(self, store: Arc<dyn Store>) -> Arc<Claims> {
        match self {
            Self::Alone => Claims::alone(store),
            Self::Shared { holder, lease } => Claims::shared(store, holder, lease),
        }
    }
}

/// The other gateways on the store, for what only the one can do that has a session.
pub trait Others: Send + Sync {
    /// Asks all of them that can be reached. Gives the answers of those that can do it, within a few seconds.
    fn ask(&self, method: &'static str, params: Value) -> BoxFuture<'_, Vec<Value>>;
}

/// No other gateway uses the store.
#[derive(Debug)]
pub struct NoOthers;

impl Others for NoOthers {
    fn ask(&self, _: &'static str, _: Value) -> BoxFuture<'_, Vec<Value>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// The desk of a session: its holder hands messages over, runs the turns, also those of a sub-agent, and stores the answers.
pub fn desk_of(session: &str) -> RecordId {
    RecordId::new("desk", session)
}

/// An account of a channel: its holder listens there, and sends the parts that go out through it.
pub fn account_of(channel: &str, account: &str) -> RecordId {
    RecordId::new("account", format!("{channel}/{account}"))
}
