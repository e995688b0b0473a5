//! The engine's rules for this protocol, and what is changed in the messages that are sent.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use myclaw_agent::HttpProviders;
use myclaw_auth::CooldownRules;
use myclaw_config::{
    CompactionConfig, ContextPruning, CooldownConfig, DeliveryMode, IterationCap, LaneWidths,
    RunLimits,
};
use myclaw_engine::{
    Bound, ConfigKeys, CutAnswers, Hook, HookError, Providers as _, RefusalRule, RunRules,
};
use myclaw_llm::outside::{change_texts, harmless};
use myclaw_llm::{
    AssistantMessage, CallFailure, CallLimits, ContentBlock, EventSink, Message, ModelRequest,
    Provider, ThinkingLevel,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ipc::Ipc;

/// After status 400, this many messages are kept.
const KEPT_MESSAGES: NonZeroUsize = match NonZeroUsize::new(10) {
    Some(count) => count,
    None => NonZeroUsize::MIN,
};
/// Most characters of a tool's result that the model sees: the 1 MiB of the protocol.
const MAX_RESULT_CHARS: usize = 1024 * 1024;
/// The tool that gets arguments which are not JSON as its one text argument.
const COMMAND_TOOL: &str = "Bash";

/// The rules: one attempt with one key (the host repeats a job that failed), no summaries, and no limit on time, which
/// the host has.
pub(crate) fn rules(max_turns: NonZeroU32) -> RunRules {
    // The last of the calls is the closing summary.
    let calls = NonZeroU32::new(max_turns.get() - 1).unwrap_or(NonZeroU32::MIN);
    RunRules {
        thinking: ThinkingLevel::Off,
        max_iterations: IterationCap::Limited(calls),
        max_retries: 0,
        cut_answers: CutAnswers::Kept,
        max_tool_result_chars: MAX_RESULT_CHARS,
        workspace_only: true,
        closed: Arc::default(),
        known_secrets: Arc::default(),
        compaction: CompactionConfig::default(),
        refusals: RefusalRule::KeepNewest(KEPT_MESSAGES),
        context_pruning: ContextPruning::Off,
        history_limit: None,
        // The host counts time and cost.
        limits: RunLimits {
            run_seconds: 0,
            run_tokens: 0,
            run_cost: 0.0,
            day_tokens: 0,
            day_cost: 0.0,
            ..RunLimits::default()
        },
        shared_cost: None,
        steering: DeliveryMode::All,
        follow_ups: DeliveryMode::All,
        quiet: Duration::ZERO,
        lanes: LaneWidths::default(),
        call: CallLimits::default(),
        time_zone: None,
        config_keys: ConfigKeys::new(|bound| limit_of(bound).to_owned()),
        cooldowns: CooldownRules::from(&CooldownConfig::default()),
    }
}

/// What sets a limit. The limits of time and cost are the host's, and are not set here.
fn limit_of(bound: Bound) -> &'static str {
    match bound {
        Bound::MaxIterations => "--max-turns",
        Bound::RepeatedCalls => "a fixed limit of the runner",
        bound => bound.as_str(),
    }
}

/// Message to the user of a job that ended at a limit.
pub(crate) fn stopped_at(bound: Bound) -> String {
    format!("I stopped before I was done, because {} ({}).", bound.reason(), limit_of(bound))
}

/// Cleans the copy of the messages that is sent, and looks for the host's sign to end before each call.
pub(crate) struct BeforeCall {
    pub(crate) ipc: Arc<Ipc>,
    /// Ends the query.
    pub(crate) stop: CancellationToken,
}

impl Hook for BeforeCall {
    fn name(&self) -> &str {
        "runner"
    }

    fn context<'a>(
        &'a self,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<Option<Vec<Message>>, HookError>> {
        if self.ipc.is_closed() {
            self.stop.cancel();
        }
        let sent = messages.iter().filter_map(sanitised).collect();
        Box::pin(async { Ok(Some(sent)) })
    }
}

/// A message as it is sent: what the user said without the time, and of the model only texts that are not empty and
/// calls. The codec leaves out the other fields that strict hosts refuse.
fn sanitised(message: &Message) -> Option<Message> {
    let mut message = message.clone();
    match &mut message {
        Message::User(user) => {
            user.annotation = None;
            // The host's prompt holds what other people wrote, and none of its own tags is a mark.
            change_texts(&mut user.content, |content| harmless(&content.text));
        }
        Message::Assistant(AssistantMessage { content, .. }) => {
            content.retain(|block| match block {
                ContentBlock::Text(text) => !text.text.trim().is_empty(),
                ContentBlock::ToolCall(_) => true,
                ContentBlock::Thinking(_) | ContentBlock::Image(_) => false,
            });
            if content.is_empty() {
                return None;
            }
        }
        Message::ToolResult(_) => {}
    }
    Some(message)
}

/// The models behind HTTP. A call of Bash whose arguments are not JSON is taken for the command itself, as some models
/// write it.
pub(crate) struct RunnerProvider(pub(crate) HttpProviders);

impl Provider for RunnerProvider {
    fn call<'a>(
        &'a self,
        request: ModelRequest<'a>,
        cancel: &'a CancellationToken,
        sink: EventSink<'a>,
    ) -> BoxFuture<'a, Result<AssistantMessage, CallFailure>> {
        Box::pin(async move {
            let provider = self.0.provider(request.model);
            let mut message = provider.call(request, cancel, sink).await?;
            for block in &mut message.content {
                if let ContentBlock::ToolCall(call) = block
                    && call.name == COMMAND_TOOL
                    && let Some(raw) = call.invalid_arguments.take()
                {
                    call.arguments.insert("command".to_owned(), Value::String(raw));
                }
            }
            Ok(message)
        })
    }
}
