//! Changes the model of a running run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_llm::ThinkingLevel;

use crate::{ActiveModel, RunParams};

/// Lets another model answer from the next model call on. Keep a clone of the switch in the run's parameters.
#[derive(Clone, Default)]
pub struct ModelSwitch(Arc<Mutex<Option<Request>>>);

/// The requested values, as in [`RunParams`].
struct Request {
    models: Vec<ActiveModel>,
    thinking: Option<ThinkingLevel>,
}

impl ModelSwitch {
    /// Requests a switch to other [`RunParams::models`] and another [`RunParams::thinking`]. It takes effect before the
    /// next model call and does not disturb a call in progress. A later request replaces an earlier one.
    pub fn to(&self, models: Vec<ActiveModel>, thinking: Option<ThinkingLevel>) {
        *self.lock() = Some(Request { models, thinking });
    }

    pub(crate) fn is_due(&self) -> bool {
        self.lock().is_some()
    }

    /// Applies the request to the parameters of a run.
    pub(crate) fn apply(&self, params: &mut RunParams) {
        let Some(Request { models, thinking }) = self.lock().take() else { return };
        params.models = models;
        params.thinking = thinking;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Request>> {
        // The value is consistent after every statement, so a panic elsewhere does not corrupt it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
