//! What the events of a run mean for others.

use std::sync::Arc;

use myclaw_agent::SessionEvent;
use myclaw_engine::AgentRunEvent;
use myclaw_session::SessionKey;

use super::Delivery;
use crate::counters::Caller;

impl Delivery {
    /// Tells everybody who has to know of an event.
    pub(super) fn heed(self: &Arc<Self>, key: &SessionKey, event: &SessionEvent<'_>) {
        if let SessionEvent::Run(event) = event {
            self.watchers.counters.heed(event);
            self.watchers.front.publish_run(key.as_str(), event);
            self.watchers.live.heed(key.as_str(), &event.kind);
            // Nothing else concerns what a stream brings, which is most of all events.
            if matches!(event.kind, AgentRunEvent::LlmStream { .. }) {
                return;
            }
        }
        let desk = self.desks().get(key.as_str()).cloned();
        if let Some(desk) = desk {
            desk.heed(event);
            if matches!(event, SessionEvent::End(..)) {
                self.look_after_goal(&desk);
            }
            for (route, text) in desk.take_notices() {
                let this = Arc::clone(self);
                self.process.tasks.spawn(async move {
                    let said = format!("notice {}", uuid::Uuid::new_v4());
                    if let Err(error) = this.say(&route, &said, &text).await {
                        tracing::warn!(%error, "a chat was not told: {text}");
                    }
                });
            }
            if let SessionEvent::Run(event) = event {
                self.watchers.counters.trace(event, desk.session.config().agent.id.as_str());
            }
            if let SessionEvent::Run(event) = event
                && let AgentRunEvent::LlmUsage { provider, model, usage } = &event.kind
            {
                let caller = Caller {
                    model: format!("{provider}/{model}"),
                    agent: desk.session.config().agent.id.as_str().to_owned(),
                    channel: desk.running_channel(),
                    session: key.as_str().to_owned(),
                };
                self.watchers.counters.used(caller, usage);
            }
            let begins = matches!(
                event,
                SessionEvent::Run(event) if matches!(event.kind, AgentRunEvent::LlmStart { .. })
            );
            if begins {
                self.watchers.live.begin(key.as_str(), &desk.running_routes());
            }
        }
    }
}
