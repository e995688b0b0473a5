//! The tool that lists and stops the sub-agents of a session.

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, Tool, ToolContext, ToolDeclaration, ToolError, ToolInvocation,
    ToolOutput,
};
use myclaw_files::now_ms;
use myclaw_llm::ToolSchema;
use serde_json::{Value, json};

use super::declared::{ATTEND, ATTEND_DECLARATION};
use super::{Running, SubagentTools};
use crate::SessionConfig;

static SCHEMA: LazyLock<ToolSchema> = LazyLock::new(|| ToolSchema {
    name: ATTEND.to_owned(),
    description: "List your sub-agents in the background, or stop one.".to_owned(),
    parameters: json!({
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "stop"]},
            "session": {"type": "string", "description": "Its session or label"},
        },
        "required": ["action"],
    }),
});

/// The tool of one session.
pub(super) struct AttendTool {
    subagents: Arc<SubagentTools>,
    caller: SessionConfig,
}

impl AttendTool {
    pub(super) fn new(subagents: Arc<SubagentTools>, caller: SessionConfig) -> Self {
        Self { subagents, caller }
    }
}

impl Tool for AttendTool {
    fn schema(&self) -> &ToolSchema {
        &SCHEMA
    }

    fn declaration(&self) -> ToolDeclaration {
        ATTEND_DECLARATION
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::of(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let arguments = &invocation.call.arguments;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let running = self.subagents.of(&self.caller.session_key);
        let answer = match text("action") {
            "stop" => stop(&running, text("session")),
            _ if running.is_empty() => Ok("No sub-agent works.".to_owned()),
            _ => Ok(running.iter().map(|one| line(one)).collect::<Vec<_>>().join("\n")),
        };
        Box::pin(std::future::ready(answer.map(ToolOutput::text)))
    }
}

fn line(running: &Running) -> String {
    let named = running.child.named();
    let seconds = now_ms().saturating_sub(running.child.started_at) / 1_000;
    format!("\"{}\" ({}), {seconds} s: {}", named.name, named.session, running.last.lock())
}

fn stop(running: &[Arc<Running>], name: &str) -> Result<String, ToolError> {
    let is_it = |one: &&Arc<Running>| {
        let named = one.child.named();
        named.session == name || named.name == name
    };
    let found: Vec<&Arc<Running>> = running.iter().filter(is_it).collect();
    if found.is_empty() {
        return Err(ToolError::Failed(format!(
            "no sub-agent of yours with the session or label \"{name}\" works; see the action `list`"
        )));
    }
    found.iter().for_each(|one| one.cancel.cancel());
    Ok("Stopped; a message says how it ended.".to_owned())
}
