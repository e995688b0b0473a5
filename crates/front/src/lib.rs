//! What the commands, the chat and the protocols share: exit codes and failures, signals, standard output and the
//! terminal, the config of a session, stored sessions and models by the names that a user gives.
//!
//! It knows no command and no protocol.
#![forbid(unsafe_code)]

pub mod approval;
pub mod args;
pub mod attachments;
pub mod coming_call;
pub mod exit;
pub mod gateway;
pub mod home;
pub mod interrupt;
pub mod logging;
pub mod memory;
pub mod mode;
pub mod model;
pub mod models;
pub mod pager;
pub mod panic;
pub mod picker;
pub mod print;
pub mod report;
pub mod resume;
pub mod runtime;
pub mod servers;
pub mod sessions;
pub mod shown;
pub mod start;
pub mod terminal;
pub mod text_report;
pub mod time;
pub mod worktree;

pub use myclaw_agent::{custom_commands, requests};
