//! The session of a chat, and the ones that its people begin anew.
//!
//! A chat has a first session, whose key follows from the chat. `/new` stores how many came after it, in the transaction
//! that answers the command. So messages that came before belong to the session before, and are answered in it.

use myclaw_agent::PERSON_CHANNEL;
use myclaw_channels::{Arrival, ChatKind};
use myclaw_config::{DEFAULT_ACCOUNT, DmScope};
use myclaw_session::{PeerKind, SessionKey, SessionKeyParts};
use myclaw_store::{Records, Version, Write};

use super::{Router, agent_of};
use crate::DeliveryError;

/// The newest sessions of chats, by the key of the first one.
const NEWEST: Records<u64> = Records::new("chat-session");

/// The session of a chat at this moment.
pub(super) struct ChatSession {
    /// The key of the chat's first session.
    first: SessionKey,
    /// Which of the chat's sessions it is, from 1.
    number: u64,
    version: Option<Version>,
    pub(super) key: SessionKey,
}

impl ChatSession {
    /// The write by which the chat begins the next session. It fails if somebody else has done so.
    pub(super) fn begin_next(&self) -> Result<Write, DeliveryError> {
        Ok(NEWEST.put(self.first.as_str(), self.version, &(self.number + 1), None)?)
    }

    /// The session that the chat had before, if it had one. It may still be at work.
    pub(super) fn before(&self) -> Option<SessionKey> {
        (self.number > 1).then(|| self.first.begun_anew(self.number - 1))
    }

    /// Whether it is the agent's main session, which is not the chat's alone.
    pub(super) fn is_main(&self) -> bool {
        let agent = self.first.parts().agent_id;
        self.first == SessionKey::for_cli(&agent, myclaw_agent::MAIN_SESSION)
    }
}

impl Router {
    /// The session that a message belongs to.
    pub(super) async fn session_of(&self, arrival: &Arrival) -> Result<ChatSession, DeliveryError> {
        let first = self.chat_session(arrival);
        let known = NEWEST.get(self.delivery.ledger().store(), first.as_str()).await?;
        let (version, number) = known.map_or((None, 1), |known| (Some(known.version), known.row));
        let key = first.begun_anew(number);
        Ok(ChatSession { first, number, version, key })
    }

    /// The first session of the chat of a message.
    pub(super) fn chat_session(&self, arrival: &Arrival) -> SessionKey {
        let config = self.current.config();
        let agent = agent_of(&config, arrival);
        let is_direct = arrival.chat.kind == ChatKind::Direct;
        let scope = if is_direct { config.channels.dm_scope } else { DmScope::PerAccountPeer };
        if scope == DmScope::Main {
            return SessionKey::for_cli(agent.as_str(), myclaw_agent::MAIN_SESSION);
        }
        let linked = |id: &str| config.channels.linked_person(&arrival.channel, id);
        // A thread has a session of its own, also one in a direct chat.
        if is_direct
            && arrival.chat.thread.is_none()
            && let Some(person) = linked(&arrival.sender.id)
                .or_else(|| arrival.sender.other_id.as_deref().and_then(linked))
        {
            return SessionKey::build(&SessionKeyParts {
                agent_id: agent.as_str().to_owned(),
                channel: PERSON_CHANNEL.to_owned(),
                account_id: DEFAULT_ACCOUNT.to_owned(),
                peer_kind: PeerKind::Direct,
                peer_id: person.to_owned(),
            });
        }
        let account_id = match scope {
            DmScope::PerPeer => DEFAULT_ACCOUNT.to_owned(),
            _ => arrival.account.clone(),
        };
        SessionKey::build(&SessionKeyParts {
            agent_id: agent.as_str().to_owned(),
            channel: arrival.channel.clone(),
            account_id,
            peer_kind: if is_direct { PeerKind::Direct } else { PeerKind::Group },
            peer_id: arrival.chat.target().to_text(),
        })
    }
}
