//! Selects the active model and its fallbacks.
//!
//! In this order: what the caller names, what the config file names, the provider of a key in the environment, that of a
//! key in the agent's store, a model server that listens on this machine, the built-in planner. The result holds the
//! address and where the key comes from, so that other modules need not know how the model was selected.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use myclaw_auth::AuthFile;
use myclaw_config::{Config, Environment, SecretString};
use myclaw_engine::{ActiveModel, WindowSource};
use myclaw_llm::{
    BUILTIN_PROVIDER, DEMO_MODEL_ID, KeyNeed, LocalCandidate, LocalFacts, LocalProbe, Model,
    ModelCatalog, ModelRef, ProviderInfo, ask_local, discover_local, first_provider_with_key,
    parse_model_ref, provider_info,
};

use crate::AgentError;
use crate::models::{Found, definition, meant_provider, resolve};
use crate::similar::did_you_mean;

/// The variable with the places to look for model servers, instead of the usual ports: `none`, or pairs such as
/// `ollama=127.0.0.1:11434`, separated by commas.
pub use myclaw_files::variables::LOCAL_SERVERS as LOCAL_SERVERS_VARIABLE;
/// The variable in which Ollama's own programs look for its server.
const OLLAMA_HOST_VARIABLE: &str = "OLLAMA_HOST";
/// Ollama's default port.
const OLLAMA_PORT: u16 = 11_434;
/// How long a server on this machine may take to say what it knows about its model.
const FACTS_LIMIT: Duration = Duration::from_millis(500);
/// Windows of Ollama below this are explained, in tokens.
const COMFORTABLE_WINDOW: u64 = 32_000;

/// The models of a session, and the reason of their selection.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The active model, followed by its fallbacks. Never empty.
    pub models: Vec<ActiveModel>,
    /// The name of the active model.
    pub reference: ModelRef,
    /// Why it was selected.
    pub source: SelectionSource,
    /// Messages for the user about configured fallbacks that cannot be used.
    pub unusable: Vec<String>,
    /// What the server of the first model says about it, if it runs on this machine and was asked.
    pub reported: Option<LocalFacts>,
}

/// The model names to select from, in order of precedence.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The model that the caller names. It is used without fallbacks.
    pub requested: Option<&'a str>,
    /// The model that the config of the agent names.
    pub configured: Option<&'a str>,
    /// The fallbacks of the configured one.
    pub fallbacks: &'a [String],
    /// The keys that the agent's store holds.
    pub stored: &'a AuthFile,
}

/// Why a model was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectionSource {
    /// The caller named it.
    Request,
    /// The config file names it.
    ConfigFile,
    /// The agent's store holds a key for its provider.
    StoredKey,
    /// This environment variable holds a key.
    KeyVariable(&'static str),
    /// A server at this address listens on this machine.
    LocalServer {
        /// The base URL for requests.
        base_url: String,
    },
    /// No other model is available.
    Builtin,
}

impl Selection {
    fn new(reference: ModelRef, source: SelectionSource, model: ActiveModel) -> Self {
        Self { models: vec![model], reference, source, unusable: Vec::new(), reported: None }
    }

    /// Asks a server on this machine about the model that answers.
    async fn ask_server(&mut self, config: &Config) {
        let first = &mut self.models[0];
        self.reported = apply_served_facts(config, &self.reference, first, self.reported).await;
    }

    /// What the user has to know about the context window of a model at Ollama. Ollama chooses its size, no request can
    /// change it, and messages that do not fit are left out without an error.
    pub fn window_note(&self) -> Option<String> {
        let facts = self.reported.filter(|_| self.reference.provider == "ollama")?;
        let size = match facts.context_window {
            Some(tokens) if tokens >= COMFORTABLE_WINDOW => return None,
            Some(tokens) => format!("is {tokens} tokens"),
            None => "is not known before Ollama has loaded it, and may be as small as 4096 tokens"
                .to_owned(),
        };
        Some(format!(
            "the context window of {model} {size}; Ollama drops what does not fit without an error. Start the Ollama \
             server with OLLAMA_CONTEXT_LENGTH=64000, or state `contextWindow` for this model in the config file",
            model = self.reference,
        ))
    }

    /// The active model.
    pub fn model(&self) -> &Model {
        &self.models[0].model
    }

    /// Whether it is the built-in planner, which is announced on every run.
    pub fn is_builtin(&self) -> bool {
        self.reference.provider == BUILTIN_PROVIDER && self.reference.id == DEMO_MODEL_ID
    }
}

/// Asks a server on this machine about a model, unless the config states its window or `known` has it. What the server
/// says replaces what the catalog says or what was guessed, but nothing that the config says. Returns all that is known;
/// `None` if the server does not answer in time, or is elsewhere.
pub async fn apply_served_facts(
    config: &Config,
    reference: &ModelRef,
    active: &mut ActiveModel,
    known: Option<LocalFacts>,
) -> Option<LocalFacts> {
    if active.window == WindowSource::Stated {
        return known;
    }
    let facts = match known {
        Some(facts) if facts.context_window.is_some() => facts,
        _ => ask_local(&active.model, FACTS_LIMIT).await.or(known)?,
    };
    let Model { input, max_output, .. } = active.model.clone();
    facts.apply(&mut active.model);
    let definition = definition(config, reference);
    if definition.is_some_and(|definition| definition.input.is_some()) {
        active.model.input = input;
    }
    if definition.is_some_and(|definition| definition.max_output.is_some()) {
        active.model.max_output = max_output;
    }
    Some(facts)
}

/// The inputs of a selection.
struct Selector<'a> {
    config: &'a Config,
    environment: &'a Environment,
    stored: &'a AuthFile,
}

/// Selects the models of a session.
///
/// # Errors
/// The requested or configured name cannot be used: it is malformed, its provider is unknown, or its key is missing.
pub async fn select(
    config: &Config,
    environment: &Environment,
    wanted: Wanted<'_>,
) -> Result<Selection, AgentError> {
    let selector = Selector { config, environment, stored: wanted.stored };
    let mut selection = selector.choose(wanted).await?;
    selection.ask_server(config).await;
    Ok(selection)
}

impl Selector<'_> {
    async fn choose(&self, wanted: Wanted<'_>) -> Result<Selection, AgentError> {
        let (config, selector) = (self.config, self);
        if let Some(text) = wanted.requested {
            let reference =
                parse_model_ref(text).map_err(|error| AgentError::usage(error.to_string()))?;
            let model = selector.allowed(&reference).map_err(AgentError::usage)?;
            return Ok(Selection::new(reference, SelectionSource::Request, model));
        }
        if let Some(text) = wanted.configured {
            let reference = parse_model_ref(text).map_err(|error| {
                AgentError::config(format!("the model in the config file: {error}"))
            })?;
            let model = selector.allowed(&reference).map_err(AgentError::config)?;
            let mut selection = Selection::new(reference, SelectionSource::ConfigFile, model);
            for name in wanted.fallbacks {
                // A fallback that cannot be used must not keep the first model from answering.
                match selector.fallback(name) {
                    Ok(model) => selection.models.push(model),
                    Err(problem) => {
                        selection.unusable.push(format!("no fallback on {name}: {problem}"));
                    }
                }
            }
            return Ok(selection);
        }
        if let Some(reference) = first_own_model(config) {
            let model = selector.allowed(&reference).map_err(AgentError::config)?;
            return Ok(Selection::new(reference, SelectionSource::ConfigFile, model));
        }
        let selection = selector.unconfigured().await?;
        check_allowed(config, &selection.reference).map_err(AgentError::config)?;
        Ok(selection)
    }

    fn fallback(&self, name: &str) -> Result<ActiveModel, String> {
        let reference = parse_model_ref(name).map_err(|error| error.to_string())?;
        self.allowed(&reference)
    }

    /// As [`Selector::model`], if the config allows the model.
    fn allowed(&self, reference: &ModelRef) -> Result<ActiveModel, String> {
        check_allowed(self.config, reference)?;
        self.model(reference)
    }

    /// The model with an address and, where one is needed, a key.
    ///
    /// # Errors
    /// A message for the user: the provider is not known, or its key is missing.
    fn model(&self, reference: &ModelRef) -> Result<ActiveModel, String> {
        let found = find_access(self.config, self.environment, self.stored, reference)?;
        Ok(resolve(self.config, reference, &found))
    }

    /// Selects where the config names no model.
    async fn unconfigured(&self) -> Result<Selection, AgentError> {
        let Self { config, environment, stored } = self;
        let found = first_provider_with_key(|variable| key_in(environment, variable).is_some());
        if let Some((info, variable)) = found
            && let Some(model) = info.default_model
        {
            let reference = ModelRef { provider: info.name.to_owned(), id: model.to_owned() };
            let model = self.model(&reference).map_err(AgentError::config)?;
            return Ok(Selection::new(reference, SelectionSource::KeyVariable(variable), model));
        }
        let plain = |provider: &str, id: &str, source, found| {
            let reference = ModelRef { provider: provider.to_owned(), id: id.to_owned() };
            let model = resolve(config, &reference, &found);
            Ok(Selection::new(reference, source, model))
        };
        let has_stored_key = |info: &&ProviderInfo| !stored.profiles_of(info.name).is_empty();
        let of_stored = ModelCatalog::builtin().providers().find(has_stored_key);
        if let Some((info, model)) = of_stored.and_then(|info| Some((info, info.default_model?))) {
            return plain(info.name, model, SelectionSource::StoredKey, Found::default());
        }
        if let Some(server) = discover_local(&local_probe(environment)?).await
            && let Some(model) = server.models.first()
        {
            let found = Found { base_url: Some(server.base_url.clone()), ..Found::default() };
            let source = SelectionSource::LocalServer { base_url: server.base_url };
            let selection = plain(&server.provider, model, source, found)?;
            return Ok(Selection { reported: Some(server.facts), ..selection });
        }
        plain(BUILTIN_PROVIDER, DEMO_MODEL_ID, SelectionSource::Builtin, Found::default())
    }
}

/// Checks that the config allows the model; the error is a message for the user.
pub(crate) fn check_allowed(config: &Config, model: &ModelRef) -> Result<(), String> {
    if config.allows_model(&model.provider, &model.id) {
        return Ok(());
    }
    let allowed = config.agents.defaults.models.as_deref().unwrap_or_default().join(", ");
    Err(format!(
        "{model} is not among the models that the config file allows ({allowed}); add it to agents.defaults.models, or \
         choose one of these"
    ))
}

/// The first model of the user's own in the config file, for a config that names no model.
fn first_own_model(config: &Config) -> Option<ModelRef> {
    config.models.providers.iter().find_map(|(provider, models)| {
        let model = models.models.first()?;
        Some(ModelRef { provider: provider.clone(), id: model.id.clone() })
    })
}

/// Finds the address of the model's provider and the source of its key where the config does not give them.
///
/// # Errors
/// A message for the user: the provider is not known, or its key is missing.
pub(crate) fn find_access(
    config: &Config,
    environment: &Environment,
    stored: &AuthFile,
    model: &ModelRef,
) -> Result<Found, String> {
    let provider = model.provider.as_str();
    if config.provider.as_ref().is_some_and(|configured| configured.name == provider)
        || provider == BUILTIN_PROVIDER
    {
        return Ok(Found::default());
    }
    let own = config.models.providers.get(provider);
    let has_address = own.is_some_and(|own| own.base_url.is_some());
    let Some(info) = provider_info(provider) else {
        return match own {
            Some(_) if has_address => Ok(Found::default()),
            Some(_) => Err(missing_address(provider, "MyClaw knows no address for it")),
            None => Err(unknown_provider(config, provider)),
        };
    };
    if info.base_url.is_empty() && !has_address {
        return Err(missing_address(provider, "each customer has their own address"));
    }
    if own.is_some_and(|own| own.api_key.is_some()) {
        return Ok(Found::default());
    }
    // A server of the user's own may need no key, or find it in a header.
    let may_go_without = has_address
        || own.is_some_and(|own| !own.headers.is_empty())
        || !stored.profiles_of(provider).is_empty();
    let key_variable = environment_key(info, environment).map(|(variable, _)| variable);
    match info.key {
        KeyNeed::Required if key_variable.is_none() && !may_go_without => Err(missing_key(info)),
        KeyNeed::Required | KeyNeed::Cloud => Ok(Found { key_variable, base_url: None }),
        KeyNeed::None if has_address => Ok(Found::default()),
        KeyNeed::None => {
            Ok(Found { base_url: Some(local_base_url(info, environment)), key_variable: None })
        }
    }
}

pub(crate) fn missing_address(provider: &str, why: &str) -> String {
    format!(
        "there is no address for {provider} ({why}): set `models.providers.{provider}.baseUrl` in the config file"
    )
}

/// The provider's key, with the variable that holds it.
pub fn environment_key(
    info: &ProviderInfo,
    environment: &Environment,
) -> Option<(&'static str, SecretString)> {
    info.key_variables.iter().find_map(|variable| {
        Some((*variable, SecretString::from(key_in(environment, variable)?.to_owned())))
    })
}

fn key_in<'a>(environment: &'a Environment, variable: &str) -> Option<&'a str> {
    environment.get(variable).map(str::trim).filter(|key| !key.is_empty())
}

fn missing_key(info: &ProviderInfo) -> String {
    format!(
        "there is no key for {name}: set {variables}, keep one with `myclaw auth add {name}`, or put it into \
         the config file under `provider.authProfiles` (`myclaw init` writes one)",
        name = info.name,
        variables = info.key_variables.join(" or ")
    )
}

/// The providers that a user can name: those of the config file, and those that are built in.
pub fn known_providers(config: &Config) -> Vec<&str> {
    let own = config.models.providers.keys().map(String::as_str);
    // An entry without an address does not define a provider.
    let configured = config.provider.iter().filter(|configured| configured.base_url.is_some());
    let configured = configured.map(|configured| configured.name.as_str());
    let builtin = ModelCatalog::builtin();
    let builtin = builtin.providers().map(|info| info.name);
    let mut known: Vec<&str> = Vec::new();
    for name in own.chain(configured).chain(builtin) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// The message about an unknown provider.
pub fn unknown_provider(config: &Config, provider: &str) -> String {
    // A provider of the config file without an address is not known either.
    let mut known = known_providers(config);
    known.retain(|name| *name != provider);
    let suggestion = match meant_provider(provider) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => did_you_mean(provider, known.iter().copied()),
    };
    format!(
        "the provider `{provider}` is not known{suggestion} Give its address in the config file under \
         `models.providers.{provider}.baseUrl`, or use one of: {}",
        known.join(", ")
    )
}

/// The addresses to look for model servers on this machine.
///
/// # Errors
/// The variable cannot be parsed.
pub fn local_probe(environment: &Environment) -> Result<LocalProbe, AgentError> {
    let mut probe = LocalProbe::default();
    if let Some(text) = environment.get(LOCAL_SERVERS_VARIABLE) {
        probe.candidates = parse_candidates(text).map_err(AgentError::usage)?;
    } else if let Some(text) =
        environment.get(OLLAMA_HOST_VARIABLE).filter(|text| !text.trim().is_empty())
    {
        let address = loopback_address(text);
        probe.candidates.retain_mut(|candidate| {
            if candidate.provider != "ollama" {
                return true;
            }
            // A server on another machine is contacted only if the config names it.
            let Some(address) = address else { return false };
            candidate.address = address;
            true
        });
    }
    Ok(probe)
}

fn parse_candidates(text: &str) -> Result<Vec<LocalCandidate>, String> {
    let text = text.trim();
    if text.is_empty() || text == "none" {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|pair| {
            let candidate = pair.trim().split_once('=').and_then(|(provider, address)| {
                Some(LocalCandidate { provider: provider.to_owned(), address: address.parse().ok()? })
            });
            candidate.ok_or_else(|| {
                format!(
                    "{LOCAL_SERVERS_VARIABLE}: `{pair}` is not a server; write `none` or NAME=ADDRESS:PORT, such as \
                     ollama=127.0.0.1:11434"
                )
            })
        })
        .collect()
}

/// Like [`local_probe`], with the addresses of these servers that the config file states instead.
///
/// # Errors
/// The variable with the addresses is wrong.
pub fn configured_local_probe(
    config: &Config,
    environment: &Environment,
) -> Result<LocalProbe, AgentError> {
    let mut probe = local_probe(environment)?;
    for candidate in &mut probe.candidates {
        let own = config.models.providers.get(&candidate.provider);
        let base_url = own.and_then(|own| own.base_url.as_deref());
        let host = base_url.and_then(|url| url.trim_end_matches('/').strip_suffix("/v1"));
        if let Some(address) = host.and_then(loopback_address) {
            candidate.address = address;
        }
    }
    Ok(probe)
}

/// The loopback address in `OLLAMA_HOST` or a URL without a path, if there is one; scheme and port are optional.
fn loopback_address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (text, OLLAMA_PORT),
    };
    let address = match host.trim_start_matches('[').trim_end_matches(']') {
        "" | "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host.parse().ok()?,
    };
    // The wildcard address is for listening; the server is reached at the loopback address.
    let address = if address.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address };
    address.is_loopback().then_some(SocketAddr::from((address, port)))
}

/// The base URL of a server on this machine.
pub fn local_base_url(info: &ProviderInfo, environment: &Environment) -> String {
    let probe = local_probe(environment).unwrap_or_default();
    let candidate = probe.candidates.iter().find(|candidate| candidate.provider == info.name);
    candidate.map_or_else(
        || info.base_url.to_owned(),
        |candidate| format!("http://{}/v1", candidate.address),
    )
}

#[cfg(test)]
mod tests;
