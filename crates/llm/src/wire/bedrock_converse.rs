//! Amazon Bedrock's Converse API: one format for the models of many vendors.
//!
//! Requests go out without a key: who calls is said by a signature over the whole request, which is not this module's
//! business, or by a bearer token. Answers come as a binary event stream ([`crate::event_stream`]).

mod decode;
mod encode;
mod families;

pub use decode::Decoder;
pub use encode::encode;
pub(super) use families::thinking_control;
