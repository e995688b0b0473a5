//! The browser tool with a real Chromium against pages on this machine.
//!
//! `MYCLAW_AGENT_BROWSER` names the program; `scripts/test` installs it and Chromium and sets the variable. Without it
//! these tests say that they were skipped.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

mod addresses;
mod ends;
mod pages;
mod support;
