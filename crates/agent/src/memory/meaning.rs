//! The model that compares the meanings of notes. Nothing is read before the first search.

use std::path::Path;
use std::sync::Arc;

use myclaw_embed::{KeepVectors, NamedText, VectorCache, similarity};
use myclaw_tools::{Compared, Meaning};
use tokio_util::sync::CancellationToken;

use super::models::{Loaded, Model};
use crate::SessionConfig;

/// A passage that is less similar has nothing to do with the query.
const THRESHOLD: f32 = 0.3;
/// Most passages whose meaning is compared: their vectors take 8 MB.
const MOST_PASSAGES: usize = 5_000;
/// Most vectors that one search makes, each in some hundredths of a second.
const MOST_NEW: usize = 256;

impl SessionConfig {
    /// Compares the meaning of passages with the model in the directory `weights`.
    pub(super) fn meaning(&self, weights: &Path) -> Arc<dyn Meaning> {
        let model = self.home.meanings.of(weights);
        let vectors = self.home.stores().vectors.of_agent(&self.agent);
        Arc::new(NoteMeaning { model, vectors })
    }
}

struct NoteMeaning {
    model: Arc<Model>,
    vectors: Arc<dyn KeepVectors>,
}

impl Meaning for NoteMeaning {
    fn compare(
        &self,
        query: &str,
        passages: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Vec<Compared>, String> {
        let mut loaded = self.model.loaded.lock();
        let Loaded { embedder, caches } = self.model.load(&mut loaded)?;
        let cache = caches.entry(self.vectors.describe()).or_insert_with(|| {
            VectorCache::kept_by(Arc::clone(&self.vectors), embedder.identity())
        });
        // A text is its own name, so that its vector stays the same wherever the passage is.
        let named = |index: &usize| NamedText { name: passages[*index], text: passages[*index] };
        let (kept, new): (Vec<usize>, Vec<usize>) =
            (0..passages.len()).partition(|index| cache.has(named(index)));
        // The names of notes are often dates: the last ones are the newest.
        let compared: Vec<usize> = kept
            .into_iter()
            .chain(new.into_iter().rev().take(MOST_NEW))
            .take(MOST_PASSAGES)
            .collect();
        let texts: Vec<NamedText<'_>> = compared.iter().map(named).collect();
        let (vectors, written) = cache.vectors(&texts, |text| {
            if cancel.is_cancelled() {
                return Err("the search was aborted".to_owned());
            }
            embedder.embed(text).map_err(|error| error.to_string())
        })?;
        if let Err(error) = written {
            let place = self.vectors.describe();
            tracing::warn!(place, %error, "the vectors of notes cannot be kept");
        }
        let query = embedder.embed(query).map_err(|error| error.to_string())?;
        let mut all = vec![Compared::Skipped; passages.len()];
        for (index, vector) in compared.into_iter().zip(vectors) {
            let similarity = similarity(&query, &vector);
            let similarity = if similarity > THRESHOLD { similarity } else { 0.0 };
            all[index] = Compared::Similarity(similarity);
        }
        Ok(all)
    }
}
