//! The commands except for the chat. Each does one thing, prints and ends.

pub(crate) mod approvals;
pub(crate) mod auth;
pub(crate) mod channels;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cron;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod groups;
pub(crate) mod host;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod models;
pub(crate) mod nodes;
pub(crate) mod onboard;
pub(crate) mod pairing;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod runner;
pub(crate) mod sandbox;
pub(crate) mod sessions;
pub(crate) mod skills;
mod speech;
pub(crate) mod usage;
pub(crate) mod workflows;
