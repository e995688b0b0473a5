//! What the file tools (read, write, edit, apply_patch) share: recognising text files, decoding it without
//! losing a byte, finding blocks of lines, and replacing files atomically.
//!
//! The rule of this module: **a byte that no edit names never changes.** A [`Document`] therefore keeps
//! the file's own bytes next to the decoded text, and edits are splices of those bytes; nothing is ever re-encoded as a
//! whole. This module knows nothing of tools, arguments and patches.

mod atomic;
mod decode;
mod diff;
mod document;
mod indentation;
mod kept;
mod kind;
mod lines;
mod load;
mod matching;
mod nearest;

pub(crate) use atomic::{
    Attributes, Executable, StagedFile, remove_abandoned, replace_file, stage_file, sync_directory,
};
pub(crate) use decode::decode_lossless;
pub(crate) use diff::{diff_deadline, differences, kept_diff, unified_diff};
pub(crate) use document::{Document, Splice, UTF8_MARK};
pub(crate) use indentation::Shift;
pub(crate) use kept::kept;
pub use kind::shown_size;
pub(crate) use kind::{BYTES_TO_RECOGNISE, FileKind, ImageKind, recognise, refuse_binary};
pub(crate) use lines::{LineEnding, Lines};
pub(crate) use load::{
    Loaded, load, open_regular, read_whole, require_regular_file, require_text, require_writable,
};
pub(crate) use matching::{Block, BlockFinder, MAX_BLOCKS, Tolerance};
pub(crate) use nearest::{describe_nearest, show_lines};
