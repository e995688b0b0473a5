//! Step `intake`: the user's message enters the log.

use myclaw_llm::UserMessage;
use myclaw_session::MetaPatch;

use super::Turn;
use crate::RunError;
use crate::hook::unless_aborted;

/// Appends the user message, as the hooks left it.
pub(super) async fn take_user_message(turn: &mut Turn<'_>) -> Result<(), RunError> {
    for hook in &turn.params.hooks {
        let asked = hook.before_agent_start(&mut turn.start);
        unless_aborted(&turn.params.cancel, asked).await.map_err(|error| {
            if turn.params.cancel.is_cancelled() {
                return RunError::Aborted;
            }
            RunError::Hook { hook: hook.name().to_owned(), reason: error.to_string() }
        })?;
    }
    let content = std::mem::take(&mut turn.start.user_message);
    let timestamp = turn.now_ms();
    let is_new_session = turn.conversation.messages().is_empty();
    turn.conversation.append_user(UserMessage { content, annotation: None, timestamp })?;
    if is_new_session {
        enter_in_index(turn);
    }
    Ok(())
}

/// Lists a new session before its first answer, so that one which is killed in its first turn can be found. The model
/// is called meanwhile; a failure is reported by the update at the end of the turn, which does the same again.
fn enter_in_index(turn: &Turn<'_>) {
    let (store, key) = (turn.store.clone(), turn.params.session_key.clone());
    tokio::task::spawn_blocking(move || store.index().upsert(&key, MetaPatch::default()));
}
