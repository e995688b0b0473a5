//! The gateway: one process that is always on, takes messages from channels and programs, and answers each once.
//!
//! A message is in the store before its source gets an acknowledgement, and a reply is in the store before it is sent.
//! In between, the session's inbox and log say what has happened. `delivery` moves a message from one of these places to
//! the next; the same code runs after a restart. `server` is the first channel: HTTP and WebSocket for programs and web
//! chats. This crate does not know the command line, terminals or the steps of a turn.
#![forbid(unsafe_code)]

mod answered;
mod channels;
mod codes;
mod connect;
mod containers;
mod counters;
mod counting;
mod current;
mod delivery;
mod devices;
mod error;
mod failure_text;
mod front;
mod gateway;
mod hub;
mod ledger;
mod live;
mod message;
mod metrics;
mod named_files;
mod nodes;
mod offline;
mod outbox;
mod questions;
mod reload;
mod reloads;
mod route;
mod routing;
mod rows;
pub mod schedule;
mod server;
mod sharing;
mod subagents;
mod telemetry;
mod tls;
mod tools;
pub mod usage;

pub use connect::{ChannelSetup, channels_of};
pub use containers::MakeHost;
pub use devices::{DeviceChange, Scope, change_device, list_devices, new_device_code};
pub use error::GatewayError;
pub use gateway::{Control, Ended, Gateway, Running};
pub use myclaw_channels::Channel;
pub use offline::examine_store;
pub use reload::OnConfig;
pub use route::Route;
pub use routing::{PairingChange, change_pairing, list_pairings};
pub use rows::{Incoming, MessageId, MessageState, Occasion, Outgoing, PartId, PartState};
pub use schedule::describe_heartbeats;
pub use sharing::Sharing;
pub use tls::{CertificateReport, examine_certificate};

#[cfg(test)]
mod tests;
