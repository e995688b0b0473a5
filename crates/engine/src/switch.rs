//! Another model for a run that goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use myclaw_config::Config;
use myclaw_llm::ThinkingLevel;

use crate::{ModelChoice, RunAgentParams};

/// Lets another model answer from the next model call on. Keep a clone of the one that the run was given.
#[derive(Clone, Default)]
pub struct ModelSwitch(Arc<Mutex<Option<NextModel>>>);

/// Who answers from now on, as in [`RunAgentParams`].
#[derive(Clone)]
pub struct NextModel {
    /// The model.
    pub model: ModelChoice,
    /// The models to ask, in this order, when it cannot answer.
    pub fallbacks: Vec<ModelChoice>,
    /// The settings in which it is found.
    pub config: Arc<Config>,
    /// How much it should think before it answers.
    pub thinking: Option<ThinkingLevel>,
}

impl ModelSwitch {
    /// Asks for the switch. The call that goes on is not disturbed. If the run ends before another one, nothing comes
    /// of it. The last word counts.
    pub fn to(&self, next: NextModel) {
        *self.lock() = Some(next);
    }

    pub(crate) fn is_due(&self) -> bool {
        self.lock().is_some()
    }

    /// Changes the parameters of a run to what was asked for.
    pub(crate) fn apply(&self, params: &mut RunAgentParams) {
        let Some(next) = self.lock().take() else { return };
        params.model = Some(next.model);
        params.fallbacks = next.fallbacks;
        params.config = next.config;
        params.thinking = next.thinking;
    }

    fn lock(&self) -> MutexGuard<'_, Option<NextModel>> {
        // The value is whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
