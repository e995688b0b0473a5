//! The search over earlier sessions, for those whose words they are.

use std::sync::Arc;

use jiff::Timestamp;
use myclaw_memory::{Encoder, Hidden, Passages, SessionSearch, Wanted};
use myclaw_session::SessionKey;
use myclaw_tools::{MemoryHits, Recall, Recalled};
use tokio_util::sync::CancellationToken;

use super::forgotten::Forgotten;
use super::models::Model;
use crate::workspace::Party;
use crate::{AgentError, FailureClass, SessionConfig};

/// Searches the sessions that a session may know.
pub(crate) struct SessionRecall {
    search: SessionSearch,
    forgotten: Forgotten,
    model: Option<Arc<Model>>,
    seen: Seen,
}

/// Which sessions those of a session may know.
#[derive(Debug, Clone)]
enum Seen {
    /// All of the agent.
    All,
    /// The owner's.
    Owners,
    /// Those with the same person or group.
    With(SessionKey),
}

impl Seen {
    fn has(&self, key: &SessionKey) -> bool {
        match self {
            Self::All => true,
            Self::Owners => crate::workspace::is_owners(key),
            Self::With(own) => key.first() == *own,
        }
    }
}

impl SessionConfig {
    /// The search over earlier sessions, as this session may use it.
    pub(crate) fn recall(&self) -> SessionRecall {
        let seen = match self.party() {
            _ if self.config.memory.share => Seen::All,
            Party::Owner => Seen::Owners,
            Party::Others => Seen::With(self.session_key.first()),
        };
        self.recall_of(seen)
    }

    fn recall_of(&self, seen: Seen) -> SessionRecall {
        let catalog = Arc::clone(self.home.catalog());
        let weights = self.agent.memory_search.weights.as_ref();
        SessionRecall {
            search: self.agent_memory().search(catalog, self.agent.id.as_str()),
            forgotten: self.forgotten(),
            model: weights.map(|weights| self.home.meanings.of(weights)),
            seen,
        }
    }

    /// Searches the notes, and the sessions of the owner or of everybody. Blocks.
    ///
    /// # Errors
    /// There are no notes, the query has no words, or something cannot be read.
    pub fn search_memory(
        &self,
        query: &str,
        most: Option<usize>,
        scope: SessionsOf,
    ) -> Result<MemoryHits, AgentError> {
        let mut memory = self.memory().ok_or_else(Self::no_notes)?;
        if !query.contains(char::is_alphanumeric) {
            return Err(AgentError::usage(
                "the query has no words; say in a few words what to look for",
            ));
        }
        if scope == SessionsOf::Everybody {
            memory.sessions = Some(Arc::new(self.recall_of(Seen::All)));
        }
        let found = memory.find(query, most, &CancellationToken::new());
        found.map_err(|error| AgentError::new(FailureClass::Session, error.to_string()))
    }
}

/// Whose sessions are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsOf {
    /// The owner's.
    Owner,
    /// The owner's and those of other people.
    Everybody,
}

impl SessionRecall {
    fn passages(&self, query: &str, most: usize) -> Result<Passages, String> {
        let wanted = Wanted {
            query,
            most,
            may_see: &|key| self.seen.has(key),
            encoder: self.model.as_deref().map(|model| model as &dyn Encoder),
        };
        let hidden: Hidden = self.forgotten.hidden();
        self.search.search(&wanted, &hidden).map_err(|error| error.to_string())
    }
}

impl Recall for SessionRecall {
    fn recall(&self, query: &str, most: usize) -> Result<(Vec<Recalled>, Option<String>), String> {
        let found = self.passages(query, most)?;
        let recalled = found.passages.into_iter().map(|passage| {
            let day =
                i64::try_from(passage.ts).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
            let day = day.map(|day| day.strftime("%Y-%m-%d").to_string()).unwrap_or_default();
            let (session, row) = (passage.session, passage.row);
            Recalled { place: format!("session {session} row {row} ({day})"), text: passage.text }
        });
        Ok((recalled.collect(), found.remark))
    }
}
