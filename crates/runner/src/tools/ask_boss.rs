//! `ask_boss`: a question to the user that waits for the reply.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_engine::{
    CallArguments, CallEffect, CallSubject, Power, Tool, ToolContext, ToolDeclaration, ToolError,
    ToolGroup, ToolInvocation, ToolOutput,
};
use myclaw_llm::ToolSchema;
use serde_json::{Value, json};

use super::{not_written, of_host, schema, send};
use crate::ipc::{Incoming, Ipc};
use crate::job::POLL;

/// See the module.
pub(super) struct AskBoss {
    schema: ToolSchema,
    ipc: Arc<Ipc>,
    limit: Duration,
    say: Arc<dyn Fn(&str) + Send + Sync>,
}

impl AskBoss {
    pub(super) fn new(
        ipc: Arc<Ipc>,
        limit: Duration,
        say: &Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Self {
        let schema = schema(
            "ask_boss",
            "Ask the user a question and wait for the reply, which is the result.",
            &json!({"text": {"type": "string", "description": "The question"}}),
            &["text"],
        );
        Self { schema, ipc, limit, say: Arc::clone(say) }
    }

    /// The first message that is not one of `earlier`; `None` when the host ends the job. All others stay for the next
    /// query.
    async fn reply(&self, earlier: &[Incoming]) -> Option<String> {
        loop {
            if self.ipc.is_closed() {
                return None;
            }
            let pending = self.ipc.pending(&*self.say);
            if let Some(reply) = pending.into_iter().find(|message| !earlier.contains(message)) {
                self.ipc.take(&reply);
                return Some(reply.text);
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Tool for AskBoss {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn declaration(&self) -> ToolDeclaration {
        of_host("Ask the user", ToolGroup::Messaging, Power::SendsMessages)
    }

    fn subject(
        &self,
        arguments: &CallArguments,
        _: &ToolContext,
    ) -> Result<CallSubject, ToolError> {
        Ok(CallSubject::of(arguments).with(CallEffect::Message("the user".to_owned())))
    }

    fn execute<'a>(
        &'a self,
        invocation: ToolInvocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let text = invocation.call.arguments.get("text").and_then(Value::as_str);
            let question = send::text_of(text.unwrap_or_default())?;
            // What came before the question is no reply to it.
            let earlier = self.ipc.pending(&*self.say);
            self.ipc.send_question(&question).map_err(|error| not_written(&error))?;
            let reply = tokio::select! {
                biased;
                () = invocation.cancel.cancelled() => {
                    return Err(ToolError::Aborted("the question was sent; there was no reply".to_owned()));
                }
                reply = tokio::time::timeout(self.limit, self.reply(&earlier)) => reply,
            };
            match reply {
                Ok(Some(reply)) => Ok(ToolOutput::text(reply)),
                Ok(None) => Err(ToolError::Failed(
                    "the job ends before the reply; the user's answer will come as a message"
                        .to_owned(),
                )),
                Err(_) => Err(ToolError::Failed(format!(
                    "there was no reply within {}; do not guess: say what you wait for and stop here",
                    in_words(self.limit)
                ))),
            }
        })
    }
}

fn in_words(limit: Duration) -> String {
    match limit.as_secs() {
        seconds if seconds % 60 == 0 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} seconds"),
    }
}
