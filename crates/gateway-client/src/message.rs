//! How a node and its gateway begin, and the limits of what they send. Each frame is one JSON text. After `hello` and
//! `welcome` the frames are the messages of `myclaw-executor`: the gateway asks for calls as of a helper.

use myclaw_engine::ToolOutput;
use myclaw_llm::{ContentBlock, joined_text};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Version of the protocol. Version 1 had messages of its own for calls.
pub const PROTOCOL: u64 = 2;
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

/// The first frame of each side.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Opening {
    /// Of a node.
    Hello(Hello),
    /// Of the gateway: the node is let in.
    Welcome {
        /// The version of the protocol.
        protocol: u64,
        /// That of the gateway.
        version: String,
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

impl Hello {
    /// The same within the limits.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.capabilities.truncate(MAX_CAPABILITIES);
        let words = [&mut self.version, &mut self.platform].into_iter();
        for word in words.chain(&mut self.capabilities) {
            *word = word.chars().filter(|char| !char.is_control()).take(MAX_WORD).collect();
        }
        self
    }
}

/// A file that a command of a node has made. In the result of a call it is in the details.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "camelCase")]
pub enum NodeFile {
    /// A picture, in standard base 64.
    Picture(String),
    /// Another file, in standard base 64.
    File(String),
}

impl NodeFile {
    /// The result that holds it.
    pub fn output(&self) -> ToolOutput {
        let details = serde_json::to_value(self).ok();
        ToolOutput { content: Vec::new(), details, is_error: false }
    }
}

/// A part of an answer, as clients of the gateway get it.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NodeContent {
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

/// The result of a node within the limits. For the gateway it is external data: whatever is too large is cut or left out.
///
/// # Errors
/// The call failed, or its result is too large.
pub fn bounded(output: ToolOutput) -> Result<ToolOutput, String> {
    let mut room = MAX_TEXT_BYTES;
    if output.content.len() > MAX_PARTS {
        return Err(format!("its answer has more than {MAX_PARTS} parts"));
    }
    let file = output.details.and_then(|details| serde_json::from_value(details).ok());
    let mut file_bytes = file.as_ref().map_or(0, |file| match file {
        NodeFile::Picture(data) | NodeFile::File(data) => data.len(),
    });
    let mut content = Vec::new();
    for block in output.content {
        match block {
            ContentBlock::Text(text) => content.push(ContentBlock::text(cut(text.text, &mut room))),
            ContentBlock::Image(picture) => {
                file_bytes += picture.data.len();
                content.push(ContentBlock::Image(picture));
            }
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => {}
        }
    }
    if file_bytes > MAX_FILE_BYTES.div_ceil(3) * 4 {
        return Err(format!("its answer has files of more than {MAX_FILE_BYTES} bytes"));
    }
    let bounded = ToolOutput { content, details: file.map(|file| json!(file)), is_error: false };
    match output.is_error {
        true => Err(joined_text(&bounded.content, "\n")),
        false => Ok(bounded),
    }
}

/// Why a call failed, within the limits.
pub fn bounded_failure(why: String) -> String {
    cut(why, &mut { MAX_TEXT_BYTES })
}

/// The parts of a result.
pub fn parts_of(output: ToolOutput) -> Vec<NodeContent> {
    let file = output.details.and_then(|details| serde_json::from_value(details).ok());
    let blocks = output.content.into_iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(NodeContent::Text { text: text.text }),
        ContentBlock::Image(picture) => Some(NodeContent::Picture { data: picture.data }),
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) => None,
    });
    let file = file.map(|file| match file {
        NodeFile::Picture(data) => NodeContent::Picture { data },
        NodeFile::File(data) => NodeContent::File { data },
    });
    blocks.chain(file).collect()
}

fn cut(mut text: String, room: &mut usize) -> String {
    if text.len() > *room {
        text.truncate(text.floor_char_boundary(*room));
        text.push_str("\n[the rest was cut: the answer is too long]");
    }
    *room = room.saturating_sub(text.len());
    text
}
