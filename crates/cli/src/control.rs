//! The agent in the hands of another program, over standard input and output.
//!
//! Two protocols share what is here: `rpc`, MyClaw's own, for programs that embed it, and `acp`, the Agent Client
//! Protocol of editors. A [`session::Session`] is a conversation that stays open between its turns; what a protocol adds is how
//! it is talked to and how its events are told.

mod acp;
mod content;
mod lines;
mod rpc;
mod session;

pub(crate) use acp::run as run_acp;
pub(crate) use rpc::run as run_rpc;
