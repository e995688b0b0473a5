//! From a message to its answer, whoever brings the one and takes the other.
//!
//! A message is in the store before its source gets an acknowledgement, and a reply is in the store before it is sent.
//! In between, the session's inbox and log say what has happened. [`delivery`] moves a message from one of these places to
//! the next; the same code runs after a restart. [`routing`] decides what becomes of the messages of channels, [`schedule`]
//! what is due, and [`outbox`] sends what is stored. Who watches and who counts are the traits [`front::Front`] and
//! [`counters::Counters`].
//! This crate knows no HTTP, no clients, no devices, no hosts of containers, and no database.
#![forbid(unsafe_code)]

pub mod answered;
pub mod channels;
pub mod choice;
pub mod codes;
pub mod counters;
pub mod current;
pub mod delivery;
mod error;
pub mod failure_text;
pub mod front;
pub mod ledger;
pub mod live;
pub mod message;
pub mod named_files;
pub mod outbox;
pub mod questions;
pub mod route;
pub mod routing;
pub mod rows;
pub mod schedule;
pub mod sharing;
pub mod subagents;

#[cfg(test)]
mod tests;

pub use error::DeliveryError;
