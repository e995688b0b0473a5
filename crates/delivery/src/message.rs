//! A message on its way into the store.

use myclaw_engine::ProgramRequest;
use myclaw_llm::ImageContent;

use crate::route::Route;
use crate::rows::{Incoming, MessageId};

/// Longest text of a message, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Longest id that a source may give a message, in bytes.
pub(crate) const MAX_SOURCE_ID_BYTES: usize = 256;

/// A message from a channel.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Where the answer goes.
    pub route: Route,
    /// Its id, which its source chose.
    pub source_id: String,
    /// Name or key of the session.
    pub session: String,
    /// What it says.
    pub text: String,
    /// Checked pictures.
    pub images: Vec<ImageContent>,
    /// What a program asks for besides an answer.
    pub asked: Option<Box<ProgramRequest>>,
}

/// A file that came with a message.
#[derive(Debug, Clone)]
pub struct MessageFile {
    /// Without anything that could be a path.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// An acknowledged message.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// Its id here.
    pub id: MessageId,
    /// What is stored.
    pub row: Incoming,
}
