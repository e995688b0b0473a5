//! The tokens by which gateways of one store know each other. Each opens one connection, so one that was read on the way, on a
//! link that something else protects, opens none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use myclaw_files::hex;
use parking_lot::Mutex;
use ring::hmac;

use crate::{GatewayToken, request_id};

/// Makes the tokens of one sender for one gateway.
pub struct OneTimeTokens {
    key: GatewayToken,
    sender: String,
    next: AtomicU64,
}

/// The tokens that a gateway has seen.
pub struct SeenTokens {
    key: GatewayToken,
    /// The newest number of each sender. Only who has the key is here.
    newest: Mutex<HashMap<String, u64>>,
}

impl OneTimeTokens {
    /// For the gateway with this key.
    pub fn new(key: GatewayToken) -> Self {
        Self { key, sender: request_id(), next: AtomicU64::new(1) }
    }

    /// The next token.
    pub fn next(&self) -> GatewayToken {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let said = format!("{}.{number}", self.sender);
        let tag = tag(&self.key, &said);
        GatewayToken::of(format!("{said}.{tag}"))
    }
}

impl SeenTokens {
    /// Of the gateway with this key.
    pub fn new(key: GatewayToken) -> Self {
        Self { key, newest: Mutex::default() }
    }

    /// Whether somebody who has the key has made the token, perhaps long ago.
    pub fn is_known(&self, token: &str) -> bool {
        self.read(token).is_some()
    }

    /// The same, once for each token, and only in their order.
    pub fn use_up(&self, token: &str) -> bool {
        let Some((sender, number)) = self.read(token) else { return false };
        let mut newest = self.newest.lock();
        let newest = newest.entry(sender.to_owned()).or_default();
        let is_new = number > *newest;
        *newest = number.max(*newest);
        is_new
    }

    /// The sender and the number.
    fn read<'t>(&self, token: &'t str) -> Option<(&'t str, u64)> {
        let (said, tag) = token.rsplit_once('.')?;
        let (sender, number) = said.rsplit_once('.')?;
        let is_right = GatewayToken::of(self::tag(&self.key, said)).is(tag);
        is_right.then_some((sender, number.parse().ok()?))
    }
}

fn tag(key: &GatewayToken, said: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    hex(hmac::sign(&key, said.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests;
