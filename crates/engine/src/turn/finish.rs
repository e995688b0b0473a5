//! Step `finish`: makes the log durable, updates the index, and builds the result for the caller.

use myclaw_llm::outside::restored;
use myclaw_llm::{Message, StopReason};
use myclaw_session::{
    AUTOMATIC_TITLE, IndexRepair, IndexUpdate, MetaPatch, UpdatedAt, exchange_title,
};
use serde_json::{Map, json};

use super::Shared;
use super::bounds::{Bounds, UsageRecord};
use crate::bound::micro_dollars;
use crate::program::ends_with_hand_over;
use crate::{
    ActiveModel, AgentRunEvent, Bound, HookPoint, Notice, RunError, RunParams, RunResult,
    SystemPromptReport,
};

/// Field of a session's entry in the index, in `extra`: tokens that the last run used.
const LAST_RUN_TOKENS: &str = "lastRunTokens";

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The model has answered.
    Reply,
    /// The turn continues with another model.
    Switch,
    /// A limit is reached before the turn is finished.
    Bound(Bound),
    /// The limit was reached before the model said anything, so there is nothing to summarise.
    NotBegun(Bound),
}

impl Ending {
    /// The ending at a limit, after `iterations` messages of the model.
    pub(super) fn at(bound: Bound, iterations: u32) -> Self {
        if iterations == 0 { Self::NotBegun(bound) } else { Self::Bound(bound) }
    }
}

/// The result for the caller.
pub(super) fn result(shared: &Shared, model: &ActiveModel, ending: Ending) -> RunResult {
    let model = &model.model;
    let messages = shared.log.messages();
    let (bound, reply) = match ending {
        Ending::Reply | Ending::Switch => (None, last_assistant_text(messages, Blank::Counts)),
        // If the closing summary failed or is empty, the last text before it is the reply.
        Ending::Bound(bound) => (Some(bound), last_assistant_text(messages, Blank::PassedOver)),
        // Without one, the last text in the session would be the answer to an earlier message.
        Ending::NotBegun(bound) => (Some(bound), String::new()),
    };
    let stop_reason = last_stop_reason(messages).filter(|_| ending == Ending::Reply);
    let notice = stop_reason.and_then(|reason| not_whole(reason, &reply, model.max_output));
    if let Some(notice) = notice {
        shared.notice(notice);
    }
    RunResult {
        reply,
        stop_reason,
        usage: shared.tally.usage,
        last_call_usage: shared.tally.last_call_usage,
        iterations: shared.tally.iterations,
        max_iterations_reached: bound == Some(Bound::MaxIterations),
        bound,
        is_handed_over: ending == Ending::Reply && ends_with_hand_over(messages),
        provider: model.provider.clone(),
        model: model.id.clone(),
        system_prompt_report: SystemPromptReport {
            files: shared.prompt.files.clone(),
            total_chars: shared.prompt.system_prompt.chars().count(),
        },
    }
}

/// A notice about an answer that is incomplete.
fn not_whole(reason: StopReason, reply: &str, max_output: u64) -> Option<Notice> {
    match reason {
        _ if reply.trim().is_empty() => None,
        StopReason::Length => Some(Notice::AnswerCut { max_output }),
        StopReason::Refusal => Some(Notice::AnswerFiltered {}),
        _ => None,
    }
}

fn last_stop_reason(messages: &[Message]) -> Option<StopReason> {
    messages.iter().rev().find_map(|message| match message {
        Message::Assistant(assistant) => Some(assistant.stop_reason),
        _ => None,
    })
}

/// Waits until the day's totals and the log are on disk, then updates the index. All on one thread: each change to
/// another one costs more than the totals do. The index can be rebuilt, so a failure to update it is only a notice.
pub(super) async fn make_durable(
    shared: &mut Shared,
    model: &ActiveModel,
    bounds: &mut Bounds,
) -> Result<(), RunError> {
    if let Some(entering) = shared.entering.take() {
        entering.await.map_err(|error| RunError::Internal(error.to_string()))?;
    }
    let shared = &*shared;
    let usage = bounds.unrecorded(shared);
    let sync = shared.log.sync_handle();
    let store = shared.run.store.clone();
    let key = shared.run.session_key.clone();
    let parts = key.parts();
    let last_run_tokens = shared.tally.earlier_tokens + shared.tally.usage.total_tokens;
    let title = shared.opening.as_deref().and_then(|message| {
        let answer = last_assistant_text(shared.log.messages(), Blank::PassedOver);
        Some((AUTOMATIC_TITLE.to_owned(), exchange_title(message, &answer)?.into()))
    });
    let patch = MetaPatch {
        updated_at: if shared.is_quiet() { UpdatedAt::Keep } else { UpdatedAt::Now },
        last_to: Some(parts.peer().to_owned()),
        last_channel: Some(parts.channel),
        chat_type: Some(parts.peer_kind),
        model: Some(model.reference()),
        add_tokens: shared.tally.usage.total_tokens,
        add_micro_dollars: micro_dollars(shared.tally.usage.cost.total),
        add_messages: shared.log.added(),
        in_turn: Some(false),
        extra: Some(Map::from_iter(
            [(LAST_RUN_TOKENS.to_owned(), json!(last_run_tokens))].into_iter().chain(title),
        )),
    };
    let blocking = tokio::task::spawn_blocking(move || {
        let recorded = usage.map(UsageRecord::store);
        let synced = sync.sync();
        (recorded, synced, store.record(&key, patch))
    });
    let (recorded, synced, IndexUpdate { outcome: indexed, repairs }) =
        blocking.await.map_err(|error| RunError::Internal(error.to_string()))?;
    if let Some(recorded) = recorded {
        bounds.recorded(shared, recorded);
    }
    synced?;
    for IndexRepair { path, backup } in repairs {
        shared.notice(Notice::SessionListRestored { path, backup });
    }
    if let Err(error) = indexed {
        shared.notice(Notice::IndexNotUpdated { error: error.to_string() });
    }
    Ok(())
}

/// How a search for the last text treats a message without text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Counts,
    PassedOver,
}

fn last_assistant_text(messages: &[Message], blank: Blank) -> String {
    let mut texts = messages.iter().rev().filter_map(|message| match message {
        Message::Assistant(assistant) => Some(restored(&assistant.text()).into_owned()),
        _ => None,
    });
    texts.find(|text| blank == Blank::Counts || !text.trim().is_empty()).unwrap_or_default()
}

/// Reports to the hooks and the caller how the run ended.
pub(crate) async fn announce_end(params: &RunParams, outcome: &Result<RunResult, RunError>) {
    for hook in &params.hooks {
        if let Err(error) = hook.agent_end(outcome).await {
            params.events().notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::AgentEnd,
                error: error.to_string(),
            });
        }
    }
    if let Ok(result) = outcome {
        params.events().emit(AgentRunEvent::Done { result: result.clone() });
    }
}
