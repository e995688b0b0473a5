//! A message on its way into the store.

use myclaw_engine::ProgramRequest;
use myclaw_llm::ImageContent;

use crate::route::Route;
use crate::rows::{Incoming, MessageId};

/// Longest text of a message, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Longest id that a source may give a message, in bytes.
pub(crate) const MAX_SOURCE_ID_BYTES: usize = 256;

/// A message from a channel.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    pub(crate) route: Route,
    pub(crate) source_id: String,
    /// Name or key of the session.
    pub(crate) session: String,
    pub(crate) text: String,
    /// Checked pictures.
    pub(crate) images: Vec<ImageContent>,
    /// What a program asks for besides an answer.
    pub(crate) asked: Option<Box<ProgramRequest>>,
}

/// A file that came with a message.
#[derive(Debug, Clone)]
pub(crate) struct MessageFile {
    /// Without anything that could be a path.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// An acknowledged message.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) id: MessageId,
    pub(crate) row: Incoming,
}
