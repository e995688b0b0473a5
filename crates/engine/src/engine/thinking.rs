//! How much the model thinks in a run.

use myclaw_llm::ThinkingLevel;

use crate::{ActiveModel, Notice, RunParams};

/// How much the model thinks in a run.
pub(super) struct Thinking {
    pub(super) requested: ThinkingLevel,
    /// What to say where that is not what the user asked for.
    pub(super) notice: Option<Notice>,
}

impl Thinking {
    /// Each model is asked at the level that it offers nearest to the one asked for; of the first one, `model`, the
    /// user is told where these differ.
    pub(super) fn of(params: &RunParams, model: &ActiveModel) -> Self {
        let requested = params.thinking.unwrap_or(params.rules.thinking);
        let level = model.model.thinking_level(requested);
        let notice = params.thinking.filter(|asked| *asked != level).map(|asked| {
            let name = model.reference();
            let model = &model.model;
            let offered =
                if model.reasoning { model.offered_thinking_levels() } else { Vec::new() };
            Notice::ThinkingLevelChanged { model: name, asked, used: level, offered }
        });
        Self { requested, notice }
    }
}
