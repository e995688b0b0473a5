//! The list of what the agent remembers, as the prompt of a session holds it.
//!
//! A provider's cache of the prompt is lost with its first changed byte, so a session keeps the list that it began with. What
//! is written during the session is in its messages, and what others write is found by `memory_search`. The list is made anew
//! when no provider can have the old one in its cache any more, and after a compaction, which changes the messages anyway.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{CompactionReport, Hook, HookError, Tool};
use myclaw_files::{Documents, Durability};
use myclaw_memory::{Notebook, outline};

use crate::blocking::blocking;
use crate::{AgentError, SessionConfig};

/// Begins the names of the lists.
const LISTS: &str = "prompts/";
/// How long a list is kept after its last use. Providers keep prompts for five minutes, on request for an hour.
const KEPT: Duration = Duration::from_secs(3_600);
/// Uses within this time of the last one are not noted.
const NEWLY_USED: Duration = Duration::from_secs(60);
/// Most old lists that are removed at a time.
const MOST_REMOVED: usize = 20;

impl SessionConfig {
    /// The list for the prompt of the session's runs; `None` without the tool that writes facts.
    pub(crate) async fn outline_for(
        &self,
        tools: &[Arc<dyn Tool>],
    ) -> Result<Option<String>, AgentError> {
        let has_tool = tools.iter().any(|tool| tool.schema().name == super::write_tool::NAME);
        let Some(notebook) = self.notebook().filter(|_| has_tool) else { return Ok(None) };
        let list = self.kept_list();
        Ok(Some(blocking(move || list.kept_or_new(&notebook)).await?))
    }

    /// Forgets the list after a compaction.
    pub(crate) fn outline_hook(&self) -> Arc<dyn Hook> {
        Arc::new(self.kept_list())
    }

    fn kept_list(&self) -> KeptList {
        let name = format!("{LISTS}{}.md", self.session_key.slug());
        KeptList { documents: self.agent_memory().documents, name }
    }
}

/// The list of a session.
struct KeptList {
    documents: Arc<dyn Documents>,
    name: String,
}

impl KeptList {
    fn kept_or_new(&self, notebook: &Notebook) -> String {
        if let Some(kept) = self.kept() {
            return kept;
        }
        let facts = match notebook.facts() {
            Ok(facts) => facts,
            // The model tells the user, and the next run tries again.
            Err(error) => {
                let notes = outline(&[], notebook.workspace());
                return format!("The facts are not known; tell the user: {error}\n{notes}");
            }
        };
        let list = outline(&facts, notebook.workspace());
        if let Err(error) = self.keep(&list) {
            let place = self.documents.describe(&self.name);
            tracing::warn!(place, %error, "the list of facts may change during the session");
        }
        list
    }

    /// The list of an earlier run, which this use keeps for longer.
    fn kept(&self) -> Option<String> {
        let kept = self.documents.read(&self.name).ok()?.filter(|kept| kept.age <= KEPT)?;
        if kept.age > NEWLY_USED {
            self.documents.note_use(&self.name).ok()?;
        }
        Some(kept.text)
    }

    fn keep(&self, list: &str) -> io::Result<()> {
        let all = self.documents.list(LISTS)?;
        for (old, _) in all.into_iter().filter(|(_, age)| *age > KEPT).take(MOST_REMOVED) {
            self.documents.remove(&old)?;
        }
        self.documents.change(&self.name, Durability::Unsynced, &mut |_| list.to_owned())
    }
}

/// Removes the lists of all sessions.
pub(super) fn remove_lists(documents: &dyn Documents) -> io::Result<()> {
    documents.list(LISTS)?.iter().try_for_each(|(name, _)| documents.remove(name).map(drop))
}

impl Hook for KeptList {
    fn name(&self) -> &str {
        "list of facts"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn session_compact<'a>(
        &'a self,
        _report: &'a CompactionReport,
        _summary: &'a str,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        Box::pin(async {
            let removed = self.documents.remove(&self.name);
            removed.map(drop).map_err(|error| HookError(error.to_string()))
        })
    }
}
