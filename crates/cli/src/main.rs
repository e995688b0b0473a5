//! The `myclaw` binary: arguments, terminal, exit codes. It knows nothing of wire formats: a turn is one call into the
//! engine, and what it prints are the engine's events.
#![forbid(unsafe_code)]

mod args;
mod exit;
mod interrupt;
mod panic;
mod terminal;

fn main() {}
