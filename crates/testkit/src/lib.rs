//! The surroundings of tests, under their control: a scripted model server that records whole requests and breaks
//! connections on demand, temporary homes, child processes with deadlines, and a terminal.
//!
//! A development dependency only. It knows the public wire formats and none of the crates that it helps to test: the
//! checks in [`validate_pairing`] follow the providers' rules, not our own code, so they can find errors in it.
//!
//! ```
//! use myclaw_testkit::{ModelServer, Reply, Script};
//! # use serde_json::json;
//! let server = ModelServer::spawn_blocking_thread(Script::from([
//!     Reply::anthropic().text("Let me look.").tool_call("call_1", "ls", json!({"path": "."})),
//!     Reply::anthropic().text("Two files."),
//! ]));
//! // … run the program against server.url() …
//! assert!(server.requests().is_empty());
//! ```
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test that uses it, at once and loudly"
)]

mod delivery;
mod discord;
mod gate;
mod history;
mod home;
mod http;
mod language;
mod marks;
mod mcp;
mod obedient;
mod object_storage;
mod pairing;
mod postgres;
mod process;
mod random;
mod record;
mod reply;
mod script;
mod server;
mod signal;
mod skip;
mod slack;
mod step;
mod telegram;
mod terminal;
mod vendor;
mod whatsapp;
mod wire;

pub use discord::{DiscordFault, DiscordMessage, DiscordServer};
pub use gate::Gate;
pub use home::TempHome;
pub use language::LanguageServer;
pub use marks::SPEAKER_MARKS;
pub use mcp::{MCP_SERVER, McpHttpServer, mcp_server};
pub use obedient::{instruction, label_of};
pub use object_storage::{AzureStorage, ObjectStorage};
pub use pairing::{Violation, validate_body, validate_pairing};
pub use postgres::PostgresServer;
pub use process::{
    ChildOutput, RunningChild, Signal, is_running, peak_memory, send_signal, wait_until_gone,
};
pub use random::{Random, number_from};
pub use record::{AnswerEnd, RecordedRequest};
pub use reply::{Reply, Stop, WireFormat};
pub use script::Script;
pub use server::ModelServer;
pub use signal::{SignalFault, SignalServer};
pub use skip::{skip_here, skip_without};
pub use slack::{SlackFault, SlackMessage, SlackServer};
pub use step::Step;
pub use telegram::{BotMessage, TelegramFault, TelegramServer};
pub use terminal::Terminal;
pub use whatsapp::{WhatsAppFault, WhatsAppMessage, WhatsAppServer};
