//! The workspace of a session: that of its agent, or one of its own where others than the owner write.
//!
//! | session | its messages are | works in |
//! |---|---|---|
//! | channels `cli` and `web`: the terminal, editors, programs, the web chat, the API | the owner's | the agent's workspace |
//! | channel `cron`: scheduled jobs | the owner's | the agent's workspace |
//! | a chat that is routed to the main session | the owner's | the agent's workspace |
//! | every other channel, `person`, and `hook`: devices that only deliver messages | of others | a workspace of its own |
//! | a sub-agent | as those of the sessions it works for | as they do |
//!
//! `workspaceAccess` says what sessions of others may do in the agent's workspace; with `rw` they work in it.

use std::path::{Path, PathBuf};

use myclaw_config::{ConfinementLimits, Paths, SandboxMode, WorkspaceAccessName};
use myclaw_engine::{BOOTSTRAP_NAMES, PromptFiles};
use myclaw_files::{canonical, create_private_directory};
use myclaw_memory::FACTS_FILE;
use myclaw_policy::{names_obeyed_by_agents, names_obeyed_by_programs};
use myclaw_sandbox::{Level, ProtectedNames, WorkspaceAccess};
use myclaw_session::{CLI_CHANNEL, SessionKey};

use crate::permissions::{Principal, sandbox_rules};
use crate::session_config::{CRON_CHANNEL, SUBAGENT_CHANNEL, WEB_CHANNEL};
use crate::{AgentError, FailureClass, Home, SessionConfig};

mod hidden;
mod moved;
mod notices;
mod quota;
mod template;

pub use moved::{MovedSession, moved_sessions};
pub(crate) use notices::NoticePublisher;
pub(crate) use quota::QuotaState;
pub use quota::{Quota, WorkspaceUse};
use template::{TEMPLATE, copy_template};

/// What this agent takes for instructions, in addition to the bootstrap files. The names that other agents and programs obey
/// are those of the policy, which asks about the same ones where commands are restricted.
const OBEYED_HERE: [&str; 4] = [TEMPLATE, "skills", "commands", "agents"];

/// What the owner's sessions remember. Others remember in a workspace of their own.
const NOTES: &str = "memory";

/// Instructions that agents take from every directory, besides those of other agents.
const INSTRUCTIONS_EVERYWHERE: &str = "AGENTS.md";

/// The channels in the keys of sessions in which nobody else writes: no chat of another channel is routed to one, but to the
/// main session where the owner says so.
const OWNERS_CHANNELS: [&str; 3] = [CLI_CHANNEL, CRON_CHANNEL, WEB_CHANNEL];

/// What this and other agents take for instructions.
fn obeyed_by_agents() -> impl Iterator<Item = &'static str> {
    let others = names_obeyed_by_agents().filter(|name| !BOOTSTRAP_NAMES.contains(name));
    BOOTSTRAP_NAMES.into_iter().chain(OBEYED_HERE).chain(others)
}

/// What stays as it is in a directory that others change and the owner uses as well. In every directory below, programs and
/// agents take what has these names wherever they work. Of those without a dot only instructions are among them, or nobody could
/// begin a project in a directory.
pub fn protected_names() -> ProtectedNames {
    let is_taken = |name: &&str| {
        name.starts_with(['.', '*'])
            || INSTRUCTIONS_EVERYWHERE == *name
            || (name.ends_with(".md") && !BOOTSTRAP_NAMES.contains(name))
    };
    let names = || obeyed_by_agents().chain(names_obeyed_by_programs());
    ProtectedNames {
        at_top: paths(names().chain([NOTES])),
        everywhere: names().filter(is_taken).map(str::to_owned).collect(),
    }
}

/// The names as paths. One with a wildcard is none.
fn paths(names: impl Iterator<Item = &'static str>) -> Vec<PathBuf> {
    names.filter(|name| !name.contains('*')).map(PathBuf::from).collect()
}

/// Who writes the messages of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    /// The owner, or a program of the owner.
    Owner,
    /// Other people, whom the channels let write.
    Others,
}

/// Whether a session is the owner's, as far as its key says: a sub-agent may work for others.
pub(crate) fn is_owners(key: &SessionKey) -> bool {
    OWNERS_CHANNELS.contains(&key.parts().channel.as_str())
}

/// The session whose people others are, if this one is not the owner's: itself, or the one that it works for.
fn of_others(key: &SessionKey, principals: &[Principal]) -> Option<SessionKey> {
    let is_child = |key: &SessionKey| key.parts().channel == SUBAGENT_CHANNEL;
    if !is_child(key) {
        return (!is_owners(key)).then(|| key.clone());
    }
    let mut above =
        principals.iter().map(|one| &one.session).filter(|key| !is_child(key)).peekable();
    // Nothing is known of one that nobody has given its work.
    if above.peek().is_none() {
        return Some(key.clone());
    }
    above.find(|key| !is_owners(key)).cloned()
}

/// The workspace that a session of others has for itself, whether it exists or not. A chat that begins anew with `/new` keeps it.
pub fn workspace_of_session(paths: &Paths, key: &SessionKey) -> PathBuf {
    paths.workspaces_dir().join(key.first().slug())
}

impl SessionConfig {
    /// Who writes the messages of the session.
    pub fn party(&self) -> Party {
        match of_others(&self.session_key, &self.principals) {
            None => Party::Owner,
            Some(_) => Party::Others,
        }
    }

    /// The workspace that the session of others has for itself, even if it works in that of its agent.
    pub(crate) fn people_workspace(&self) -> Option<PathBuf> {
        let others = of_others(&self.session_key, &self.principals)?;
        Some(workspace_of_session(&self.home.paths, &others))
    }

    /// What the session may do in the workspace of its agent.
    pub(crate) fn agent_workspace_access(&self) -> WorkspaceAccess {
        let rules = sandbox_rules(&self.config, &self.agent);
        match (rules.confinement.workspace_access, self.party()) {
            (Some(WorkspaceAccessName::None), _) | (None, Party::Others) => WorkspaceAccess::None,
            (Some(WorkspaceAccessName::Ro), _) => WorkspaceAccess::Ro,
            (Some(WorkspaceAccessName::Rw), _) | (None, Party::Owner) => WorkspaceAccess::Rw,
        }
    }

    /// The same session with the workspace that follows from its key, its agent and those it works for.
    #[must_use]
    pub(crate) fn placed_anew(mut self) -> Self {
        let others = of_others(&self.session_key, &self.principals);
        let is_own = self.agent_workspace_access() != WorkspaceAccess::Rw;
        self.own_workspace =
            others.filter(|_| is_own).map(|key| workspace_of_session(&self.home.paths, &key));
        self
    }

    /// The workspace that the session has for itself. It need not exist yet.
    pub fn own_workspace(&self) -> Option<&Path> {
        self.own_workspace.as_deref()
    }

    /// The directory in which the tools work.
    pub fn working_directory(&self) -> &Path {
        let own = self.directory.as_deref().or(self.own_workspace());
        own.unwrap_or(&self.agent.workspace)
    }

    /// The directory in which the owner's own programs are started for the session. Many programs obey what is in their
    /// directory, so it is none that others can change.
    pub(crate) fn start_directory(&self) -> &Path {
        match self.party() {
            Party::Owner => self.working_directory(),
            Party::Others => self.home.paths.state_dir(),
        }
    }

    /// Makes the directory in which the tools work, if it is a workspace and missing. Blocks.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_working_directory(&self) -> Result<(), AgentError> {
        let made = match (&self.directory, &self.own_workspace) {
            (Some(_), _) => Ok(()),
            (None, Some(own)) if !own.is_dir() => self.make_own_workspace(own),
            (None, None) if !self.agent.workspace.is_dir() => {
                create_private_directory(&self.agent.workspace).map(drop)
            }
            _ => Ok(()),
        };
        made.map_err(|error| {
            let path = self.working_directory().display();
            AgentError::new(
                FailureClass::Workspace,
                format!("cannot use the workspace {path}: {error}. Check that the path is a directory you may write to"),
            )
        })
    }

    fn make_own_workspace(&self, own: &Path) -> std::io::Result<()> {
        create_private_directory(own)?;
        // Half a copy is better than no chat.
        if let Err(error) = copy_template(&self.agent.workspace, own) {
            let workspace = own.display();
            tracing::warn!(%workspace, %error, "{TEMPLATE} is not copied into a new workspace");
        }
        self.note_if_moved(own);
        Ok(())
    }

    /// Which files the prompt of the session is made of.
    pub(crate) fn prompt_files(&self) -> PromptFiles {
        match self.own_workspace.clone() {
            None => PromptFiles::All,
            Some(own_workspace) => PromptFiles::Shared { own_workspace },
        }
    }

    /// What stays as it is in the directory that the tools work in, although they may change that: paths relative to it. What
    /// others put there would be obeyed by the owner's sessions, or by the owner's programs. A sandboxed session of the
    /// owner may have read anything, so it does not change what sessions without a sandbox obey. Other levels than Landlock
    /// pay for protected names with a closed `/proc`, so there it may.
    pub(crate) fn protected(&self, level: &Level) -> Vec<PathBuf> {
        let is_own = self.directory.is_none() && self.own_workspace.is_some();
        let mode = sandbox_rules(&self.config, &self.agent).mode;
        let is_outside_obeyed = mode == SandboxMode::NonMain && *level == Level::Landlock;
        match self.party() {
            Party::Others if is_own => Vec::new(),
            Party::Others => protected_names().at_top,
            // Facts are remembered with their tool, which notes what the session has read.
            Party::Owner if is_outside_obeyed && self.project_directory().is_none() => {
                paths(obeyed_by_agents().chain([FACTS_FILE]))
            }
            Party::Owner => Vec::new(),
        }
    }

    /// The names that stay as they are in every directory of the workspace.
    pub(crate) fn protected_names(&self, level: &Level) -> Vec<String> {
        if self.party() == Party::Owner || self.protected(level).is_empty() {
            return Vec::new();
        }
        protected_names().everywhere
    }

    /// What the session's own workspace may hold; `None` if it has none.
    pub fn quota(&self) -> Option<Quota> {
        self.own_workspace.as_ref()?;
        let limits = sandbox_rules(&self.config, &self.agent).confinement.limits;
        let limit = |wanted: Option<u64>, default: u64| match wanted.unwrap_or(default) {
            0 => None,
            limit => Some(limit),
        };
        let megabytes = limit(limits.workspace_mb, ConfinementLimits::WORKSPACE_MB);
        Some(Quota {
            bytes: megabytes.map(|megabytes| megabytes.saturating_mul(1 << 20)),
            files: limit(limits.workspace_files, ConfinementLimits::WORKSPACE_FILES),
        })
    }
}

/// The directory in which an existing session works, if not its agent's workspace.
pub(crate) fn remembered_directory(
    home: &Home,
    key: &SessionKey,
) -> Result<Option<PathBuf>, AgentError> {
    // The run reports a session that cannot be read.
    match home.catalog().directory_of(key).ok().flatten() {
        Some(directory) if !directory.is_dir() => {
            Err(SessionConfig::directory_gone(key, &directory))
        }
        remembered => Ok(remembered),
    }
}

/// The directory that the caller named, absolute. It is never created: a misspelt one should be noticed.
pub(crate) fn existing_directory(path: &Path) -> Result<PathBuf, AgentError> {
    let unusable = |error: std::io::Error| {
        AgentError::usage(format!(
            "cannot work in {}: {error}; give -C a directory that exists",
            path.display()
        ))
    };
    let directory = canonical(path).map_err(unusable)?;
    if !directory.is_dir() {
        return Err(unusable(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(directory)
}

#[cfg(test)]
pub(crate) mod tests;
