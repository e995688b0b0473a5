//! Step `intake`: the user's message enters the log.

use myclaw_llm::UserMessage;

use super::Turn;
use crate::RunError;

/// Appends the user message, as the hooks left it.
pub(super) async fn take_user_message(turn: &mut Turn<'_>) -> Result<(), RunError> {
    for hook in &turn.params.hooks {
        hook.before_agent_start(&mut turn.start).await.map_err(|error| RunError::Hook {
            hook: hook.name().to_owned(),
            reason: error.to_string(),
        })?;
    }
    let content = std::mem::take(&mut turn.start.user_message);
    let timestamp = turn.now_ms();
    turn.conversation.append_user(UserMessage { content, timestamp })?;
    Ok(())
}
