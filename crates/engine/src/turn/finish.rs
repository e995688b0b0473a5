//! Step `finish`: the log is made durable, the index learns of the turn, the caller gets the result.

use myclaw_llm::Message;
use myclaw_session::MetaPatch;

use super::Turn;
use crate::{AgentRunEvent, RunError, RunResult};

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The model has answered.
    Reply,
    /// It would go on, but the iteration cap is reached.
    IterationCap,
}

pub(super) async fn finish(turn: &mut Turn<'_>, ending: Ending) -> Result<RunResult, RunError> {
    make_durable(turn).await?;
    let model = &turn.model.model;
    let result = RunResult {
        reply: last_assistant_text(turn.conversation.messages()),
        usage: turn.tally.usage,
        last_call_usage: turn.tally.last_call_usage,
        iterations: turn.tally.iterations,
        max_iterations_reached: ending == Ending::IterationCap,
        provider: model.provider.clone(),
        model: model.id.clone(),
    };
    Ok(result)
}

/// Waits until the log is on disk, then updates the index. The index is derived, so its failure is only a notice.
pub(super) async fn make_durable(turn: &Turn<'_>) -> Result<(), RunError> {
    let sync = turn.conversation.sync_handle();
    let store = turn.store.clone();
    let key = turn.params.session_key.clone();
    let parts = key.parts();
    let patch = MetaPatch {
        last_channel: Some(parts.channel),
        last_to: Some(parts.peer_id),
        chat_type: Some(parts.peer_kind),
        model: Some(turn.model.reference()),
        add_tokens: turn.tally.usage.total_tokens,
        ..MetaPatch::default()
    };
    let blocking = tokio::task::spawn_blocking(move || {
        let synced = sync.sync();
        (synced, store.index().upsert(&key, patch))
    });
    let (synced, indexed) =
        blocking.await.map_err(|error| RunError::Internal(error.to_string()))?;
    synced.map_err(RunError::Session)?;
    if let Err(error) = indexed {
        turn.notice(format!("the list of sessions was not updated: {error}"));
    }
    Ok(())
}

fn last_assistant_text(messages: &[Message]) -> String {
    messages
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant.text()),
            _ => None,
        })
        .unwrap_or_default()
}

impl Turn<'_> {
    /// Makes a failed run durable too, and tells the hooks and the caller how the run ended.
    pub(crate) async fn close(
        &self,
        outcome: Result<RunResult, RunError>,
    ) -> Result<RunResult, RunError> {
        if outcome.is_err()
            && let Err(error) = make_durable(self).await
        {
            self.notice(format!("what was said so far may not be on disk: {error}"));
        }
        self.announce_end(&outcome).await;
        outcome
    }

    async fn announce_end(&self, outcome: &Result<RunResult, RunError>) {
        for hook in self.hooks() {
            if let Err(error) = hook.agent_end(outcome).await {
                self.notice(format!(
                    "the hook {} failed at the end of the run: {error}",
                    hook.name()
                ));
            }
        }
        if let Ok(result) = outcome {
            self.emit(AgentRunEvent::Done { result: result.clone() });
        }
    }
}
