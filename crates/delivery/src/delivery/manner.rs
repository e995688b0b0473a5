//! How replies look in chats: the prefix of the agent, and the pauses of a person who types.

use myclaw_config::{AgentId, Persona};
use myclaw_session::SessionKey;

use super::Delivery;
use super::media::Saying;
use crate::route::Route;
use crate::rows::{Outgoing, PartId};

/// Stands for the name of the agent in brackets.
const AUTO: &str = "auto";

impl Delivery {
    /// How the agent of a session appears in chats.
    pub fn persona_of(&self, session: &str) -> Persona {
        let agent = SessionKey::parse_for_agent("main", session).map(|key| key.parts().agent_id);
        self.config().persona(&agent.map(|id| AgentId::new(&id)).unwrap_or_default())
    }

    /// Puts the prefix before a reply that goes to people.
    pub(super) fn put_prefix(&self, route: &Route, session: &str, saying: &mut Saying) {
        let config = self.config();
        let Some(prefix) = config.messages.response_prefix.as_deref().map(str::trim) else {
            return;
        };
        if saying.text.is_empty() || !route.is_chat() {
            return;
        }
        let name = || self.persona_of(session).identity.name.map(|name| format!("[{name}]"));
        let prefix = if prefix == AUTO { name() } else { Some(prefix.to_owned()) };
        if let Some(prefix) = prefix {
            saying.text = format!("{prefix} {}", saying.text);
        }
    }

    /// Lets the parts of a reply after the first one wait, as the config says.
    pub(super) fn put_pauses(
        &self,
        route: &Route,
        session: &str,
        parts: &mut [(PartId, Outgoing)],
    ) {
        if parts.len() < 2 || !route.is_chat() {
            return;
        }
        let Some((shortest, longest)) = self.persona_of(session).human_delay.pauses() else {
            return;
        };
        let [shortest, longest] =
            [shortest, longest].map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        for (id, part) in parts.iter_mut().skip(1) {
            // The digits of the id are as good as random.
            let digits =
                id.as_str().get(1..9).and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let span = longest.saturating_sub(shortest).saturating_add(1);
            part.pause_ms = Some(shortest.saturating_add(digits.unwrap_or(0) % span));
        }
    }
}
