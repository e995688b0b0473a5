//! Amazon Bedrock's Converse API: one format for the models of many vendors.
//!
//! Requests are authenticated by a signature over the whole request, which this module does not make, or by a bearer
//! token. Answers come as a binary event stream ([`crate::event_stream`]).

mod decode;
mod encode;
mod families;

pub use decode::Decoder;
pub use encode::encode;
pub(super) use families::thinking_control;
