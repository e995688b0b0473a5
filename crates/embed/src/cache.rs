//! Vectors of named texts, kept in a file or elsewhere, and made again only for texts that changed.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use myclaw_files::{
    Durability, NewFile, create_private_directory, parent_of, read_regular, remove_if_there,
};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::model::Vector;

/// Most bytes of a file: that of 10,000 texts has some 45 MB.
const MAX_BYTES: u64 = 128 * 1024 * 1024;
/// After this many new vectors the file is written, so that a killed process loses only the last seconds of work.
const SAVED_AFTER: usize = 256;
/// How far the length of a vector may be from 1. The numbers in the file are exact.
const MAX_DEVIATION: f32 = 1e-3;

/// A text, and the name under which its vector is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedText<'a> {
    /// Unique among the texts.
    pub name: &'a str,
    /// What is embedded.
    pub text: &'a str,
}

/// The vectors of texts in their order, and whether the file could be written.
pub type Vectors = (Vec<Arc<[f32]>>, io::Result<()>);

/// Where the vectors of one set of texts are kept. They can be made again, so nothing is lost with them. All calls block.
pub trait KeepVectors: fmt::Debug + Send + Sync {
    /// Where that is, for people. No other place gives the same text.
    fn describe(&self) -> String;

    /// What was written last; `None` if there is nothing that can be read.
    fn read(&self) -> Option<Vec<u8>>;

    /// Replaces everything by what `write` writes.
    ///
    /// # Errors
    /// It cannot be written. Nothing has changed then.
    fn replace(
        &self,
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Removes everything.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self) -> io::Result<()>;
}

/// Vectors in a file. Its directory is made when they are written.
#[derive(Debug)]
pub struct VectorFile(pub PathBuf);

/// Vectors that end with the process.
#[derive(Debug)]
pub struct MemoryVectors {
    name: String,
    content: Mutex<Option<Vec<u8>>>,
}

/// The vectors of one set of texts, by one model.
///
/// What is kept is `{"model": …, "entries": [{"name": …, "hash": …, "embedding": […]}]}`. One that is damaged, too large or of
/// another model counts as empty, and the next one takes its place.
#[derive(Debug)]
pub struct VectorCache {
    keeper: Arc<dyn KeepVectors>,
    model: String,
    vectors: HashMap<Box<str>, Kept>,
}

#[derive(Debug, Clone)]
struct Kept {
    hash: Box<str>,
    vector: Arc<[f32]>,
}

#[derive(Serialize, Deserialize)]
struct CacheFile<Entries> {
    model: String,
    entries: Entries,
}

#[derive(Serialize, Deserialize)]
struct Entry<Text, Numbers> {
    name: Text,
    hash: Text,
    embedding: Numbers,
}

impl VectorCache {
    /// Reads the file at `path`, with vectors of the model with this identity.
    pub fn open(path: PathBuf, model: String) -> Self {
        Self::kept_by(Arc::new(VectorFile(path)), model)
    }

    /// The same with vectors that are kept elsewhere.
    pub fn kept_by(keeper: Arc<dyn KeepVectors>, model: String) -> Self {
        let kept = keeper.read().and_then(|content| vectors_of(&content, &model));
        Self { keeper, model, vectors: kept.unwrap_or_default() }
    }

    /// Whether the vector of `text` need not be made.
    pub fn has(&self, text: NamedText<'_>) -> bool {
        self.vectors.get(text.name).is_some_and(|kept| *kept.hash == hash(text.text))
    }

    /// The vectors of `texts`, in their order. Those that are new or changed are made with `embed`, and vectors of other
    /// texts are forgotten. The file is replaced as a whole if anything changed; whether that worked is the second value,
    /// because the vectors are of use in any case.
    ///
    /// # Errors
    /// `embed` failed.
    pub fn vectors<E>(
        &mut self,
        texts: &[NamedText<'_>],
        mut embed: impl FnMut(&str) -> Result<Vector, E>,
    ) -> Result<Vectors, E> {
        let mut all = HashMap::with_capacity(texts.len());
        let mut vectors = Vec::with_capacity(texts.len());
        let mut made = 0_usize;
        for text in texts {
            let hash = hash(text.text);
            let kept = self.vectors.get(text.name).filter(|kept| *kept.hash == hash).cloned();
            let kept = match kept {
                Some(kept) => kept,
                None => {
                    made += 1;
                    Kept { hash: hash.into(), vector: embed(text.text)?.into() }
                }
            };
            vectors.push(Arc::clone(&kept.vector));
            all.insert(text.name.into(), kept);
            if made > 0 && made.is_multiple_of(SAVED_AFTER) {
                // What fails here fails again below, and is reported there.
                drop(self.write(&all));
            }
        }
        let is_changed = made > 0 || all.len() != self.vectors.len();
        let written = if is_changed { self.write(&all) } else { Ok(()) };
        self.vectors = all;
        Ok((vectors, written))
    }

    fn write(&self, vectors: &HashMap<Box<str>, Kept>) -> io::Result<()> {
        let mut entries: Vec<_> = vectors
            .iter()
            .map(|(name, kept)| Entry {
                name: name.to_string(),
                hash: kept.hash.to_string(),
                embedding: Arc::clone(&kept.vector),
            })
            .collect();
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        let content = CacheFile { model: self.model.clone(), entries };
        self.keeper.replace(&mut |out| Ok(serde_json::to_writer(out, &content)?))
    }
}

impl KeepVectors for VectorFile {
    fn describe(&self) -> String {
        self.0.display().to_string()
    }

    fn read(&self) -> Option<Vec<u8>> {
        read_regular(&self.0, MAX_BYTES).ok()
    }

    fn replace(
        &self,
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let directory = parent_of(&self.0);
        create_private_directory(&directory)?;
        let mut file = BufWriter::new(NewFile::in_directory(&directory, ".embeddings")?);
        write(&mut file)?;
        file.flush()?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.put_at(&self.0, Durability::Unsynced).map(drop)
    }

    fn remove(&self) -> io::Result<()> {
        remove_if_there(&self.0).map(drop)
    }
}

impl MemoryVectors {
    /// None yet. `name` tells them from others.
    pub fn new(name: &str) -> Self {
        Self { name: format!("memory:{name}"), content: Mutex::default() }
    }
}

impl KeepVectors for MemoryVectors {
    fn describe(&self) -> String {
        self.name.clone()
    }

    fn read(&self) -> Option<Vec<u8>> {
        self.content.lock().clone()
    }

    fn replace(
        &self,
        write: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut content = Vec::new();
        write(&mut content)?;
        *self.content.lock() = Some(content);
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        *self.content.lock() = None;
        Ok(())
    }
}

/// The vectors in what is kept, as far as they can be used.
fn vectors_of(content: &[u8], model: &str) -> Option<HashMap<Box<str>, Kept>> {
    let file: CacheFile<Vec<Entry<Box<str>, Vec<f32>>>> = serde_json::from_slice(content).ok()?;
    if file.model != model {
        return None;
    }
    let usable = |entry: Entry<Box<str>, Vec<f32>>| {
        let length = entry.embedding.iter().map(|number| number * number).sum::<f32>().sqrt();
        let is_unit = (length - 1.0).abs() < MAX_DEVIATION;
        is_unit.then(|| (entry.name, Kept { hash: entry.hash, vector: entry.embedding.into() }))
    };
    Some(file.entries.into_iter().filter_map(usable).collect())
}

/// A digest of a text, in hexadecimal digits.
fn hash(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    // 128 bits are enough to tell texts apart.
    myclaw_files::hex(&digest.as_ref()[..16])
}

#[cfg(test)]
mod tests;
