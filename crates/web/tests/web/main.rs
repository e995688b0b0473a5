//! The web tools against real servers on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

mod fetch;
mod hostile;
mod image;
mod pictures;
mod redirects;
mod search;
mod server;
mod support;
