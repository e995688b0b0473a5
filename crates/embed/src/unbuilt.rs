//! The encoder of a program that is built without the inference library, in which no model can be loaded.

use std::path::Path;

use crate::model::{EmbedError, Vector};
use crate::wordpiece::Vocabulary;

/// A model that is in memory: in this program there is none.
pub enum Embedder {}

impl Embedder {
    /// Refuses to read a model.
    ///
    /// # Errors
    /// [`EmbedError::NotBuilt`], or the vocabulary cannot be used.
    pub fn load(_weights: &Path, vocabulary: &Path) -> Result<Self, EmbedError> {
        Vocabulary::load(vocabulary)?;
        Err(EmbedError::NotBuilt)
    }

    /// A name for the weights.
    pub fn identity(&self) -> String {
        match *self {}
    }

    /// The vector of a text.
    ///
    /// # Errors
    /// None.
    pub fn embed(&self, _text: &str) -> Result<Vector, EmbedError> {
        match *self {}
    }
}
