//! `myclaw auth add`.

use std::io::{self, IsTerminal, Read};
use std::path::Path;

use myclaw_agent::{did_you_mean, known_providers};
use myclaw_auth::{AuthFile, CredentialType, StoredProfile};
use myclaw_config::{KEYRING_SERVICE, KeySource, SecretString};
use myclaw_llm::{KeyNeed, provider_info};

use super::{Keys, login, prompt, say};
use crate::args::auth::{AddArgs, KeyType, PlaceArgs};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;

/// Longest name of a profile, in characters.
const MAX_NAME: usize = 64;
/// Most that is read from standard input: a long token has some KiB.
const MAX_INPUT: u64 = 64 * 1024;

/// The vendors that keep the logins of their plans for their own programs, and the page on which they say so (read in
/// November 2026).
const NOT_PERMITTED: [(&str, &str); 3] = [
    (
        "anthropic",
        "Anthropic does not permit logins with a Claude plan in other programs (code.claude.com/docs/en/legal-and-compliance)",
    ),
    (
        "google",
        "Google does not permit the login of Gemini CLI in other programs (geminicli.com/docs/resources/faq)",
    ),
    (
        "openai",
        "OpenAI permits logins with ChatGPT to selected partners only (developers.openai.com/siwc)",
    ),
];

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
    let is_kept = keys.change(|file| {
        let is_free = args.replace || !has_profile(file, &name);
        if is_free {
            file.put(&name, profile.clone());
        }
        is_free
    })?;
    if !is_kept {
        return Err(is_taken(&name));
    }
    say(&format!("{name} is kept in {}", keys.store.describe()))?;
    // With another provider a key is enough to select a model.
    if provider_info(provider).is_some_and(|info| info.default_model.is_none())
        && keys.agent.model.is_none()
    {
        note(format_args!(
            "myclaw: now choose a model of {provider}, with --model {provider}/MODEL or in the config file; \
             `myclaw models list {provider}` shows those that are known"
        ));
    }
    Ok(())
}

/// Only one provider has a login.
fn check_login(args: &AddArgs, provider: &str) -> Result<(), CliError> {
    let wants_login = args.login || args.github.is_some();
    if !wants_login || provider == login::PROVIDER {
        return Ok(());
    }
    if let Some((_, why)) = NOT_PERMITTED.iter().find(|(name, _)| *name == provider) {
        return Err(CliError::usage(format!("{why}; `myclaw auth add {provider}` takes a key")));
    }
    Err(CliError::usage(format!(
        "{provider} has no login here; give its key, or sign in to {} with `myclaw auth add {}`",
        login::PROVIDER,
        login::PROVIDER
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

fn has_profile(file: &AuthFile, name: &str) -> bool {
    file.profiles().any(|(known, _)| known == name)
}

fn is_taken(name: &str) -> CliError {
    CliError::usage(format!(
        "there is a key `{name}` already; give another name with --profile, or --replace it"
    ))
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

/// `provider:name`.
fn profile_name(provider: &str, name: &str) -> Result<String, CliError> {
    let name = name.strip_prefix(provider).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '+');
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_fine) {
        return Err(CliError::usage(format!(
            "a key's name has 1 to {MAX_NAME} letters, digits and the characters . _ - @ +"
        )));
    }
    Ok(format!("{provider}:{name}"))
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
    let path = std::fs::canonicalize(path).map_err(unusable)?;
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
