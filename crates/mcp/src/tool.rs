//! A tool of a server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, Powers, ShownFact, Tool, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolKind, ToolOutput, ToolUpdate, WorkPlace,
};
use myclaw_llm::ToolSchema;

use crate::connection::Revision;
use crate::failure::{Failure, Kind};
use crate::{Approved, Server, ToolDefinition, outcome};

/// Nothing is known of what such a tool can do.
const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Use an MCP tool",
    kind: ToolKind::Other,
    about: About::Nothing,
    group: None,
    powers: Powers::ALL,
    place: WorkPlace::Here,
};

/// A tool of a server, as it was approved.
pub(crate) struct RemoteTool {
    schema: ToolSchema,
    definition: ToolDefinition,
    revision: Revision,
    server: Server,
}

impl RemoteTool {
    /// The approved tools of a server that `is_wanted` keeps, by the names that the server gives them.
    pub(crate) fn all_of(
        server: &Server,
        approved: Approved,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Vec<Arc<dyn Tool>> {
        let revision = Revision::new(approved.revision);
        let wanted = approved.tools.into_iter().filter(|tool| is_wanted(&tool.name));
        let made = wanted.map(|definition| {
            let schema = definition.schema(server.name());
            let (revision, server) = (revision.clone(), server.clone());
            Arc::new(Self { schema, definition, revision, server }) as Arc<dyn Tool>
        });
        made.collect()
    }
}

impl Tool for RemoteTool {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        DECLARATION
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let fact = ShownFact::text("server", self.server.shown());
        Ok(CallSubject::unknown(arguments).first(&[], vec![fact]))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let on_progress =
                |text: String| (invocation.on_update)(ToolUpdate { text, details: None });
            let what = (&self.definition, &self.revision);
            let arguments = invocation.call.arguments.as_map();
            let called = self.server.call(what, arguments, &invocation.cancel, &on_progress).await;
            let called = called.map_err(|failure| error_of(&failure))?;
            let (server, context) = (self.server.name().to_owned(), invocation.context.clone());
            tokio::task::spawn_blocking(move || outcome::output_of(&server, &called, &context))
                .await
                .map_err(|error| ToolError::Failed(error.to_string()))
        })
    }
}

fn error_of(failure: &Failure) -> ToolError {
    match failure.kind {
        Kind::Aborted => ToolError::Aborted(failure.what.clone()),
        _ => ToolError::Failed(failure.for_model()),
    }
}
