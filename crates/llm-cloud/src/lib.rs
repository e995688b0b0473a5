//! Cloud credentials for model calls: AWS's access keys and signatures, Google Cloud's tokens, and GitHub Copilot's
//! sessions; logins with a code that a person types. Each of the first three implements `myclaw_llm`'s [`Access`], so no other crate needs to know them.
#![forbid(unsafe_code)]

mod aws;
pub mod copilot;
pub mod device;
mod vertex;

use myclaw_llm::access::Access;

pub use aws::Aws;
pub use copilot::Copilot;
pub use vertex::Vertex;

/// An [`Access`] for each cloud, for `HttpProvider::with_access`. They look for credentials in the variables of the
/// provider's options, and only when a call needs them.
pub fn access() -> Vec<Box<dyn Access>> {
    vec![Box::new(Copilot::default()), Box::new(Aws::default()), Box::new(Vertex::default())]
}
