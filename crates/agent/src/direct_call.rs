//! Tool calls without a model: a program asks for them, under the rules of a session.

use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::{
    KnownSecrets, PreparedCall, Tool, ToolContext, ToolError, ToolInvocation, ToolKind, ToolOutput,
    TurnId,
};
use myclaw_tools::{ToolOptions, builtin_tools};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::permissions::{Permissions, Verdict};
use crate::{AgentError, SessionConfig};

/// The built-in tools of a session, with its policy and in its sandbox.
pub struct DirectTools {
    tools: Vec<Arc<dyn Tool>>,
    permissions: Arc<Permissions>,
    context: ToolContext,
    known_secrets: Arc<KnownSecrets>,
}

impl SessionConfig {
    /// The built-in tools that a program may call in this session. Without a person who could be asked, what needs an
    /// approval is refused.
    ///
    /// # Errors
    /// A rule of the config cannot be used, or the sandbox that it demands is not available.
    pub async fn direct_tools(&self) -> Result<DirectTools, AgentError> {
        let permissions = Permissions::new(self, None, &[])?;
        let (place, _) = self.place_and_skills().await?;
        let command_timeout = Duration::from_secs(self.config.tools.bash.timeout_seconds);
        // The journal of jobs ends what is left of a killed process at the next start.
        let jobs = Some(self.jobs().await);
        let params = self.bare_run(Vec::new());
        let commands = self.command_place(&place, &permissions, &params.rules.closed)?;
        let options = ToolOptions { command_timeout, jobs, commands, memory: None };
        let mut tools = place.tools(builtin_tools(options));
        // What the caller cannot see ends with its call, so there is nothing to look after.
        tools.retain(|tool| {
            tool.declaration().kind != ToolKind::Attend && permissions.offers(&tool.schema().name)
        });
        let context = ToolContext {
            working_directory: self.working_directory().to_owned(),
            artifact_directory: params.stores.side_files.artifact_directory(&self.session_key),
            max_result_chars: params.rules.max_tool_result_chars,
            workspace_only: params.rules.workspace_only,
            closed: params.rules.closed,
            turn: TurnId::generate(),
        };
        let known_secrets = params.rules.known_secrets;
        Ok(DirectTools { tools, permissions: Arc::new(permissions), context, known_secrets })
    }
}

impl DirectTools {
    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.schema().name.as_str())
    }

    /// Makes a call. It ends with everything it started when `cancel` fires.
    ///
    /// # Errors
    /// There is no such tool here, the policy does not allow the call, or the call fails.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let found = self.tools.iter().find(|tool| tool.schema().name == name);
        let Some(tool) = found else {
            let names: Vec<&str> = self.names().collect();
            let why = format!("there is no tool `{name}` here; there are {}", names.join(", "));
            return Err(ToolError::Failed(why));
        };
        let context = ToolContext { turn: TurnId::generate(), ..self.context.clone() };
        let checking = {
            let (permissions, tool) = (Arc::clone(&self.permissions), Arc::clone(tool));
            let context = context.clone();
            tokio::task::spawn_blocking(move || {
                let call = PreparedCall::new(&*tool, "direct", arguments, &context)?;
                let verdict = permissions.check(&call);
                Ok::<_, ToolError>((call, verdict))
            })
        };
        let checked = checking.await.map_err(|error| ToolError::Failed(error.to_string()))?;
        let (call, verdict) = checked?;
        if ["background", "yieldMs"].iter().any(|name| call.arguments.get(name).is_some()) {
            let why = "a call from elsewhere cannot leave a command running; leave `background` and `yieldMs` out";
            return Err(ToolError::Failed(why.to_owned()));
        }
        match verdict {
            Verdict::Allowed => {}
            Verdict::NeedsApproval(reason) => {
                return Err(ToolError::Failed(format!(
                    "the policy of this machine asks before it runs that ({}), and nobody can answer here; its owner can \
                     allow it in the config file of this machine",
                    reason
                )));
            }
            Verdict::Denied(reason) => return Err(ToolError::Failed(reason)),
        }
        let invocation =
            ToolInvocation { call: &call, on_update: &|_| {}, context: &context, cancel };
        let mut outcome = tool.execute(invocation).await;
        match &mut outcome {
            Ok(output) => self.known_secrets.remove_from(output),
            Err(ToolError::Failed(text) | ToolError::Aborted(text)) => {
                *text = self.known_secrets.without(text).into_owned();
            }
        }
        outcome
    }
}
