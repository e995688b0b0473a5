//! Changes the model of a running run.

use std::sync::Arc;

use myclaw_llm::ThinkingLevel;
use parking_lot::Mutex;

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
        *self.0.lock() = Some(Request { models, thinking });
    }

    pub(crate) fn is_due(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Applies the request to the parameters of a run.
    pub(crate) fn apply(&self, params: &mut RunParams) {
        let Some(Request { models, thinking }) = self.0.lock().take() else { return };
        params.models = models;
        params.thinking = thinking;
    }
}
