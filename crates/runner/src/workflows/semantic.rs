//! Ranking by meaning: the query and the workflows as vectors of a sentence encoder.

use std::path::Path;
use std::sync::Arc;

use myclaw_embed::{
    EmbedError, Embedder, NamedText, VectorCache, Weights, WeightsError, similarity,
};
use parking_lot::Mutex;

use super::Workflow;
use super::rank::{KeywordRanker, Ranked, Ranker, Ranking};

/// The vectors of the workflows, next to the registry.
const CACHE: &str = ".embeddings-cache.json";
/// A workflow that is less similar does not fit: the protocol's threshold.
const THRESHOLD: f32 = 0.3;
/// From so many new vectors on, the log says what takes time.
const MANY: usize = 100;

/// Receives one line for each event that belongs in the log.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A ranker by meaning for the registry of `directory`.
///
/// The model is read at the first search and stays in memory. If it is missing or cannot be used, searches go by keywords,
/// and their results say so.
pub fn semantic_ranker(directory: &Path, weights: Weights, say: Say) -> Arc<dyn Ranker> {
    let cache = directory.join(CACHE);
    Arc::new(SemanticRanker { weights, cache, say, state: Mutex::new(State::New) })
}

struct SemanticRanker {
    weights: Weights,
    cache: std::path::PathBuf,
    say: Say,
    /// Searches are one after the other, because each uses all threads of the model.
    state: Mutex<State>,
}

enum State {
    New,
    Ready(Box<Ready>),
    /// Why there is no model. It is not tried again: a download would take its time with each search.
    Unusable(String),
}

struct Ready {
    embedder: Embedder,
    vectors: VectorCache,
}

impl Ranker for SemanticRanker {
    fn name(&self) -> &'static str {
        "meaning"
    }

    fn rank(&self, query: &str, workflows: &[Workflow]) -> Result<Vec<Ranked>, String> {
        Ok(self.ranking(query, workflows)?.ranked)
    }

    fn ranking(&self, query: &str, workflows: &[Workflow]) -> Result<Ranking, String> {
        let mut state = self.state.lock();
        if let State::New = &*state {
            *state = match self.load() {
                Ok(ready) => State::Ready(Box::new(ready)),
                Err(error) => State::Unusable(error.to_string()),
            };
            if let State::Unusable(reason) = &*state {
                (self.say)(&format!("workflows are searched by keywords: {reason}"));
            }
        }
        let reason = match &mut *state {
            State::Ready(ready) => match ready.rank(query, workflows, &self.say) {
                Ok(ranked) => return Ok(Ranking { by: self.name(), shortcoming: None, ranked }),
                Err(error) => error.to_string(),
            },
            State::Unusable(reason) => reason.clone(),
            State::New => "it was not loaded".to_owned(),
        };
        let ranked = KeywordRanker.rank(query, workflows)?;
        let shortcoming = Some(format!("A search by meaning is not possible: {reason}."));
        Ok(Ranking { by: KeywordRanker.name(), shortcoming, ranked })
    }
}

impl SemanticRanker {
    fn load(&self) -> Result<Ready, WeightsError> {
        let embedder = self.weights.load(&*self.say)?;
        let vectors = VectorCache::open(self.cache.clone(), embedder.identity());
        Ok(Ready { embedder, vectors })
    }
}

impl Ready {
    fn rank(
        &mut self,
        query: &str,
        workflows: &[Workflow],
        say: &Say,
    ) -> Result<Vec<Ranked>, EmbedError> {
        let texts: Vec<String> = workflows
            .iter()
            .map(|Workflow { name, description, .. }| format!("{name}: {description}"))
            .collect();
        let named = workflows.iter().zip(&texts);
        let named: Vec<NamedText<'_>> =
            named.map(|(workflow, text)| NamedText { name: &workflow.name, text }).collect();
        let Self { embedder, vectors } = self;
        let mut made = 0_usize;
        let (vectors, written) = vectors.vectors(&named, |text| {
            made += 1;
            if made == MANY {
                say("the workflows are new or changed; the first search takes longer");
            }
            embedder.embed(text)
        })?;
        if let Err(error) = written {
            say(&format!("{CACHE} cannot be written, so the next start takes longer: {error}"));
        }
        let query = embedder.embed(query)?;
        let mut ranked: Vec<Ranked> = vectors
            .iter()
            .enumerate()
            .map(|(index, vector)| (index, similarity(&query, vector)))
            .filter(|(_, score)| *score > THRESHOLD)
            .map(|(index, score)| Ranked { index, score: score.into() })
            .collect();
        ranked.sort_by(|left, right| right.score.total_cmp(&left.score));
        Ok(ranked)
    }
}
