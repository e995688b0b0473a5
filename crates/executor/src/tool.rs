//! A tool whose calls are made by something else.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, Tool, ToolAliases, ToolContext, ToolDeclaration, ToolError,
    ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;

/// Makes the calls of tools.
pub trait CallHandler: Send + Sync {
    /// Makes one call of `tool`, in place of [`Tool::execute`].
    ///
    /// # Errors
    /// As for [`Tool::execute`].
    fn handle<'a>(
        &'a self,
        tool: &'a dyn Tool,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The same tool for the engine, with calls that `handler` makes.
pub fn with_handler(tool: Arc<dyn Tool>, handler: Arc<dyn CallHandler>) -> Arc<dyn Tool> {
    Arc::new(HandledTool { tool, handler })
}

struct HandledTool {
    tool: Arc<dyn Tool>,
    handler: Arc<dyn CallHandler>,
}

impl Tool for HandledTool {
    fn schema(&self) -> &ToolSchema {
        self.tool.schema()
    }

    fn declaration(&self) -> ToolDeclaration {
        self.tool.declaration()
    }

    fn aliases(&self) -> ToolAliases {
        self.tool.aliases()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        self.tool.subject(arguments, context)
    }

    fn is_described_by_others(&self) -> bool {
        self.tool.is_described_by_others()
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.handler.handle(&*self.tool, invocation)
    }
}
