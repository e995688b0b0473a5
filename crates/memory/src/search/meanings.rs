//! What the documents mean: one short signature for each, in a file that grows with the searches.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use myclaw_files::private_options;

use super::segment::{Document, Name, Segment};
use super::signature::{Comparison, length, signature};
use super::{Place, Ranking, best_of, document_at, places};

const FILE: &str = "meanings";
/// Most bytes of the file: of a million documents.
const MAX_BYTES: u64 = 128 * 1024 * 1024;
/// Bytes of a name.
const NAME: usize = size_of::<Name>();
/// A document that is less similar has nothing to do with the query.
const THRESHOLD: f32 = 0.25;
/// Longest that a search looks at new documents.
const LONGEST: Duration = Duration::from_millis(1_500);

/// A model that makes vectors of texts.
pub trait Encoder {
    /// Names the model, so that vectors of others are not compared with its own.
    fn identity(&self) -> String;

    /// The vector of a text, of the length 1. Blocks.
    ///
    /// # Errors
    /// Why it cannot be made, as the end of a sentence.
    fn encode(&self, text: &str) -> Result<Box<[f32]>, String>;
}

/// The signatures of documents by one model.
pub(super) struct Meanings<'a> {
    encoder: &'a dyn Encoder,
    path: PathBuf,
    kept: HashMap<Name, Box<[u8]>>,
    header: String,
    width: usize,
}

impl<'a> Meanings<'a> {
    /// # Errors
    /// The model cannot be used.
    pub(super) fn open(directory: &Path, encoder: &'a dyn Encoder) -> Result<Self, String> {
        let width = encoder.encode("test")?.len();
        let header = format!("{} {width}\n", encoder.identity());
        let path = directory.join(FILE);
        let bytes = myclaw_files::read_regular(&path, MAX_BYTES).unwrap_or_default();
        let mut kept = HashMap::new();
        // Of another model, or damaged: it is made again.
        if let Some(records) = bytes.strip_prefix(header.as_bytes()) {
            for record in records.chunks_exact(NAME + length(width)) {
                let Some((name, signature)) = record.split_first_chunk::<NAME>() else { break };
                kept.insert(Name::from_le_bytes(*name), signature.into());
            }
        }
        Ok(Self { encoder, path, kept, header, width })
    }

    /// Makes signatures of new documents, the newest first, for a bounded time. Returns a remark if some are left.
    pub(super) fn learn(
        &mut self,
        segments: &[Segment],
        text_of: impl Fn(&Document) -> Result<Option<String>, String>,
    ) -> Result<Option<String>, String> {
        let all = places(segments).map_err(|error| error.to_string())?;
        let mut new: Vec<_> =
            all.into_iter().filter(|(name, _)| !self.kept.contains_key(name)).collect();
        if new.is_empty() {
            return Ok(None);
        }
        let begun = Instant::now();
        let mut bytes = Vec::new();
        while let Some((name, place)) = new.pop() {
            let document = document_at(segments, place).map_err(|error| error.to_string())?;
            // What cannot be read has no meaning, and is not looked at again.
            let text = text_of(&document)?.unwrap_or_default();
            let signature = match text.is_empty() {
                true => vec![0; length(self.width)],
                false => signature(&self.encoder.encode(&text)?),
            };
            bytes.extend(name.to_le_bytes());
            bytes.extend(&signature);
            self.kept.insert(name, signature.into());
            if begun.elapsed() > LONGEST {
                break;
            }
        }
        self.keep(&bytes).map_err(|error| error.to_string())?;
        let left = new.len();
        Ok((left > 0).then(|| format!("{left} older passages were compared by their words alone")))
    }

    fn keep(&self, bytes: &[u8]) -> std::io::Result<()> {
        let is_ours = || {
            let mut beginning = vec![0; self.header.len()];
            std::io::Read::read_exact(&mut File::open(&self.path)?, &mut beginning)?;
            Ok::<_, std::io::Error>(beginning == self.header.as_bytes())
        };
        if !is_ours().unwrap_or(false) {
            fs::write(&self.path, &self.header)?;
        }
        private_options().append(true).create(true).open(&self.path)?.write_all(bytes)
    }

    /// The documents that mean something similar, the best first.
    pub(super) fn ranked(&self, segments: &[Segment], query: &str) -> Result<Ranking, String> {
        let comparison = Comparison::with(&self.encoder.encode(query)?);
        let mut seen = HashSet::new();
        let similar = |(name, place): (Name, Place)| {
            let similarity = comparison.similarity(self.kept.get(&name)?);
            (similarity > THRESHOLD && seen.insert(place)).then_some((place, similarity))
        };
        let all = places(segments).map_err(|error| error.to_string())?;
        Ok(best_of(all.into_iter().filter_map(similar).collect()))
    }
}
