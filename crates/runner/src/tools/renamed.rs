//! A tool under the name and with the arguments that the protocol gives it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{Tool, ToolError, ToolInvocation, ToolOutput};
use myclaw_llm::ToolSchema;
use serde_json::{Map, Value};

/// See the module.
pub(super) struct Renamed<T> {
    tool: T,
    schema: ToolSchema,
}

impl<T: Tool + 'static> Renamed<T> {
    /// `tool` with another schema, whose arguments the tool knows by its aliases. Two arguments are of this protocol
    /// only: `limit` of Read counts lines, and Edit has an `old_string` that occurs once.
    pub(super) fn of(tool: T, schema: ToolSchema) -> Arc<dyn Tool> {
        Arc::new(Self { tool, schema })
    }

    /// `tool` under another name.
    pub(super) fn named(tool: T, name: &str) -> Arc<dyn Tool> {
        let schema = ToolSchema { name: name.to_owned(), ..tool.schema().clone() };
        Self::of(tool, schema)
    }
}

impl<T: Tool> Tool for Renamed<T> {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn is_read_only(&self) -> bool {
        self.tool.is_read_only()
    }

    fn execute<'a>(
        &'a self,
        mut invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        invocation.arguments = self.tool.aliases().rename(invocation.arguments);
        if self.schema.name == "Read" {
            count_lines(&mut invocation.arguments);
        }
        self.tool.execute(invocation)
    }
}

/// Turns the number of lines into the last line.
fn count_lines(arguments: &mut Map<String, Value>) {
    let number = |arguments: &Map<String, Value>, name: &str| arguments.get(name)?.as_u64();
    let Some(limit) = number(arguments, "limit") else { return };
    let first = number(arguments, "startLine").unwrap_or(1);
    arguments.remove("limit");
    let last = first.saturating_add(limit).saturating_sub(1);
    arguments.insert("endLine".to_owned(), Value::from(last));
}
