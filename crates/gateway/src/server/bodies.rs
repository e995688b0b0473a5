//! Bodies of requests whose sender nobody has checked yet, as those of vendors are, whose signature covers the body.
//!
//! They are counted while they arrive, all together and for each client, so that strangers cannot fill the memory.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

/// Most bytes of such bodies at once.
const MOST: usize = 32 * 1024 * 1024;
/// Most of one client: two of the largest requests. This machine and its proxies stand for many clients.
const MOST_OF_ONE_CLIENT: usize = 12 * 1024 * 1024;

/// The bodies that are held at this moment, by client.
#[derive(Default)]
pub(super) struct Bodies(Mutex<State>);

#[derive(Default)]
struct State {
    total: usize,
    of_clients: HashMap<IpAddr, usize>,
}

/// The bytes of one body, which are given back with it.
pub(super) struct Held {
    bodies: Arc<Bodies>,
    client: IpAddr,
    bytes: usize,
}

impl Bodies {
    /// The room of a body of which nothing has arrived.
    pub(super) fn begin(self: &Arc<Self>, client: IpAddr) -> Held {
        Held { bodies: Arc::clone(self), client, bytes: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement that can fail.
        self.0.lock()
    }
}

impl Held {
    /// Takes room for more bytes. False if there is none.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let mut state = self.bodies.lock();
        let of_client = state.of_clients.get(&self.client).copied().unwrap_or(0) + bytes;
        let most = if self.client.is_loopback() { MOST } else { MOST_OF_ONE_CLIENT };
        if state.total + bytes > MOST || of_client > most {
            return false;
        }
        state.total += bytes;
        state.of_clients.insert(self.client, of_client);
        self.bytes += bytes;
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.bodies.lock();
        state.total -= self.bytes;
        if let Some(of_client) = state.of_clients.get_mut(&self.client) {
            *of_client -= self.bytes;
            if *of_client == 0 {
                state.of_clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests;
