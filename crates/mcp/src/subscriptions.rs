//! Asking a server to say what changes.
//!
//! Servers without sessions say so on a request that names what is wanted (`subscriptions/listen`), others by their session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

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

/// What a server can say, and what it was asked to say.
pub(crate) struct Subscriptions {
    /// Lists of which it says when they change.
    lists: Vec<&'static str>,
    /// Whether it says when a resource changes.
    of_resources: bool,
    /// What each request says of the client; `None` in a session.
    meta: Option<Value>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    addresses: Vec<String>,
    /// The request by which a server without sessions says what changes.
    listening: Option<AbortOnDropHandle<()>>,
}

impl Subscriptions {
    /// What a server can say, by its abilities. One without sessions, whose requests have `meta`, is asked for its lists at once.
    pub(crate) fn new(abilities: &Value, meta: Option<Value>, exchange: &Arc<Exchange>) -> Self {
        let tells = LISTS.iter().filter(|(name, _)| abilities[*name]["listChanged"] == true);
        let lists = tells.map(|(_, wanted)| *wanted).collect();
        let of_resources = abilities["resources"]["subscribe"] == true;
        let mut made = Self { lists, of_resources, meta, asked: Mutex::default() };
        if !made.lists.is_empty() {
            made.asked.get_mut().listening = made.listen(exchange, &[]);
        }
        made
    }

    /// Has the server say when one of the resources in `watched` changes, and no other.
    pub(crate) async fn follow(&self, exchange: &Arc<Exchange>, watched: &Arc<Watched>) {
        if !self.of_resources {
            return;
        }
        let mut asked = self.asked.lock().await;
        let addresses = watched.addresses();
        if addresses == asked.addresses {
            return;
        }
        exchange.changes.report_to(watched);
        let mut acknowledged = exchange.changes.acknowledgements();
        if let Some(mut listening) = self.listen(exchange, &addresses) {
            tokio::select! {
                _ = acknowledged.changed() => {}
                // It refuses.
                _ = &mut listening => {}
                () = sleep(SUBSCRIBE_LIMIT) => {}
            }
            // The previous request ends when this one has begun.
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

    /// Asks a server without sessions to say what changes. If this ends, the list of tools is still asked for from time to time.
    fn listen(
        &self,
        exchange: &Arc<Exchange>,
        addresses: &[String],
    ) -> Option<AbortOnDropHandle<()>> {
        let meta = self.meta.clone()?;
        let mut wanted: Map<String, Value> =
            self.lists.iter().map(|list| ((*list).to_owned(), json!(true))).collect();
        if !addresses.is_empty() {
            wanted.insert("resourceSubscriptions".to_owned(), json!(addresses));
        }
        let params = Map::from_iter([
            ("notifications".to_owned(), Value::Object(wanted)),
            ("_meta".to_owned(), meta),
        ]);
        let exchange = Arc::clone(exchange);
        Some(AbortOnDropHandle::new(tokio::spawn(async move {
            said(exchange.ask(Request::new("subscriptions/listen", params, LISTEN_LIMIT)).await);
        })))
    }
}

/// A server that does not say what changes is used as well.
fn said(answer: Result<Value, Failure>) {
    if let Err(failure) = answer {
        tracing::debug!(%failure, "an MCP server does not say what changes");
    }
}
