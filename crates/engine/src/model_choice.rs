//! Which model a run uses, and with which keys.

mod settings;

use std::convert::Infallible;
use std::path::PathBuf;

use myclaw_auth::AuthProfile;
use myclaw_config::{Config, KeySource};
use myclaw_llm::{Model, ModelRef, ResolveModel, resolve_model};
use secrecy::SecretString;

/// A model and the keys to try for it, in order.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// The model.
    pub model: Model,
    /// Auth profiles, tried in this order. Never empty after [`ModelChoice::new`].
    pub profiles: Vec<AuthProfile>,
    /// How the size of the context window is known.
    pub window: WindowSource,
}

/// How the size of a model's context window is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// From the catalog, or guessed. One that is too small for the work is refused.
    Known,
    /// The user or the caller stated it. One that is small is used, with a warning.
    Stated,
}

impl ModelChoice {
    /// A choice with `profiles`, or with one keyless profile named `default` if there are none. The model is the
    /// caller's own, so its window counts as stated.
    pub fn new(model: Model, mut profiles: Vec<AuthProfile>) -> Self {
        if profiles.is_empty() {
            profiles.push(AuthProfile::keyless());
        }
        Self { model, profiles, window: WindowSource::Stated }
    }

    /// The model that `reference` names, with the address and the keys that the settings give for its provider.
    ///
    /// A model of the catalog has its known properties, any other one is built by hand; what the settings say about
    /// it wins over both.
    pub fn from_config(config: &Config, reference: &ModelRef) -> Self {
        let own = config.models.providers.get(&reference.provider);
        let configured =
            config.provider.as_ref().filter(|provider| provider.name == reference.provider);
        let definition =
            own.and_then(|own| own.models.iter().find(|definition| definition.id == reference.id));
        let base_url = own
            .and_then(|own| own.base_url.as_deref())
            .or_else(|| configured.and_then(|provider| provider.base_url.as_deref()));
        let mut model = resolve_model(ResolveModel {
            provider: &reference.provider,
            id: &reference.id,
            base_url,
            api: settings::api(own, definition),
        });
        settings::overlay(&mut model, own, definition);
        let own_key = own.and_then(|own| own.api_key.clone());
        let profiles = configured
            .into_iter()
            .flat_map(|provider| &provider.auth_profiles)
            .map(|profile| {
                AuthProfile::new(profile.id.clone(), Some(key_source(config, &profile.api_key)))
            })
            .chain(own_key.map(|key| {
                AuthProfile::new(reference.provider.clone(), Some(key_source(config, &key)))
            }))
            .collect();
        let is_stated = definition.is_some_and(|definition| definition.context_window.is_some());
        let window = if is_stated { WindowSource::Stated } else { WindowSource::Known };
        Self { window, ..Self::new(model, profiles) }
    }

    /// `provider/model`, as users write it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }
}

/// A path that cannot be made absolute stays as it is: the message about the file then names it.
fn key_source(config: &Config, written: &SecretString) -> KeySource {
    KeySource::from_settings(written, config.paths.as_ref()).unwrap_or_else(|_| {
        let as_written = |path: &str| Ok::<_, Infallible>(PathBuf::from(path));
        let Ok(source) = KeySource::parse(written, as_written);
        source
    })
}

#[cfg(test)]
mod tests;
