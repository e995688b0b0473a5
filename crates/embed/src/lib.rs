//! Sentence embeddings: a vector of numbers for a text, so that texts of similar meaning have similar vectors.
//!
//! The model is all-MiniLM-L6-v2, or another BERT encoder of its shape, as an ONNX file. It runs in this process. Nothing
//! is read before the first text is embedded.
//!
//! | module | is |
//! |---|---|
//! | `wordpiece` | the tokenizer: a text to the numbers of its word pieces |
//! | `encoder` | word pieces to a vector, with the feature `inference`; `unbuilt` is in its place without it |
//! | `model` | what both have in common: vectors, failures |
//! | `onnx` | reading the file of a model so that it takes little memory |
//! | `weights` | where the files of a model are, and that they may be downloaded |
//! | `download` | the download, checked and resumed |
//! | `cache` | vectors of named texts in a file, made again only for texts that changed |
//!
//! This crate knows nothing of sessions, workflows, tools and the config file.
#![forbid(unsafe_code)]

mod cache;
mod download;
#[cfg(feature = "inference")]
mod encoder;
mod model;
#[cfg(feature = "inference")]
mod onnx;
#[cfg(not(feature = "inference"))]
mod unbuilt;
mod weights;
mod wordpiece;

pub use cache::{KeepVectors, MemoryVectors, NamedText, VectorCache, VectorFile, Vectors};
pub use download::{DownloadError, Source, SourceError};
#[cfg(feature = "inference")]
pub use encoder::Embedder;
pub use model::{EmbedError, Vector, similarity};
#[cfg(not(feature = "inference"))]
pub use unbuilt::Embedder;
pub use weights::{Weights, WeightsError};
pub use wordpiece::{Vocabulary, VocabularyError};
