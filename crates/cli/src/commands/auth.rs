//! `myclaw auth`: the keys of providers, without ever showing one.

use std::collections::BTreeSet;
use std::sync::Arc;

use myclaw_agent::{
    Home, config_check::load_checked, did_you_mean, models::configured_model,
    selection::environment_key,
};
use myclaw_auth::{
    Arranged, AuthFile, AuthProfile, AuthStore, AuthStoreError, OrderRules, arrange,
};
use myclaw_config::{Config, KeySource, ResolvedAgent};
use myclaw_llm::{ModelCatalog, ModelRef, provider_info};

use crate::args::auth::{AuthArgs, AuthCommand};
use crate::commands::cluster::with_shared_keys;
use myclaw_front::exit::CliError;
use myclaw_front::home::find_home;
use myclaw_front::print::{Printer, note};
use myclaw_front::time::now_ms;

mod add;
mod keep;
mod list;
mod login;
mod prompt;
mod trial;

pub(super) use add::{checked_key, read_key};
pub(super) use prompt::read_unseen;

/// Runs one of the commands.
pub(crate) fn run(args: &AuthArgs) -> Result<(), CliError> {
    let agent = args.agent.as_deref();
    match &args.command {
        AuthCommand::List { provider, json } => {
            list::run(&Keys::load(agent)?, provider.as_deref(), *json)
        }
        AuthCommand::Add(args) => add::run(args, agent),
        AuthCommand::Login(args) => login::run(args, agent),
        AuthCommand::Test { profile, provider, model, json } => {
            let wanted = trial::Wanted {
                profile: profile.as_deref(),
                provider: provider.as_deref(),
                model: model.as_deref(),
            };
            trial::run(&Keys::load(agent)?, &wanted, *json)
        }
        AuthCommand::Remove { profile } => remove(&Keys::load(agent)?, profile),
        AuthCommand::ClearCooldown { profile } => {
            clear_cooldown(&Keys::load(agent)?, profile.as_deref())
        }
        AuthCommand::Order { provider, profiles } => order(&Keys::load(agent)?, provider, profiles),
        AuthCommand::Pin { profile } => choose(&Keys::load(agent)?, profile, Choice::Only),
        AuthCommand::Prefer { profile } => choose(&Keys::load(agent)?, profile, Choice::First),
        AuthCommand::Unpin { provider } => unpin(&Keys::load(agent)?, provider),
    }
}

/// The keys of one agent.
struct Keys {
    home: Home,
    config: Arc<Config>,
    agent: ResolvedAgent,
    store: AuthStore,
    file: AuthFile,
}

/// A key that the user named.
struct Found {
    provider: String,
    profile: AuthProfile,
}

impl Found {
    fn store_name(&self) -> String {
        self.profile.store_name(&self.provider)
    }
}

impl Keys {
    /// Reads the config and the agent's store.
    fn load(agent: Option<&str>) -> Result<Self, CliError> {
        let mut keys = Self::without_store(agent)?;
        keys.file = keys.store.load().map_err(|error| store_error(&error))?;
        Ok(keys)
    }

    /// Reads the config alone, for commands that must work while the store cannot be read.
    fn without_store(agent: Option<&str>) -> Result<Self, CliError> {
        let home = find_home()?;
        let loaded = load_checked(&home.environment)?;
        let home = with_shared_keys(home, &loaded.config)?;
        let agent = loaded
            .config
            .resolve_agent(agent)
            .map_err(|error| CliError::usage(error.to_string()))?;
        let store = home.keys_of(&agent);
        Ok(Self { home, config: loaded.config, agent, store, file: AuthFile::default() })
    }

    /// The providers that have a key, sorted.
    fn providers(&self) -> Vec<String> {
        let own = self.config.models.providers.keys().cloned();
        let configured = self.config.provider.iter().map(|provider| provider.name.clone());
        let builtin = ModelCatalog::builtin();
        let known = builtin.providers().map(|info| info.name.to_owned());
        let stored = self.file.profiles().map(|(_, profile)| profile.provider.clone());
        let all: BTreeSet<String> = own.chain(configured).chain(known).chain(stored).collect();
        all.into_iter().filter(|provider| !self.of(provider).is_empty()).collect()
    }

    /// The keys of a provider in the order in which they are tried, as far as that does not depend on the model.
    fn of(&self, provider: &str) -> Vec<Arranged> {
        let rules = OrderRules { provider, model: "", pinned: None, now_ms: now_ms() };
        let mut unpinned = self.file.clone();
        unpinned.pinned.clear();
        let mut arranged = arrange(&self.given_by_settings(provider), &unpinned, &rules);
        arranged.retain(|entry| entry.profile.source.is_some());
        arranged
    }

    /// The keys that the config gives for a provider, else those of the environment.
    fn given_by_settings(&self, provider: &str) -> Vec<AuthProfile> {
        let reference = ModelRef { provider: provider.to_owned(), id: String::new() };
        let mut profiles = configured_model(&self.config, &reference).profiles;
        profiles.retain(|profile| profile.source.is_some());
        if profiles.is_empty()
            && let Some((variable, _)) = provider_info(provider)
                .and_then(|info| environment_key(info, &self.home.environment))
        {
            let source = KeySource::Environment(variable.to_owned());
            profiles.push(AuthProfile::new(variable, Some(source)));
        }
        profiles
    }

    /// The key called `name`; `provider:name` if several providers have a key of that name.
    fn find(&self, name: &str) -> Result<Found, CliError> {
        let mut all = Vec::new();
        for provider in self.providers() {
            let profiles = self.of(&provider).into_iter().map(|entry| entry.profile);
            all.extend(profiles.map(|profile| Found { provider: provider.clone(), profile }));
        }
        let names: Vec<String> = all.iter().map(Found::store_name).collect();
        let mut matching: Vec<Found> = all
            .into_iter()
            .filter(|found| found.profile.id == name || found.store_name() == name)
            .collect();
        match (matching.pop(), matching.first()) {
            (Some(found), None) => Ok(found),
            (Some(found), Some(other)) => Err(CliError::usage(format!(
                "several keys are called `{name}`: write `{}` or `{}`",
                other.store_name(),
                found.store_name()
            ))),
            (None, _) => {
                let suggestion = did_you_mean(name, names.iter().map(String::as_str));
                Err(CliError::usage(format!(
                    "there is no key `{name}`{suggestion} `myclaw auth list` lists them"
                )))
            }
        }
    }

    /// The provider of that name, which must have a key.
    fn known_provider(&self, name: &str) -> Result<String, CliError> {
        let providers = self.providers();
        if let Some(found) = providers.iter().find(|provider| *provider == name) {
            return Ok(found.clone());
        }
        let suggestion = did_you_mean(name, providers.iter().map(String::as_str));
        Err(CliError::usage(format!(
            "there is no key for a provider `{name}`{suggestion} `myclaw auth list` lists them"
        )))
    }

    /// The key of that name at one provider.
    fn of_provider(&self, provider: &str, name: &str) -> Result<Found, CliError> {
        let matching = self.of(provider).into_iter().map(|entry| entry.profile).find(|profile| {
            profile.id == name || profile.store_name(provider) == format!("{provider}:{name}")
        });
        match matching {
            Some(profile) => Ok(Found { provider: provider.to_owned(), profile }),
            None => self.find(name),
        }
    }

    /// Changes the store. If it was unreadable, prints where it was moved.
    fn change<T: Default>(&self, change: impl FnMut(&mut AuthFile) -> T) -> Result<T, CliError> {
        let (outcome, backup) = self.store.change(change).map_err(|error| store_error(&error))?;
        if let Some(backup) = backup {
            note(format_args!(
                "myclaw: {} could not be read; it is kept as {}, and a new one was begun",
                self.store.describe(),
                backup.display()
            ));
        }
        Ok(outcome)
    }
}

fn store_error(error: &AuthStoreError) -> CliError {
    CliError::failure(error.to_string())
}

fn say(line: &str) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.safe_lines([line])?;
    printer.finish()
}

fn remove(keys: &Keys, name: &str) -> Result<(), CliError> {
    // Only the name in the store counts, so that a key that cannot be used can be removed too.
    let is_stored = |name: &str| keys.file.profiles().any(|(stored, _)| stored == name);
    let stored = if is_stored(name) { name.to_owned() } else { keys.find(name)?.store_name() };
    if !is_stored(&stored) {
        return Err(CliError::usage(format!(
            "`{name}` is not kept here: it comes from the config file or the environment, so take it out there"
        )));
    }
    keys.change(|file| file.remove(&stored))?;
    say(&format!("{stored} is removed"))
}

fn clear_cooldown(keys: &Keys, name: Option<&str>) -> Result<(), CliError> {
    let only = name.map(|name| keys.find(name)).transpose()?.map(|found| found.store_name());
    let cleared = keys.change(|file| {
        let mut cleared = 0;
        for (stored, usage) in &mut file.usage_stats {
            let is_meant = only.as_ref().is_none_or(|only| only == stored);
            if is_meant && usage.last_failure_at.is_some() {
                usage.forgive();
                cleared += 1;
            }
        }
        cleared
    })?;
    say(&match cleared {
        0 => "no key had failed".to_owned(),
        1 => "1 key may be tried again at once".to_owned(),
        count => format!("{count} keys may be tried again at once"),
    })
}

fn order(keys: &Keys, provider: &str, names: &[String]) -> Result<(), CliError> {
    let provider = keys.known_provider(provider)?;
    let mut order: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let full = keys.of_provider(&provider, name)?.store_name();
        if !order.contains(&full) {
            order.push(full);
        }
    }
    let is_reset = order.is_empty();
    let line = if is_reset {
        format!("{provider}: the usual order holds")
    } else {
        format!("{provider}: {} first, then the others", order.join(", "))
    };
    keys.change(|file| {
        if is_reset {
            file.order.remove(&provider);
        } else {
            file.order.insert(provider.clone(), order.clone());
        }
    })?;
    say(&line)
}

/// How a key is preferred.
#[derive(Clone, Copy)]
enum Choice {
    /// No other is used.
    Only,
    /// The others come after it.
    First,
}

fn choose(keys: &Keys, name: &str, choice: Choice) -> Result<(), CliError> {
    let found = keys.find(name)?;
    let full = found.store_name();
    let line = match choice {
        Choice::Only => {
            format!("{full} alone is used; `myclaw auth unpin {}` undoes that", found.provider)
        }
        Choice::First => format!("{full} is tried first"),
    };
    keys.change(|file| {
        let chosen = match choice {
            Choice::Only => &mut file.pinned,
            Choice::First => &mut file.preferred,
        };
        chosen.insert(found.provider.clone(), full.clone());
    })?;
    say(&line)
}

fn unpin(keys: &Keys, provider: &str) -> Result<(), CliError> {
    let provider = keys.known_provider(provider)?;
    keys.change(|file| {
        file.pinned.remove(&provider);
        file.preferred.remove(&provider);
    })?;
    say(&format!("{provider}: no key is pinned or preferred"))
}
