//! What the events of a run mean for others.

use myclaw_agent::sessions::SessionKey;
use myclaw_agent::{AgentRunEvent, SessionEvent};

use super::Delivery;

impl Delivery {
    /// Tells everybody who has to know of an event.
    pub(super) fn heed(&self, key: &SessionKey, event: &SessionEvent<'_>) {
        let desk = self.desks().get(key.as_str()).cloned();
        if let SessionEvent::Run(event) = event {
            self.metrics.heed(&event.kind);
            self.hub.publish_run(key.as_str(), event);
            self.live.heed(key.as_str(), &event.kind);
        }
        if let Some(desk) = desk {
            desk.heed(event);
            if let SessionEvent::Run(event) = event
                && let AgentRunEvent::LlmEnd { message } = &event.kind
            {
                let config = desk.session.config();
                let agent = config.agent.id.as_str();
                self.usage.note(message, agent, desk.running_channel(), key.as_str());
            }
            let begins = matches!(
                event,
                SessionEvent::Run(event) if matches!(event.kind, AgentRunEvent::LlmStart { .. })
            );
            if begins {
                self.live.begin(key.as_str(), &desk.running_routes());
            }
        }
    }
}
