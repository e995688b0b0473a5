//! How a request controls thinking, in the two forms of this format: a number of tokens up to Gemini 2.5, a word from
//! Gemini 3 on. A model accepts only its own form and refuses the other.

use serde::Serialize;

use super::bare_id;
use crate::wire::{Off, ThinkingControl};
use crate::{Model, ThinkingLevel};

/// The budget that one family takes for each level, in tokens.
struct Budgets {
    /// How the ids of the family begin.
    family: &'static str,
    off: u64,
    minimal: u64,
    low: u64,
    medium: u64,
    high: u64,
    xhigh: u64,
}

/// The families that take a number; the first that fits is used.
///
/// The smallest and largest numbers are the limits of each model in Google's guide to thinking
/// (<https://ai.google.dev/gemini-api/docs/thinking>): 128 to 32,768 for 2.5 Pro, whose thinking cannot be switched
/// off; 0 to 24,576 for 2.5 Flash; 0, or 512 to 24,576, for 2.5 Flash-Lite. Low, medium and high are the values that
/// Google's own OpenAI-compatible endpoint uses for 2.5: 1,024, 8,192 and 24,576. `minimal` is the smallest number that
/// each accepts; for Flash, which has no minimum, that of Pro.
const FAMILIES: [Budgets; 3] = [
    Budgets {
        family: "gemini-2.5-pro",
        off: 128,
        minimal: 128,
        low: 1024,
        medium: 8192,
        high: 24_576,
        xhigh: 32_768,
    },
    Budgets {
        family: "gemini-2.5-flash-lite",
        off: 0,
        minimal: 512,
        low: 1024,
        medium: 8192,
        high: 24_576,
        xhigh: 24_576,
    },
    Budgets {
        family: "gemini-2.5-flash",
        off: 0,
        minimal: 128,
        low: 1024,
        medium: 8192,
        high: 24_576,
        xhigh: 24_576,
    },
];

/// `generationConfig.thinkingConfig`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(flatten)]
    amount: Amount,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
enum Amount {
    #[serde(rename = "thinkingBudget")]
    Budget(u64),
    #[serde(rename = "thinkingLevel")]
    Word(String),
}

impl ThinkingConfig {
    /// The field for `model` at the level `requested` and at most `max_output` tokens; `None` for a model that cannot
    /// think, which would refuse the field.
    pub(super) fn of(
        model: &Model,
        requested: ThinkingLevel,
        max_output: Option<u64>,
    ) -> Option<Self> {
        if !model.reasoning {
            return None;
        }
        let level = model.thinking_level(requested);
        let family = Budgets::of(model);
        let amount = match (family, level) {
            (Some(budgets), _) => Amount::Budget(budgets.within(level, max_output)),
            (None, _) => Amount::Word(model.thinking_word(level).to_ascii_uppercase()),
        };
        Some(Self { include_thoughts: requested != ThinkingLevel::Off, amount })
    }
}

/// How a request controls the thinking of `model`. It can be switched off only if the family accepts a budget of 0. A
/// model that takes words and lists none has the words that every such model accepts
/// (<https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thinking>).
pub(in crate::wire) fn thinking_control(model: &Model) -> ThinkingControl {
    match Budgets::of(model) {
        Some(Budgets { off: 0, .. }) => ThinkingControl::levels(Off::Always),
        Some(_) => ThinkingControl::levels(Off::Never),
        None => ThinkingControl::words(model),
    }
}

impl Budgets {
    fn of(model: &Model) -> Option<&'static Self> {
        FAMILIES.iter().find(|budgets| bare_id(&model.id).starts_with(budgets.family))
    }

    /// The budget for `level`. Thinking counts against the output limit, so it gets at most half of that. Otherwise
    /// nothing might be left for the answer.
    fn within(&self, level: ThinkingLevel, max_output: Option<u64>) -> u64 {
        let budget = match level {
            ThinkingLevel::Off => return self.off,
            ThinkingLevel::Minimal => self.minimal,
            ThinkingLevel::Low => self.low,
            ThinkingLevel::Medium => self.medium,
            ThinkingLevel::High => self.high,
            ThinkingLevel::Xhigh => self.xhigh,
        };
        max_output.map_or(budget, |limit| budget.min(limit / 2).max(self.minimal))
    }
}
