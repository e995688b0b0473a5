//! From a provider and a model id to a whole [`Model`], known or not.

use super::{Catalog, provider_info};
use crate::{Api, InputKind, Model, Price, Quirks, ThinkingLevels};

/// Window assumed for a model that the catalog does not have.
const UNKNOWN_CONTEXT_WINDOW: u64 = 200_000;

/// Output limit assumed for a model that the catalog does not have: every current model allows as much.
const UNKNOWN_MAX_OUTPUT: u64 = 8_192;

/// Where requests for a provider go that nothing is known about: most such hosts copy this API, and settings name
/// their base URL.
const UNKNOWN_BASE_URL: &str = "https://api.openai.com/v1";

/// A model as settings name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolveModel<'a> {
    /// Provider name; any name is allowed.
    pub provider: &'a str,
    /// Model id as the provider knows it; any id is allowed.
    pub id: &'a str,
    /// Replaces the provider's own base URL. A slash at its end does not matter. Behind another address the provider's
    /// common wire format is spoken: whoever copies an API copies that one.
    pub base_url: Option<&'a str>,
    /// Replaces the provider's own wire format.
    pub api: Option<Api>,
}

/// The catalog's model, or one built by hand where the catalog has none: 200,000 tokens of context, 8,192 of output,
/// text and images in, no reasoning, price zero.
pub fn resolve_model(wanted: ResolveModel<'_>) -> Model {
    let mut model = Catalog::builtin()
        .find(wanted.provider, wanted.id)
        .unwrap_or_else(|| built_by_hand(wanted.provider, wanted.id));
    if let Some(base_url) = wanted.base_url {
        let base_url = base_url.trim_end_matches('/');
        if base_url != model.base_url {
            model.api = provider_info(wanted.provider).map_or(model.api, |info| info.api);
            model.base_url = base_url.to_owned();
        }
    }
    if let Some(api) = wanted.api {
        model.api = api;
    }
    model
}

fn built_by_hand(provider: &str, id: &str) -> Model {
    let info = provider_info(provider);
    Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        api: info.map_or(Api::OpenaiCompletions, |info| info.api),
        base_url: info.map_or(UNKNOWN_BASE_URL, |info| info.base_url).to_owned(),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text, InputKind::Image],
        price: Price::default(),
        context_window: UNKNOWN_CONTEXT_WINDOW,
        max_output: UNKNOWN_MAX_OUTPUT,
        quirks: Quirks::default(),
    }
}
