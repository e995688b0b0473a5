//! Part of step `call`: what hooks change in the messages that are about to be sent.
//!
//! The conversation stays as it is, in memory and in the log.

use myclaw_llm::{CallFailure, PairedMessages};

use super::Turn;
use crate::hook::unless_aborted;
use crate::{HookPoint, Notice};

/// The messages to send in place of the conversation's; `None` if no hook changes them.
pub(super) async fn ask_hooks(turn: &mut Turn<'_>) -> Result<Option<PairedMessages>, CallFailure> {
    if turn.hooks().is_empty() {
        return Ok(None);
    }
    let messages = turn.conversation.take_paired();
    let changed = changed(turn, &messages).await;
    turn.conversation.put_back(messages);
    changed
}

/// Each hook sees what those before it have left, repaired.
async fn changed(
    turn: &Turn<'_>,
    messages: &PairedMessages,
) -> Result<Option<PairedMessages>, CallFailure> {
    let mut changed = None;
    for hook in turn.hooks() {
        let current = changed.as_ref().unwrap_or(messages).as_slice();
        match unless_aborted(&turn.params.cancel, hook.context(current)).await {
            Ok(None) => {}
            Ok(Some(given)) => {
                let repaired = PairedMessages::repair(given);
                if repaired.as_slice().is_empty() {
                    turn.notice(Notice::HookMessagesUnused { hook: hook.name().to_owned() });
                } else {
                    changed = Some(repaired);
                }
            }
            Err(_) if turn.params.cancel.is_cancelled() => {
                return Err(CallFailure::Aborted { partial: None });
            }
            Err(error) => turn.notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::Context,
                error: error.to_string(),
            }),
        }
    }
    Ok(changed)
}
