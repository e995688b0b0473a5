//! How much the model thinks in a run.

use myclaw_llm::ThinkingLevel;

use crate::{ActiveModel, Notice, RunParams};

/// How much the model thinks in a run.
pub(super) struct Thinking {
    pub(super) requested: ThinkingLevel,
    /// A notice if the level differs from the requested one.
    pub(super) notice: Option<Notice>,
}

impl Thinking {
    /// Selects for each model the offered level that is nearest to the requested one. If they differ for the first
    /// model, `model`, the result contains a notice.
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
