//! The stores against a real PostgreSQL, which `MYCLAW_POSTGRES` names. The suites of sessions are those of the crate
//! `session`.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

#[path = "../../../session/tests/it/catalog.rs"]
mod catalog;
mod conformance;
mod deletion;
mod faults;
mod kept_messages;
mod migrations;
mod order;
mod pooler;
mod proxy;
mod refusals;
mod segments;
mod server;
#[path = "../../../session/tests/it/conformance.rs"]
mod session_conformance;
mod session_faults;
mod settings;
mod side_files;
mod subjects;
mod taken;
#[path = "../../../session/tests/it/values.rs"]
mod values;
