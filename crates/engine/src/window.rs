//! The limits for context windows that are too small to work in.
//!
//! The system prompt, the tools' descriptions and one tool result already fill several thousand tokens. Below the
//! minimum a model would spend its turns summarising what it has just read.

use crate::{ActiveModel, Notice, RunError, WindowSource};

/// Windows below this are used only if their size was stated, in tokens.
const SMALLEST_WINDOW: u64 = 16_000;

/// Windows below this cause a notice, in tokens.
const COMFORTABLE_WINDOW: u64 = 32_000;

/// Removes the models whose window is too small, and returns notices about them. A window whose size was stated is used
/// however small it is.
///
/// # Errors
/// [`RunError::WindowTooSmall`] for the first model if no model is left.
pub(crate) fn guard(
    choices: Vec<ActiveModel>,
) -> Result<(Vec<ActiveModel>, Vec<Notice>), RunError> {
    let mut notices = Vec::new();
    let mut first_refusal = None;
    let mut kept = Vec::with_capacity(choices.len());
    for choice in choices {
        let tokens = choice.model.context_window;
        if tokens < SMALLEST_WINDOW && choice.window == WindowSource::Known {
            let (model, minimum) = (choice.reference(), SMALLEST_WINDOW);
            notices.push(Notice::WindowTooSmall { model: model.clone(), tokens, minimum });
            first_refusal.get_or_insert(RunError::WindowTooSmall { model, tokens, minimum });
            continue;
        }
        if tokens < COMFORTABLE_WINDOW {
            notices.push(Notice::WindowSmall {
                model: choice.reference(),
                tokens,
                comfortable: COMFORTABLE_WINDOW,
            });
        }
        kept.push(choice);
    }
    match first_refusal {
        Some(refusal) if kept.is_empty() => Err(refusal),
        _ => Ok((kept, notices)),
    }
}

#[cfg(test)]
mod tests;
