//! A client of the Model Context Protocol: programs that offer tools to agents.
//!
//! What a server says about itself is from outside. Its tools are offered as they were [approved](Approved), not as it lists
//! them at the moment, so a run needs no server before the first call, and a server cannot change what a model reads. Nothing
//! that a server does reaches beyond the call that it does it in: every line, queue, wait and result has a bound.
//!
//! This crate knows no sessions, terminals or config files: its caller makes a [`ServerSpec`] and keeps the [`Servers`] of
//! the process.
//!
//! | module | is |
//! |---|---|
//! | `spec` | what a server is, as data |
//! | `definition` | a tool as a server describes it, its digest, and the name that a model knows it by |
//! | `approved` | what the owner has approved of a server, on disk |
//! | `index` | the names of all approved tools in one document, for runs |
//! | `lines` | lines of a stream, of bounded length |
//! | `process` | a running program: its lines, its errors, its end |
//! | `http` | a server behind an address: requests, streams, sessions |
//! | `oauth` | a login at a server behind an address |
//! | `exchange` | requests that wait for their answers |
//! | `connection` | the handshake of each revision, the list of tools, calls |
//! | `elicitation` | what a server asks the user in the middle of a call |
//! | `changes` | what a server has said that changes: its lists, and resources that were read |
//! | `subscriptions` | asking a server to say what changes |
//! | `offers` | resources and prompts, which people ask for by name |
//! | `watched` | resources that sessions have read, and which of them have changed since |
//! | `server` | one server of a process: started when it is needed, ended when it is idle, with pauses after failures |
//! | `outcome` | the result of a call for a model |
//! | `serve` | the other side: MyClaw as a server |
//! | `tool` | a tool of a server behind the engine's `Tool`, and the tool that finds others |
//! | `script` | code mode: scripts that call tools |
//! | `log` | what a server prints to its errors, in memory and in a file |
#![forbid(unsafe_code)]

mod approved;
mod changes;
mod connection;
mod definition;
mod elicitation;
mod exchange;
mod failure;
mod finder;
mod http;
mod index;
mod lines;
mod log;
pub mod oauth;
mod offers;
mod outcome;
mod process;
mod script;
pub mod serve;
mod server;
mod spec;
mod subscriptions;
mod tool;
mod watched;

pub use approved::{Approved, ApprovedStore, Difference};
pub use connection::{Listing, Revision};
pub use definition::{FINDER, ToolDefinition};
pub use elicitation::{Asked, Asker, Begun, Elicitation, Field, Reply, Wants};
pub use failure::Failure;
pub use finder::offered_tools;
pub use index::Outline;
pub use log::{remove_server_log, server_log};
pub use offers::OfferedNames;
pub use script::{SCRIPT, ScriptAnswer, call_from_script};
pub use server::{Server, Servers};
pub use spec::{
    Address, Login, NetworkSetUp, PrepareProgram, PrepareScript, Program, ScriptPlace, ServerPlace,
    ServerSpec,
};
