//! The `browser` tool: a real browser for the agent, one per session.
//!
//! The work is done by the program `agent-browser`, which drives a Chromium on this machine. This crate starts them in a
//! directory of their own, passes actions on as data (never through a shell, never as command-line arguments), and ends
//! everything with the session. All traffic of the browser goes through the proxy of `myclaw-web`, which checks every
//! address.
//!
//! | module | is |
//! |---|---|
//! | `tool` | the tool as the model sees it |
//! | `action` | turns the arguments of a call into commands of `agent-browser` |
//! | `reply` | turns the answers of `agent-browser` into text for the model |
//! | `shown` | what a call shows to the model |
//! | `browser` | one running browser: start, commands, end |
//! | `programs` | finding the programs, and how Chromium is started |
//! | `transfer` | files that go into the browser and come out of it |
//!
//! This crate knows neither sessions nor the config file: it takes values.
#![forbid(unsafe_code)]

mod action;
mod browser;
mod error;
mod programs;
mod reply;
mod shown;
mod tool;
mod transfer;

pub use browser::BrowserOptions;
pub use programs::{Programs, is_installed};
pub use tool::{BrowserSlot, BrowserTool, DECLARATION};
