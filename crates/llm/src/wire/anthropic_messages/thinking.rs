//! How Claude is asked to think, in this format and in others that pass its fields on: with a budget of tokens, or with
//! an effort, which leaves the amount to the model.
//!
//! The form that each model requires is data of the catalog ([`ThinkingForm`]). Models up to Claude 4.5 think only when
//! asked, with a budget; later ones refuse a budget, and many think unless the request forbids it.

use reqwest::header::HeaderValue;
use serde::Serialize;

use crate::wire::turns::{self, Block, Turn};
use crate::{Model, ThinkingForm, ThinkingLevel};

/// Smallest budget that the API accepts, in tokens.
const LEAST_BUDGET: u64 = 1_024;

/// At least one part in this many of the output limit, which includes thinking, is reserved for the answer.
const ANSWER_SHARE: u64 = 2;

/// Lets models of the [`ThinkingForm::Budget`] think between tool calls; the others do so by default.
const INTERLEAVED_BETA: &str = "interleaved-thinking-2025-05-14";

/// Needed for the field that says how the API treats thinking whose preceding messages have changed.
const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// The fields of a request about thinking.
#[derive(Debug, Default)]
pub(in crate::wire) struct Thinking {
    pub(in crate::wire) field: Option<ThinkingField>,
    pub(in crate::wire) effort: Option<Effort>,
    /// For the header `anthropic-beta`.
    pub(in crate::wire) beta: Option<HeaderValue>,
    /// Whether thinking of earlier answers may be sent back.
    pub(in crate::wire) history: ThinkingHistory,
}

/// How the model's own thinking in earlier answers is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::wire) enum ThinkingHistory {
    /// It goes back unchanged.
    #[default]
    Kept,
    /// It is left out: with thinking off, a request cannot ask the API to ignore invalid thinking.
    LeftOut,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(in crate::wire) enum ThinkingField {
    Disabled,
    Enabled {
        budget_tokens: u64,
    },
    Adaptive {
        display: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        block_binding: Option<BlockBinding>,
    },
}

#[derive(Debug, Serialize)]
pub(in crate::wire) struct BlockBinding {
    prefix_mismatch_behavior: &'static str,
}

#[derive(Debug, Serialize)]
pub(in crate::wire) struct Effort {
    effort: String,
}

impl Thinking {
    /// The fields for `model` at the level `requested`, with `max_tokens` for thinking and answer together.
    pub(in crate::wire) fn new(
        model: &Model,
        requested: ThinkingLevel,
        max_tokens: u64,
        has_tools: bool,
    ) -> Self {
        if !model.reasoning {
            return Self::default();
        }
        let level = model.thinking_level(requested);
        match (model.quirks.thinking_form, level) {
            (ThinkingForm::Budget, ThinkingLevel::Off) => Self::default(),
            (ThinkingForm::Budget, level) => Self::with_budget(level, max_tokens, has_tools),
            (form, ThinkingLevel::Off) => Self {
                field: Some(ThinkingField::Disabled),
                history: match form {
                    ThinkingForm::BoundAdaptive => ThinkingHistory::LeftOut,
                    ThinkingForm::Budget | ThinkingForm::Adaptive => ThinkingHistory::Kept,
                },
                ..Self::default()
            },
            (form, level) => {
                let is_bound = form == ThinkingForm::BoundAdaptive;
                // The newest models show no thinking unless asked to.
                let field = ThinkingField::Adaptive {
                    display: "summarized",
                    block_binding: is_bound
                        .then_some(BlockBinding { prefix_mismatch_behavior: "drop_block" }),
                };
                Self {
                    field: Some(field),
                    effort: Some(Effort { effort: model.thinking_word(level).to_owned() }),
                    beta: is_bound.then_some(HeaderValue::from_static(BINDING_BETA)),
                    history: ThinkingHistory::Kept,
                }
            }
        }
    }

    fn with_budget(level: ThinkingLevel, max_tokens: u64, has_tools: bool) -> Self {
        let budget_tokens = budget(level).min(max_tokens / ANSWER_SHARE);
        if budget_tokens < LEAST_BUDGET {
            return Self::default();
        }
        Self {
            field: Some(ThinkingField::Enabled { budget_tokens }),
            beta: has_tools.then_some(HeaderValue::from_static(INTERLEAVED_BETA)),
            ..Self::default()
        }
    }

    /// The fields that are allowed for `turns`: a model with a budget may not begin to think in the middle of tool
    /// calls that were made without its thinking.
    pub(in crate::wire) fn in_front_of(self, turns: &[Turn<Block<'_>>]) -> Self {
        let has_budget = matches!(self.field, Some(ThinkingField::Enabled { .. }));
        if has_budget && turns::continue_calls_without_thinking(turns) {
            return Self { history: self.history, ..Self::default() };
        }
        self
    }
}

/// Tokens for thinking at a level: the least the API takes, then about four times as much with each step, up to what
/// the provider recommends as the most for one answer that is not made in a batch (32k).
fn budget(level: ThinkingLevel) -> u64 {
    match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => LEAST_BUDGET,
        ThinkingLevel::Low => 4_096,
        ThinkingLevel::Medium => 10_240,
        ThinkingLevel::High => 20_480,
        ThinkingLevel::Xhigh => 32_768,
    }
}
