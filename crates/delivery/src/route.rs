//! Where answers go.

use myclaw_channels::{EMAIL, SOCKET, WEBHOOK};
use myclaw_session::SessionKey;
use serde::{Deserialize, Serialize};

/// The channel of the gateway's own clients.
pub const WEB: &str = "web";
/// The account of clients with the gateway's own token.
pub const OWNERS_ACCOUNT: &str = "default";

/// The channel of sessions that other programs run.
const SESSION: &str = "session";
/// The channel of routes on which nothing is sent.
const NOWHERE: &str = "none";

/// Where the answer to a message goes. It is fixed when the message arrives.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    /// The channel, such as `web`.
    pub channel: String,
    /// The account of the channel.
    pub account: String,
    /// The chat within the account.
    pub chat: String,
}

impl Route {
    /// Whether people chat there. The texts of the other channels are letters, payloads, and what the program's own
    /// clients show.
    pub fn is_chat(&self) -> bool {
        ![EMAIL, WEBHOOK, SOCKET, WEB, SESSION, NOWHERE].contains(&&*self.channel)
    }

    /// The session that another program runs, such as a chat in a terminal.
    pub fn session(key: &SessionKey) -> Self {
        let [channel, account, chat] = [SESSION, OWNERS_ACCOUNT, key.as_str()].map(str::to_owned);
        Self { channel, account, chat }
    }

    /// The session, which a client of the gateway shows and the gateway runs.
    pub fn shown_session(key: &SessionKey) -> Self {
        Self { account: WEB.to_owned(), ..Self::session(key) }
    }

    /// Whether it is a session that the gateway runs.
    pub(crate) fn is_shown_session(&self) -> bool {
        self.channel == SESSION && self.account == WEB
    }

    /// The session, if it is a route into one.
    pub fn as_session(&self) -> Option<SessionKey> {
        (self.channel == SESSION).then(|| SessionKey::parse(&self.chat).ok()).flatten()
    }

    /// A route on which nothing is sent: what is said stays in the session.
    pub fn nowhere() -> Self {
        Self::internal(NOWHERE)
    }

    /// A route of the gateway itself.
    pub fn internal(channel: &str) -> Self {
        let [channel, account, chat] = [channel, "", ""].map(str::to_owned);
        Self { channel, account, chat }
    }

    /// Whether something can be sent on it.
    pub fn leads_somewhere(&self) -> bool {
        self.channel != NOWHERE
    }
}
