//! The messages between the gateway and a node, and their limits. Each frame is one JSON text.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the protocol.
pub const PROTOCOL: u64 = 1;
/// Most bytes of the files of an answer. In base 64 they fit into a frame with room for text.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// Largest arguments of a call, in bytes of JSON.
pub const MAX_ARGUMENTS: usize = 1024 * 1024;
/// Largest frame, in bytes: a file, and texts in which each byte is written as six.
pub const MAX_FRAME: usize = 8 * 1024 * 1024;
/// Most calls of one node at the same time.
pub const MOST_CALLS: usize = 16;
/// The code with which a connection ends when another one of the same node takes its place.
pub const REPLACED: u16 = 4_001;
/// Most parts of an answer.
const MAX_PARTS: usize = 16;
/// Most bytes of the texts of an answer; more than that is cut.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Most capabilities of a node, and the longest name of one.
const MAX_CAPABILITIES: usize = 64;
const MAX_WORD: usize = 64;

/// What the gateway sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToNode {
    /// The node is let in.
    Welcome {
        /// The version of the protocol.
        protocol: u64,
        /// That of the gateway.
        version: String,
    },
    /// Do something.
    Call(Call),
    /// End a call with everything it started. Nothing happens if it has ended.
    Cancel {
        /// Its number.
        id: u64,
    },
}

/// One call. Its number is not used twice in a connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// Its number.
    pub id: u64,
    /// What is to be done.
    pub capability: String,
    /// How.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// What a node sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FromNode {
    /// Comes first.
    Hello(Hello),
    /// The end of a call.
    Result {
        /// Its number.
        id: u64,
        /// What it gave.
        #[serde(default)]
        content: Vec<Content>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// What a node says about itself. It decides nothing: who the node is, its token says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u64,
    /// Its version.
    pub version: String,
    /// The operating system and the processor.
    pub platform: String,
    /// What it offers.
    pub capabilities: Vec<String>,
}

/// A part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Content {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Picture {
        /// Its bytes in standard base 64.
        data: String,
    },
    /// Another file.
    File {
        /// Its bytes in standard base 64.
        data: String,
    },
}

/// The end of a call: what it gave, or why it failed.
pub type Answer = Result<Vec<Content>, String>;

impl Hello {
    /// The same within the limits.
    pub fn bounded(mut self) -> Self {
        self.capabilities.truncate(MAX_CAPABILITIES);
        let words = [&mut self.version, &mut self.platform].into_iter();
        for word in words.chain(&mut self.capabilities) {
            *word = word.chars().filter(|char| !char.is_control()).take(MAX_WORD).collect();
        }
        self
    }
}

/// The answer of a node within the limits. It is external data: whatever is too large is cut or left out.
pub fn bounded(content: Vec<Content>, error: Option<String>) -> Answer {
    if let Some(error) = error {
        return Err(cut(error, &mut { MAX_TEXT_BYTES }));
    }
    if content.len() > MAX_PARTS {
        return Err(format!("its answer has more than {MAX_PARTS} parts"));
    }
    let (mut room, mut file_room) = (MAX_TEXT_BYTES, MAX_FILE_BYTES.div_ceil(3) * 4);
    let mut parts = Vec::new();
    for part in content {
        match part {
            Content::Text { text } => parts.push(Content::Text { text: cut(text, &mut room) }),
            Content::Picture { ref data } | Content::File { ref data } => {
                let Some(left) = file_room.checked_sub(data.len()) else {
                    let why = format!("its answer has files of more than {MAX_FILE_BYTES} bytes");
                    return Err(why);
                };
                file_room = left;
                parts.push(part);
            }
        }
    }
    Ok(parts)
}

fn cut(mut text: String, room: &mut usize) -> String {
    if text.len() > *room {
        text.truncate(text.floor_char_boundary(*room));
        text.push_str("\n[the rest was cut: the answer is too long]");
    }
    *room = room.saturating_sub(text.len());
    text
}
