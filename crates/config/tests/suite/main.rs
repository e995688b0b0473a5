//! The config as other crates and people use it: files on disk in, a config or messages out.
#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

mod agents;
mod diagnostics;
mod docs;
mod environment;
mod loading;
mod scaffold;
mod schema;
mod support;
mod writing;
