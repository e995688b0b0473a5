//! The model that the secrets of a job name. All backends speak the Chat Completions format.

use myclaw_auth::AuthProfile;
use myclaw_engine::ActiveModel;
use myclaw_llm::{Api, Attribution, InputKind, Model, Quirks};
use secrecy::ExposeSecret as _;

use crate::job::NamedModel;
use crate::payload::Secrets;

/// A key of this value means a local Ollama.
const OLLAMA: &str = "ollama";
const OLLAMA_URL: &str = "http://host.docker.internal:11434/v1";
const OLLAMA_MODEL: &str = "llama3.2";
const OPENROUTER_URL: &str = "https://openrouter.ai/api/v1";
const OPENROUTER_MODEL: &str = "liquid/lfm-2.5";

/// The largest answer, in tokens: the protocol's `max_tokens`.
const MAX_OUTPUT: u64 = 8192;
/// The size of the model's window is not known. This one is larger than all, so that nothing is summarised ahead: a
/// request that is too long is refused with status 400, and made again with fewer messages.
const WINDOW: u64 = 10_000_000;

/// The model and its key. What `named` says comes before the secrets.
pub(crate) fn backend(secrets: &Secrets, named: &NamedModel) -> ActiveModel {
    let key = secrets.get("OPENROUTER_API_KEY");
    let is_ollama = key.is_some_and(|key| key.expose_secret().trim() == OLLAMA);
    let (provider, usual_url, usual_model) = match is_ollama {
        true => (OLLAMA, OLLAMA_URL, OLLAMA_MODEL),
        false => ("openrouter", OPENROUTER_URL, OPENROUTER_MODEL),
    };
    let plain = |name: &str| secrets.get(name).map(|value| value.expose_secret().trim().to_owned());
    let base_url = named.url.clone().or_else(|| plain("OPENROUTER_BASE_URL"));
    // Any other server: what it needs is known by its address, if at all.
    let provider = if base_url.is_some() && !is_ollama { "custom" } else { provider };
    let model = Model {
        id: named
            .model
            .clone()
            .or_else(|| plain("MODEL_NAME"))
            .unwrap_or_else(|| usual_model.to_owned()),
        provider: provider.to_owned(),
        api: Api::OpenaiCompletions,
        base_url: base_url.unwrap_or_else(|| usual_url.to_owned()),
        reasoning: false,
        thinking_levels: Default::default(),
        input: vec![InputKind::Text],
        price: None,
        context_window: WINDOW,
        max_output: MAX_OUTPUT,
        quirks: Quirks { attribution: Some(Attribution::default()), ..Quirks::default() },
    };
    let profiles = key.map(|key| AuthProfile::with_key("payload", key.clone()));
    ActiveModel::new(model, profiles.into_iter().collect())
}
