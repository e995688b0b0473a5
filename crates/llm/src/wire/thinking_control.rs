//! How a request controls a model's thinking, by its format and host. Only levels that a request can express are
//! offered. Otherwise two levels would send the same request, and the reported level would differ from the one that is
//! sent.

use super::bedrock_converse::thinking_control as bedrock;
use super::compat::{Compat, ThinkingField};
use super::google_generative_ai::thinking_control as google;
use crate::{Api, Model, ThinkingLevel};

/// What a request can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingControl {
    /// Each level from `least` on, by a word or a number, and perhaps `off`.
    Levels {
        /// The lowest level above `off`.
        least: ThinkingLevel,
        /// Whether its thinking can be switched off.
        off: Off,
    },
    /// Only on and off.
    Switch,
    /// Nothing: the host decides how the model thinks.
    Nothing,
}

/// Whether the thinking of a model can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    /// The format can express it.
    Always,
    /// Only by a provider's own word, such as `none`.
    ByOwnWord,
    /// It always thinks.
    Never,
}

impl ThinkingControl {
    /// Every level; the format decides about `off`.
    pub(crate) const fn levels(off: Off) -> Self {
        Self::Levels { least: ThinkingLevel::Minimal, off }
    }

    /// A word for each level; `off` only if the provider has a word for it. A model whose words are not listed gets the
    /// words that every host of the format accepts, which begin with `low`.
    pub(crate) fn words(model: &Model) -> Self {
        let least = match model.thinking_levels.has_words() {
            true => ThinkingLevel::Minimal,
            false => ThinkingLevel::Low,
        };
        Self::Levels { least, off: Off::ByOwnWord }
    }

    /// How a request controls the thinking of `model`.
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
