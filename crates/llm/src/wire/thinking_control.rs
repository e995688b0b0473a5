//! How a request controls a model's thinking, by its format and host. Only what a request can say counts as offered:
//! otherwise two levels would send the same request, and the level that is reported would not be the one that is sent.

use super::bedrock_converse::thinking_control as bedrock;
use super::compat::{Compat, ThinkingField};
use super::google_generative_ai::thinking_control as google;
use crate::{Api, Model, ThinkingLevel};

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingControl {
    /// Each level from `least` on by a word or a number of its own, and perhaps that it should not think.
    Levels {
        /// The lowest level beside `off`.
        least: ThinkingLevel,
        /// Whether its thinking can be switched off.
        off: Off,
    },
    /// That it should think or not, but not how much.
    Switch,
    /// Nothing: it thinks as its host likes.
    Nothing,
}

/// Whether the thinking of a model can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    /// The format has a way.
    Always,
    /// Only by a word of the provider's own, such as `none`.
    ByOwnWord,
    /// It always thinks.
    Never,
}

impl ThinkingControl {
    /// Every level, `off` as the format says.
    pub(crate) const fn levels(off: Off) -> Self {
        Self::Levels { least: ThinkingLevel::Minimal, off }
    }

    /// A word for each level, `off` only if the provider has one for it. A model whose words are not listed gets those
    /// that every host of the format takes, which begin with `low`.
    pub(crate) fn words(model: &Model) -> Self {
        let least = match model.thinking_levels.has_words() {
            true => ThinkingLevel::Minimal,
            false => ThinkingLevel::Low,
        };
        Self::Levels { least, off: Off::ByOwnWord }
    }

    /// What can be said to `model`.
    pub(crate) fn of(model: &Model) -> Self {
        match model.api {
            Api::AnthropicMessages | Api::Builtin => Self::levels(Off::Always),
            Api::OpenaiResponses => Self::words(model),
            Api::GoogleGenerativeAi => google(model),
            Api::BedrockConverse => bedrock(model),
            Api::OpenaiCompletions => match Compat::of(model).thinking_field {
                ThinkingField::None => Self::Nothing,
                ThinkingField::ReasoningEffort => Self::words(model),
                ThinkingField::ReasoningObject | ThinkingField::TemplateArguments => {
                    Self::levels(Off::Always)
                }
                ThinkingField::ThinkingType if model.thinking_levels.has_own_words() => {
                    Self::levels(Off::Always)
                }
                ThinkingField::ReasoningSwitch if !model.thinking_levels.is_switch() => {
                    Self::words(model)
                }
                ThinkingField::ThinkingType
                | ThinkingField::ReasoningSwitch
                | ThinkingField::EnableThinking => Self::Switch,
            },
        }
    }
}
