//! How much a session's own workspace may hold, its temporary files included. It is counted between tool calls, and every few
//! seconds while a command runs, so a command can pass the limit before it is ended; the sandbox bounds the size of each
//! file. From then on nothing is added.

mod room;
mod state;
mod watch;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{Hook, HookError, Notice, PreparedCall, ToolCallVerdict, ToolOutput};

use self::room::{makes_room, may_add_files};
use self::state::CountedPlace;
pub(crate) use self::state::QuotaState;
pub use self::state::{Quota, WorkspaceUse};
use crate::SessionConfig;
use crate::blocking::blocking;

/// What gives a full workspace room.
const ROOM: &str = "remove files of it, or let the owner raise `agents.defaults.sandbox.confinement.limits.workspaceMb` or \
                    `workspaceFiles`";
/// Refuses calls that could add to a full workspace.
pub(crate) struct QuotaHook {
    place: CountedPlace,
    quota: Quota,
    config: SessionConfig,
}

impl SessionConfig {
    /// The hook for a session with a workspace of its own.
    pub(crate) fn quota_hook(&self) -> Option<Arc<dyn Hook>> {
        Some(self.own_quota()? as Arc<dyn Hook>)
    }

    fn own_quota(&self) -> Option<Arc<QuotaHook>> {
        let quota = self.quota().filter(|quota| quota.bytes.is_some() || quota.files.is_some())?;
        Some(Arc::new(QuotaHook { place: self.counted_place()?, quota, config: self.clone() }))
    }

    fn counted_place(&self) -> Option<CountedPlace> {
        let scratch = self.home.side_files().artifact_directory(&self.session_key);
        Some(CountedPlace { workspace: self.own_workspace()?.to_owned(), scratch })
    }

    /// Why a file of `bytes` that came with a message is not kept, if there is no room for it. Blocks.
    pub fn refuses_file(&self, bytes: u64) -> Option<String> {
        let (quota, place) = self.quota().zip(self.counted_place())?;
        let refusal = match quota.count(&place) {
            Ok(used) => quota.refusal(&used, bytes),
            Err(error) => Some(format!("the workspace of this session cannot be read: {error}")),
        };
        self.quota_state.is_changed();
        self.note_if_full(refusal.as_deref());
        refusal
    }

    /// Tells the owner and the people of the session, once until there is room again.
    fn note_if_full(&self, refusal: Option<&str>) {
        let is_new = self.notices.begins_to_be_full(refusal.is_some());
        let Some(why) = refusal.filter(|_| is_new) else { return };
        let session = self.session_key.as_str();
        tracing::warn!(session, "{why}; {ROOM}");
        self.emit_notice(Notice::Workspace { text: format!("{why}; {ROOM}") });
    }

    /// What the session's own workspace holds, and may hold. Blocks.
    pub fn workspace_use(&self) -> Option<(WorkspaceUse, Quota)> {
        let (quota, place) = self.quota().zip(self.counted_place())?;
        Some((quota.count(&place).unwrap_or_default(), quota))
    }
}

impl Hook for QuotaHook {
    fn name(&self) -> &str {
        "workspace quota"
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn judge<'a>(
        &'a self,
        call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            if !may_add_files(call) || makes_room(call) {
                return Ok(ToolCallVerdict::Allow);
            }
            let (state, quota, place) =
                (self.config.quota_state.clone(), self.quota, self.place.clone());
            let used = blocking(move || state.used(&quota, &place)).await?;
            let used =
                used.map_err(|error| HookError(format!("the workspace cannot be read: {error}")))?;
            let refusal = self.quota.refusal(&used, 0);
            self.config.note_if_full(refusal.as_deref());
            let Some(why) = refusal else {
                return Ok(ToolCallVerdict::Allow);
            };
            Ok(ToolCallVerdict::Deny {
                reason: format!(
                    "{why}. Remove files that nobody needs with a plain command, such as `rm -r old/`, `find . -name '*.o' \
                     -delete` or `rm -rf $TMPDIR/x`, or tell the person that the owner can make more room. `ls` and `du` show \
                     what there is, and jobs can be ended"
                ),
            })
        })
    }

    fn tool_result<'a>(
        &'a self,
        call: &'a PreparedCall,
        _output: &'a mut ToolOutput,
    ) -> BoxFuture<'a, Result<(), HookError>> {
        if may_add_files(call) {
            self.config.quota_state.is_changed();
        }
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests;
