//! Nodes: other machines that are connected and run what the gateway asks for, under their own rules.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use myclaw_delivery::ledger::now_ms;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use myclaw_executor::{RemoteCallError, RemoteCalls};
use myclaw_gateway_client::message::{
    Hello, MAX_ARGUMENTS, MOST_CALLS, NodeContent, bounded, bounded_failure, parts_of,
};

use crate::GatewayError;
use crate::devices::{Device, Devices, Scope};

/// Longest time for a call: that of the longest command, and some more for the way.
const MOST_TIME: Duration = Duration::from_secs(31 * 60);

/// A connected node.
pub(crate) struct Online {
    pub(crate) hello: Hello,
    /// Milliseconds since the Unix epoch.
    since: u64,
    calls: RemoteCalls,
    /// Fires when another connection takes its place.
    replaced: CancellationToken,
}

/// All nodes.
pub(crate) struct Nodes {
    pub(crate) devices: Arc<Devices>,
    online: Mutex<HashMap<String, Arc<Online>>>,
}

/// A connection in the list of nodes.
pub(crate) struct Place {
    nodes: Arc<Nodes>,
    id: String,
    online: Arc<Online>,
}

impl Place {
    /// What the node is asked for on this connection.
    pub(crate) fn calls(&self) -> &RemoteCalls {
        &self.online.calls
    }

    /// Fires when another connection of the same node takes its place.
    pub(crate) fn replaced(&self) -> CancellationToken {
        self.online.replaced.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut online = self.nodes.online.lock();
        if online.get(&self.id).is_some_and(|now| Arc::ptr_eq(now, &self.online)) {
            online.remove(&self.id);
        }
        drop(online);
        // No new calls from here on, and those that wait fail.
        self.online.calls.end();
    }
}

impl Nodes {
    pub(crate) fn new(devices: Arc<Devices>) -> Arc<Self> {
        Arc::new(Self { devices, online: Mutex::default() })
    }

    /// Takes a connection into the list. One of the same node that is there already ends.
    pub(crate) fn join(
        self: &Arc<Self>,
        id: &str,
        hello: Hello,
    ) -> (Place, mpsc::UnboundedReceiver<String>) {
        let (calls, requests) = RemoteCalls::new(MOST_CALLS);
        let online =
            Arc::new(Online { hello, since: now_ms(), calls, replaced: CancellationToken::new() });
        if let Some(earlier) = self.online.lock().insert(id.to_owned(), Arc::clone(&online)) {
            earlier.replaced.cancel();
        }
        (Place { nodes: Arc::clone(self), id: id.to_owned(), online }, requests)
    }

    /// Has a node do something. The call ends there too when this future is dropped.
    ///
    /// # Errors
    /// There is no such node, it is not connected or disconnects, it cannot do that, or it answers with a failure.
    pub(crate) async fn call(
        &self,
        name: &str,
        capability: &str,
        arguments: Map<String, Value>,
    ) -> Result<Vec<NodeContent>, GatewayError> {
        let node = self.named(name)?;
        let online = self.online.lock().get(&node.id).cloned();
        let label = node.label();
        let unusable = |why: String| GatewayError::Unusable(format!("the node {label} {why}"));
        let Some(online) = online else {
            return Err(unusable("is not connected; start `myclaw node` on it".to_owned()));
        };
        if !online.hello.capabilities.iter().any(|known| known == capability) {
            let offered = online.hello.capabilities.join(", ");
            return Err(unusable(format!("does not offer `{capability}`; it offers {offered}")));
        }
        let size = serde_json::to_vec(&arguments).map_or(usize::MAX, |text| text.len());
        if size > MAX_ARGUMENTS {
            return Err(unusable(format!(
                "gets at most {MAX_ARGUMENTS} bytes of arguments; send less"
            )));
        }
        let done = online.calls.call(capability, arguments, MOST_TIME).await;
        let failed = |why| unusable(format!("refused or failed: {}", bounded_failure(why)));
        let output = done.map_err(|error| match error {
            RemoteCallError::Full => {
                unusable(format!("runs {MOST_CALLS} calls already; wait for one of them"))
            }
            RemoteCallError::Gone => unusable(
                "disconnected before it answered; what the call did until then is not known"
                    .to_owned(),
            ),
            RemoteCallError::Late => {
                unusable("gave no answer in time; the call was cancelled".to_owned())
            }
            RemoteCallError::Failed(why) => failed(why),
        })?;
        bounded(output).map(parts_of).map_err(failed)
    }

    /// The paired node with this id or name.
    pub(crate) fn named(&self, name: &str) -> Result<Device, GatewayError> {
        let mut found: Vec<Device> =
            self.paired().into_iter().filter(|node| node.id == name || node.name == name).collect();
        match (found.pop(), found.is_empty()) {
            (Some(node), true) => Ok(node),
            (Some(_), false) => Err(GatewayError::Unusable(format!(
                "several nodes are called `{name}`; give the id that `myclaw nodes list` shows"
            ))),
            (None, _) => Err(GatewayError::NotFound(format!(
                "there is no node `{name}`; `myclaw nodes list` shows all"
            ))),
        }
    }

    /// The nodes, and whether they are connected.
    pub(crate) fn listed(&self) -> Value {
        json!({"nodes": self.paired().iter().map(|node| self.described(node)).collect::<Vec<_>>()})
    }

    /// A node with everything that is known about it.
    pub(crate) fn described(&self, node: &Device) -> Value {
        let mut shown = node.shown();
        let online = self.online.lock().get(&node.id).cloned();
        shown["connected"] = json!(online.is_some());
        if let Some(online) = online {
            shown["connectedSince"] = json!(online.since);
            shown["platform"] = json!(online.hello.platform);
            shown["version"] = json!(online.hello.version);
            shown["capabilities"] = json!(online.hello.capabilities);
        }
        shown
    }

    fn paired(&self) -> Vec<Device> {
        let mut devices = self.devices.list();
        devices.retain(|device| device.scope == Scope::Node);
        devices
    }
}
