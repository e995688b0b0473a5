//! OpenAI's Chat Completions API, as OpenAI and the many hosts that follow it speak it.

mod chunk;
mod content;
mod decode;
mod details;
mod encode;
mod ending;
mod extent;
mod harmony;
mod think;
mod thinking;

pub use decode::Decoder;
pub use encode::encode;
