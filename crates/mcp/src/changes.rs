//! What a server says that changes: its lists, and resources that were read.
//!
//! Servers without sessions say so on a request that names what is wanted (`subscriptions/listen`), others by their session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::connection::{Connection, meta};
use crate::exchange::{Exchange, Request};
use crate::failure::Failure;
use crate::watched::Watched;

/// How long a server may say what changes.
const LISTEN_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a server may take to begin or end with a resource. Without an answer the resource is read all the same.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(5);
/// The lists of a server, as its abilities and as the request to say what changes name them.
const LISTS: [(&str, &str); 3] = [
    ("tools", "toolsListChanged"),
    ("resources", "resourcesListChanged"),
    ("prompts", "promptsListChanged"),
];

/// What a server has said that has changed.
#[derive(Default)]
pub(crate) struct Changes {
    of_tools: AtomicBool,
    /// Of the list of resources or prompts.
    of_names: AtomicBool,
    /// How many requests to say what changes were acknowledged.
    acknowledged: watch::Sender<usize>,
    /// Notes resources that change.
    watched: OnceLock<Arc<Watched>>,
}

impl Changes {
    /// Whether the server has said since the last question that its list of tools is another one.
    pub(crate) fn take_of_tools(&self) -> bool {
        self.of_tools.swap(false, Ordering::Relaxed)
    }

    /// Whether it has said so of its resources or prompts.
    pub(crate) fn take_of_names(&self) -> bool {
        self.of_names.swap(false, Ordering::Relaxed)
    }

    /// Takes a message of the server that has no answer.
    pub(crate) fn take(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.of_tools.store(true, Ordering::Relaxed),
            "notifications/resources/list_changed" | "notifications/prompts/list_changed" => {
                self.of_names.store(true, Ordering::Relaxed);
            }
            "notifications/resources/updated" => {
                if let (Some(uri), Some(watched)) = (params["uri"].as_str(), self.watched.get()) {
                    watched.note(uri);
                }
            }
            "notifications/subscriptions/acknowledged" => {
                self.acknowledged.send_modify(|count| *count += 1);
            }
            _ => {}
        }
    }
}

/// What a server can say, and what it was asked to say.
pub(crate) struct Subscriptions {
    /// Lists of which it says when they change.
    lists: Vec<&'static str>,
    /// Whether it says when a resource changes.
    of_resources: bool,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    addresses: Vec<String>,
    /// The request by which a server without sessions says what changes.
    listening: Option<AbortOnDropHandle<()>>,
}

impl Subscriptions {
    /// What a server can say, by its abilities. One without sessions is asked for its lists at once.
    pub(crate) fn new(abilities: &Value, stateless: Option<&Arc<Exchange>>) -> Self {
        let tells = LISTS.iter().filter(|(name, _)| abilities[*name]["listChanged"] == true);
        let lists: Vec<&str> = tells.map(|(_, wanted)| *wanted).collect();
        let exchange = stateless.filter(|_| !lists.is_empty());
        let listening = exchange.map(|exchange| listen(exchange, &lists, &[]));
        let asked = Mutex::new(Asked { addresses: Vec::new(), listening });
        Self { lists, of_resources: abilities["resources"]["subscribe"] == true, asked }
    }
}

impl Connection {
    /// Has the server say when one of the resources in `watched` changes, and no other.
    pub(crate) async fn follow(&self, watched: &Arc<Watched>) {
        let Subscriptions { lists, of_resources, asked } = &self.subscriptions;
        if !of_resources {
            return;
        }
        let mut asked = asked.lock().await;
        let addresses = watched.addresses();
        if addresses == asked.addresses {
            return;
        }
        let exchange = self.exchange();
        exchange.changes.watched.get_or_init(|| Arc::clone(watched));
        if self.revision.is_stateless() {
            let mut acknowledged = exchange.changes.acknowledged.subscribe();
            // The previous request ends when this one has begun.
            let mut listening = listen(exchange, lists, &addresses);
            tokio::select! {
                _ = acknowledged.changed() => {}
                // It refuses.
                _ = &mut listening => {}
                () = sleep(SUBSCRIBE_LIMIT) => {}
            }
            asked.listening = Some(listening);
        } else {
            let (old, new) = (&asked.addresses, &addresses);
            let over = old.iter().filter(|uri| !new.contains(uri)).map(|uri| ("un", uri));
            let begun = new.iter().filter(|uri| !old.contains(uri)).map(|uri| ("", uri));
            for (prefix, uri) in over.chain(begun) {
                let method = format!("resources/{prefix}subscribe");
                let params = Map::from_iter([("uri".to_owned(), json!(uri))]);
                said(exchange.ask(Request::new(&method, params, SUBSCRIBE_LIMIT)).await);
            }
        }
        asked.addresses = addresses;
    }
}

/// Asks a server without sessions to say what changes. If this ends, the list of tools is still asked for from time to time.
fn listen(exchange: &Arc<Exchange>, lists: &[&str], addresses: &[String]) -> AbortOnDropHandle<()> {
    let mut wanted: Map<String, Value> =
        lists.iter().map(|list| ((*list).to_owned(), json!(true))).collect();
    if !addresses.is_empty() {
        wanted.insert("resourceSubscriptions".to_owned(), json!(addresses));
    }
    let params = Map::from_iter([
        ("notifications".to_owned(), Value::Object(wanted)),
        ("_meta".to_owned(), meta(false)),
    ]);
    let exchange = Arc::clone(exchange);
    AbortOnDropHandle::new(tokio::spawn(async move {
        said(exchange.ask(Request::new("subscriptions/listen", params, LISTEN_LIMIT)).await);
    }))
}

/// A server that does not say what changes is used as well.
fn said(answer: Result<Value, Failure>) {
    if let Err(failure) = answer {
        tracing::debug!(%failure, "an MCP server does not say what changes");
    }
}
