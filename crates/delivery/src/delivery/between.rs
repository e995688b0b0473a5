//! Messages from one session to another, and which sessions a session reaches.

use std::sync::Arc;

use myclaw_agent::SessionConfig;
use myclaw_config::SessionScope;
use myclaw_llm::outside::quote;
use myclaw_session::SessionKey;
use myclaw_store::Batch;

use super::Delivery;
use crate::DeliveryError;
use crate::ledger::now_ms;
use crate::message::MAX_TEXT_BYTES;
use crate::route::Route;
use crate::rows::{Incoming, MessageId, Occasion, hash};

/// A message from one session to another.
pub struct SessionMessage {
    /// The session that gets it.
    pub to: SessionKey,
    /// What it says.
    pub text: String,
    /// Names the call that sends it. The same call again finds the same message.
    pub call: String,
}

impl Delivery {
    /// Whether a session may list another one, read it, and write to it.
    pub async fn reaches(
        &self,
        caller: &SessionConfig,
        other: &SessionKey,
    ) -> Result<bool, DeliveryError> {
        if caller.session_key == *other {
            return Ok(true);
        }
        let config = self.config();
        let rules = &config.tools.sessions;
        let scope = if caller.is_main() { rules.main } else { rules.others };
        if scope == SessionScope::All
            || (scope == SessionScope::Agent
                && other.parts().agent_id == caller.session_key.parts().agent_id)
        {
            return Ok(true);
        }
        if scope == SessionScope::Own {
            return Ok(false);
        }
        let child = self.children.know(other.as_str()).await?;
        Ok(child.is_some_and(|child| child.works_for(caller.session_key.as_str())))
    }

    /// Sends a message to another session. When this returns, it is on disk.
    pub async fn send_between(
        self: &Arc<Self>,
        caller: &SessionConfig,
        message: SessionMessage,
    ) -> Result<MessageId, DeliveryError> {
        let (from, to) = (caller.session_key.as_str(), message.to.as_str());
        let unusable = |why: String| Err(DeliveryError::Unusable(why));
        if from == to {
            return unusable("this is your own session; say it in your answer".to_owned());
        }
        if message.text.trim().is_empty() || message.text.len() > MAX_TEXT_BYTES / 2 {
            return unusable(format!("the message has 1 to {} bytes", MAX_TEXT_BYTES / 2));
        }
        let desk = self.desks().get(from).cloned();
        let hops = desk.map_or(0, |desk| desk.hops()) + 1;
        let most = self.config().tools.sessions.max_hops;
        if hops > most {
            return unusable(format!(
                "{most} messages between sessions have led to this one already, which is the limit \
                 (tools.sessions.maxHops); answer without asking another session"
            ));
        }
        self.children.know(to).await?;
        let source = hash("b", &[from, &message.call]);
        let id = MessageId::of(&Route::internal("session"), &source);
        let senders = caller.principals().into_iter().flat_map(|one| one.senders).collect();
        let occasion = Occasion::Session { from: from.to_owned(), hops, senders };
        let text = format!(
            "[Message from the session {from}; the quoted lines are its words]\n{}",
            quote(&message.text, "> ")
        );
        let row = Incoming {
            occasion: Some(occasion),
            ..Incoming::new(Route::nowhere(), source, to.to_owned(), text, now_ms())
        };
        // Refused if this call has sent it before.
        self.begin(id.clone(), row, Batch::default()).await?;
        Ok(id)
    }
}
