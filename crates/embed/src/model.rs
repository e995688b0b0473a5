//! Vectors and failures of a model, whichever it is.

use std::path::PathBuf;

use crate::wordpiece::VocabularyError;

/// The direction of a text's meaning: its length is 1.
pub type Vector = Box<[f32]>;

/// How similar the meanings of two texts are: the cosine of their vectors, at most 1. Vectors of different models are not
/// similar.
pub fn similarity(left: &[f32], right: &[f32]) -> f32 {
    if left.len() != right.len() {
        return 0.0;
    }
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// A model that cannot be used, or a text that cannot be embedded.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The file with the weights cannot be read.
    #[error("the weights {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is damaged, or it holds another kind of model.
    #[error(
        "the weights {} cannot be used: {problem}. The file is damaged or no sentence encoder; replace it",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The program has no inference library.
    #[error(
        "this program was built without the feature `embeddings`, so it cannot compare meanings; build it without \
         `--no-default-features`"
    )]
    NotBuilt,
    /// The vocabulary cannot be used.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
}
