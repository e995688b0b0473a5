//! Helpers for the unit tests of several modules.

use crate::{Api, InputKind, Model, Price, Quirks, ThinkingLevels};

/// A model of the provider `p` that takes `input`.
pub(super) fn model(input: &[InputKind]) -> Model {
    Model {
        id: "m".to_owned(),
        provider: "p".to_owned(),
        api: Api::AnthropicMessages,
        base_url: String::new(),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: input.to_vec(),
        price: Some(Price::default()),
        context_window: 0,
        max_output: 0,
        quirks: Quirks::default(),
    }
}
