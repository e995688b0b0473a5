//! The channel `web`: HTTP and WebSocket for programs and web chats.
//!
//! Before anything else of a request is read, [`guard`] checks its host, its origin and its token; [`front`] knows which
//! are the gateway's own.

mod accept;
mod agents;
mod answer;
mod attachments;
mod bodies;
mod branches;
mod channel_changes;
mod channels;
mod cluster;
mod commands;
pub(crate) mod config;
mod devices;
mod files;
pub(crate) mod front;
pub(crate) mod guard;
mod logs;
mod mcp;
mod memory;
mod node;
mod openai;
mod page;
mod prompts;
mod push;
pub(crate) mod request;
mod rest;
mod running;
mod schedule;
mod scope;
mod security;
mod servers;
mod sessions;
mod setup;
mod socket;
mod speech;
mod strangers;
mod tools;
mod views;
mod workspace;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get, post};
use myclaw_channels::{
    Account, AfterInterruption, BoxFuture, Capabilities, Channel, DEFAULT_ACCOUNT, Part,
    SendFailure,
};
use myclaw_delivery::delivery::Delivery;
use myclaw_delivery::route::{OWNERS_ACCOUNT, Route, WEB};
use myclaw_delivery::routing::Router as Routing;
use myclaw_gateway_client::GatewayToken;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::front::{CurrentFront, Front};
use crate::counting::Counting;
use crate::devices::{Login, Scope};
use crate::hub::Hub;
use crate::nodes::Nodes;
use crate::peers::{ClusterView, Relay};
use crate::push::Push;
use crate::reloads::Reloads;

/// Largest body of a request, and largest frame of a WebSocket, in bytes: room for a message with pictures.
const MAX_BODY: usize = 6 * 1024 * 1024;
/// Largest file that clients can download, in bytes.
const MOST_FILE_BYTES: u64 = 100 * 1024 * 1024;
/// Most WebSockets: one for each of the thousand turns that can run at the same time, and as many that only watch. An
/// idle one takes about 20 kB.
const MOST_SOCKETS: usize = 2_048;

/// What all requests share.
pub(crate) struct Server {
    pub(crate) delivery: Arc<Delivery>,
    /// The events that clients see.
    hub: Arc<Hub>,
    counting: Arc<Counting>,
    pub(crate) nodes: Arc<Nodes>,
    /// The other gateways on the store.
    pub(crate) relay: Arc<Relay>,
    /// All gateways on the store, if others can share it.
    cluster: Option<Arc<dyn ClusterView>>,
    /// Between the other channels and the sessions.
    routing: Arc<Routing>,
    /// Notifies browsers that are closed.
    pub(crate) push: Arc<Push>,
    tokens: guard::Tokens,
    front: CurrentFront,
    /// The requests of MCP clients that are being answered.
    mcp: mcp::Exchange,
    /// How the newest reload of the config ended.
    reloads: Arc<Reloads>,
    address: SocketAddr,
    failures: guard::Failures,
    sockets: Arc<Semaphore>,
    /// The connections without a login.
    strangers: Arc<strangers::Strangers>,
    /// The documents that wait for a frame of the page.
    views: views::Views,
    /// The bodies of requests that are not checked yet.
    bodies: Arc<bodies::Bodies>,
    begun: Instant,
    /// True once the sessions are prepared for searches.
    is_search_prepared: AtomicBool,
    /// Fires when the gateway stops.
    stop: CancellationToken,
}

impl Server {
    pub(crate) fn new(
        (delivery, routing): (Arc<Delivery>, Arc<Routing>),
        (hub, push): (Arc<Hub>, Arc<Push>),
        (counting, nodes): (Arc<Counting>, Arc<Nodes>),
        (relay, cluster): (Arc<Relay>, Option<Arc<dyn ClusterView>>),
        (tokens, front): (guard::Tokens, Front),
        reloads: Arc<Reloads>,
        address: SocketAddr,
    ) -> Self {
        Self {
            mcp: mcp::Exchange::default(),
            views: views::Views::default(),
            routing,
            tokens,
            front: CurrentFront::new(Arc::new(front)),
            reloads,
            address,
            failures: guard::Failures::default(),
            sockets: Arc::new(Semaphore::new(MOST_SOCKETS)),
            strangers: Arc::default(),
            bodies: Arc::default(),
            begun: Instant::now(),
            is_search_prepared: AtomicBool::new(false),
            delivery,
            hub,
            push,
            counting,
            nodes,
            relay,
            cluster,
            stop: CancellationToken::new(),
        }
    }

    /// Replaces the token of clients. Those that are connected with another one have to log in again.
    pub(crate) fn use_token(&self, token: GatewayToken) {
        self.tokens.replace(token);
    }

    /// How clients reach the gateway at this moment.
    pub(crate) fn front(&self) -> Arc<Front> {
        Arc::clone(&self.front.read())
    }

    /// Replaces it for connections and requests that begin from now on.
    pub(crate) fn use_front(&self, front: Front) {
        *self.front.write() = Arc::new(front);
    }

    /// Answers requests, for ever.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: tokio::net::TcpListener,
        stop: CancellationToken,
    ) {
        let page =
            page::paths().fold(Router::new(), |router, path| router.route(path, get(page::file)));
        let router = page
            .route("/health", get(rest::health))
            .route("/ready", get(rest::ready))
            .route("/ws", get(socket::upgrade))
            .route("/metrics", get(rest::metrics))
            .route("/mcp", post(mcp::post))
            .route("/api/status", get(rest::status))
            .route("/api/messages", post(rest::send))
            .route("/api/messages/{id}", get(rest::message))
            .route("/api/files/{part}", get(files::download))
            .route("/api/files/{part}/view", post(views::make))
            .route("/api/workspace/view", post(views::make_of_workspace))
            .route("/view/{secret}", get(views::show))
            .route("/api/sessions/{session}/history", get(rest::history))
            .route("/api/sessions/{session}/abort", post(rest::abort))
            .route("/api/sessions", get(rest::sessions))
            .route("/api/sessions/{session}", delete(rest::delete))
            .route("/api/sessions/{session}/fork", post(rest::fork))
            .route("/api/sessions/{session}/branches", get(rest::branches))
            .route("/api/sessions/{session}/title", post(rest::title))
            .route("/api/sessions/{session}/export", get(sessions::export))
            .route("/api/approvals", get(rest::approvals))
            .route("/api/approvals/{id}", post(rest::approve))
            .route("/v1/models", get(openai::models))
            .route("/v1/chat/completions", post(openai::chat_completions))
            .merge(channels::routes())
            .merge(channel_changes::routes())
            .merge(agents::routes())
            .merge(config::routes())
            .merge(setup::routes())
            .merge(devices::routes())
            .merge(node::routes())
            .merge(logs::routes())
            .merge(security::routes())
            .merge(cluster::routes())
            .merge(servers::routes())
            .merge(memory::routes())
            .merge(prompts::routes())
            .merge(workspace::routes())
            .merge(tools::routes())
            .merge(running::routes())
            .merge(push::routes())
            .merge(speech::routes())
            .merge(schedule::routes(Arc::clone(&self.delivery)))
            .merge(crate::usage::routes(Arc::clone(&self.counting)))
            .route("/v1/responses", post(openai::create))
            .route("/v1/responses/{id}", get(openai::retrieve).delete(openai::remove))
            .route("/v1/responses/{id}/cancel", post(openai::cancel))
            .route("/v1/responses/{id}/input_items", get(openai::input_items))
            .fallback(rest::not_found)
            // The guard reads the body, within a limit of its own.
            .layer(DefaultBodyLimit::disable())
            .layer(middleware::from_fn_with_state(Arc::clone(&self), guard::guard))
            .with_state(Arc::clone(&self));
        accept::accept(self, listener, router, stop).await;
    }

    /// Takes no more messages, and waits for running turns.
    pub(crate) async fn close(&self, patience: Duration) {
        self.stop.cancel();
        self.delivery.close(tokio::time::sleep(patience)).await;
        self.counting.close().await;
    }
}

/// Where the answers to what `login` sends go. A device that is not the owner is an account of its own, so it cannot name a
/// message of somebody else.
fn route(login: &Login) -> Route {
    let account = match (&login.device, login.scope) {
        (None, _) | (_, Scope::Owner) => OWNERS_ACCOUNT,
        (Some((id, _)), _) => id,
    };
    let [channel, account, chat] = [WEB, account, "owner"].map(str::to_owned);
    Route { channel, account, chat }
}

/// Delivers parts to the watchers of a session. A part stays in the store, where a client that was not connected finds
/// it, so publishing it again does no harm.
pub(crate) struct WebChannel {
    account: Account,
    hub: Arc<Hub>,
}

impl WebChannel {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { account: Account::new(WEB, DEFAULT_ACCOUNT), hub }
    }
}

impl Channel for WebChannel {
    fn account(&self) -> &Account {
        &self.account
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            after_interruption: AfterInterruption::SendAgain,
            most_file_bytes: Some(MOST_FILE_BYTES),
            actions: &[],
        }
    }

    fn send<'a>(&'a self, part: &'a Part) -> BoxFuture<'a, Result<String, SendFailure>> {
        let event = json!({
            "type": "reply",
            "part": part.id,
            "kind": part.kind.as_str(),
            "messageIds": part.answers,
            "text": part.text,
            "file": part.file.as_ref().map(|file| files::link(&part.id, &file.name)),
        });
        self.hub.reply(&part.session, &part.id, &event);
        Box::pin(async move { Ok(part.id.clone()) })
    }
}
