//! Another model for a run that goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_llm::ThinkingLevel;

use crate::{ActiveModel, RunParams};

/// Lets another model answer from the next model call on. Keep a clone of the one that the run was given.
#[derive(Clone, Default)]
pub struct ModelSwitch(Arc<Mutex<Option<Request>>>);

/// What was asked for, as in [`RunParams`].
struct Request {
    models: Vec<ActiveModel>,
    thinking: Option<ThinkingLevel>,
}

impl ModelSwitch {
    /// Asks for the switch to other [`RunParams::models`] and another [`RunParams::thinking`]. It takes effect before
    /// the next model call; a call in progress is not disturbed. A later request replaces an earlier one.
    pub fn to(&self, models: Vec<ActiveModel>, thinking: Option<ThinkingLevel>) {
        *self.lock() = Some(Request { models, thinking });
    }

    pub(crate) fn is_due(&self) -> bool {
        self.lock().is_some()
    }

    /// Changes the parameters of a run to what was asked for.
    pub(crate) fn apply(&self, params: &mut RunParams) {
        let Some(Request { models, thinking }) = self.lock().take() else { return };
        params.models = models;
        params.thinking = thinking;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Request>> {
        // The value is whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
