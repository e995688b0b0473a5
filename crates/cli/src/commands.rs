//! The commands that need no turn: each reads or changes something and prints.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod models;
pub(crate) mod sessions;
