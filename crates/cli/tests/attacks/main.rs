//! What a party that is not trusted tries, through the built binary: a model that obeys everything it reads must not be able
//! to read, change or start anything that the policy does not give that party.
//!
//! Each attack has a label and a name. What it would reach has the label in its name or content, so a failure names the
//! attacks that got through.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

mod approvals;
mod attack;
#[path = "../gateway/client.rs"]
mod client;
#[expect(dead_code, reason = "these tests need a part of it")]
#[path = "../gateway/fixture.rs"]
mod fixture;
mod front_ends;
mod leaks;
mod outsiders;
mod page;
mod reach;
mod restricted;
mod sandboxed;
mod scene;
mod siblings;
mod stranger;
mod texts;

use fixture::PATIENCE;
