//! Vectors of named texts in a file, made again only for texts that changed.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_files::{Durability, NewFile, parent_of, read_regular};
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

/// The vectors of one set of texts, by one model.
///
/// The file is `{"model": …, "entries": [{"name": …, "hash": …, "embedding": […]}]}`. One that is damaged, too large or of
/// another model counts as empty, and the next one takes its place.
#[derive(Debug)]
pub struct VectorCache {
    path: PathBuf,
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
        let vectors = read(&path, &model).unwrap_or_default();
        Self { path, model, vectors }
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
        let mut file =
            BufWriter::new(NewFile::in_directory(&parent_of(&self.path), ".embeddings")?);
        serde_json::to_writer(&mut file, &CacheFile { model: self.model.clone(), entries })?;
        file.flush()?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.put_at(&self.path, Durability::Unsynced)?;
        Ok(())
    }
}

/// The vectors of a file, as far as they can be used.
fn read(path: &Path, model: &str) -> Option<HashMap<Box<str>, Kept>> {
    let bytes = read_regular(path, MAX_BYTES).ok()?;
    let file: CacheFile<Vec<Entry<Box<str>, Vec<f32>>>> = serde_json::from_slice(&bytes).ok()?;
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
