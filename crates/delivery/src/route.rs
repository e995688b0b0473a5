//! Where answers go.

use myclaw_channels::{EMAIL, SOCKET, WEBHOOK};
use serde::{Deserialize, Serialize};

/// The channel of the gateway's own clients.
pub const WEB: &str = "web";
/// The account of clients with the gateway's own token.
pub const OWNERS_ACCOUNT: &str = "default";

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
    pub(crate) fn is_chat(&self) -> bool {
        ![EMAIL, WEBHOOK, SOCKET, WEB].contains(&&*self.channel)
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
