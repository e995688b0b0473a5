//! A tool of a gateway in a session, whoever carries out its calls.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, Tool, ToolAliases, ToolContext, ToolDeclaration, ToolError,
    ToolInvocation, ToolOutput,
};
use myclaw_llm::{ToolCall, ToolSchema};
use serde_json::Value;

use super::GatewayToolKind;

/// Carries out the calls of a tool.
pub trait GatewayCalls: Send + Sync {
    /// What the call answers.
    ///
    /// # Errors
    /// It fails, or is aborted.
    fn answer<'a>(
        &'a self,
        kind: GatewayToolKind,
        invocation: &'a ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<Value, ToolError>>;

    /// What a call answered whose process was killed before it could say so; `None` if that is not known.
    fn recall<'a>(
        &'a self,
        _kind: GatewayToolKind,
        _call: &'a ToolCall,
        _asked_at: u64,
    ) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async { None })
    }
}

/// One of the tools, for one session.
pub struct GatewayTool<C> {
    /// Which tool it is.
    pub kind: GatewayToolKind,
    /// What a model is shown of it.
    pub schema: Arc<ToolSchema>,
    /// What carries out its calls.
    pub calls: C,
}

impl<C: GatewayCalls> Tool for GatewayTool<C> {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        self.kind.declaration()
    }

    fn aliases(&self) -> ToolAliases {
        self.kind.aliases()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(self.kind.subject(arguments))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.calls.answer(self.kind, &invocation).await.map(|value| tool_output(&value))
        })
    }

    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        _: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let value = self.calls.recall(self.kind, call, asked_at).await?;
            Some(tool_output(&value))
        })
    }
}

/// The result of a tool that answers with a value.
pub fn tool_output(value: &Value) -> ToolOutput {
    ToolOutput::text(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// That a call was given up while it waited.
pub fn aborted() -> ToolError {
    ToolError::Aborted("aborted while it waited".to_owned())
}
