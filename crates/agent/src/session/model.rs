//! The model of an open session and how much it thinks.

use std::sync::Arc;

use myclaw_llm::ThinkingLevel;

use super::Session;
use crate::AgentError;
use crate::selection::Selection;

impl Session {
    /// The active model and its fallbacks, selected on first use.
    ///
    /// # Errors
    /// No model can be used: a key is missing, or the config names a model that does not exist.
    pub async fn selection(&self) -> Result<Arc<Selection>, AgentError> {
        if let Some(selection) = &self.state.lock().selection {
            return Ok(Arc::clone(selection));
        }
        let model = self.state.lock().model.clone();
        self.select_model(model.as_deref()).await
    }

    /// Changes the active model from the next call on; `None` selects the model of the config.
    ///
    /// # Errors
    /// The model cannot be used. The previous one stays active.
    pub async fn select_model(&self, name: Option<&str>) -> Result<Arc<Selection>, AgentError> {
        loop {
            let config = self.config();
            let selection = Arc::new(config.select_model(name).await?);
            let mut state = self.state.lock();
            if !Arc::ptr_eq(&config, &state.config) {
                // The config was replaced meanwhile.
                continue;
            }
            state.model = name.map(str::to_owned);
            state.selection = Some(Arc::clone(&selection));
            state.switch();
            return Ok(selection);
        }
    }

    /// Changes the thinking level from the next call on.
    pub fn set_thinking(&self, level: ThinkingLevel) {
        let mut state = self.state.lock();
        state.thinking = Some(level);
        state.switch();
    }

    /// The requested thinking level, if there is one.
    pub fn asked_thinking(&self) -> Option<ThinkingLevel> {
        self.state.lock().thinking
    }

    /// The requested thinking level and the one in use, which differ if the model does not offer the former.
    pub fn thinking(&self, selection: &Selection) -> (ThinkingLevel, ThinkingLevel) {
        let requested = self.config().requested_thinking(self.state.lock().thinking);
        (requested, selection.model().thinking_level(requested))
    }
}
