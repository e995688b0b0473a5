//! What the agent of a session remembers, made from the config: where its notes are, the tools for them, and the list of them
//! in the prompt.
//!
//! The owner's sessions share the notes in the workspace of their agent. A session of other people has notes of its own, so
//! what one person said in a direct chat is not told in a group or to somebody else, unless `memory.share` allows it.

mod forget;
mod forgotten;
mod learn;
mod meaning;
mod models;
mod origin;
mod outline;
mod recall;
mod record;
mod shown;
mod write_tool;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myclaw_engine::Tool;
use myclaw_memory::{Added, Fact, FactId, FactOrigin, NewFact, Notebook};
use myclaw_sandbox::WorkspaceAccess;
use myclaw_session::{EntryId, SessionKey};
use myclaw_tools::{Memory, MemoryOptions, Recall};

use self::forgotten::Forgotten;
use crate::memory_stores::AgentMemory;
use crate::workspace::Party;
use crate::{AgentError, SessionConfig, permissions};
pub use forget::{ChangeStore, Forgot, Redaction};
pub(crate) use models::Models;
pub use recall::SessionsOf;
pub use record::ForgetRecord;
pub use shown::{about_rows, fact_rows, refuse_store, still_said, why_lines};
pub(crate) use write_tool::DECLARATION as MEMORY_WRITE;

impl SessionConfig {
    /// What belongs to the notes of the agent.
    fn agent_memory(&self) -> AgentMemory {
        let stores = self.home.stores();
        stores.memory.of_agent(self.agent.id.as_str(), &self.own_agent_directory())
    }

    /// What was forgotten of what the agent knew.
    fn forgotten(&self) -> Forgotten {
        Forgotten::new(self.agent_memory().documents)
    }

    fn own_agent_directory(&self) -> PathBuf {
        let agent_dir = self.agent.agent_dir.clone();
        agent_dir.unwrap_or_else(|| self.home.paths.agent_dir(&self.agent.id))
    }

    /// Whether the session has notes, as far as the config says.
    fn has_memory(&self) -> bool {
        self.agent.memory_search.enabled.unwrap_or(true)
    }

    /// The workspace with the session's notes; `None` if the session may not look into it.
    pub(crate) fn notes_workspace(&self) -> Option<PathBuf> {
        match (self.party(), self.people_workspace()) {
            (Party::Others, Some(own)) if !self.config.memory.share => Some(own),
            (Party::Others, _) => Some(self.agent.workspace.clone()),
            (Party::Owner, _) if self.agent_workspace_access() == WorkspaceAccess::None => None,
            (Party::Owner, _) => Some(self.agent.workspace.clone()),
        }
    }

    /// The facts of the session; `None` if it has no notes.
    pub fn notebook(&self) -> Option<Notebook> {
        self.notes_workspace()
            .filter(|_| self.has_memory())
            .map(|workspace| self.notebook_in(&workspace))
    }

    /// The facts of the session.
    ///
    /// # Errors
    /// It has no notes.
    pub fn facts(&self) -> Result<Notebook, AgentError> {
        self.notebook().ok_or_else(Self::no_notes)
    }

    /// The fact with this id, as text.
    ///
    /// # Errors
    /// No fact has this id, or the facts cannot be read.
    pub fn fact(&self, id: &str) -> Result<Fact, AgentError> {
        let facts = self.facts()?.facts()?;
        let found = FactId::read(id).and_then(|id| facts.into_iter().find(|fact| fact.id == id));
        found.ok_or_else(|| {
            AgentError::usage(format!(
                "there is no fact `{id}`; `myclaw memory list --all` shows their ids"
            ))
        })
    }

    /// What the message of a fact's origin says; `None` if it is not there any more.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn words_of_origin(&self, fact: &Fact) -> Result<Option<String>, AgentError> {
        let Some(origin) = fact.origin.as_ref().filter(|origin| !origin.row.is_empty()) else {
            return Ok(None);
        };
        let Ok(key) = SessionKey::parse_for_agent(self.agent.id.as_str(), &origin.session) else {
            return Ok(None);
        };
        let Some(log) = self.home.catalog().read(&key)? else { return Ok(None) };
        let row = EntryId::from_text(&origin.row);
        let mut words = None;
        log.visit_newest(&mut |message| {
            if message.id == row {
                words = Some(message.content);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(words)
    }

    fn no_notes() -> AgentError {
        AgentError::usage(
            "this session remembers nothing: `memorySearch.enabled` is false, or its sandbox shows nothing of the workspace",
        )
    }

    /// Adds a fact that the owner gives outside of a session.
    ///
    /// # Errors
    /// It has no words, there is no fact to replace, or the file cannot be changed.
    pub fn remember(&self, text: &str, replaces: Option<&FactId>) -> Result<Added, AgentError> {
        let origin = FactOrigin { session: String::new(), ..self.origins().of_day() };
        Ok(self.facts()?.add(NewFact { text, origin, replaces })?)
    }

    /// The facts in a workspace.
    pub(crate) fn notebook_in(&self, workspace: &Path) -> Notebook {
        let own = workspace.file_name().filter(|_| workspace != self.agent.workspace);
        let lock = match own {
            Some(name) => format!("{}.lock", name.to_string_lossy()),
            None => "facts.lock".to_owned(),
        };
        self.agent_memory().notebook(workspace, &lock)
    }

    /// The notes of the session, if it has the tools for them.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let options = self.memory_options().filter(|_| self.has_memory())?;
        // The vectors of a session of others would push the agent's out of the cache.
        let is_agents = options.workspace == self.agent.workspace;
        let weights = self.agent.memory_search.weights.as_ref().filter(|_| is_agents);
        let meaning = weights.map(|weights| self.meaning(weights));
        let sessions = Some(Arc::new(self.recall()) as Arc<dyn Recall>);
        Some(Memory { options, meaning, sessions })
    }

    fn memory_options(&self) -> Option<MemoryOptions> {
        let search = &self.agent.memory_search;
        let is_open = permissions::scope(self) == myclaw_policy::SandboxScope::Unsandboxed;
        let extra = match is_open && self.party() == Party::Owner {
            true => search.extra_paths.clone(),
            // They may be anywhere, and what is outside of the workspace is not for sandboxed sessions.
            false => Vec::new(),
        };
        Some(MemoryOptions {
            workspace: self.notes_workspace()?,
            extra,
            max_results: search.max_results,
            min_score: search.min_score,
        })
    }

    /// The tool that writes facts, where the session may write them.
    pub(crate) fn memory_write_tool(&self) -> Option<Arc<dyn Tool>> {
        let may_write = match self.party() {
            Party::Owner => self.agent_workspace_access() == WorkspaceAccess::Rw,
            Party::Others => true,
        };
        let notebook = self.notebook().filter(|_| may_write)?;
        let known_secrets = Arc::clone(&self.home.known_secrets);
        Some(Arc::new(write_tool::MemoryWriteTool::new(self.origins(), notebook, known_secrets)))
    }
}

#[cfg(test)]
mod tests;
