//! The other side of the gateway: how a program finds the one that runs for a state directory, asks it, connects to it
//! here or elsewhere, and serves it as a node.
//!
//! | module | is |
//! |---|---|
//! | `place` | where a gateway keeps its files and listens |
//! | `running`, `token` | what the gateway that runs has written down for programs of its user |
//! | `one_time` | the tokens of gateways that share a store |
//! | `client` | one request and its answer |
//! | `connection`, `remote`, `tls` | a WebSocket for front-ends, and the encrypted way to it |
//! | `link` | such a WebSocket that watches a session, comes back by itself, and sends each message once |
//! | `take_up` | an answer for readers from whom nothing can be taken back |
//! | `tools` | the tools of the gateway, in its own sessions and in those of other programs |
//! | `node`, `message` | this machine as a node of a gateway, and the frames that both sides read |
//!
//! The gateway uses this crate for what both sides have to agree on. This crate does not know how a gateway works.
#![forbid(unsafe_code)]

mod client;
mod connection;
mod error;
mod link;
pub mod message;
mod node;
mod one_time;
mod place;
mod remote;
mod running;
mod take_up;
pub mod tls;
mod token;
mod tools;

pub use client::{AskedGateway, ask, gateway_runs, state_of};
pub use connection::{GatewayAddress, GatewaySocket, request_id};
pub use error::{ClientError, ConnectError};
pub use link::{GatewayLink, LinkNews};
pub use node::{NodeOptions, serve_node};
pub use one_time::{OneTimeTokens, SeenTokens};
pub use place::{STORE_FILE, gateway_address, gateway_directory, near, store_path};
pub use remote::PlainLink;
pub use running::RunningFile;
pub use take_up::{Lacking, TakeUp};
pub use token::{GatewayToken, token_hash};
pub use tools::{
    GatewayCalls, GatewayTool, GatewayToolKind, RemoteCall, RemoteTools, aborted,
    note_without_reminders, tool_output,
};

use std::sync::Arc;

/// Tells the owner something, in one line.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;
