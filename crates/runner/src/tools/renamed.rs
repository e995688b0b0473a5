//! A tool under the name and with the arguments that the protocol gives it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallSubject, PreparedCall, Tool, ToolContext, ToolDeclaration, ToolError,
    ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;

/// See the module.
pub(super) struct Renamed<T> {
    tool: T,
    schema: ToolSchema,
}

impl<T: Tool + 'static> Renamed<T> {
    /// `tool` with another schema, whose arguments the tool knows by its aliases.
    pub(super) fn of(tool: T, schema: ToolSchema) -> Arc<dyn Tool> {
        Arc::new(Self { tool, schema })
    }

    /// `tool` under another name.
    pub(super) fn named(tool: T, name: &str) -> Arc<dyn Tool> {
        let schema = ToolSchema { name: name.to_owned(), ..tool.schema().clone() };
        Self::of(tool, schema)
    }

    /// The arguments as the tool names them.
    fn own(&self, arguments: &CallArguments) -> Result<CallArguments, ToolError> {
        CallArguments::of(&self.tool, arguments.as_map().clone())
            .map_err(|problems| ToolError::Failed(problems.join("; ")))
    }
}

impl<T: Tool + 'static> Tool for Renamed<T> {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        self.tool.declaration()
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        self.tool.subject(&self.own(arguments)?, context)
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = self.own(&invocation.call.arguments)?;
            let call = &PreparedCall { arguments, ..invocation.call.clone() };
            self.tool.execute(ToolInvocation { call, ..invocation }).await
        })
    }
}
