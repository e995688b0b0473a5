//! `builtin/demo`: a small deterministic planner behind the same interface as any model.
//!
//! It is used when no model is configured and no model server listens, so that a first run shows a whole turn, and it
//! gives scripts and tests a model whose answers never change. It is not a language model and never claims to be one:
//! it understands a handful of requests, calls the tools on offer and answers with their results. Everything it does is
//! a function of the request alone; it reads no files, no clock and no config.
//!
//! | file | step |
//! |---|---|
//! | `request` | parses a message into the tool calls that it asks for |
//! | `plan` | derives the next step from the messages: a call or an answer |
//! | `extract` | replaces a summary when a session is compacted |
//! | `stream` | turns a planned message into stream events |

mod extract;
mod fingerprint;
mod plan;
mod request;
mod stream;
mod usage;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    AssistantMessage, CallFailure, ErrorClass, EventSink, Model, ModelError, ModelRequest,
    Provider, ResolveModel, StopReason, StreamEvent, resolve_model,
};

/// Provider name of the models inside this process.
pub const BUILTIN_PROVIDER: &str = "builtin";

/// Id of the demo planner.
pub const DEMO_MODEL_ID: &str = "demo";

/// The catalog's entry of the demo planner.
pub fn demo_model() -> Model {
    resolve_model(ResolveModel {
        provider: BUILTIN_PROVIDER,
        id: DEMO_MODEL_ID,
        base_url: None,
        api: None,
    })
}

/// The demo planner. It holds no state: the messages decide what it does.
#[derive(Debug, Clone, Copy, Default)]
pub struct DemoProvider;

impl Provider for DemoProvider {
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        cancel: &'a CancellationToken,
        sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>> {
        Box::pin(async move {
            if request.model.id != DEMO_MODEL_ID {
                return Err(unknown_model(&request.model.id, sink));
            }
            if let Some(option) = request.asked().unsupported(request.model.api) {
                let error = crate::wire::no_such_option(request.model, option);
                let shown = error.message.clone();
                sink(StreamEvent::Error { reason: StopReason::Error, error: shown });
                return Err(error.into());
            }
            let step = plan::next_step(&request);
            stream::send(&request, step, cancel, sink).await
        })
    }
}

fn unknown_model(id: &str, sink: EventSink<'_>) -> CallFailure {
    let message = format!(
        "there is no built-in model `{id}`; the only one is {BUILTIN_PROVIDER}/{DEMO_MODEL_ID}"
    );
    sink(StreamEvent::Error { reason: StopReason::Error, error: message.clone() });
    ModelError::new(ErrorClass::Unknown, message).into()
}

#[cfg(test)]
mod tests;
