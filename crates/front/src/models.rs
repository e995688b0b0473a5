//! The models that can be used, with their keys.

mod key;

use std::collections::BTreeMap;

use myclaw_agent::{
    Home, did_you_mean,
    models::configured_model,
    selection::{configured_local_probe, known_providers},
};
use myclaw_auth::AuthFile;
use myclaw_config::Config;
use myclaw_llm::{
    InputKind, LocalFinding, Model, ModelCatalog, ModelRef, ThinkingLevel, provider_info,
    survey_local,
};
use serde::Serialize;

use crate::exit::CliError;
use crate::print::{columns, without_login};
pub use key::{KeySource, KeyState};

/// Which models are listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelFilter<'a> {
    /// Only those of this provider.
    pub provider: Option<&'a str>,
    /// Only those whose name contains this text, ignoring upper and lower case.
    pub search: Option<&'a str>,
}

/// The models that can be used: the catalog's, those of the config file, and those of servers on this machine.
///
/// # Errors
/// No model matches `filter`.
pub async fn find_models(
    home: &Home,
    config: &Config,
    filter: ModelFilter<'_>,
) -> Result<Vec<ListedModel>, CliError> {
    let mut models = known_models(config);
    let probe = configured_local_probe(config, &home.environment)?;
    for (_, finding) in survey_local(&probe).await {
        let LocalFinding::Server(server) = finding else { continue };
        for id in server.models {
            let reference = ModelRef { provider: server.provider.clone(), id };
            let mut model = resolve(config, &reference);
            model.base_url.clone_from(&server.base_url);
            models.insert(reference.to_string(), model);
        }
    }
    if let Some(provider) = filter.provider {
        models.retain(|_, model| model.provider.eq_ignore_ascii_case(provider));
        if models.is_empty() {
            return Err(no_models_of(provider, config));
        }
    }
    if let Some(text) = filter.search {
        let wanted = text.to_lowercase();
        models.retain(|name, _| name.to_lowercase().contains(&wanted));
        if models.is_empty() {
            return Err(CliError::usage(format!(
                "no known model has `{text}` in its name; a model that is not listed can still be used, as \
                 PROVIDER/MODEL"
            )));
        }
    }
    let stored = default_keys(home, config)?;
    Ok(models.into_values().map(|model| ListedModel::new(model, config, home, &stored)).collect())
}

/// The keys that the store of the default agent holds.
pub fn default_keys(home: &Home, config: &Config) -> Result<AuthFile, CliError> {
    let agent = config.resolve_agent(None)?;
    Ok(home.stored_keys(&agent))
}

/// The catalog's models and those of the config file, by `provider/id`.
fn known_models(config: &Config) -> BTreeMap<String, Model> {
    let builtin = ModelCatalog::builtin();
    let catalog = builtin.iter().map(|model| ModelRef { provider: model.provider, id: model.id });
    let own = config.models.providers.iter().flat_map(|(provider, own)| {
        own.models.iter().map(|model| ModelRef { provider: provider.clone(), id: model.id.clone() })
    });
    let default = config
        .provider
        .iter()
        .map(|provider| ModelRef { provider: provider.name.clone(), id: provider.model.clone() });
    catalog
        .chain(own)
        .chain(default)
        .map(|reference| (reference.to_string(), resolve(config, &reference)))
        .collect()
}

/// The properties of a model; those of the config file take precedence.
fn resolve(config: &Config, reference: &ModelRef) -> Model {
    configured_model(config, reference).model
}

fn no_models_of(provider: &str, config: &Config) -> CliError {
    if let Some(info) = provider_info(provider) {
        return CliError::failure(format!(
            "no model of {} is known before its server answers at {}; start it, or name the model as {}/MODEL",
            info.name,
            resolve(config, &ModelRef { provider: info.name.to_owned(), id: String::new() })
                .base_url,
            info.name
        ));
    }
    let known = known_providers(config);
    let suggestion = did_you_mean(provider, known.iter().copied());
    CliError::usage(format!(
        "there is no provider `{provider}`{suggestion} Known: {}",
        known.join(", ")
    ))
}

/// A model with its key and its thinking levels.
#[derive(Serialize)]
pub struct ListedModel {
    #[serde(flatten)]
    model: Model,
    /// The levels of thinking that it offers.
    thinking: Vec<ThinkingLevel>,
    key: KeyState,
}

impl ListedModel {
    fn new(mut model: Model, config: &Config, home: &Home, stored: &AuthFile) -> Self {
        model.base_url = without_login(&model.base_url);
        let thinking = model.offered_thinking_levels();
        let key = KeySource::find(&model.provider, config, home, stored).state();
        Self { model, thinking, key }
    }

    /// As `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }

    /// Whether it can be used now: there is a key, or none is needed.
    pub fn has_key(&self) -> bool {
        matches!(self.key, KeyState::Set | KeyState::NotNeeded)
    }
}

impl ListedModel {
    /// Its context window, and what a million tokens of input and of output cost.
    pub fn figures(&self) -> [String; 2] {
        let price = self.model.price.map(|price| format!("${}/${}", price.input, price.output));
        [thousands(self.model.context_window), price.unwrap_or_default()]
    }
}

/// A table of models for people.
pub fn table(models: &[ListedModel]) -> Vec<String> {
    let head = ["MODEL", "CONTEXT", "OUTPUT", "$/M IN", "$/M OUT", "IMAGES", "THINKING", "KEY"]
        .map(str::to_owned)
        .to_vec();
    let rows = models.iter().map(|ListedModel { model, thinking, key }| {
        let price = |dollars: Option<f64>| match dollars {
            Some(dollars) if dollars > 0.0 => format!("{dollars}"),
            Some(_) => "-".to_owned(),
            None => "?".to_owned(),
        };
        let images = if model.input.contains(&InputKind::Image) { "yes" } else { "no" };
        vec![
            format!("{}/{}", model.provider, model.id),
            thousands(model.context_window),
            thousands(model.max_output),
            price(model.price.map(|price| price.input)),
            price(model.price.map(|price| price.output)),
            images.to_owned(),
            level_range(thinking),
            key.as_str().to_owned(),
        ]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// `200k`, `1048k`, `512`.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 { tokens.to_string() } else { format!("{}k", tokens / 1_000) }
}

/// `off-high`, `low-xhigh`, `high`; `no` for a model that cannot think.
fn level_range(levels: &[ThinkingLevel]) -> String {
    match levels {
        [] | [ThinkingLevel::Off] => "no".to_owned(),
        [level] => level.to_string(),
        [least, .., most] => format!("{least}-{most}"),
    }
}
