//! The links with which the owner signs a browser in. Their digests live in memory: a restart ends them all.
//!
//! The secret stands behind the `#` of an address, which a browser sends to no server.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use myclaw_delivery::ledger::now_ms;
use myclaw_gateway_client::token_hash;
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use crate::GatewayError;

/// How long a link can be used.
const LINK_TIME: Duration = Duration::from_secs(10 * 60);
/// Most links at a time. A further one takes the place of the oldest.
const MOST_LINKS: usize = 20;

#[derive(Default)]
pub(super) struct Links(Mutex<VecDeque<Open>>);

struct Open {
    /// SHA-256 of the secret, in hexadecimal digits.
    digest: String,
    since: Instant,
}

impl Links {
    /// The secret of a new link, and when it ends in milliseconds since the Unix epoch.
    pub(super) fn make(&self) -> (String, u64) {
        let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
        let secret = format!("{first}{second}");
        let mut links = self.0.lock();
        links.retain(|open| open.since.elapsed() < LINK_TIME);
        if links.len() >= MOST_LINKS {
            links.pop_front();
        }
        links.push_back(Open { digest: token_hash(&secret), since: Instant::now() });
        let time = u64::try_from(LINK_TIME.as_millis()).unwrap_or(u64::MAX);
        (secret, now_ms().saturating_add(time))
    }

    /// Uses a link up. With 244 random bits nobody guesses one, so attempts are not counted here.
    pub(super) fn take(&self, secret: &str) -> Result<(), GatewayError> {
        let digest = token_hash(secret);
        let mut links = self.0.lock();
        links.retain(|open| open.since.elapsed() < LINK_TIME);
        let is_it = |open: &Open| bool::from(open.digest.as_bytes().ct_eq(digest.as_bytes()));
        let found = links.iter().position(is_it).and_then(|at| links.remove(at));
        found.map(drop).ok_or_else(|| {
            let why = "the link was used or is too old; make a new one with `myclaw gateway link`";
            GatewayError::Forbidden(why.to_owned())
        })
    }
}
