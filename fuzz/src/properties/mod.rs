//! What must hold for any bytes that a server sends.
//!
//! This module is also a part of `myclaw-llm`'s tests, which replay the inputs that once broke a property.

mod answer;
mod framing;
mod pieces;
mod story;

pub use answer::answer;
pub use framing::{event_stream, server_sent_events};
