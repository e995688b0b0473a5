//! The models that compare meanings, which the sessions of a program share.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_embed::{Embedder, VectorCache, Weights};
use myclaw_memory::Encoder;
use parking_lot::Mutex;

/// The models of a program, by their directories. A model is read at the first search and stays in memory.
#[derive(Clone, Default)]
pub(crate) struct Models(Arc<Mutex<HashMap<PathBuf, Arc<Model>>>>);

pub(super) struct Model {
    weights: Weights,
    /// Searches are one after the other, because each uses all threads of the model.
    pub(super) loaded: Mutex<Option<Loaded>>,
}

pub(super) struct Loaded {
    pub(super) embedder: Embedder,
    /// The vectors of each agent, by the place in which they are.
    pub(super) caches: HashMap<String, VectorCache>,
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
    pub(super) fn load<'a>(
        &self,
        loaded: &'a mut Option<Loaded>,
    ) -> Result<&'a mut Loaded, String> {
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
