//! The search over the notes that an agent keeps in its workspace.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{self, NonBlankText};

/// The path of a Markdown file, or of a directory with some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NotePath(#[serde(deserialize_with = "values::non_blank")] pub String);

/// Passages of a result.
const DEFAULT_RESULTS: usize = 6;
/// Most that the file can allow.
const MOST_RESULTS: u64 = 50;
/// A passage with one of many words of the query, and no other, has a lower score.
const DEFAULT_SCORE: f64 = 0.1;

/// The tools `memory_search`, `memory_get` and `memory_write`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemorySearchConfig {
    /// Whether the agent remembers: whether it has the tools for its notes. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Further directories and Markdown files to search. Each may begin with `~`; a relative path starts at the directory
    /// of this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<NonBlankText>>")]
    pub extra_paths: Option<Vec<NotePath>>,
    /// Most passages of a result, from 1 to 50. A search may ask for another number. Default: 6.
    #[serde(
        deserialize_with = "values::optional_within::<_, _, 1, MOST_RESULTS>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = MOST_RESULTS))]
    pub max_results: Option<usize>,
    /// The lowest score of a passage in a result, from 0 to 1. A search may ask for another one. Default: 0.1.
    #[serde(deserialize_with = "values::optional_share", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub min_score: Option<f64>,
    /// The directory with the model all-MiniLM-L6-v2 (`onnx/model_quantized.onnx` and `vocab.txt`), for a search by meaning.
    /// Without it searches go by words.
    #[serde(
        deserialize_with = "values::optional_non_blank",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<NonBlankText>")]
    pub weights: Option<String>,
}

/// What agents remember.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Whether an agent looks for facts worth remembering before a session is summarised and at the end of a long one, with
    /// one short call of its model. Default: true.
    pub learn: bool,
    /// Whether what people other than the owner say is remembered together with the notes of the agent, so that it may be
    /// told to everybody. Default: false; each of their sessions has notes of its own.
    pub share: bool,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { learn: true, share: false }
    }
}

/// The search over the notes of one agent, with every default applied.
#[derive(Debug, Clone, PartialEq)]
pub struct MemorySearch {
    /// Whether the agent has the tools, if the file says so.
    pub enabled: Option<bool>,
    /// What is searched besides the notes of the workspace; absolute, need not exist.
    pub extra_paths: Vec<PathBuf>,
    /// Most passages of a result.
    pub max_results: usize,
    /// The lowest score of a passage in a result, from 0 to 1.
    pub min_score: f64,
    /// The directory of the model that compares meanings; absolute, need not exist.
    pub weights: Option<PathBuf>,
}

impl MemorySearchConfig {
    /// These values, with what `own` sets instead. `resolve` makes paths absolute.
    pub(crate) fn with<E>(
        &self,
        own: Option<&Self>,
        resolve: impl Fn(&str) -> Result<PathBuf, E>,
    ) -> Result<MemorySearch, E> {
        let nothing = Self::default();
        let own = own.unwrap_or(&nothing);
        let extra = own.extra_paths.as_ref().or(self.extra_paths.as_ref());
        let extra_paths = extra.into_iter().flatten().map(|path| resolve(&path.0));
        let weights = own.weights.as_ref().or(self.weights.as_ref());
        Ok(MemorySearch {
            enabled: own.enabled.or(self.enabled),
            extra_paths: extra_paths.collect::<Result<_, E>>()?,
            max_results: own.max_results.or(self.max_results).unwrap_or(DEFAULT_RESULTS),
            min_score: own.min_score.or(self.min_score).unwrap_or(DEFAULT_SCORE),
            weights: weights.map(|path| resolve(path)).transpose()?,
        })
    }
}
