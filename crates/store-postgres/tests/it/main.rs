//! The store against a real PostgreSQL, which `MYCLAW_POSTGRES` names.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

mod conformance;
mod faults;
mod proxy;
mod refusals;
mod server;
