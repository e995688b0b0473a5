//! A tool of a server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, Powers, ShownFact, Tool, ToolContext, ToolDeclaration,
    ToolError, ToolInvocation, ToolKind, ToolOutput, ToolUpdate, WorkPlace,
};
use myclaw_llm::ToolSchema;
use parking_lot::Mutex;

use crate::connection::{CallWatch, Revision};
use crate::elicitation::{Ask, Asker, Questions};
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
    asker: Option<Arc<dyn Asker>>,
}

impl RemoteTool {
    /// The approved tools of a server that `is_wanted` keeps, by the names that the server gives them.
    pub(crate) fn all_of(
        server: &Server,
        approved: Approved,
        is_wanted: &dyn Fn(&str) -> bool,
        asker: Option<&Arc<dyn Asker>>,
    ) -> Vec<Arc<dyn Tool>> {
        let revision = Revision::new(approved.revision);
        let wanted = approved.tools.into_iter().filter(|tool| is_wanted(&tool.name));
        let made = wanted.map(|definition| {
            let schema = definition.schema(server.name());
            let (revision, server, asker) = (revision.clone(), server.clone(), asker.cloned());
            Arc::new(Self { schema, definition, revision, server, asker }) as Arc<dyn Tool>
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

    fn is_described_by_others(&self) -> bool {
        true
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
            let asker = self.asker.as_deref();
            let ask = asker.map(|asker| {
                move |question| asker.ask(self.server.name(), invocation.call, question)
            });
            let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
            let questions = Questions { ask, declined: Mutex::default() };
            let (cancel, on_progress) = (&invocation.cancel, &on_progress);
            let watch = CallWatch { cancel, on_progress, questions };
            let called = self.server.call(what, arguments, &watch).await;
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
