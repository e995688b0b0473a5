//! Keeps a key or a login under its name.

use myclaw_auth::{AuthFile, StoredProfile};
use myclaw_llm::provider_info;

use super::{Keys, say};
use myclaw_front::exit::CliError;
use myclaw_front::print::note;

/// Longest name of a profile, in characters.
const MAX_NAME: usize = 64;

/// What happens to a key that has the name already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfTaken {
    Refuse,
    Replace,
}

impl IfTaken {
    pub(super) fn of(replaces: bool) -> Self {
        if replaces { Self::Replace } else { Self::Refuse }
    }
}

/// Keeps what was found out, if the name is still free.
pub(super) fn keep(
    keys: &Keys,
    provider: &str,
    name: &str,
    profile: &StoredProfile,
    if_taken: IfTaken,
) -> Result<(), CliError> {
    let is_kept = keys.change(|file| {
        let is_free = if_taken == IfTaken::Replace || !has_profile(file, name);
        if is_free {
            file.put(name, profile.clone());
        }
        is_free
    })?;
    if !is_kept {
        return Err(is_taken(name));
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

pub(super) fn has_profile(file: &AuthFile, name: &str) -> bool {
    file.profiles().any(|(known, _)| known == name)
}

pub(super) fn is_taken(name: &str) -> CliError {
    CliError::usage(format!(
        "there is a key `{name}` already; give another name with --profile, or --replace it"
    ))
}

/// `provider:name`.
pub(super) fn profile_name(provider: &str, name: &str) -> Result<String, CliError> {
    let name = name.strip_prefix(provider).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '+');
    if name.is_empty() || name.chars().count() > MAX_NAME || !name.chars().all(is_fine) {
        return Err(CliError::usage(format!(
            "a key's name has 1 to {MAX_NAME} letters, digits and the characters . _ - @ +"
        )));
    }
    Ok(format!("{provider}:{name}"))
}
