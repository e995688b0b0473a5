//! Builds a model from its name, with the values of the catalog, of the config and of a discovered server or key.

mod nicknames;
mod overlay;

use std::convert::Infallible;
use std::path::PathBuf;

use myclaw_auth::{AuthFile, AuthProfile, OrderRules, arrange};
use myclaw_config::{Config, KeySource, ModelDefinition, SecretString};
use myclaw_engine::{ActiveModel, WindowSource};
use myclaw_llm::{Attribution, Model, ModelRef, ResolveModel, resolve_model};

pub use self::nicknames::meant_provider;

/// A provider's address and key variable that were discovered outside of the config file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Its address. It takes precedence over that of the config.
    pub(crate) base_url: Option<String>,
    /// The variable that holds its key.
    pub(crate) key_variable: Option<&'static str>,
}

/// The model that `reference` names, with the address and the keys of its provider from the config.
///
/// A model of the catalog has the catalog's properties, any other one has defaults. Values of the config take precedence
/// over both.
pub fn configured_model(config: &Config, reference: &ModelRef) -> ActiveModel {
    resolve(config, reference, &Found::default())
}

/// Like [`configured_model`], with an address or key that was discovered outside of the config.
pub(crate) fn resolve(config: &Config, reference: &ModelRef, found: &Found) -> ActiveModel {
    let own = config.models.providers.get(&reference.provider);
    let configured =
        config.provider.as_ref().filter(|provider| provider.name == reference.provider);
    let definition = definition(config, reference);
    let base_url = found
        .base_url
        .as_deref()
        .or_else(|| own.and_then(|own| own.base_url.as_deref()))
        .or_else(|| configured.and_then(|provider| provider.base_url.as_deref()));
    let mut model = resolve_model(ResolveModel {
        provider: &reference.provider,
        id: &reference.id,
        base_url,
        api: overlay::api(own, definition),
    });
    overlay::overlay(&mut model, own, definition);
    let attribution = &config.models.attribution;
    model.quirks.attribution = attribution
        .enabled
        .then(|| Attribution { url: attribution.url.clone(), title: attribution.title.clone() });
    let own_key = own.and_then(|own| own.api_key.as_ref());
    let found_key = found.key_variable.map(|variable| {
        let id = if own.is_some() { reference.provider.as_str() } else { variable };
        AuthProfile::new(id.to_owned(), Some(KeySource::Environment(variable.to_owned())))
    });
    let profiles =
        configured
            .into_iter()
            .flat_map(|provider| &provider.auth_profiles)
            .map(|profile| {
                AuthProfile::new(profile.id.clone(), Some(key_source(config, &profile.api_key)))
            })
            .chain(own_key.map(|key| {
                AuthProfile::new(reference.provider.clone(), Some(key_source(config, key)))
            }))
            .chain(found_key)
            .collect();
    let is_stated = definition.is_some_and(|definition| definition.context_window.is_some());
    let window = if is_stated { WindowSource::Stated } else { WindowSource::Known };
    ActiveModel { window, ..ActiveModel::new(model, profiles) }
}

/// What the config says about the model itself.
pub(crate) fn definition<'a>(
    config: &'a Config,
    reference: &ModelRef,
) -> Option<&'a ModelDefinition> {
    let own = config.models.providers.get(&reference.provider)?;
    own.models.iter().find(|definition| definition.id == reference.id)
}

/// The keys that a run with `model` would try, in their order. `stored` are those of the agent's store.
pub fn profiles_in_order(model: &ActiveModel, stored: &AuthFile, now_ms: u64) -> Vec<AuthProfile> {
    let Model { provider, id, .. } = &model.model;
    let rules = OrderRules { provider, model: id, pinned: None, now_ms };
    arrange(&model.profiles, stored, &rules).into_iter().map(|entry| entry.profile).collect()
}

/// A path that cannot be made absolute is left unchanged: the message about the file then names it.
fn key_source(config: &Config, written: &SecretString) -> KeySource {
    KeySource::from_config(written, config.paths.as_ref()).unwrap_or_else(|_| {
        let as_written = |path: &str| Ok::<_, Infallible>(PathBuf::from(path));
        let Ok(source) = KeySource::parse(written, as_written);
        source
    })
}

#[cfg(test)]
mod tests;
