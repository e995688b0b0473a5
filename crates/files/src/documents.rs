//! Small documents that are read and written as a whole, such as what was approved or how far something was read. Who uses
//! them knows their names, and not where they are.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::time::Duration;

use crate::Durability;

mod files;
mod memory;

pub use files::FileDocuments;
pub use memory::MemoryDocuments;

/// Most bytes of a name.
const MOST_NAME_BYTES: usize = 512;
/// Most bytes of a part of a name: what a file name may have, without an ending for a file in its place.
const MOST_PART_BYTES: usize = 240;

/// Texts by name. A name has one part or several that `/` separates. All calls block: callers decide on which thread they
/// run.
pub trait Documents: fmt::Debug + Send + Sync {
    /// A document; `None` if there is none of this name.
    ///
    /// # Errors
    /// It cannot be read, or its name cannot be used.
    fn read(&self, name: &str) -> io::Result<Option<Document>>;

    /// What is another text whenever the document is another one, without reading it where that can be; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be told, or its name cannot be used.
    fn version(&self, name: &str) -> io::Result<Option<String>> {
        Ok(self.read(name)?.map(|document| {
            let mut hasher = DefaultHasher::new();
            document.text.hash(&mut hasher);
            format!("{:x}", hasher.finish())
        }))
    }

    /// Gives a document the text that `change` makes of its present one, which is `None` if there is none. Nobody else changes
    /// it in between, but `change` may be called again, with what somebody else has stored meanwhile.
    ///
    /// # Errors
    /// It cannot be read or written, or would be larger than the store of these documents permits, which is a mebibyte or
    /// more. Nothing has changed then.
    fn change(
        &self,
        name: &str,
        durability: Durability,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> io::Result<()>;

    /// Notes that a document was used: its age begins again. Nothing happens if there is none.
    ///
    /// # Errors
    /// It cannot be noted.
    fn note_use(&self, name: &str) -> io::Result<()>;

    /// Removes a document. Returns whether it was there.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: &str) -> io::Result<bool>;

    /// The names that begin with `prefix` and have as many parts as it, with the ages of these documents, in no order.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self, prefix: &str) -> io::Result<Vec<(String, Duration)>>;

    /// Where a document is, for people.
    fn describe(&self, name: &str) -> String;
}

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its text. What is no UTF-8 became U+FFFD.
    pub text: String,
    /// How long ago it was written or used; nothing if the clock was set back.
    pub age: Duration,
}

/// No name leads elsewhere, and none is that of a file which is about to take the place of another.
///
/// # Errors
/// The name cannot be used.
pub fn checked_document_name(name: &str) -> io::Result<&str> {
    let is_usable = |part: &str| {
        !part.is_empty()
            && part.len() <= MOST_PART_BYTES
            && !part.starts_with('.')
            && !part.contains(char::is_control)
    };
    let why = "the parts of a document's name are not empty, are short, and begin with no '.'";
    let is_name = name.len() <= MOST_NAME_BYTES && name.split('/').all(is_usable);
    is_name.then_some(name).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, why))
}
