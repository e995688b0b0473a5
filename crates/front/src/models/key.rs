//! Where the key for a provider comes from. The key itself is never printed.

use myclaw_agent::{Home, selection::environment_key};
use myclaw_auth::AuthFile;
use myclaw_config::Config;
use myclaw_llm::{KeyNeed, provider_info};
use serde::Serialize;

/// Whether a model's provider has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyState {
    /// There is one.
    Set,
    /// There is none.
    Missing,
    /// The provider needs none.
    NotNeeded,
    /// The cloud's own credentials are used; whether there are any shows only in a call.
    Cloud,
}

impl KeyState {
    /// For people.
    pub fn as_str(self) -> &'static str {
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
pub enum KeySource {
    /// `provider.authProfiles` in the config file, by their ids.
    Profiles(Vec<String>),
    /// `models.providers.<name>.apiKey` in the config file.
    ConfigFile,
    /// This environment variable.
    Variable(&'static str),
    /// The store of the agent, by their names there.
    Stored(Vec<String>),
    /// The cloud's own credentials.
    Cloud,
    /// One of these variables would have to hold it, or the store a key of this provider.
    Missing(&'static str, &'static [&'static str]),
    /// No key is needed.
    NotNeeded,
}

impl KeySource {
    /// The first source of a key for a run of the agent whose keys are `stored`.
    pub fn find(provider: &str, config: &Config, home: &Home, stored: &AuthFile) -> Self {
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
        let info = provider_info(provider);
        if let Some((variable, _)) = info
            .filter(|info| info.key != KeyNeed::None)
            .and_then(|info| environment_key(info, &home.environment))
        {
            return Self::Variable(variable);
        }
        let names: Vec<String> =
            stored.profiles_of(provider).into_iter().map(|profile| profile.id).collect();
        match (names.is_empty(), info.map(|info| (info, info.key))) {
            (false, _) => Self::Stored(names),
            (true, None | Some((_, KeyNeed::None))) => Self::NotNeeded,
            (true, Some((_, KeyNeed::Cloud))) => Self::Cloud,
            (true, Some((info, KeyNeed::Required))) => Self::Missing(info.name, info.key_variables),
        }
    }

    /// Whether there is a key.
    pub fn state(&self) -> KeyState {
        match self {
            Self::Profiles(_) | Self::ConfigFile | Self::Variable(_) | Self::Stored(_) => {
                KeyState::Set
            }
            Self::Cloud => KeyState::Cloud,
            Self::Missing(..) => KeyState::Missing,
            Self::NotNeeded => KeyState::NotNeeded,
        }
    }

    /// One line for a person.
    pub fn describe(&self) -> String {
        match self {
            Self::Profiles(ids) => {
                format!("provider.authProfiles in the config file ({})", ids.join(", "))
            }
            Self::ConfigFile => "models.providers in the config file".to_owned(),
            Self::Variable(variable) => format!("the variable {variable}"),
            Self::Cloud => "the cloud's own credentials, looked for when a call is made".to_owned(),
            Self::Stored(names) => format!("kept by `myclaw auth` ({})", names.join(", ")),
            Self::Missing(provider, variables) => {
                format!("missing: `myclaw auth add {provider}`, or set {}", variables.join(" or "))
            }
            Self::NotNeeded => "not needed".to_owned(),
        }
    }
}
