//! Applies the config's values for a model over those of the catalog.

use myclaw_config::{
    ModelApi, ModelCompat, ModelDefinition, ModelInput, OutputLimitName, ProviderModels,
    ReasoningReplayRule, StreamUsageRule, SystemRoleName, ThinkingFormName, ThinkingWords,
};
use myclaw_llm::wire::compat::{
    CompatOverrides, OutputLimitField, ReasoningReplay, StreamUsage, SystemRole,
};
use myclaw_llm::{Api, InputKind, Model, Price, ThinkingForm, ThinkingLevel, ThinkingLevels};

/// A function from an enum of the config to the one of `llm` whose variants have the same names. Neither crate knows the
/// other; a variant of the config that is not listed does not compile.
macro_rules! same_name {
    ($from:ident => $to:ident: $($variant:ident),+) => {
        |named: $from| match named { $($from::$variant => $to::$variant),+ }
    };
}

/// The wire format that the config names: the model's, else the provider's.
pub(super) fn api(
    own: Option<&ProviderModels>,
    definition: Option<&ModelDefinition>,
) -> Option<Api> {
    definition
        .and_then(|definition| definition.api)
        .or(own.and_then(|own| own.api))
        .map(same_name!(
            ModelApi => Api: AnthropicMessages, OpenaiCompletions, OpenaiResponses, GoogleGenerativeAi, BedrockConverse
        ))
}

/// Applies the config's values for the provider and for the model itself.
pub(super) fn overlay(
    model: &mut Model,
    own: Option<&ProviderModels>,
    definition: Option<&ModelDefinition>,
) {
    if let Some(own) = own {
        let headers = own.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        model.quirks.headers = headers.collect();
        let compat = definition.map(|definition| definition.compat).unwrap_or_default();
        model.quirks.compat = compat_overrides(compat.or(own.compat));
    }
    let Some(definition) = definition else { return };
    if let Some(context_window) = definition.context_window {
        model.context_window = context_window;
    }
    if let Some(max_output) = definition.max_output {
        model.max_output = max_output;
    }
    if let Some(reasoning) = definition.reasoning {
        model.reasoning = reasoning;
    }
    if let Some(words) = &definition.thinking_levels {
        model.thinking_levels = thinking_levels(words);
    }
    let form = same_name!(ThinkingFormName => ThinkingForm: Budget, Adaptive, BoundAdaptive);
    if let Some(named) = definition.thinking_form {
        model.quirks.thinking_form = form(named);
    }
    if let Some(input) = &definition.input {
        let kind = same_name!(ModelInput => InputKind: Text, Image);
        model.input = input.iter().copied().map(kind).collect();
    }
    if let Some(price) = &definition.price {
        model.price = Some(Price {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read,
            cache_write: price.cache_write,
        });
    }
}

fn thinking_levels(words: &ThinkingWords) -> ThinkingLevels {
    let ThinkingWords { off, minimal, low, medium, high, xhigh } = words;
    let words = [off, minimal, low, medium, high, xhigh];
    let offered = ThinkingLevel::ALL.into_iter().zip(words).filter(|(_, word)| word.is_some());
    ThinkingLevels::new(offered.map(|(level, word)| (level, word.clone())))
}

fn compat_overrides(compat: ModelCompat) -> CompatOverrides {
    CompatOverrides {
        output_limit: compat
            .output_limit
            .map(same_name!(OutputLimitName => OutputLimitField: MaxTokens, MaxCompletionTokens)),
        system_role: compat.system_role.map(|name| match name {
            SystemRoleName::System => SystemRole::System,
            SystemRoleName::Developer => SystemRole::DeveloperWhenReasoning,
        }),
        stream_usage: compat
            .stream_usage
            .map(same_name!(StreamUsageRule => StreamUsage: OnRequest, Always)),
        tool_ids: None,
        reasoning_replay: compat
            .reasoning_replay
            .map(same_name!(ReasoningReplayRule => ReasoningReplay: Never, WithinTurn)),
    }
}
