//! The links with which the owner signs a browser in.
//!
//! The secret stands behind the `#` of an address, which a browser sends to no server.

use std::time::Duration;

use myclaw_delivery::ledger::now_ms;

use crate::GatewayError;
use crate::one_time::OneTime;

/// How long a link can be used.
const LINK_TIME: Duration = Duration::from_secs(10 * 60);
const MOST_LINKS: usize = 20;

pub(super) struct Links(OneTime<()>);

impl Default for Links {
    fn default() -> Self {
        Self(OneTime::new(LINK_TIME, MOST_LINKS))
    }
}

impl Links {
    /// The secret of a new link, and when it ends in milliseconds since the Unix epoch.
    pub(super) fn make(&self) -> (String, u64) {
        let time = u64::try_from(LINK_TIME.as_millis()).unwrap_or(u64::MAX);
        (self.0.make(()), now_ms().saturating_add(time))
    }

    pub(super) fn take(&self, secret: &str) -> Result<(), GatewayError> {
        self.0.take(secret).ok_or_else(|| {
            let why = "the link was used or is too old; make a new one with `myclaw gateway link`";
            GatewayError::Forbidden(why.to_owned())
        })
    }
}
