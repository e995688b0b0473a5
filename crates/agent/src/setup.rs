//! The first set-up: a model and its key, tried before they are kept.

use std::time::Duration;

use myclaw_auth::{AuthFile, AuthProfile, AuthStoreError, CredentialType, StoredProfile};
use myclaw_config::{
    Config, ConfigChange, ConfigError, ConfigFile, ConfigPath, KeySource, load_or_default,
};
use myclaw_engine::{ActiveModel, Clock as _, SystemClock};
use myclaw_llm::{CallLimits, Model, ModelRef, parse_model_ref, provider_info};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config_check::refuse_mistakes;
use crate::models::{profiles_in_order, resolve};
use crate::selection::{SelectionSource, Wanted, find_access, select};
use crate::{
    Home, call_limits,
    config_write::{ConfigWriteError, WrittenConfig, change_config},
    trial::{Trial, TrialFailure, TrialQuestion},
};

/// The message of a trial. Any answer is a success.
const QUESTION: &str = "Answer with the word ok.";
/// Longest answer of a trial in tokens; the least that every provider takes.
const MAX_OUTPUT: u64 = 16;
/// Time limit of a trial: far longer than so short an answer needs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Name of the key that a set-up keeps, as with `myclaw auth add`.
const PROFILE: &str = "default";

/// Calls a model once with one key, as small as possible. Returns how long the answer took.
///
/// # Errors
/// There is no answer.
pub async fn try_key(
    home: &Home,
    config: &Config,
    model: &Model,
    profile: Option<&AuthProfile>,
) -> Result<Duration, TrialFailure> {
    let limits = call_limits(config);
    let limits = CallLimits {
        first_event: limits.first_event.min(PATIENCE),
        between_events: limits.between_events.min(PATIENCE),
        ..limits
    };
    let question =
        TrialQuestion { text: QUESTION, picture: None, tools: &[], max_output: MAX_OUTPUT };
    let (trial, cancel) = (Trial::new(home.http_options()), CancellationToken::new());
    trial.call(model, profile, question, limits, &cancel).await.map(|answer| answer.total)
}

/// The model that answers today; `None` if only the built-in one would, or the reason why none can.
///
/// # Errors
/// The config cannot be used, or names a model that cannot be.
pub async fn usable_model(home: &Home) -> Result<Option<ModelRef>, crate::AgentError> {
    let loaded = load_or_default(&home.environment)?;
    refuse_mistakes(&loaded)?;
    let agent = loaded.config.resolve_agent(None)?;
    let stored = home.stored_keys(&agent);
    let wanted = Wanted {
        requested: None,
        configured: agent.model.as_deref(),
        fallbacks: &[],
        stored: &stored,
    };
    let selection = select(&loaded.config, &home.environment, wanted).await?;
    Ok((selection.source != SelectionSource::Builtin).then_some(selection.reference))
}

/// A model that shall answer from now on.
#[derive(Debug)]
pub struct NewModel<'a> {
    /// Its provider.
    pub provider: &'a str,
    /// Its id there; `None` is the provider's usual one.
    pub model: Option<&'a str>,
    /// Where the provider is, if the catalog does not know it.
    pub base_url: Option<&'a str>,
    /// Its key, or where the key is; `None` if the provider needs none or its key is known already.
    pub key: Option<KeySource>,
}

/// A model that was tried and is in the config.
#[derive(Debug)]
pub struct ModelSetUp {
    /// Its name.
    pub reference: ModelRef,
    /// How long its answer took.
    pub took: Duration,
    /// The store that holds the new key, in words for people.
    pub store: Option<String>,
    /// The config file with the model.
    pub written: WrittenConfig,
}

/// Why a model was not set up. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A value cannot be used.
    #[error("{message}")]
    Unusable {
        /// Which one: `provider`, `model`, `baseUrl` or `key`.
        field: &'static str,
        /// What to do.
        message: String,
    },
    /// The model gave no answer.
    #[error("{model} does not answer: {message}")]
    NoAnswer {
        /// The model.
        model: ModelRef,
        /// Class of the failure, for programs.
        class: &'static str,
        /// What the provider said.
        message: String,
    },
    /// The config file was not changed.
    #[error(transparent)]
    Config(#[from] ConfigWriteError),
    /// The key was not kept.
    #[error(transparent)]
    Store(#[from] AuthStoreError),
}

fn unusable(field: &'static str, message: impl Into<String>) -> SetupError {
    SetupError::Unusable { field, message: message.into() }
}

/// Tries a model with its key; if it answers, keeps the key in the store and names the model in the config.
///
/// # Errors
/// The model does not answer, or something cannot be written. Nothing has changed then.
pub async fn set_up_model(
    home: &Home,
    file: &ConfigFile,
    new: NewModel<'_>,
) -> Result<ModelSetUp, SetupError> {
    let reference = reference(&new)?;
    let config_error = |error| SetupError::Config(ConfigWriteError::Invalid(error));
    let before = file.load(&home.environment);
    // The starter file has no mistakes, so this never fails before the file is written.
    let loaded = before.map_err(config_error)?;
    let changes = changes(file, &loaded.config, &reference, new.base_url)?;
    let changed = file.with(&changes).map_err(ConfigWriteError::Edit)?;
    let candidate = changed.load(&home.environment).map_err(config_error)?;
    refuse_mistakes(&candidate).map_err(config_error)?;
    let config = &candidate.config;
    let agent = config.resolve_agent(None).map_err(config_error)?;
    let store = home.keys_of(&agent);
    let name = format!("{}:{PROFILE}", reference.provider);
    let profile = new.key.as_ref().map(|source| match source {
        KeySource::Literal(key) => {
            StoredProfile::with_key(&reference.provider, CredentialType::ApiKey, key.clone())
        }
        source => StoredProfile::with_source(&reference.provider, CredentialType::ApiKey, source),
    });
    let mut stored = store.load()?;
    if let Some(profile) = &profile {
        stored.put(&name, profile.clone());
    }
    let found = find_access(config, &home.environment, &stored, &reference)
        .map_err(|message| unusable("key", message))?;
    let active = resolve(config, &reference, &found);
    let tried = match &new.key {
        Some(source) => Some(AuthProfile::new(PROFILE, Some(source.clone()))),
        None => first_profile(&active, &stored),
    };
    let took = try_key(home, config, &active.model, tried.as_ref())
        .await
        .map_err(|failure| no_answer(&reference, failure))?;
    let previous = match profile {
        None => None,
        Some(profile) => Some(store.change(|file| exchange(file, &name, Some(profile.clone())))?.0),
    };
    match change_config(home, file, &changes).await {
        Ok(written) => {
            let store = previous.map(|_| store.describe());
            Ok(ModelSetUp { reference, took, store, written })
        }
        Err(error) => {
            if let Some(previous) = previous {
                store.change(|file| exchange(file, &name, previous.clone()))?;
            }
            Err(error.into())
        }
    }
}

/// Puts a profile into the place of another; returns the other.
fn exchange(file: &mut AuthFile, name: &str, new: Option<StoredProfile>) -> Option<StoredProfile> {
    let before = file.profiles().find(|(known, _)| *known == name);
    let before = before.map(|(_, profile)| profile.clone());
    match new {
        Some(profile) => file.put(name, profile),
        None => drop(file.remove(name)),
    }
    before
}

fn first_profile(active: &ActiveModel, stored: &AuthFile) -> Option<AuthProfile> {
    profiles_in_order(active, stored, SystemClock.now_ms()).into_iter().next()
}

fn no_answer(reference: &ModelRef, failure: TrialFailure) -> SetupError {
    let (class, message) = match failure {
        TrialFailure::Key(why) => ("auth", why),
        TrialFailure::Call(error) => (error.name(), error.message),
        TrialFailure::Aborted => ("aborted", "aborted".to_owned()),
    };
    SetupError::NoAnswer { model: reference.clone(), class, message }
}

/// The name of the model. A model may be written with its provider.
fn reference(new: &NewModel<'_>) -> Result<ModelRef, SetupError> {
    let provider = new.provider.trim();
    let usual = || provider_info(provider).and_then(|info| info.default_model);
    let Some(id) = new.model.map(str::trim).filter(|id| !id.is_empty()).or_else(usual) else {
        let why = format!(
            "no usual model of {provider} is known; name one by its id there (`--model ID` of `myclaw onboard`)"
        );
        return Err(unusable("model", why));
    };
    let full = match id.strip_prefix(provider) {
        Some(rest) if rest.starts_with('/') => id.to_owned(),
        _ => format!("{provider}/{id}"),
    };
    parse_model_ref(&full).map_err(|error| unusable("model", error.to_string()))
}

/// What the config needs for a model to answer in the default agent. Nothing else of the file changes.
fn changes(
    file: &ConfigFile,
    config: &Config,
    reference: &ModelRef,
    base_url: Option<&str>,
) -> Result<Vec<ConfigChange>, SetupError> {
    let invalid = |error| SetupError::Config(ConfigWriteError::Invalid(error));
    let set = |path: ConfigPath, value: &str| ConfigChange::Set { path, value: Value::from(value) };
    let root = ConfigPath::default;
    let mut changes = Vec::new();
    if let Some(base_url) = base_url.map(str::trim).filter(|url| !url.is_empty()) {
        let provider = root().key("models").key("providers").key(&reference.provider);
        changes.push(set(provider.key("baseUrl"), base_url));
    }
    let at = default_agent_key(file, config, "model").map_err(invalid)?;
    let primary = at.clone().key("primary");
    let at = if file.has(&primary).map_err(invalid)? { primary } else { at };
    changes.push(set(at, &reference.to_string()));
    Ok(changes)
}

/// Where the config says something about the default agent: in its own entry if that has the key, else in the defaults of
/// all agents.
///
/// # Errors
/// The file is not JSON5.
pub fn default_agent_key(
    file: &ConfigFile,
    config: &Config,
    key: &str,
) -> Result<ConfigPath, ConfigError> {
    let default = config.default_agent_id();
    let is_default = |id: &str| id.trim().eq_ignore_ascii_case(default.as_str());
    let agents = ConfigPath::default().key("agents");
    if let Some(index) = config.agents.list.iter().position(|entry| is_default(&entry.id)) {
        let own = agents.clone().key("list").index(index).key(key);
        if file.has(&own)? {
            return Ok(own);
        }
    }
    Ok(agents.key("defaults").key(key))
}
