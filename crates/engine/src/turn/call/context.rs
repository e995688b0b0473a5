//! Part of step `call`: lets hooks change the messages that are about to be sent.
//!
//! The session stays unchanged, in memory and in the log.

use myclaw_llm::{CallFailure, PairedMessages};

use crate::hook::unless_aborted;
use crate::turn::{RunContext, Shared};
use crate::{HookPoint, Notice};

/// The messages to send in place of the session's; `None` if no hook changes them.
pub(super) async fn ask_hooks(shared: &mut Shared) -> Result<Option<PairedMessages>, CallFailure> {
    if shared.run.hooks.is_empty() {
        return Ok(None);
    }
    let messages = shared.log.take_paired();
    let changed = changed(&shared.run, &messages).await;
    shared.log.put_back(messages);
    changed
}

/// Calls the hooks in order. Each gets the messages as the previous hooks left them, repaired.
async fn changed(
    run: &RunContext,
    messages: &PairedMessages,
) -> Result<Option<PairedMessages>, CallFailure> {
    let mut changed = None;
    for hook in &run.hooks {
        let current = changed.as_ref().unwrap_or(messages).as_slice();
        match unless_aborted(run.cancel.token(), hook.context(current)).await {
            Ok(None) => {}
            Ok(Some(given)) => {
                let repaired = PairedMessages::repair(given);
                if repaired.as_slice().is_empty() {
                    run.events.notice(Notice::HookMessagesUnused { hook: hook.name().to_owned() });
                } else {
                    changed = Some(repaired);
                }
            }
            Err(_) if run.cancel.is_cancelled() => {
                return Err(CallFailure::Aborted { partial: None });
            }
            Err(error) => run.events.notice(Notice::HookFailed {
                hook: hook.name().to_owned(),
                point: HookPoint::Context,
                error: error.to_string(),
            }),
        }
    }
    Ok(changed)
}
