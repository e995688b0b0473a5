//! The connection to one other gateway.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use myclaw_gateway_client::{ConnectError, GatewayAddress, GatewaySocket, OneTimeTokens, Say};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{Owner, Peer, Relay};
use crate::hub::PeerState;

/// Pause before a connection is tried again; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Failed attempts before the log says so. A gateway that ends is in the list for a moment.
const MOST_SILENT: u32 = 4;
/// Most orders that wait, and most that have no answer yet.
const MOST_ORDERS: usize = 4_096;

/// What the other gateway is asked for.
pub(super) enum Order {
    /// To send what happens in a session. The sender fires when its state is known.
    Watch(String, oneshot::Sender<()>),
    Unwatch(String),
    /// To do something, which is answered unless it cannot.
    Ask(&'static str, Value, oneshot::Sender<Value>),
}

/// The connection, as others see it. It ends when this is dropped.
pub(super) struct Link {
    pub(super) peer: Peer,
    orders: mpsc::Sender<Order>,
    is_open: Arc<AtomicBool>,
    _task: AbortOnDropHandle<()>,
}

/// What a response is for.
enum Pending {
    /// The state of a session. `true` if events of it were lost.
    State(String, bool, Option<oneshot::Sender<()>>),
    Answer(oneshot::Sender<Value>),
}

/// A frame of the other gateway.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: String,
    session: Option<String>,
    epoch: Option<u64>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    id: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// An open connection.
struct Session<'r> {
    relay: &'r Relay,
    source: Arc<str>,
    socket: GatewaySocket,
    pending: HashMap<String, Pending>,
    next: u64,
}

impl Link {
    pub(super) fn begin(relay: Owner, peer: Peer, say: Say) -> Self {
        let (orders, taken) = mpsc::channel(MOST_ORDERS);
        let is_open = Arc::new(AtomicBool::new(false));
        let serving = serve(relay, (peer.clone(), say), taken, Arc::clone(&is_open));
        let _task = AbortOnDropHandle::new(tokio::spawn(serving));
        Self { peer, orders, is_open, _task }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// False if the other gateway cannot be asked now.
    pub(super) fn give(&self, order: Order) -> bool {
        if !self.is_open() {
            return false;
        }
        let is_taken = self.orders.try_send(order).is_ok();
        if !is_taken {
            // What there was no room for is asked for over the next connection.
            self.is_open.store(false, Ordering::Release);
        }
        is_taken
    }
}

async fn serve(
    relay: Owner,
    (peer, say): (Peer, Say),
    mut orders: mpsc::Receiver<Order>,
    is_open: Arc<AtomicBool>,
) {
    let Peer { holder, address, certificates, key } = peer;
    let tokens = OneTimeTokens::new(key);
    let source: Arc<str> = holder.into();
    let (mut pause, mut failed) = (FIRST_PAUSE, 0);
    loop {
        let place = GatewayAddress::pinned(&address, certificates.clone(), &tokens.next());
        let connected = match place {
            Ok(place) => place.connect().await,
            Err(error) => Err(ConnectError::Refused(error.to_string())),
        };
        let Some(relay) = relay.upgrade() else { return };
        match connected {
            Ok(socket) => {
                (pause, failed) = (FIRST_PAUSE, 0);
                let (source, pending) = (Arc::clone(&source), HashMap::new());
                let mut session = Session {
                    relay: &relay,
                    source: Arc::clone(&source),
                    socket,
                    pending,
                    next: 0,
                };
                session.run(&mut orders, &is_open).await;
                is_open.store(false, Ordering::Release);
                relay.hub.cut_off(&source);
                tracing::debug!(gateway = %source, "the connection has ended");
            }
            Err(ConnectError::Unreachable(error) | ConnectError::Refused(error)) => {
                failed += 1;
                tracing::debug!(gateway = %source, %error, "not connected");
                if failed == MOST_SILENT {
                    say(&format!(
                        "the gateway {source} cannot be reached at {address}: {error}; clients here see its answers only when \
                         they are complete. Give it an address that this machine reaches (docs/operate/cluster.md)"
                    ));
                }
            }
        }
        drop(relay);
        while orders.try_recv().is_ok() {}
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

impl Session<'_> {
    /// Passes events and answers on until the connection ends.
    async fn run(&mut self, orders: &mut mpsc::Receiver<Order>, is_open: &AtomicBool) {
        is_open.store(true, Ordering::Release);
        // After it is open: a session that is wanted from here on comes as an order too.
        for session in self.relay.wanted() {
            // What happened there before was not sent.
            let state = Pending::State(session.clone(), true, None);
            if !self.ask("watch", json!({"session": session}), state).await {
                return;
            }
        }
        loop {
            let goes_on = tokio::select! {
                text = self.socket.receive_text() => match text {
                    Some(text) => self.heed(&text).await,
                    None => false,
                },
                order = orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => false,
                },
            };
            if !goes_on || !is_open.load(Ordering::Acquire) {
                return;
            }
        }
    }

    async fn obey(&mut self, order: Order) -> bool {
        match order {
            Order::Watch(session, is_known) => {
                let state = Pending::State(session.clone(), false, Some(is_known));
                self.ask("watch", json!({"session": session}), state).await
            }
            Order::Unwatch(session) => {
                let (ignored, _) = oneshot::channel();
                self.ask("unwatch", json!({"session": session}), Pending::Answer(ignored)).await
            }
            // Nobody waits for it any more.
            Order::Ask(.., answer) if answer.is_closed() => true,
            Order::Ask(method, params, answer) => {
                self.ask(method, params, Pending::Answer(answer)).await
            }
        }
    }

    /// False if the connection has ended.
    async fn ask(&mut self, method: &str, params: Value, pending: Pending) -> bool {
        if self.pending.len() >= MOST_ORDERS {
            return false;
        }
        let id = self.next.to_string();
        self.next += 1;
        let frame = json!({"type": "request", "id": id, "method": method, "params": params});
        self.pending.insert(id, pending);
        self.socket.send(&frame).await
    }

    /// False if the connection has ended.
    async fn heed(&mut self, text: &str) -> bool {
        let Ok(frame) = serde_json::from_str::<Frame<'_>>(text) else { return false };
        let Frame { kind, session, epoch, event, id, result } = frame;
        match (kind.as_str(), session, event, id) {
            ("event", Some(session), Some(event), _) => {
                // This process has the session now, so the other one is late.
                if epoch.is_none() || !self.relay.is_mine(&session) {
                    self.relay.hub.relay(&session, (&self.source, epoch), event);
                }
                true
            }
            ("gap", Some(session), ..) => {
                let state = Pending::State(session.clone(), true, None);
                self.ask("watch", json!({"session": session}), state).await
            }
            ("response", _, _, Some(id)) => {
                match (self.pending.remove(&id), result) {
                    (Some(Pending::State(session, is_anew, is_known)), state) => {
                        let state = state
                            .and_then(|state| serde_json::from_str::<PeerState>(state.get()).ok());
                        if let Some(state) = state
                            && !self.relay.is_mine(&session)
                        {
                            self.relay.hub.adopt(&session, &self.source, state);
                        }
                        if is_anew {
                            self.relay.hub.miss(&session);
                        }
                        if let Some(is_known) = is_known {
                            let _ = is_known.send(());
                        }
                    }
                    (Some(Pending::Answer(answer)), Some(result)) => {
                        let _ = answer.send(serde_json::from_str(result.get()).unwrap_or_default());
                    }
                    // Without an answer the sender is dropped, which says so.
                    _ => {}
                }
                true
            }
            _ => true,
        }
    }
}
