//! Calls that a tool makes in the middle of its own one.

use std::time::Instant;

use futures_util::future::BoxFuture;
use myclaw_llm::ToolCall;
use tokio_util::sync::CancellationToken;

use super::report::emit_end;
use super::{Finished, Toolbox};
use crate::turn::RunContext;
use crate::{InnerCalls, ToolContext, ToolOutput};

/// Most characters of text that a tool gets of an inner call: it is there to make less of them.
const MAX_CHARS: usize = 1_000_000;

/// Makes the calls of one tool.
pub(super) struct CallsOfTool<'a> {
    pub(super) toolbox: &'a Toolbox,
    pub(super) run: &'a RunContext,
    /// The model that made the outer call.
    pub(super) model: &'a str,
}

impl InnerCalls for CallsOfTool<'_> {
    fn make<'a>(
        &'a self,
        call: ToolCall,
        ended: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let Self { toolbox, run, model } = self;
            let context = ToolContext { max_result_chars: MAX_CHARS, ..toolbox.context.clone() };
            let started = Instant::now();
            let finished = tokio::select! {
                biased;
                finished = toolbox.run_call(run, &call, model, &context) => Some(finished),
                () = ended.cancelled() => None,
            };
            let (output, took) = match finished {
                Some(Finished { output, took }) => (output, took),
                None => {
                    toolbox.gate.forget(run, &call).await;
                    let output = ToolOutput::error("the call was ended with what had made it");
                    (output, started.elapsed())
                }
            };
            emit_end(run, &call, took, &output);
            output
        })
    }
}
