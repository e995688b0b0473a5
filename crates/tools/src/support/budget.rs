//! The budget of work of one call.

use std::cell::Cell;

use myclaw_engine::ToolError;
use tokio_util::sync::CancellationToken;

/// Steps of one call. A step is about as much as comparing two lines, so this is a second or two.
const MAX_STEPS: usize = 50_000_000;

/// Bounds work that grows with the product of a call's arguments and a file, and ends it when the run is cancelled.
///
/// Once it is used up, loops stop at once with an incomplete result. Their caller must call [`Budget::check`] before it
/// uses the result.
#[derive(Debug)]
pub(crate) struct Budget {
    cancel: CancellationToken,
    left: Cell<usize>,
}

impl Budget {
    /// The budget for one call.
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, left: Cell::new(MAX_STEPS) }
    }

    /// Takes `steps`. Returns whether to continue.
    pub(crate) fn spend(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps).filter(|_| !self.cancel.is_cancelled());
        self.left.set(left.unwrap_or(0));
        left.is_some_and(|left| left > 0)
    }

    /// Takes `steps` for optional work, which may use at most a tenth of the budget.
    pub(crate) fn spend_spare(&self, steps: usize) -> bool {
        steps <= self.left.get() / 10 && self.spend(steps)
    }

    /// Checks that all work so far was completed. `what` is what was going to be changed, for the message of an abort.
    ///
    /// # Errors
    /// [`ToolError::Aborted`] once the run is cancelled, [`ToolError::Failed`] once the budget is used up.
    pub(crate) fn check(&self, what: &str) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::Aborted(format!("aborted before {what} was changed")));
        }
        if self.left.get() == 0 {
            return Err(ToolError::Failed(
                "nothing was changed: finding the places takes too much work, because the text to replace is large or \
                 fits almost everywhere. Send smaller parts with more telling lines, or use bash"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
