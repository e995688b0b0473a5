//! The settings as other crates and people meet them: files on disk in, settings or messages out.
#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

mod agents;
mod diagnostics;
mod docs;
mod environment;
mod loading;
mod scaffold;
mod schema;
mod support;
