//! How much the model thinks in a run.

use myclaw_llm::ThinkingLevel;

use crate::{ActiveModel, RunParams};

/// How much the model thinks in a run.
pub(super) struct Thinking {
    pub(super) requested: ThinkingLevel,
    /// What to say where that is not what the user asked for.
    pub(super) notice: Option<String>,
}

impl Thinking {
    /// Each model is asked at the level that it offers nearest to the one asked for; of the first one, `model`, the
    /// user is told where these differ.
    pub(super) fn of(params: &RunParams, model: &ActiveModel) -> Self {
        let requested = params.thinking.unwrap_or(params.rules.thinking);
        let level = model.model.thinking_level(requested);
        let notice = params.thinking.filter(|asked| *asked != level).map(|asked| {
            let name = model.reference();
            if model.model.reasoning {
                let offered: Vec<&str> = model
                    .model
                    .offered_thinking_levels()
                    .into_iter()
                    .map(ThinkingLevel::as_str)
                    .collect();
                format!(
                    "{name} does not offer the thinking level {asked} but {}; {level} is used",
                    offered.join(", ")
                )
            } else {
                format!("{name} cannot think before it answers; the thinking level is {level}")
            }
        });
        Self { requested, notice }
    }
}
