//! Where the files of a model are.

use std::path::{Path, PathBuf};

use crate::download::{DownloadError, Source};
use crate::{EmbedError, Embedder};

/// Where the weights are looked for, below the directory: the layout of the model's repositories, and the file alone. The
/// quantised file comes first: it has a quarter of the size and ranks alike.
const PLACES: [&str; 4] =
    ["onnx/model_quantized.onnx", "model_quantized.onnx", "onnx/model.onnx", "model.onnx"];
/// The word pieces, in the same directory.
const VOCABULARY: &str = "vocab.txt";

/// The directory of a model.
#[derive(Debug, Clone)]
pub struct Weights {
    /// It holds an ONNX file (`onnx/model_quantized.onnx` or `onnx/model.onnx`, also without `onnx/`) and `vocab.txt`.
    pub directory: PathBuf,
    /// From where files that are missing are downloaded, if at all.
    pub source: Option<Source>,
}

/// There is no model to use.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// A file is missing and may not be downloaded.
    #[error(
        "there is no model in {}: it has no {missing}. Put all-MiniLM-L6-v2 there (onnx/model_quantized.onnx and vocab.txt)",
        directory.display()
    )]
    Missing {
        /// The directory.
        directory: PathBuf,
        /// The file.
        missing: &'static str,
    },
    /// The files could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The files are there and cannot be used.
    #[error(transparent)]
    Unusable(#[from] EmbedError),
}

impl Weights {
    /// Reads the model; before that it downloads what is missing, if it may. Blocks. `say` gets lines about a download.
    ///
    /// # Errors
    /// [`WeightsError`].
    pub fn load(&self, say: &(dyn Fn(&str) + Sync)) -> Result<Embedder, WeightsError> {
        let found = match (self.find(), &self.source) {
            (Err(_), Some(source)) => {
                source.fetch(&self.directory, say)?;
                self.find()
            }
            (found, _) => found,
        };
        let directory = &self.directory;
        let (weights, vocabulary) = found
            .map_err(|missing| WeightsError::Missing { directory: directory.clone(), missing })?;
        Ok(Embedder::load(&weights, &vocabulary)?)
    }

    /// The weights and the vocabulary; the name of what is missing otherwise.
    fn find(&self) -> Result<(PathBuf, PathBuf), &'static str> {
        let is_there = |name: &&&str| self.directory.join(name).exists();
        let weights = PLACES.iter().find(is_there).ok_or("ONNX file")?;
        let vocabulary = self.directory.join(VOCABULARY);
        if !Path::exists(&vocabulary) {
            return Err(VOCABULARY);
        }
        Ok((self.directory.join(weights), vocabulary))
    }
}
