//! What tests of several modules need: nobody who watches, and nothing that counts.

use std::sync::Arc;

use myclaw_agent::{FrontEndTools, SessionConfig};
use myclaw_channels::{
    Account, AfterInterruption, BoxFuture, Capabilities, Channel, DEFAULT_ACCOUNT, Part,
    SendFailure,
};
use myclaw_engine::{RunEvent, Tool};
use myclaw_llm::Usage;
use serde_json::Value;

use crate::counters::{Caller, Counters};
use crate::front::Front;
use crate::route::WEB;
use crate::rows::{Incoming, MessageId, MessageState, PartKind, PartState};

/// Nobody.
pub(crate) struct Nobody;

impl Front for Nobody {
    fn publish(&self, _: &str, _: &Value) {}

    fn publish_run(&self, _: &str, _: &RunEvent) {}

    fn accepted(&self, _: &MessageId, _: &Incoming) {}

    fn ended(&self, _: &MessageId, _: &Incoming, _: &MessageState) {}

    fn has_waiting(&self, _: &str) -> bool {
        false
    }

    fn is_running(&self, _: &str) -> bool {
        false
    }
}

impl Counters for Nobody {
    fn accepted(&self) {}

    fn ended(&self, _: &[u64], _: PartKind) {}

    fn delivered(&self, _: &str, _: &PartState) {}

    fn heed(&self, _: &RunEvent) {}

    fn trace(&self, _: &RunEvent, _: &str) {}

    fn used(&self, _: Caller, _: &Usage) {}
}

impl FrontEndTools for Nobody {
    fn tools(&self, _: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

/// The channel of clients that only read the store.
pub(crate) struct OwnChannel(Account);

impl OwnChannel {
    pub(crate) fn new() -> Self {
        Self(Account::new(WEB, DEFAULT_ACCOUNT))
    }
}

impl Channel for OwnChannel {
    fn account(&self) -> &Account {
        &self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: AfterInterruption::SendAgain,
            most_file_bytes: None,
            actions: &[],
        }
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        Box::pin(async move { Ok(part.id.clone()) })
    }
}
