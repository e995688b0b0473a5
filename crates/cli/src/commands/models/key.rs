//! Where the key for a provider comes from. What it is is never said.

use myclaw_config::Config;
use myclaw_llm::{KeyNeed, provider_info};
use serde::Serialize;

use crate::model_choice::environment_key;
use crate::settings::Home;

/// Whether a model's provider has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KeyState {
    Set,
    Missing,
    NotNeeded,
    /// The cloud's own credentials do; whether there are any shows when a call is made.
    Cloud,
}

impl KeyState {
    /// For people.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Missing => "missing",
            Self::NotNeeded => "not needed",
            Self::Cloud => "cloud",
        }
    }
}

/// Where the keys for a provider come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    /// `provider.authProfiles` in the config file, by their ids.
    Profiles(Vec<String>),
    /// `models.providers.<name>.apiKey` in the config file.
    ConfigFile,
    /// This environment variable.
    Variable(&'static str),
    /// The cloud's own credentials.
    Cloud,
    /// One of these variables would have to hold it.
    Missing(&'static [&'static str]),
    /// None is needed.
    NotNeeded,
}

impl KeySource {
    pub(super) fn find(provider: &str, config: &Config, home: &Home) -> Self {
        if let Some(configured) =
            config.provider.as_ref().filter(|configured| configured.name == provider)
        {
            let ids = configured.auth_profiles.iter().map(|profile| profile.id.clone());
            return Self::Profiles(ids.collect());
        }
        let own = config.models.providers.get(provider);
        if own.is_some_and(|own| own.api_key.is_some()) {
            return Self::ConfigFile;
        }
        let Some(info) = provider_info(provider) else { return Self::NotNeeded };
        match (environment_key(info, &home.environment), info.key) {
            (_, KeyNeed::None) => Self::NotNeeded,
            (Some((variable, _)), _) => Self::Variable(variable),
            (None, KeyNeed::Cloud) => Self::Cloud,
            (None, KeyNeed::Required) => Self::Missing(info.key_variables),
        }
    }

    pub(super) fn state(&self) -> KeyState {
        match self {
            Self::Profiles(_) | Self::ConfigFile | Self::Variable(_) => KeyState::Set,
            Self::Cloud => KeyState::Cloud,
            Self::Missing(_) => KeyState::Missing,
            Self::NotNeeded => KeyState::NotNeeded,
        }
    }

    /// One line for a person.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Profiles(ids) => {
                format!("provider.authProfiles in the config file ({})", ids.join(", "))
            }
            Self::ConfigFile => "models.providers in the config file".to_owned(),
            Self::Variable(variable) => format!("the variable {variable}"),
            Self::Cloud => "the cloud's own credentials, looked for when a call is made".to_owned(),
            Self::Missing(variables) => format!("missing: set {}", variables.join(" or ")),
            Self::NotNeeded => "not needed".to_owned(),
        }
    }
}
