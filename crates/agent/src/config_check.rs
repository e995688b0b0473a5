//! Finds mistakes in the config file that depend on providers, key files, hooks and workspaces.
//!
//! [`load_checked`] refuses a config that would send messages to an address that is not configured; every command that
//! talks to a model loads the config with it. [`crate::config_write::check_config`] finds everything else that would make a run fail, for
//! `myclaw config check`.

use std::path::Path;

use myclaw_auth::AuthFile;
use myclaw_config::{
    Config, ConfigError, ConfigPath, Environment, KeySource, Loaded, Mistake, ModelChoice,
    SecretString, load_or_default,
};
use myclaw_hooks::unusable_commands;
use myclaw_llm::{BUILTIN_PROVIDER, ModelCatalog, ModelRef, parse_model_ref, provider_info};

use crate::key_lookup::{KeyPresence, look_for_key};
use crate::selection::{
    check_allowed, find_access, known_providers, missing_address, unknown_provider,
};
use crate::web_tools::{address_rules, search_options};
use crate::{Home, permissions};

/// Mistakes of a config file in which each value is valid by itself.
#[derive(Debug, Default)]
pub struct Examination {
    /// A run fails because of these.
    pub mistakes: Vec<Mistake>,
    /// Warnings, one line each; runs work in spite of them.
    pub warnings: Vec<String>,
}

/// Reads the config file; returns the defaults if it does not exist.
///
/// # Errors
/// As [`load_or_default`], or a provider has no address, so its messages and its key would go to another provider, or a
/// rule names a tool or program that does not exist.
pub fn load_checked(environment: &Environment) -> Result<Loaded, ConfigError> {
    let loaded = load_or_default(environment)?;
    refuse_mistakes(&loaded)?;
    Ok(loaded)
}

/// Refuses a config that would send messages to an address that is not configured, or whose rules name nothing.
pub(crate) fn refuse_mistakes(loaded: &Loaded) -> Result<(), ConfigError> {
    let mut mistakes = address_mistakes(&loaded.config);
    mistakes.extend(permissions::mistakes(&loaded.config));
    if mistakes.is_empty() { Ok(()) } else { Err(loaded.refuse(mistakes)) }
}

/// Looks for everything else that would make a run fail.
pub(crate) fn examine(loaded: &Loaded, home: &Home) -> Examination {
    let mut examination = Examination { mistakes: Vec::new(), warnings: Vec::new() };
    let config = &loaded.config;
    for (name, own) in &config.models.providers {
        if own.base_url.is_none()
            && let Some(problem) = address_problem(config, name)
        {
            let path = ConfigPath::default().key("models").key("providers").key(name);
            examination.mistakes.push(mistake(path, problem));
        }
    }
    examine_agents(config, home, &mut examination);
    examine_keys(config, home, &mut examination);
    examine_web(config, &mut examination);
    examination.warnings.extend(permissions::advice(config));
    examination.warnings.extend(permissions::contradictions(config));
    let unanswered = permissions::unanswered_questions(config).into_iter();
    examination.warnings.extend(unanswered.map(|(what, next)| format!("{what}: {next}")));
    examination.warnings.extend(unknown_providers_of_rules(config));
    match unusable_commands(config, &home.paths) {
        Ok(unusable) => examination
            .mistakes
            .extend(unusable.into_iter().map(|hook| mistake(hook.place, hook.error.to_string()))),
        Err(error) => {
            examination
                .mistakes
                .push(mistake(ConfigPath::default().key("hooks"), error.to_string()));
        }
    }
    examination
}

/// Rules for tools about providers that do not exist, one line each.
fn unknown_providers_of_rules(config: &Config) -> impl Iterator<Item = String> {
    let places = permissions::provider_rules(config);
    let known = known_providers(config);
    let is_known = move |name: &str| {
        let provider = name.split_once('/').map_or(name, |(provider, _)| provider);
        known.iter().any(|known| known.eq_ignore_ascii_case(provider))
            || config.provider.as_ref().is_some_and(|own| own.name.eq_ignore_ascii_case(provider))
    };
    places
        .into_iter()
        .filter(move |(_, name)| !is_known(name))
        .map(|(place, name)| format!("{place} has no effect: the provider `{name}` is not known"))
}

/// The values of `tools.web` that a run would refuse.
fn examine_web(config: &Config, examination: &mut Examination) {
    let web = ConfigPath::default().key("tools").key("web");
    if let Err(problem) = search_options(config) {
        examination.mistakes.push(mistake(web.clone().key("search"), problem));
    }
    if let Err(problem) = address_rules(config) {
        let path = web.key("fetch").key("allowHosts");
        examination.mistakes.push(mistake(path, problem));
    }
}

/// The providers of the file whose messages would go to another address than the file gives.
fn address_mistakes(config: &Config) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if let Some(provider) = &config.provider {
        let path = ConfigPath::default().key("provider").key("name");
        if let Some(problem) = case_problem(&provider.name) {
            mistakes.push(problem.at(path));
        } else if provider.base_url.is_none()
            && let Some(problem) = address_problem(config, &provider.name)
        {
            mistakes.push(mistake(path, problem));
        }
    }
    for name in config.models.providers.keys() {
        let path = ConfigPath::default().key("models").key("providers").key(name);
        mistakes.extend(case_problem(name).map(|problem| problem.at(path)));
    }
    mistakes
}

/// A known provider's name, written with other upper and lower case letters.
struct CaseProblem {
    known: &'static str,
}

impl CaseProblem {
    fn at(&self, path: ConfigPath) -> Mistake {
        Mistake {
            path,
            message: "the name of a known provider is written in lower case".to_owned(),
            help: Some(format!("write `{}`", self.known)),
        }
    }
}

/// Provider names in model names are compared in lower case, so the keys and the address of such an entry would not be
/// found.
fn case_problem(name: &str) -> Option<CaseProblem> {
    let providers = ModelCatalog::builtin();
    let known = providers.providers().find(|known| known.name.eq_ignore_ascii_case(name))?;
    (known.name != name).then_some(CaseProblem { known: known.name })
}

/// The mistake that `provider` has no address; `None` if it has one.
fn address_problem(config: &Config, provider: &str) -> Option<String> {
    let own = config.models.providers.get(provider);
    let configured = config.provider.as_ref().filter(|configured| configured.name == provider);
    let has_address = own.is_some_and(|own| own.base_url.is_some())
        || configured.is_some_and(|configured| configured.base_url.is_some());
    if has_address || provider == BUILTIN_PROVIDER {
        return None;
    }
    match provider_info(provider) {
        Some(info) if info.base_url.is_empty() => {
            Some(missing_address(provider, "each customer has their own address"))
        }
        Some(_) => None,
        None => Some(unknown_provider(config, provider)),
    }
}

/// The model, the fallbacks and the directories of each agent.
fn examine_agents(config: &Config, home: &Home, examination: &mut Examination) {
    for id in config.agent_ids() {
        let agent = match config.resolve_agent(Some(id.as_str())) {
            Ok(agent) => agent,
            Err(error) => {
                let path = ConfigPath::default().key("agents");
                examination.mistakes.push(mistake(path, error.to_string()));
                continue;
            }
        };
        let stored = home.stored_keys(&agent);
        let places = Places::of(config, id.as_str());
        if let Some(model) = &agent.model
            && let Err(problem) = usable(config, home, &stored, model)
        {
            examination.mistakes.push(mistake(places.model.clone(), problem.text()));
        }
        for (index, name) in agent.fallbacks.iter().enumerate() {
            let path = places.fallbacks.clone().key("fallbacks").index(index);
            match usable(config, home, &stored, name) {
                Ok(()) => {}
                Err(Problem::Name(problem)) => {
                    examination.mistakes.push(mistake(path, problem));
                }
                Err(Problem::Access(problem)) => {
                    examination.warnings.push(format!("{path}: {problem}"));
                }
            }
        }
        let directories = [
            (places.workspace, Some(&agent.workspace)),
            (places.agent_dir, agent.agent_dir.as_ref()),
        ];
        for (path, directory) in directories {
            if let Some(problem) = directory.and_then(|directory| directory_problem(directory)) {
                examination.mistakes.push(mistake(path, problem));
            }
        }
    }
    // Agents without entries of their own share the defaults, and so the same mistakes.
    let mut seen = Vec::new();
    examination.mistakes.retain(|mistake| {
        let is_new = !seen.contains(mistake);
        seen.push(mistake.clone());
        is_new
    });
    examination.warnings.dedup();
}

/// Why a model cannot be used.
enum Problem {
    /// The model does not exist or is not allowed.
    Name(String),
    /// Its key is missing.
    Access(String),
}

impl Problem {
    fn text(self) -> String {
        match self {
            Self::Name(text) | Self::Access(text) => text,
        }
    }
}

fn usable(config: &Config, home: &Home, stored: &AuthFile, name: &str) -> Result<(), Problem> {
    let model: ModelRef =
        parse_model_ref(name).map_err(|error| Problem::Name(error.to_string()))?;
    if let Some(problem) = address_problem(config, &model.provider) {
        return Err(Problem::Name(problem));
    }
    check_allowed(config, &model).map_err(Problem::Name)?;
    find_access(config, &home.environment, stored, &model).map(drop).map_err(Problem::Access)
}

/// A file where a directory should be.
fn directory_problem(directory: &Path) -> Option<String> {
    let existing = directory.ancestors().find(|ancestor| ancestor.exists())?;
    (!existing.is_dir()).then(|| format!("{} is not a directory", existing.display()))
}

/// The paths of the keys in the file that apply to an agent.
struct Places {
    model: ConfigPath,
    fallbacks: ConfigPath,
    workspace: ConfigPath,
    agent_dir: ConfigPath,
}

impl Places {
    fn of(config: &Config, id: &str) -> Self {
        let agents = || ConfigPath::default().key("agents");
        let is_agent = |entry: &str| myclaw_config::AgentId::new(entry).as_str() == id;
        let found = config.agents.list.iter().enumerate().find(|(_, entry)| is_agent(&entry.id));
        let listed = |key: &str| found.map(|(index, _)| agents().key("list").index(index).key(key));
        let defaults = agents().key("defaults");
        let of_entry = found.and_then(|(_, entry)| entry.model.as_ref());
        let of_defaults = config.agents.defaults.model.as_ref();
        let place = |has: &dyn Fn(&ModelChoice) -> bool| {
            let own = listed("model").filter(|_| of_entry.is_some_and(has));
            own.or_else(|| of_defaults.is_some_and(has).then(|| defaults.clone().key("model")))
        };
        let model = place(&|choice| choice.primary().is_some());
        let entry_workspace = found.and_then(|(_, entry)| entry.workspace.as_ref());
        Self {
            model: model.unwrap_or_else(|| ConfigPath::default().key("provider").key("name")),
            fallbacks: place(&|choice| choice.fallbacks().is_some()).unwrap_or_default(),
            workspace: match (listed("workspace"), entry_workspace) {
                (Some(path), Some(_)) => path,
                _ if config.agents.defaults.workspace.is_some() => defaults.key("workspace"),
                _ => ConfigPath::default().key("agent").key("workspaceDir"),
            },
            agent_dir: listed("agentDir").unwrap_or_else(agents),
        }
    }
}

/// Checks the keys that the file names. A run fails if the active model's provider has no key.
fn examine_keys(config: &Config, home: &Home, examination: &mut Examination) {
    let missing = |written: &SecretString| {
        let source = KeySource::from_config(written, config.paths.as_ref());
        match source.map(|source| look_for_key(&source, home)) {
            Ok(KeyPresence::Missing(why)) => Some(why),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    };
    if let Some(provider) = &config.provider {
        let profiles = ConfigPath::default().key("provider").key("authProfiles");
        let found: Vec<Mistake> = provider
            .auth_profiles
            .iter()
            .enumerate()
            .filter_map(|(index, profile)| {
                let why = missing(&profile.api_key)?;
                Some(mistake(profiles.clone().index(index).key("apiKey"), why))
            })
            .collect();
        if found.len() == provider.auth_profiles.len()
            && !has_stored_key(config, home, &provider.name)
        {
            examination.mistakes.extend(found);
        } else {
            let lines = found.into_iter().map(|found| format!("{}: {}", found.path, found.message));
            examination.warnings.extend(lines);
        }
    }
    for (name, own) in &config.models.providers {
        if let Some(why) = own.api_key.as_ref().and_then(missing) {
            let path = ConfigPath::default().key("models").key("providers").key(name).key("apiKey");
            examination.warnings.push(format!("{path}: {why}"));
        }
    }
}

fn has_stored_key(config: &Config, home: &Home, provider: &str) -> bool {
    config.agent_ids().iter().any(|id| {
        let agent = config.resolve_agent(Some(id.as_str()));
        agent.is_ok_and(|agent| !home.stored_keys(&agent).profiles_of(provider).is_empty())
    })
}

fn mistake(path: ConfigPath, message: impl Into<String>) -> Mistake {
    Mistake { path, message: message.into(), help: None }
}
