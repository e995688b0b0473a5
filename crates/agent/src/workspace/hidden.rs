//! Repositories of git in a workspace that others can change. Since its names are protected nobody can make one there; what was
//! there before is the owner's to look at.

use myclaw_config::WorkspaceAccessName;
use myclaw_engine::Notice;

use crate::permissions::{hidden_repositories, sandbox_rules};
use crate::{SessionConfig, workspace::Party};

impl SessionConfig {
    /// Looks once for repositories in the directory of a session that others can change. The owner's session has a notice
    /// about them; that of others only a line of the log. Blocks.
    pub(crate) fn note_hidden_repositories(&self) {
        let rules = sandbox_rules(&self.config, &self.agent).confinement;
        let is_shared = rules.workspace_access == Some(WorkspaceAccessName::Rw);
        if !is_shared || self.own_workspace().is_some() || !self.notices.begins_to_look() {
            return;
        }
        let Some(message) = hidden_repositories(self.working_directory()).message() else { return };
        let text = format!(
            "{message}. Look at them before you run git there; `myclaw doctor --security` has a command for each that makes \
             git ignore it"
        );
        tracing::warn!(session = self.session_key.as_str(), "{text}");
        if self.party() == Party::Owner {
            self.emit_notice(Notice::Workspace { text });
        }
    }
}
