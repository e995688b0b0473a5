//! The gateway: one process that is always on, takes messages from channels and programs, and answers each once.
//!
//! The crate `delivery` moves a message to its answer. This one makes it of its parts (`gateway`), shows what happens to
//! clients (`hub`, behind the trait `Front`), counts (`counting`, behind `Counters`), and is the first channel: `server` is
//! HTTP and WebSocket for programs and web chats. This crate does not know the command line, terminals or the steps of a
//! turn.
#![forbid(unsafe_code)]

mod channel_draft;
mod connect;
mod containers;
mod counting;
mod device_link;
mod devices;
mod error;
mod gateway;
mod hub;
mod metrics;
mod nodes;
mod offline;
mod one_time;
mod peers;
mod planned;
mod push;
mod qr;
mod reload;
mod reloads;
mod server;
mod telemetry;
mod tls;
mod tools;
pub mod usage;

pub use channel_draft::{ChannelDraft, ChannelDraftError, DraftKind, Probed, channel_removal};
pub use connect::channels_of;
pub use containers::MakeHost;
pub use device_link::DeviceLink;
pub use devices::{DeviceChange, Scope, change_device, list_devices, new_device_code, new_link};
pub use error::GatewayError;
pub use gateway::{Control, Ended, Gateway, Running};
pub use offline::{change_pairing, cron, examine_store, list_pairings};
pub use peers::{ClusterView, Peer, Peers};
pub use reload::OnConfig;
pub use tls::{CertificateReport, examine_certificate};
