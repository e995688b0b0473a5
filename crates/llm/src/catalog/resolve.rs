//! Builds a whole [`Model`] from a provider and a model id, known or not.

use url::Url;

use super::{KeyNeed, ModelCatalog, provider_info};
use crate::wire::{is_loopback, without_date};
use crate::{Api, InputKind, Model, Price, Quirks, ThinkingLevels};

/// Window assumed for a model that the catalog does not have.
const UNKNOWN_CONTEXT_WINDOW: u64 = 200_000;

/// Output limit assumed for a model that the catalog does not have: every current model allows this much.
const UNKNOWN_MAX_OUTPUT: u64 = 8_192;

/// Where requests go for an unknown provider: most such hosts copy this API, and the config names their base URL.
const UNKNOWN_BASE_URL: &str = "https://api.openai.com/v1";

/// A model as the config names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolveModel<'a> {
    /// Provider name; any name is allowed.
    pub provider: &'a str,
    /// Model id as the provider knows it; any id is allowed.
    pub id: &'a str,
    /// Replaces the provider's own base URL. A slash at its end does not matter. At another address the provider's
    /// common wire format is used, because servers that copy an API copy that one.
    pub base_url: Option<&'a str>,
    /// Replaces the provider's own wire format.
    pub api: Option<Api>,
}

/// The catalog's model, or one built by hand where the catalog has none: 200,000 tokens of context, 8,192 of output,
/// text and images in, no reasoning, an unknown price unless a server on this machine answers. A dated name without figures of
/// its own has those of its family: `claude-sonnet-4-20250514` those of `claude-sonnet-4`.
pub fn resolve_model(wanted: ResolveModel<'_>) -> Model {
    let mut model = known(wanted.provider, wanted.id)
        .unwrap_or_else(|| built_by_hand(wanted.provider, wanted.id, wanted.base_url));
    if let Some(base_url) = wanted.base_url {
        let base_url = base_url.trim_end_matches('/');
        if base_url != model.base_url {
            model.api = api_at(base_url)
                .or_else(|| provider_info(wanted.provider).map(|info| info.api))
                .unwrap_or(model.api);
            model.base_url = base_url.to_owned();
        }
    }
    if let Some(api) = wanted.api {
        model.api = api;
    }
    model
}

/// The wire format that follows from an address alone: below `/openai`, Google's services copy the Chat Completions API.
fn api_at(base_url: &str) -> Option<Api> {
    let is_googles = base_url.contains("googleapis.com/");
    (is_googles && base_url.ends_with("/openai")).then_some(Api::OpenaiCompletions)
}

/// The catalog's model of that name, else that of its family.
fn known(provider: &str, id: &str) -> Option<Model> {
    let catalog = ModelCatalog::builtin();
    let family =
        || Some(Model { id: id.to_owned(), ..catalog.find(provider, family(provider, id)?)? });
    catalog.find(provider, id).or_else(family)
}

/// The name without the part that identifies a build of the model: a date, or a tag of Ollama's.
fn family<'a>(provider: &str, id: &'a str) -> Option<&'a str> {
    let undated = without_date(id);
    let untagged = match undated.split_once(':') {
        Some((name, _)) if provider == "ollama" => name,
        _ => undated,
    };
    (untagged != id).then_some(untagged)
}

fn built_by_hand(provider: &str, id: &str, base_url: Option<&str>) -> Model {
    let info = provider_info(provider);
    let is_local =
        || base_url.and_then(|url| Url::parse(url).ok()).is_some_and(|url| is_loopback(&url));
    let is_free = info.is_some_and(|info| info.key == KeyNeed::None) || is_local();
    Model {
        id: id.to_owned(),
        provider: provider.to_owned(),
        api: info.map_or(Api::OpenaiCompletions, |info| info.api),
        base_url: info.map_or(UNKNOWN_BASE_URL, |info| info.base_url).to_owned(),
        reasoning: false,
        thinking_levels: ThinkingLevels::default(),
        input: vec![InputKind::Text, InputKind::Image],
        price: is_free.then(Price::default),
        context_window: UNKNOWN_CONTEXT_WINDOW,
        max_output: UNKNOWN_MAX_OUTPUT,
        quirks: Quirks::default(),
    }
}
