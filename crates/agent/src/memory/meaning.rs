//! The model that compares the meanings of notes. Nothing is read before the first search.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_embed::{Embedder, NamedText, VectorCache, Weights, similarity};
use myclaw_files::create_private_directory;
use myclaw_memory::Encoder;
use myclaw_tools::{Compared, Meaning};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::SessionConfig;

/// The vectors of the notes, in the agent's own directory.
pub(super) const CACHE: &str = "memory-vectors.json";
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
        Arc::new(NoteMeaning { model, cache: self.own_agent_directory().join(CACHE) })
    }
}

/// The models of a program, by their directories. A model is read at the first search and stays in memory.
#[derive(Clone, Default)]
pub(crate) struct Models(Arc<Mutex<HashMap<PathBuf, Arc<Model>>>>);

pub(super) struct Model {
    weights: Weights,
    /// Searches are one after the other, because each uses all threads of the model.
    loaded: Mutex<Option<Loaded>>,
}

struct Loaded {
    embedder: Embedder,
    /// The vectors of each agent, by the file in which they are.
    caches: HashMap<PathBuf, VectorCache>,
}

impl Models {
    pub(super) fn of(&self, directory: &Path) -> Arc<Model> {
        let mut models = self.0.lock();
        let model = models.entry(directory.to_owned()).or_insert_with(|| {
            let weights = Weights { directory: directory.to_owned(), source: None };
            Arc::new(Model { weights, loaded: Mutex::new(None) })
        });
        Arc::clone(model)
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Models")
    }
}

impl Model {
    /// The model, which the first use reads.
    fn load<'a>(&self, loaded: &'a mut Option<Loaded>) -> Result<&'a mut Loaded, String> {
        if loaded.is_none() {
            // A model that is missing may be there at the next search, and looking for it takes no time.
            let embedder = self.weights.load(&|_| {}).map_err(|error| error.to_string())?;
            *loaded = Some(Loaded { embedder, caches: HashMap::new() });
        }
        loaded.as_mut().ok_or_else(|| "the model was not loaded".to_owned())
    }
}

impl Encoder for Model {
    fn identity(&self) -> String {
        let mut loaded = self.loaded.lock();
        self.load(&mut loaded).map(|loaded| loaded.embedder.identity()).unwrap_or_default()
    }

    fn encode(&self, text: &str) -> Result<Box<[f32]>, String> {
        let mut loaded = self.loaded.lock();
        self.load(&mut loaded)?.embedder.embed(text).map_err(|error| error.to_string())
    }
}

struct NoteMeaning {
    model: Arc<Model>,
    cache: PathBuf,
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
        let cache = caches
            .entry(self.cache.clone())
            .or_insert_with(|| VectorCache::open(self.cache.clone(), embedder.identity()));
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
        // What fails here fails again when the vectors are written, and is reported there.
        drop(self.cache.parent().map(create_private_directory));
        let (vectors, written) = cache.vectors(&texts, |text| {
            if cancel.is_cancelled() {
                return Err("the search was aborted".to_owned());
            }
            embedder.embed(text).map_err(|error| error.to_string())
        })?;
        if let Err(error) = written {
            tracing::warn!(file = %self.cache.display(), %error, "the vectors of notes cannot be kept");
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
