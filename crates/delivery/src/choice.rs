//! What a client has chosen for a session: its model and its thinking level. It is in the list of sessions.

use myclaw_llm::ThinkingLevel;
use myclaw_session::{Catalog, FORKED_FROM, MetaPatch, SessionError, SessionKey, UpdatedAt};
use serde_json::{Map, Value, json};

/// Fields of a session in the list, in `extra`: the chosen model, or null for that of the config, and the thinking level.
const MODEL: &str = "chosenModel";
const THINKING: &str = "chosenThinking";
/// Most forks between a session and the one from which it has its choice.
const MOST_FORKS: usize = 32;

/// What is chosen for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The model; `Some(None)` for that of the config, `None` to leave it as it is.
    pub model: Option<Option<String>>,
    /// The thinking level; `None` to leave it as it is.
    pub thinking: Option<ThinkingLevel>,
}

impl Choice {
    /// The model that is asked for.
    pub(crate) fn model(self) -> Option<String> {
        self.model.flatten()
    }

    fn fields(&self) -> Map<String, Value> {
        let model = self.model.iter().map(|model| (MODEL.to_owned(), json!(model)));
        let level = self.thinking.iter().map(|level| (THINKING.to_owned(), json!(level.as_str())));
        model.chain(level).collect()
    }

    /// What was chosen for a stored session, or for the one that it was forked from.
    pub(crate) fn stored(catalog: &dyn Catalog, key: &SessionKey) -> Result<Self, SessionError> {
        let (mut found, mut key) = (Map::new(), key.clone());
        for _ in 0..MOST_FORKS {
            let extra = catalog.entry(&key)?.and_then(|entry| entry.extra).unwrap_or_default();
            for name in [MODEL, THINKING] {
                if let Some(value) = extra.get(name) {
                    found.entry(name).or_insert_with(|| value.clone());
                }
            }
            match extra.get(FORKED_FROM).and_then(Value::as_str).and_then(|key| key.parse().ok()) {
                Some(parent) => key = parent,
                None => break,
            }
        }
        let thinking = found.get(THINKING).and_then(Value::as_str);
        Ok(Self {
            model: found.get(MODEL).map(|model| model.as_str().map(str::to_owned)),
            // A later version may know more levels.
            thinking: thinking.and_then(|level| level.parse().ok()),
        })
    }

    /// Stores it. False if there is no such session yet.
    pub(crate) fn store(
        &self,
        catalog: &dyn Catalog,
        key: &SessionKey,
    ) -> Result<bool, SessionError> {
        if !catalog.exists(key) {
            return Ok(false);
        }
        let extra = Some(self.fields());
        let patch = MetaPatch { extra, updated_at: UpdatedAt::Keep, ..MetaPatch::default() };
        catalog.update(key, patch).map(|_| true)
    }
}
