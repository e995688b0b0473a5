//! The tools that sessions of the gateway have beside those of the config.

use std::sync::{Arc, Weak};

use myclaw_agent::{FrontEndTools, SessionConfig, Tool};

use crate::delivery::Delivery;
use crate::delivery::media::NOTE;
use crate::schedule::CronTool;

/// Makes the tools of a session.
pub(crate) struct GatewayTools {
    delivery: Weak<Delivery>,
}

impl GatewayTools {
    pub(crate) fn new(delivery: Weak<Delivery>) -> Self {
        Self { delivery }
    }
}

impl FrontEndTools for GatewayTools {
    /// They are the owner's: only the main session of an agent has them, whatever the policy allows elsewhere. A session
    /// with somebody else, or one that the clock began, could otherwise read other sessions and plan work without end.
    fn tools(&self, session: &SessionConfig) -> Vec<Arc<dyn Tool>> {
        if !session.is_main() {
            return Vec::new();
        }
        let agent = session.agent.id.to_string();
        vec![Arc::new(CronTool::new(self.delivery.clone(), agent))]
    }

    fn note(&self, session: &SessionConfig) -> Option<String> {
        let delivery = self.delivery.upgrade()?;
        delivery.sends_files(session).then(|| NOTE.to_owned())
    }
}
