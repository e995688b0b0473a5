//! What an agent remembers: facts with their origins, and the words of notes and sessions.
//!
//! | module | is |
//! |---|---|
//! | `fact` | one fact, and the line of Markdown that it is |
//! | `notebook` | the file with the facts of a workspace: changed under a lock, replaced as a whole |
//! | `search` | the words and meanings of all sessions of an agent |
//! | `mask` | removes words from files in their place |
//! | `outline` | the list of what is known, as the prompt holds it |
//!
//! Facts are plain Markdown, because their owner edits them. This crate knows nothing of models, channels and the config
//! file. All calls block.
#![forbid(unsafe_code)]

mod fact;
mod mask;
mod notebook;
mod outline;
mod search;

pub use fact::{Fact, FactId, FactOrigin, MOST_FACT_CHARS, Until, digest_of_fact};
pub use mask::{Mask, telling_words};
pub use notebook::{Added, FACTS_FILE, NewFact, Notebook, NotebookError};
pub use outline::{MOST_OUTLINE_BYTES, outline};
pub use search::{
    Encoder, Hidden, Passages, SearchFailure, SessionPassage, SessionSearch, Wanted, remove_index,
};
