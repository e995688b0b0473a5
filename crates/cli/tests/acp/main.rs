//! `myclaw acp`, driven through the real binary as an editor drives it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod client;
mod commands;
mod editor;
mod forms;
mod mcp;
mod plans;
mod prompts;
mod protocol;
mod schema;
mod sessions;
mod third_party;
mod tools;
