//! Which model answers.
//!
//! In this order: what the command line names, what the config file names, the provider of a key in the environment,
//! that of a key in the agent's store, a model server that listens on this machine, the built-in planner. Whatever is
//! chosen comes with settings in which the engine finds its address and key, so that nothing behind this module has to
//! know how it was found.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use myclaw_auth::AuthFile;
use myclaw_config::{AuthProfile, Config, Environment, KeySource, ProviderConfig, SecretString};
use myclaw_engine::ModelChoice;
use myclaw_llm::{
    BUILTIN_PROVIDER, Catalog, DEMO_MODEL_ID, KeyNeed, LocalCandidate, LocalProbe, Model, ModelRef,
    ProviderInfo, discover_local, first_provider_with_key, parse_model_ref, provider_info,
};

use crate::config_check::meant_provider;
use crate::exit::CliError;
use crate::print::note;
use crate::report::Verbosity;
use crate::similar::did_you_mean;

/// Where to look for model servers instead of the usual ports: `none`, or pairs such as `ollama=127.0.0.1:11434`,
/// separated by commas.
pub(crate) const LOCAL_SERVERS_VARIABLE: &str = "MYCLAW_LOCAL_SERVERS";
/// Where Ollama's own programs look for its server.
const OLLAMA_HOST_VARIABLE: &str = "OLLAMA_HOST";
/// Ollama's default port.
const OLLAMA_PORT: u16 = 11_434;

/// The model that answers.
#[derive(Debug, Clone)]
pub(crate) struct ChosenModel {
    /// Which one.
    pub(crate) reference: ModelRef,
    /// Why this one.
    pub(crate) source: ChoiceSource,
    /// The settings, completed by what was found: address and key of the provider.
    pub(crate) config: Arc<Config>,
    /// The models to ask when it cannot answer, each with settings like these.
    pub(crate) fallbacks: Vec<(ModelRef, Arc<Config>)>,
    /// What is wrong with fallbacks that cannot be used, in words for the user.
    pub(crate) unusable: Vec<String>,
}

/// What says which model shall answer, the first that says anything going before the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// What the user named now. It stands alone, without fallbacks.
    pub(crate) requested: Option<&'a str>,
    /// What the agent's settings name.
    pub(crate) configured: Option<&'a str>,
    /// What the agent's settings name to fall back on.
    pub(crate) fallbacks: &'a [String],
    /// The keys that the agent's store holds.
    pub(crate) stored: &'a AuthFile,
}

/// Why a model was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChoiceSource {
    /// The user named it on the command line or in the chat.
    Request,
    /// The config file names it.
    ConfigFile,
    /// The agent's store holds a key for its provider.
    StoredKey,
    /// This environment variable holds a key.
    KeyVariable(&'static str),
    /// A server at this address listens on this machine.
    LocalServer {
        /// Where requests go.
        base_url: String,
    },
    /// There is nothing else.
    Builtin,
}

impl ChosenModel {
    fn new(reference: ModelRef, source: ChoiceSource, config: Arc<Config>) -> Self {
        Self { reference, source, config, fallbacks: Vec::new(), unusable: Vec::new() }
    }

    /// Adds a fallback, or what is wrong with it: that must not keep the first model from answering.
    fn fall_back_on(
        &mut self,
        name: &str,
        with_access: impl FnOnce(&ModelRef) -> Result<Arc<Config>, String>,
    ) {
        let usable = parse_model_ref(name)
            .map_err(|error| error.to_string())
            .and_then(|reference| with_access(&reference).map(|config| (reference, config)));
        match usable {
            Ok(fallback) => self.fallbacks.push(fallback),
            Err(problem) => self.unusable.push(format!("no fallback on {name}: {problem}")),
        }
    }

    /// What is known about it.
    pub(crate) fn known(&self) -> Model {
        ModelChoice::from_config(&self.config, &self.reference).model
    }

    /// Whether it is the built-in planner, which is announced on every run.
    pub(crate) fn is_builtin(&self) -> bool {
        self.reference.provider == BUILTIN_PROVIDER && self.reference.id == DEMO_MODEL_ID
    }

    /// Says on standard error which model answers, where the user did not choose it, and which fallbacks are none. The
    /// built-in planner is never passed over in silence.
    pub(crate) fn announce(&self, verbosity: Verbosity) {
        let is_told = verbosity == Verbosity::Normal || self.is_builtin();
        if let Some(line) = self.announcement().filter(|_| is_told) {
            note(format_args!("myclaw: {line}"));
        }
        for problem in self.unusable.iter().filter(|_| verbosity == Verbosity::Normal) {
            note(format_args!("myclaw: {problem}"));
        }
    }

    /// The line that tells the user which model was chosen and how to change that; `None` where the user chose.
    pub(crate) fn announcement(&self) -> Option<String> {
        let model = &self.reference;
        match &self.source {
            ChoiceSource::Request | ChoiceSource::ConfigFile if self.is_builtin() => {
                Some(format!("{model} answers: a small built-in planner, not a language model"))
            }
            ChoiceSource::Request | ChoiceSource::ConfigFile => None,
            ChoiceSource::KeyVariable(variable) => Some(format!(
                "{model} answers, because {variable} is set; choose another with --model, or `myclaw init` for good"
            )),
            ChoiceSource::StoredKey => Some(format!(
                "{model} answers, because there is a key for {}; choose another with --model, or `myclaw init` for good",
                model.provider
            )),
            ChoiceSource::LocalServer { base_url } => Some(format!(
                "{model} answers, from the server at {base_url}; choose another with --model, or `myclaw init` for good"
            )),
            ChoiceSource::Builtin => Some(format!(
                "{model} answers: a small built-in planner, not a language model; set ANTHROPIC_API_KEY (or another \
                 provider's), start Ollama, or run `myclaw init` to connect one"
            )),
        }
    }
}

/// Chooses the model of a turn.
///
/// # Errors
/// The requested or configured name cannot be used: it is no name, its provider is unknown, or its key is missing.
pub(crate) async fn choose(
    config: &Arc<Config>,
    environment: &Environment,
    wanted: Wanted<'_>,
) -> Result<ChosenModel, CliError> {
    let Wanted { requested, configured, stored, .. } = wanted;
    let with_access = |config: &Arc<Config>, environment: &Environment, reference: &ModelRef| {
        with_access(config, environment, stored, reference)
    };
    let chosen = ChosenModel::new;
    if let Some(text) = requested {
        let reference =
            parse_model_ref(text).map_err(|error| CliError::usage(error.to_string()))?;
        check_allowed(config, &reference).map_err(CliError::usage)?;
        let config = with_access(config, environment, &reference).map_err(CliError::usage)?;
        return Ok(chosen(reference, ChoiceSource::Request, config));
    }
    if let Some(text) = configured {
        let reference = parse_model_ref(text)
            .map_err(|error| CliError::config(format!("the model in the config file: {error}")))?;
        check_allowed(config, &reference).map_err(CliError::config)?;
        let config = with_access(config, environment, &reference).map_err(CliError::config)?;
        let mut chosen = chosen(reference, ChoiceSource::ConfigFile, config.clone());
        for name in wanted.fallbacks {
            chosen.fall_back_on(name, |reference| {
                check_allowed(&config, reference)?;
                with_access(&config, environment, reference)
            });
        }
        return Ok(chosen);
    }
    if let Some(reference) = first_own_model(config) {
        let config = with_access(config, environment, &reference).map_err(CliError::config)?;
        return Ok(chosen(reference, ChoiceSource::ConfigFile, config));
    }
    let chosen = choose_unconfigured(config, environment, stored).await?;
    check_allowed(config, &chosen.reference).map_err(CliError::config)?;
    Ok(chosen)
}

/// Whether the settings allow the model; if not, in words for the user.
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

/// Chooses where no setting names a model.
async fn choose_unconfigured(
    config: &Arc<Config>,
    environment: &Environment,
    stored: &AuthFile,
) -> Result<ChosenModel, CliError> {
    let chosen = ChosenModel::new;
    let found = first_provider_with_key(|variable| key_in(environment, variable).is_some());
    if let Some((info, variable)) = found
        && let Some(model) = info.default_model
    {
        let reference = ModelRef { provider: info.name.to_owned(), id: model.to_owned() };
        let config =
            with_access(config, environment, stored, &reference).map_err(CliError::config)?;
        return Ok(chosen(reference, ChoiceSource::KeyVariable(variable), config));
    }
    let has_stored_key = |info: &&ProviderInfo| !stored.profiles_of(info.name).is_empty();
    let of_stored = Catalog::builtin().providers().find(has_stored_key);
    if let Some((info, model)) = of_stored.and_then(|info| Some((info, info.default_model?))) {
        let reference = ModelRef { provider: info.name.to_owned(), id: model.to_owned() };
        return Ok(chosen(reference, ChoiceSource::StoredKey, Arc::clone(config)));
    }
    if let Some(server) = discover_local(&local_probe(environment)?).await
        && let Some(model) = server.models.first()
    {
        let reference = ModelRef { provider: server.provider.clone(), id: model.clone() };
        let config = with_server(config, &reference.provider, server.base_url.clone());
        let source = ChoiceSource::LocalServer { base_url: server.base_url };
        return Ok(chosen(reference, source, config));
    }
    let reference =
        ModelRef { provider: BUILTIN_PROVIDER.to_owned(), id: DEMO_MODEL_ID.to_owned() };
    Ok(chosen(reference, ChoiceSource::Builtin, Arc::clone(config)))
}

/// The first model of the user's own in the config file, where no setting names a model.
fn first_own_model(config: &Config) -> Option<ModelRef> {
    config.models.providers.iter().find_map(|(provider, models)| {
        let model = models.models.first()?;
        Some(ModelRef { provider: provider.clone(), id: model.id.clone() })
    })
}

/// The settings with an address and, where one is needed, a key for the model's provider.
///
/// # Errors
/// In words for the user: the provider is not known, or its key is missing.
pub(crate) fn with_access(
    config: &Arc<Config>,
    environment: &Environment,
    stored: &AuthFile,
    model: &ModelRef,
) -> Result<Arc<Config>, String> {
    let provider = model.provider.as_str();
    if config.provider.as_ref().is_some_and(|configured| configured.name == provider)
        || provider == BUILTIN_PROVIDER
    {
        return Ok(Arc::clone(config));
    }
    let own = config.models.providers.get(provider);
    let has_address = own.is_some_and(|own| own.base_url.is_some());
    let Some(info) = provider_info(provider) else {
        return match own {
            Some(_) if has_address => Ok(Arc::clone(config)),
            Some(_) => Err(missing_address(provider, "MyClaw does not know where it is")),
            None => Err(unknown_provider(config, provider)),
        };
    };
    if info.base_url.is_empty() && !has_address {
        return Err(missing_address(provider, "every customer has one of their own"));
    }
    if own.is_some_and(|own| own.api_key.is_some()) {
        return Ok(Arc::clone(config));
    }
    // A server of the user's own may want no key, or find it in a header.
    let may_go_without = has_address
        || own.is_some_and(|own| !own.headers.is_empty())
        || !stored.profiles_of(provider).is_empty();
    match (info.key, environment_key(info, environment)) {
        (KeyNeed::Required | KeyNeed::Cloud, Some((variable, _))) if own.is_some() => {
            Ok(with_key(config, provider, variable))
        }
        (KeyNeed::Required | KeyNeed::Cloud, Some((variable, _))) => {
            Ok(with_profile(config, model, variable))
        }
        (KeyNeed::Required, None) if !may_go_without => Err(missing_key(info)),
        (KeyNeed::Required | KeyNeed::Cloud, None) => Ok(Arc::clone(config)),
        (KeyNeed::None, _) if has_address => Ok(Arc::clone(config)),
        (KeyNeed::None, _) => Ok(with_server(config, provider, local_base_url(info, environment))),
    }
}

/// The settings with `provider` at `base_url`. What the config file says about its models stays.
fn with_server(config: &Arc<Config>, provider: &str, base_url: String) -> Arc<Config> {
    let mut config = Config::clone(config);
    let own = config.models.providers.entry(provider.to_owned()).or_default();
    own.base_url = Some(base_url);
    Arc::new(config)
}

/// The settings with a variable as the key for a provider of theirs.
fn with_key(config: &Arc<Config>, provider: &str, variable: &str) -> Arc<Config> {
    let mut config = Config::clone(config);
    let own = config.models.providers.entry(provider.to_owned()).or_default();
    own.api_key = Some(in_variable(variable));
    Arc::new(config)
}

/// A key as the settings write that it is in a variable. What the variable holds never gets into the settings, where it
/// could be read as a command or a file.
fn in_variable(variable: &str) -> SecretString {
    KeySource::Environment(variable.to_owned()).describe().unwrap_or_default().into()
}

pub(crate) fn missing_address(provider: &str, why: &str) -> String {
    format!(
        "there is no address for {provider} ({why}): set `models.providers.{provider}.baseUrl` in the config file"
    )
}

/// The settings with the model's provider as the one provider, its key in a variable.
fn with_profile(config: &Arc<Config>, model: &ModelRef, variable: &str) -> Arc<Config> {
    let mut config = Config::clone(config);
    config.provider = Some(ProviderConfig {
        name: model.provider.clone(),
        model: model.id.clone(),
        auth_profiles: vec![AuthProfile {
            id: variable.to_owned(),
            api_key: in_variable(variable),
        }],
        base_url: None,
    });
    Arc::new(config)
}

/// The provider's key, with the variable that holds it.
pub(crate) fn environment_key(
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
pub(crate) fn known_providers(config: &Config) -> Vec<&str> {
    let own = config.models.providers.keys().map(String::as_str);
    // Without an address the name alone makes no provider.
    let configured = config.provider.iter().filter(|configured| configured.base_url.is_some());
    let configured = configured.map(|configured| configured.name.as_str());
    let builtin = Catalog::builtin();
    let builtin = builtin.providers().map(|info| info.name);
    let mut known: Vec<&str> = Vec::new();
    for name in own.chain(configured).chain(builtin) {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// What to say of a provider that nobody knows.
pub(crate) fn unknown_provider(config: &Config, provider: &str) -> String {
    let known = known_providers(config);
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

/// Where to look for model servers on this machine.
///
/// # Errors
/// The variable that says so cannot be read.
pub(crate) fn local_probe(environment: &Environment) -> Result<LocalProbe, CliError> {
    let mut probe = LocalProbe::default();
    if let Some(text) = environment.get(LOCAL_SERVERS_VARIABLE) {
        probe.candidates = parse_candidates(text).map_err(CliError::usage)?;
    } else if let Some(text) =
        environment.get(OLLAMA_HOST_VARIABLE).filter(|text| !text.trim().is_empty())
    {
        let address = ollama_address(text);
        probe.candidates.retain_mut(|candidate| {
            if candidate.provider != "ollama" {
                return true;
            }
            // A server on another machine is the user's to name; nothing is asked of it unasked.
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
                    "{LOCAL_SERVERS_VARIABLE}: `{pair}` is no server; write `none` or NAME=ADDRESS:PORT, such as \
                     ollama=127.0.0.1:11434"
                )
            })
        })
        .collect()
}

/// The loopback address that `OLLAMA_HOST` names, if it names one: with or without scheme and port.
fn ollama_address(text: &str) -> Option<SocketAddr> {
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
    // The address to listen on, where the server was told to listen everywhere.
    let address = if address.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address };
    address.is_loopback().then_some(SocketAddr::from((address, port)))
}

/// Where a server of this machine is.
pub(crate) fn local_base_url(info: &ProviderInfo, environment: &Environment) -> String {
    let probe = local_probe(environment).unwrap_or_default();
    let candidate = probe.candidates.iter().find(|candidate| candidate.provider == info.name);
    candidate.map_or_else(
        || info.base_url.to_owned(),
        |candidate| format!("http://{}/v1", candidate.address),
    )
}

#[cfg(test)]
mod tests;
