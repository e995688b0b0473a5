//! The other gateways on the same store: what happens in their sessions, for clients of this one, and what only they can do.
//!
//! **What arrives** are the gateways that share the store ([`Peers`]), sessions that clients of this process watch
//! ([`Relay::join`]), and requests for the gateway that has a session ([`Others`]). **What leaves** are events in the hub,
//! as if the sessions were here.
//!
//! Each gateway has one WebSocket to each other one, and asks all of them for the sessions that its clients watch. The one
//! that works on a session sends what happens; when it dies, the next one does, and nobody has to be looked for. A session
//! that no client watches costs nothing, and neither does a gateway that is alone.
//!
//! **What may fail:** a gateway cannot be reached. Then its clients here see an answer when it is complete, as it is in the
//! store and the log, and the connection is tried again. Nothing that the log promises depends on this.

mod link;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::{join_all, select_all};
use myclaw_delivery::sharing::{Others, desk_of};
use myclaw_gateway_client::{GatewayToken, Say};
use myclaw_store::{BoxFuture, Claims};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::hub::Hub;
use link::{Link, Order};

/// Longest wait until the others have said what happens in a session that a client begins to watch.
const JOIN_TIME: Duration = Duration::from_secs(1);
/// Longest wait for what the others answer.
const ASK_TIME: Duration = Duration::from_secs(3);
/// The method that may take as long as calls of a model, and the longest wait for its answer.
pub(crate) const COMMAND: &str = "command";
const COMMAND_TIME: Duration = Duration::from_secs(10 * 60);
/// Most sessions that are asked for. Of more, clients see the answers when they are complete.
pub(crate) const MOST_WANTED: usize = 20_000;
/// How often sessions are looked for that no client watches any more, and how long one stays at least.
const SWEEP: Duration = Duration::from_secs(30);

/// A gateway on the same store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The name under which it claims things.
    pub holder: String,
    /// Where it listens.
    pub address: String,
    /// The hashes of the certificates that it may show; none without TLS.
    pub certificates: Vec<String>,
    /// What its tokens are made of, for the others.
    pub key: GatewayToken,
}

/// What the owner sees of the gateways that share the store, and can do with them.
pub trait ClusterView: Send + Sync {
    /// Which there are, what they hold, and what waits. An error is a sentence for the owner.
    fn state(&self) -> BoxFuture<'_, Result<Value, String>>;

    /// Asks the gateways with this name to stop. Gives the names under which they claim things.
    fn drain<'v>(&'v self, node: &'v str) -> BoxFuture<'v, Result<Vec<String>, String>>;
}

/// The gateways that share the store.
pub struct Peers {
    /// What the tokens are made of that this gateway wants to see of the others.
    pub key: GatewayToken,
    /// The others, as they come and go.
    pub others: watch::Receiver<Vec<Peer>>,
    /// All of them, for the owner.
    pub view: Arc<dyn ClusterView>,
}

/// The connections to the others.
pub(crate) struct Relay {
    hub: Arc<Hub>,
    claims: Arc<Claims>,
    links: Mutex<HashMap<String, Link>>,
    /// The sessions that clients watch, with the time at which one began.
    wanted: Mutex<HashMap<String, Instant>>,
}

impl Relay {
    pub(crate) fn new(hub: Arc<Hub>, claims: Arc<Claims>) -> Arc<Self> {
        Arc::new(Self { hub, claims, links: Mutex::default(), wanted: Mutex::default() })
    }

    /// Keeps a connection to each of the others, for ever.
    pub(crate) async fn follow(self: Arc<Self>, mut others: watch::Receiver<Vec<Peer>>, say: Say) {
        let mut sweep = tokio::time::interval(SWEEP);
        loop {
            let listed: Vec<Peer> = others.borrow_and_update().clone();
            self.connect(listed, &say);
            tokio::select! {
                changed = others.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                _ = sweep.tick() => self.sweep(),
            }
        }
    }

    fn connect(self: &Arc<Self>, listed: Vec<Peer>, say: &Say) {
        let mut links = self.links.lock();
        links.retain(|holder, link| {
            let is_replaced =
                listed.iter().any(|peer| peer.holder == *holder && *peer != link.peer);
            // One that gives no sign in the store for a while may still work.
            let stays = listed.contains(&link.peer) || link.is_open() && !is_replaced;
            if !stays {
                self.hub.cut_off(&Arc::from(holder.as_str()));
            }
            stays
        });
        for peer in listed {
            let new = || Link::begin(Arc::downgrade(self), peer.clone(), Arc::clone(say));
            links.entry(peer.holder.clone()).or_insert_with(new);
        }
    }

    /// Has the others send what happens in a session, before a client watches it: returns when they have said what goes on
    /// there.
    pub(crate) async fn join(&self, session: &str) {
        let asked: Vec<_> = {
            // Also before the others are known: they are asked as soon as they can be.
            if !self.claims.is_shared() {
                return;
            }
            let links = self.links.lock();
            let mut wanted = self.wanted.lock();
            if wanted.len() >= MOST_WANTED && !wanted.contains_key(session) {
                return;
            }
            if wanted.insert(session.to_owned(), Instant::now()).is_some() {
                return;
            }
            // Nobody was asked until now.
            self.hub.miss(session);
            let watch = |link: &Link| {
                let (is_known, known) = oneshot::channel();
                link.give(Order::Watch(session.to_owned(), is_known)).then_some(known)
            };
            links.values().filter_map(watch).collect()
        };
        drop(tokio::time::timeout(JOIN_TIME, join_all(asked)).await);
    }

    /// Ends the interest in sessions that no client watches any more.
    fn sweep(&self) {
        let is_over = |session: &String, since: &mut Instant| {
            since.elapsed() > SWEEP && !self.hub.has_clients(session)
        };
        // A client that comes at this moment asks anew afterwards.
        let links = self.links.lock();
        let mut wanted = self.wanted.lock();
        for (session, _) in wanted.extract_if(is_over) {
            for link in links.values() {
                link.give(Order::Unwatch(session.clone()));
            }
            if !self.is_mine(&session) {
                self.hub.lose_sight(&session);
            }
        }
    }

    fn wanted(&self) -> Vec<String> {
        self.wanted.lock().keys().cloned().collect()
    }

    /// Whether this process works on a session.
    fn is_mine(&self, session: &str) -> bool {
        self.claims.holds(&desk_of(session))
    }
}

impl Others for Relay {
    fn ask(&self, method: &'static str, params: Value) -> BoxFuture<'_, Vec<Value>> {
        let ask = |link: &Link| {
            let (sender, answer) = oneshot::channel();
            link.give(Order::Ask(method, params.clone(), sender)).then_some(answer)
        };
        let mut asked: Vec<_> = self.links.lock().values().filter_map(ask).collect();
        Box::pin(async move {
            if method == COMMAND {
                // One of them obeys it. The others need not answer.
                let obeyed = async {
                    while !asked.is_empty() {
                        let (answer, _, rest) = select_all(asked).await;
                        asked = rest;
                        if let Some(answer) = answer.ok().filter(|answer| !answer.is_null()) {
                            return vec![answer];
                        }
                    }
                    Vec::new()
                };
                return tokio::time::timeout(COMMAND_TIME, obeyed).await.unwrap_or_default();
            }
            let asked = asked.into_iter().map(|answer| tokio::time::timeout(ASK_TIME, answer));
            let answers = join_all(asked).await.into_iter().flatten().flatten();
            answers.filter(|answer| !answer.is_null()).collect()
        })
    }
}

type Owner = Weak<Relay>;
