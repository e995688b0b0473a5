//! What is kept of the sub-agents of a session: one document for each session that has some.
//!
//! A sub-agent is in the document from before it begins until its parent has its result, so a killed process loses none.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_config::ToolRules;
use myclaw_engine::Mode;
use myclaw_files::{Documents, Durability, hex};
use myclaw_session::{EntryId, PeerKind, SessionKey, SessionKeyParts};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::Named;
use crate::permissions::Principal;
use crate::session_config::SUBAGENT_CHANNEL;
use crate::{AgentError, FailureClass};

/// Bytes of a digest in an id.
const ID_BYTES: usize = 12;

/// A sub-agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Child {
    pub(crate) id: String,
    /// The key of its session.
    pub(crate) session: SessionKey,
    /// What it is to do.
    pub(crate) task: String,
    pub(crate) label: Option<String>,
    /// The same for equal orders.
    pub(crate) order: String,
    /// The name of the file that describes it.
    pub(crate) file: Option<String>,
    /// Its agent in the config.
    pub(crate) agent: String,
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// Where it works, if not where its parent does.
    pub(crate) directory: Option<PathBuf>,
    /// The worktree that was made for it.
    pub(crate) worktree: Option<String>,
    /// The rules for its tools, besides those of the config.
    pub(crate) narrowed: Vec<ToolRules>,
    pub(crate) principals: Vec<Principal>,
    /// Milliseconds since the Unix epoch.
    pub(crate) started_at: u64,
    pub(crate) deadline: u64,
    /// Whether its result is a message to its parent, and not the result of a call.
    pub(crate) background: bool,
}

/// The key of the session of the sub-agent with this id.
pub fn child_session(agent: &str, id: &str) -> SessionKey {
    SessionKey::build(&SessionKeyParts {
        agent_id: agent.to_owned(),
        channel: SUBAGENT_CHANNEL.to_owned(),
        account_id: String::new(),
        peer_kind: PeerKind::Direct,
        peer_id: id.to_owned(),
    })
}

impl Child {
    /// The id of the sub-agent that a call begins.
    pub(super) fn id_of(parent: &SessionKey, call: &str, now: u64) -> String {
        hash("s", &[parent.as_str(), call, &now.to_string()])
    }

    /// The id of its task, as a message of its session.
    pub(super) fn task_id(&self) -> EntryId {
        EntryId::from_text(&format!("task-{}", self.id))
    }

    /// The id of its result, as a message of its parent.
    pub(super) fn result_id(&self) -> EntryId {
        EntryId::from_text(&format!("result-{}", self.id))
    }

    /// It, as it is spoken of.
    pub(super) fn named(&self) -> Named<'_> {
        let name = self.label.as_deref().or(self.file.as_deref()).unwrap_or(&self.id);
        Named { name, session: self.session.as_str() }
    }
}

/// A short name for texts that together are unique.
pub(super) fn hash(prefix: &str, texts: &[&str]) -> String {
    let joined: String = texts.iter().map(|text| format!("{}:{text}", text.len())).collect();
    format!("{prefix}{}", hex(&digest(&SHA256, joined.as_bytes()).as_ref()[..ID_BYTES]))
}

/// The sub-agents of all sessions.
#[derive(Debug, Clone)]
pub(crate) struct ChildRecords(pub(crate) Arc<dyn Documents>);

impl ChildRecords {
    /// Those of a session whose results it does not have yet. Blocks.
    ///
    /// # Errors
    /// The document cannot be read.
    pub(crate) fn of(&self, parent: &SessionKey) -> Result<Vec<Child>, AgentError> {
        let document = self.0.read(&parent.slug()).map_err(|error| self.failure(parent, &error))?;
        Ok(document.map(|document| parse(&document.text).0).unwrap_or_default())
    }

    /// Changes those of a session. Nobody else does meanwhile, but `change` may be called again with what somebody else has
    /// stored. Blocks.
    ///
    /// # Errors
    /// The document cannot be read or written. Nothing has changed then.
    pub(crate) fn change(
        &self,
        parent: &SessionKey,
        change: &mut dyn FnMut(&mut Vec<Child>),
    ) -> Result<(), AgentError> {
        let mut with_text = |text: Option<&str>| {
            let (mut children, others) = text.map(parse).unwrap_or_default();
            change(&mut children);
            let rows = children.iter().filter_map(|child| serde_json::to_value(child).ok());
            Value::from_iter(rows.chain(others)).to_string()
        };
        self.0
            .change(&parent.slug(), Durability::Synced, &mut with_text)
            .map_err(|error| self.failure(parent, &error))
    }

    fn failure(&self, parent: &SessionKey, error: &std::io::Error) -> AgentError {
        let place = self.0.describe(&parent.slug());
        let message = format!("the list of sub-agents in {place} cannot be used: {error}");
        AgentError::new(FailureClass::Internal, message)
    }
}

/// The sub-agents of a document, and what a later version wrote in another form, which stays.
fn parse(text: &str) -> (Vec<Child>, Vec<Value>) {
    let rows: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let (mut children, mut others) = (Vec::new(), Vec::new());
    for row in rows {
        match Child::deserialize(&row) {
            Ok(child) => children.push(child),
            Err(_) => others.push(row),
        }
    }
    (children, others)
}
