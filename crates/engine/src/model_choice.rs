//! Which model a run uses, and with which keys.

mod settings;

use myclaw_config::Config;
use myclaw_llm::{Model, ModelRef, ResolveModel, resolve_model};
use secrecy::SecretString;

/// A model and the keys to try for it, in order.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// The model.
    pub model: Model,
    /// Auth profiles, tried in this order. Never empty after [`ModelChoice::new`].
    pub profiles: Vec<AuthProfile>,
}

/// One key of a provider.
#[derive(Debug, Clone)]
pub struct AuthProfile {
    /// Name shown in events and messages.
    pub id: String,
    /// The key; `None` for servers that need none.
    pub api_key: Option<SecretString>,
}

impl ModelChoice {
    /// A choice with `profiles`, or with one keyless profile named `default` if there are none.
    pub fn new(model: Model, mut profiles: Vec<AuthProfile>) -> Self {
        if profiles.is_empty() {
            profiles.push(AuthProfile { id: "default".to_owned(), api_key: None });
        }
        Self { model, profiles }
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
            .map(|profile| AuthProfile {
                id: profile.id.clone(),
                api_key: Some(profile.api_key.clone()),
            })
            .chain(
                own_key
                    .map(|key| AuthProfile { id: reference.provider.clone(), api_key: Some(key) }),
            )
            .collect();
        Self::new(model, profiles)
    }

    /// `provider/model`, as users write it.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }
}

#[cfg(test)]
mod tests;
