//! The fields of a request that control thinking, for each host.

use serde::Serialize;

use crate::wire::compat::ThinkingField;
use crate::{Model, ThinkingLevel};

/// The fields of the request that ask for thinking.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Thinking<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments<'a>>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ReasoningObject<'a> {
    Effort(&'a str),
    Enabled(bool),
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Switch {
    Enabled,
    Disabled,
}

/// Templates ignore unknown values: most read the switch, that of gpt-oss reads the effort.
#[derive(Debug, PartialEq, Serialize)]
struct TemplateArguments<'a> {
    enable_thinking: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
}

impl<'a> Thinking<'a> {
    /// The value of `field` for `model` at `level`; `None` for a model that does not reason, because its host may
    /// refuse the field.
    pub(super) fn new(field: ThinkingField, model: &'a Model, level: ThinkingLevel) -> Self {
        let mut asked = Self::default();
        if !model.reasoning {
            return asked;
        }
        let level = model.thinking_level(level);
        let is_on = level != ThinkingLevel::Off;
        let word = model.thinking_word(level);
        // No host has the word `off`. If it has another word for it (`none`), the model's levels name it.
        let effort = Some(word).filter(|word| is_on || *word != ThinkingLevel::Off.as_str());
        match field {
            ThinkingField::None => {}
            ThinkingField::ReasoningEffort => asked.reasoning_effort = effort,
            ThinkingField::ReasoningObject => {
                asked.reasoning =
                    Some(effort.map_or(ReasoningObject::Enabled(false), ReasoningObject::Effort));
            }
            ThinkingField::ReasoningSwitch if model.thinking_levels.is_switch() => {
                asked.reasoning = Some(ReasoningObject::Enabled(is_on));
            }
            ThinkingField::ReasoningSwitch => asked.reasoning_effort = effort,
            ThinkingField::ThinkingType => {
                asked.thinking = Some(if is_on { Switch::Enabled } else { Switch::Disabled });
                asked.reasoning_effort =
                    effort.filter(|_| is_on && model.thinking_levels.has_own_words());
            }
            ThinkingField::EnableThinking => asked.enable_thinking = Some(is_on),
            ThinkingField::TemplateArguments => {
                asked.chat_template_kwargs = Some(TemplateArguments {
                    enable_thinking: is_on,
                    reasoning_effort: effort.filter(|_| is_on),
                });
            }
        }
        asked
    }
}
