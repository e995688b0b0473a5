//! A tool of a server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use myclaw_engine::{
    About, CallArguments, CallSubject, Power, Powers, PreparedCall, ShownFact, Tool, ToolContext,
    ToolDeclaration, ToolError, ToolInvocation, ToolKind, ToolOutput, ToolUpdate, WorkPlace,
};
use myclaw_llm::{ToolCall, ToolSchema};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::connection::{CallWatch, Called, Revision};
use crate::definition::offered_name;
use crate::elicitation::{Answers as _, Ask, Asked, Asker, Begun, Questions, Reply};
use crate::failure::{Failure, Kind};
use crate::index::Whole;
use crate::{Outline, Server, ToolDefinition, outcome};

/// Nothing is known of what such a tool can do.
const DECLARATION: ToolDeclaration = ToolDeclaration {
    title: "Use an MCP tool",
    kind: ToolKind::Other,
    about: About::Nothing,
    group: None,
    powers: Powers::ALL,
    place: WorkPlace::Here,
};

/// One that reads only, by the description that the owner approved.
const READING: ToolDeclaration = ToolDeclaration {
    powers: Powers::of(&[Power::ReadsFiles, Power::ReachesNetwork]),
    ..DECLARATION
};

/// A tool of a server, as it was approved.
pub(crate) struct RemoteTool {
    /// By which a model knows it.
    name: String,
    /// That the server gives it.
    own_name: String,
    known: OnceLock<Known>,
    origin: Arc<Origin>,
}

/// What the tools of a server share.
struct Origin {
    whole: Whole,
    revision: Revision,
    server: Server,
    asker: Option<Arc<dyn Asker>>,
}

/// All that was approved of it.
struct Known {
    schema: ToolSchema,
    definition: ToolDefinition,
}

impl RemoteTool {
    /// The approved tools of a server that `is_wanted` keeps, by the names that the server gives them.
    pub(crate) fn all_of(
        server: &Server,
        approved: Outline,
        is_wanted: &dyn Fn(&str) -> bool,
        asker: Option<&Arc<dyn Asker>>,
    ) -> Vec<Arc<dyn Tool>> {
        let Outline { revision, tools, whole } = approved;
        let (revision, asker) = (Revision::new(revision), asker.cloned());
        let origin = Arc::new(Origin { whole, revision, server: server.clone(), asker });
        let made = tools.into_iter().filter(|tool| is_wanted(tool)).map(|own_name| {
            let (name, origin) = (offered_name(server.name(), &own_name), Arc::clone(&origin));
            Arc::new(Self { name, own_name, known: OnceLock::new(), origin }) as Arc<dyn Tool>
        });
        made.collect()
    }

    fn known(&self) -> &Known {
        self.known.get_or_init(|| {
            let definition = self.origin.whole.tool(&self.own_name);
            Known { schema: definition.schema(self.origin.server.name()), definition }
        })
    }
}

impl Tool for RemoteTool {
    fn schema(&self) -> &ToolSchema {
        &self.known().schema
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn declaration(&self) -> ToolDeclaration {
        match self.known().definition.is_read_only() {
            true => READING,
            false => DECLARATION,
        }
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _context: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        let fact = ShownFact::text("server", self.origin.server.shown());
        Ok(CallSubject::unknown(arguments).first(&[], vec![fact]))
    }

    fn is_described_by_others(&self) -> bool {
        true
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.call(invocation, None))
    }

    /// A call that waited for the user when its process was killed continues from there.
    fn recall<'a>(
        &'a self,
        call: &'a ToolCall,
        asked_at: u64,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Option<ToolOutput>> {
        Box::pin(async move {
            let begun = self.origin.asker.as_ref()?.begun(&call.id, asked_at).await?;
            let call = PreparedCall::new(self, &call.id, call.arguments.clone(), context).ok()?;
            let (on_update, cancel) = (&|_| {}, CancellationToken::new());
            let invocation = ToolInvocation { call: &call, on_update, context, cancel };
            let called = self.call(invocation, Some(begun)).await;
            Some(called.unwrap_or_else(|error| ToolOutput {
                is_error: true,
                ..ToolOutput::text(error.to_string())
            }))
        })
    }
}

impl RemoteTool {
    /// Makes a call, or continues with one that has begun in a process that was killed.
    async fn call(
        &self,
        invocation: ToolInvocation<'_>,
        begun: Option<Begun>,
    ) -> Result<ToolOutput, ToolError> {
        let on_progress = |text: String| (invocation.on_update)(ToolUpdate { text, details: None });
        let ask = self.origin.asker.as_deref().map(|asker| {
            move |question, begun| -> BoxFuture<'_, Reply> {
                let (server, call) = (self.origin.server.name(), invocation.call);
                asker.ask(Asked { server, call, question, begun })
            }
        });
        let mut questions = Questions::of(ask.as_ref().map(|ask| ask as &Ask<'_>));
        let round = match begun {
            Some(Begun::Round(round)) => Some(round),
            Some(Begun::Question(asked)) => {
                questions.repeats = true;
                let answer = questions.answer(asked.clone(), Begun::Question(asked.clone())).await;
                if answer["action"] != "accept" {
                    let declined = questions.declined.into_inner();
                    let result = json!({"content": [], "isError": true});
                    return self.output(Called { result, declined }, invocation.context).await;
                }
                *questions.earlier.lock() = Some((asked, answer));
                None
            }
            None => None,
        };
        let (cancel, on_progress) = (&invocation.cancel, &on_progress);
        let watch = CallWatch { cancel, on_progress, questions, round };
        let what = (&self.known().definition, &self.origin.revision);
        let called =
            self.origin.server.call(what, invocation.call.arguments.as_map(), &watch).await;
        // The call was aborted, or the server has answered, ended or given up meanwhile.
        if watch.questions.is_asking.load(Ordering::Relaxed)
            && let Some(asker) = &self.origin.asker
        {
            asker.forget(&invocation.call.tool_call_id).await;
        }
        self.output(called.map_err(|failure| error_of(&failure))?, invocation.context).await
    }

    async fn output(&self, called: Called, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (server, context) = (self.origin.server.name().to_owned(), context.clone());
        tokio::task::spawn_blocking(move || outcome::output_of(&server, &called, &context))
            .await
            .map_err(|error| ToolError::Failed(error.to_string()))
    }
}

fn error_of(failure: &Failure) -> ToolError {
    match failure.kind {
        Kind::Aborted => ToolError::Aborted(failure.what.clone()),
        _ => ToolError::Failed(failure.for_model()),
    }
}
