//! The blocks of a runner, from chunks that end anywhere.

use memchr::memmem;
use serde::Deserialize;

/// The line before each block.
const START: &[u8] = b"---NANOCLAW_OUTPUT_START---";
/// The line after each block.
const END: &[u8] = b"---NANOCLAW_OUTPUT_END---";

/// One answer of a runner. Fields that are not here are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block {
    /// Whether the query failed. Blocks of runners that leave it out are answers.
    #[serde(default)]
    pub(crate) status: Status,
    /// A text for the chat.
    #[serde(default)]
    pub(crate) result: Option<String>,
    /// The session to continue.
    #[serde(default)]
    pub(crate) new_session_id: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// The names of the input files that the query took; in the block that ends it. Some runners never name them.
    #[serde(default)]
    pub(crate) inputs: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Success,
    Error,
    /// The text so far of one that is not whole yet. It is shown and not kept.
    Partial,
}

/// What the output of a runner holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Block(Block),
    /// Something between two markers that is no block; it is left out.
    Unusable(String),
}

/// Finds blocks. It keeps one of them in memory at most.
#[derive(Debug)]
pub(crate) struct BlockParser {
    /// Within a block its content, else the end of the output as far as it may be the beginning of a marker.
    buffer: Vec<u8>,
    is_inside: bool,
    /// Bytes of the buffer in which no marker begins.
    searched: usize,
    longest: usize,
}

impl BlockParser {
    /// For blocks of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self { buffer: Vec::new(), is_inside: false, searched: 0, longest }
    }

    /// Takes the next chunk.
    pub(crate) fn feed(&mut self, chunk: &[u8], found: &mut dyn FnMut(Parsed)) {
        self.buffer.extend_from_slice(chunk);
        loop {
            let marker = if self.is_inside { END } else { START };
            let Some(at) = memmem::find(&self.buffer[self.searched..], marker) else { break };
            let at = self.searched + at;
            if self.is_inside && at > self.longest {
                found(self.too_long());
            } else if self.is_inside {
                found(block(&self.buffer[..at]));
            }
            self.buffer.drain(..at + marker.len());
            self.is_inside = !self.is_inside;
            self.searched = 0;
        }
        // The longer marker may have begun.
        let unsure = self.buffer.len().min(START.len().max(END.len()) - 1);
        self.searched = self.buffer.len() - unsure;
        if !self.is_inside {
            self.buffer.drain(..self.searched);
            self.searched = 0;
        } else if self.buffer.len() > self.longest {
            found(self.too_long());
            self.buffer.clear();
            self.is_inside = false;
            self.searched = 0;
        }
    }

    fn too_long(&self) -> Parsed {
        Parsed::Unusable(format!("a block is longer than {} bytes", self.longest))
    }

    /// Takes the end of the output.
    pub(crate) fn finish(&mut self, found: &mut dyn FnMut(Parsed)) {
        if std::mem::take(&mut self.is_inside) {
            found(Parsed::Unusable("the last block has no end".to_owned()));
        }
        self.buffer.clear();
    }
}

/// What is between two markers. If a marker of the beginning is among it, an earlier block had no end.
fn block(content: &[u8]) -> Parsed {
    let content = match memmem::rfind(content, START) {
        Some(at) => &content[at + START.len()..],
        None => content,
    };
    match serde_json::from_slice(content.trim_ascii()) {
        Ok(block) => Parsed::Block(block),
        Err(error) => Parsed::Unusable(format!("a block cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests;
