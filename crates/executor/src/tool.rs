//! A tool whose calls run in the helper process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolAliases, ToolError, ToolInvocation, ToolOutput};
use myclaw_llm::ToolSchema;

use crate::Executor;

/// A tool as the engine sees it. Its schema stays on this side.
pub(crate) struct ConfinedTool {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) executor: Arc<Executor>,
}

impl Tool for ConfinedTool {
    fn schema(&self) -> &ToolSchema {
        self.tool.schema()
    }

    fn aliases(&self) -> ToolAliases {
        self.tool.aliases()
    }

    fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.executor.call(&self.tool.schema().name, invocation))
    }
}
