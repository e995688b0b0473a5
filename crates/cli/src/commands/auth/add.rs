//! `myclaw auth add`.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use myclaw_agent::{did_you_mean, selection::known_providers};
use myclaw_auth::{CredentialType, StoredProfile};
use myclaw_config::{KEYRING_SERVICE, KeySource, SecretString};
use myclaw_files::canonical;
use myclaw_llm::{KeyNeed, provider_info};

use super::keep::{IfTaken, has_profile, is_taken, keep, profile_name};
use super::{Keys, login, prompt};
use crate::args::auth::{AddArgs, KeyType, PlaceArgs};
use myclaw_front::exit::CliError;

/// Most that is read from standard input: a long token has some KiB.
const MAX_INPUT: u64 = 64 * 1024;

/// Keeps a key.
pub(super) fn run(args: &AddArgs, agent: Option<&str>) -> Result<(), CliError> {
    let keys = Keys::without_store(agent)?;
    let provider = args.provider();
    check_provider(&keys, provider)?;
    let name = profile_name(provider, &args.profile)?;
    check_login(args, provider)?;
    // A login takes the user minutes, so errors must be found before.
    if !args.replace && keys.store.load().is_ok_and(|file| has_profile(&file, &name)) {
        return Err(is_taken(&name));
    }
    let profile = profile(&keys, args, provider)?;
    keep(&keys, provider, &name, &profile, IfTaken::of(args.replace))
}

/// A login is another command, but for the provider that has nothing else.
fn check_login(args: &AddArgs, provider: &str) -> Result<(), CliError> {
    let wants_login = args.login || args.github.is_some();
    if !wants_login || provider == login::PROVIDER {
        return Ok(());
    }
    login::check(provider)?;
    Err(CliError::usage(format!(
        "log in with `myclaw auth login {provider}`; `myclaw auth add {provider}` takes a key"
    )))
}

/// The credential to store: the place of a key, a key, or the token of a login.
fn profile(keys: &Keys, args: &AddArgs, provider: &str) -> Result<StoredProfile, CliError> {
    let kind = match args.kind {
        KeyType::ApiKey => CredentialType::ApiKey,
        KeyType::Token => CredentialType::Token,
    };
    if let Some(source) = source(&args.place)? {
        return Ok(StoredProfile::with_source(provider, kind, &source));
    }
    Ok(match given_key(args, provider)? {
        Some(key) => StoredProfile::with_key(provider, kind, key),
        None => {
            let token = login::sign_in(keys, args.github.as_deref())?;
            StoredProfile::with_key(provider, CredentialType::Token, token)
        }
    })
}

/// The key that the user gives; `None` for a login.
fn given_key(args: &AddArgs, provider: &str) -> Result<Option<SecretString>, CliError> {
    let has_login = provider == login::PROVIDER;
    if has_login && (args.login || args.github.is_some() || io::stdin().is_terminal()) {
        return Ok(None);
    }
    let text = read_key(provider)?;
    if has_login && text.trim().is_empty() {
        return Ok(None);
    }
    checked_key(&text).map(Some)
}

/// Refuses an unknown provider: a key under a misspelt name would never be used.
fn check_provider(keys: &Keys, name: &str) -> Result<(), CliError> {
    let config = &keys.config;
    let is_own = config.models.providers.contains_key(name)
        || config.provider.as_ref().is_some_and(|provider| provider.name == name);
    match provider_info(name) {
        Some(info) if info.key != KeyNeed::None || is_own => Ok(()),
        Some(_) => Err(CliError::usage(format!(
            "{name} needs no key; where yours does, give it under `models.providers.{name}` in the config file first"
        ))),
        None if is_own => Ok(()),
        None => {
            let mut known = known_providers(config);
            let needs_key = |name| provider_info(name).is_none_or(|info| info.key != KeyNeed::None);
            known.retain(|name| needs_key(name) || config.models.providers.contains_key(*name));
            let suggestion = did_you_mean(name, known.iter().copied());
            Err(CliError::usage(format!(
                "the provider `{name}` is not known{suggestion} Give its address in the config file under \
                 `models.providers.{name}.baseUrl` first, or use one of: {}",
                known.join(", ")
            )))
        }
    }
}

/// The place of the key, if it is not kept in the store.
fn source(place: &PlaceArgs) -> Result<Option<KeySource>, CliError> {
    let filled = |text: &str, option: &str| match text.trim() {
        "" => Err(CliError::usage(format!("{option} is empty"))),
        text => Ok(text.to_owned()),
    };
    Ok(if let Some(path) = &place.key_file {
        Some(KeySource::File(existing_file(path)?))
    } else if let Some(command) = &place.command {
        Some(KeySource::Command(filled(command, "--command")?))
    } else if let Some(name) = &place.env {
        Some(KeySource::Environment(filled(name, "--env")?))
    } else if let Some(entry) = &place.keyring {
        let entry = filled(entry, "--keyring")?;
        let (service, account) = entry.split_once('/').unwrap_or((KEYRING_SERVICE, &entry));
        Some(KeySource::Keyring { service: service.to_owned(), account: account.to_owned() })
    } else {
        None
    })
}

/// The file, absolute, since the next turn may run elsewhere.
fn existing_file(path: &Path) -> Result<std::path::PathBuf, CliError> {
    let unusable = |error: io::Error| {
        CliError::usage(format!("cannot read the key file {}: {error}", path.display()))
    };
    let path = canonical(path).map_err(unusable)?;
    std::fs::File::open(&path).map_err(unusable)?;
    if path.to_str().is_none() {
        return Err(CliError::usage(format!(
            "the path of the key file is not UTF-8: {}; rename it",
            path.display()
        )));
    }
    Ok(path)
}

/// Reads the key from standard input: typed without echo, or piped.
pub(in crate::commands) fn read_key(provider: &str) -> Result<String, CliError> {
    if io::stdin().is_terminal() {
        return prompt::read_unseen(&format!("key for {provider} (not shown): "));
    }
    let mut text = String::new();
    io::stdin().lock().take(MAX_INPUT).read_to_string(&mut text).map_err(|error| {
        CliError::usage(format!("cannot read the key from standard input: {error}"))
    })?;
    Ok(text)
}

/// The first line that is not blank.
pub(in crate::commands) fn checked_key(text: &str) -> Result<SecretString, CliError> {
    let key = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if key.is_empty() {
        return Err(CliError::usage(
            "no key was given; pipe it in, or name where it is with --key-file, --command, --env or --keyring",
        ));
    }
    if key.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(CliError::usage("a key contains no spaces; copy it again"));
    }
    Ok(SecretString::from(key))
}
