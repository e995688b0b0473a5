//! What the policy does to a run: it withholds tools, and its hook decides each call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    Hook, HookError, PreparedCall, RunParams, ToolCallVerdict, ToolContext, TurnId, WithheldTool,
};

use super::{POLICY, Permissions, Verdict};
use crate::approvals::{SessionApprover, audience};
use crate::blocking::blocking;
use crate::{RunAdditions, SessionConfig};

/// Completes the tools and hooks of a run: adds those of the caller, withholds the tools that a rule denies, and adds
/// the policy after all other hooks.
pub(crate) fn apply(
    config: &SessionConfig,
    permissions: Arc<Permissions>,
    added: RunAdditions,
    params: &mut RunParams,
) {
    for tool in added.tools {
        let name = &tool.schema().name;
        match params.tools.iter_mut().find(|builtin| builtin.schema().name == *name) {
            Some(builtin) => *builtin = tool,
            None => params.tools.push(tool),
        }
    }
    let (offered, denied): (Vec<_>, Vec<_>) = std::mem::take(&mut params.tools)
        .into_iter()
        .partition(|tool| permissions.offers(&tool.schema().name));
    params.tools = offered;
    let deciding = Arc::clone(&permissions);
    let reason: Arc<dyn Fn(&str) -> String + Send + Sync> =
        Arc::new(move |tool| deciding.decide(tool).to_string());
    let withheld = |tool| WithheldTool { tool, reason: Arc::clone(&reason) };
    params.withheld = denied.into_iter().map(withheld).collect();
    params.hooks.extend(added.hooks);
    params.hooks.push(Arc::new(PolicyHook(Arc::clone(&permissions))));
    params.approver = Some(Arc::new(SessionApprover {
        front_end: added.approver,
        permissions,
        session: config.clone(),
        store: config.home.stores().approvals.clone(),
        audience: audience(config),
        limit: Duration::from_secs(config.config.tools.approvals.timeout_seconds),
        context: ToolContext {
            working_directory: config.working_directory().to_owned(),
            artifact_directory: params.stores.side_files.artifact_directory(&config.session_key),
            max_result_chars: params.rules.max_tool_result_chars,
            workspace_only: params.rules.workspace_only,
            closed: Arc::clone(&params.rules.closed),
            // A preview changes nothing, so the turn does not matter.
            turn: TurnId::generate(),
        },
    }));
}

/// Asks the policy about each call as it will be made.
struct PolicyHook(Arc<Permissions>);

impl Hook for PolicyHook {
    fn name(&self) -> &str {
        POLICY
    }

    fn heeds_start(&self) -> bool {
        false
    }

    fn judge<'a>(
        &'a self,
        call: &'a PreparedCall,
    ) -> BoxFuture<'a, Result<ToolCallVerdict, HookError>> {
        Box::pin(async move {
            if self.0.is_open_for(call) {
                return Ok(ToolCallVerdict::Allow);
            }
            let (permissions, call) = (Arc::clone(&self.0), call.clone());
            let verdict = blocking(move || permissions.check(&call)).await?;
            Ok(match verdict {
                Verdict::Allowed => ToolCallVerdict::Allow,
                Verdict::NeedsApproval(reason) => ToolCallVerdict::Ask { reason },
                Verdict::Denied(reason) => ToolCallVerdict::Deny { reason },
            })
        })
    }
}
