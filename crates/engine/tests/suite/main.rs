//! Runs of the engine against a scripted model server.
//!
//! One program: each would link the whole engine again.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod common;

mod abort;
mod approval;
mod bounds;
mod clock_jumps;
mod compaction;
mod cut_stream;
mod embedded;
mod empty;
mod events;
mod exactly_once;
mod failover;
mod fitting;
mod hook_context;
mod hooks;
mod interrupt;
mod json_sessions;
mod keys;
mod known_keys;
mod ladder;
mod lanes;
mod recovery;
mod runs;
mod steering;
mod switching;
mod thinking;
mod turn;
