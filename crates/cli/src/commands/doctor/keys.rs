//! The checks of `myclaw doctor` for keys: whether there are any, whether they can still be used, and who can read them.
//! The keys themselves are never printed.

use std::fs;

use myclaw_agent::{
    Home,
    key_lookup::{KeyPresence, look_for_profile},
    models::profiles_in_order,
    selection::Selection,
};
use myclaw_auth::{
    AuthFile, AuthProfile, AuthStore, ProfileOrigin, Validity, is_private, replacing_command,
};
use myclaw_config::{Config, KeySource as WrittenAs, ResolvedAgent, holds_literal_secret};
use myclaw_engine::ActiveModel;

use super::Check;
use super::sources::{check_cloud, key_files};
use myclaw_front::models::KeySource;
use myclaw_front::time::{local_minute, now_ms};

/// Checks whether there is a key for the active model, and which of the keys cannot be used.
pub(super) fn check_keys(
    selection: &Selection,
    config: &Config,
    stored: &AuthFile,
    home: &Home,
) -> Vec<Check> {
    let now_ms = now_ms();
    let is_over = |profile: &AuthProfile| profile.validity(now_ms) == Validity::Ended;
    let is_missing =
        |profile: &AuthProfile| matches!(look_for_profile(profile, home), KeyPresence::Missing(_));
    let is_locked_out = |model: &ActiveModel| {
        let tried = profiles_in_order(model, stored, now_ms);
        !tried.is_empty() && tried.iter().all(|profile| is_over(profile) || is_missing(profile))
    };
    let stops_turns = selection.models.iter().all(is_locked_out);
    let problem = if stops_turns { Check::fail } else { Check::warn };

    let provider = selection.reference.provider.as_str();
    let tried = profiles_in_order(&selection.models[0], stored, now_ms);
    let usable: Vec<&AuthProfile> = tried.iter().filter(|profile| !is_over(profile)).collect();
    let missing = usable.iter().filter_map(|profile| match look_for_profile(profile, home) {
        KeyPresence::Missing(why) => {
            let message = format!("{} for {provider} cannot be fetched: {why}", profile.id);
            let next = "give the key there, or keep another with `myclaw auth add`";
            Some(problem("key", message, next.to_owned()))
        }
        KeyPresence::There | KeyPresence::NotTried(_) => None,
    });
    let there: Vec<&AuthProfile> =
        usable.iter().filter(|profile| !is_missing(profile)).copied().collect();
    let key = check_key(selection, config, stored, home, &there);
    let logins = stored.profiles().filter_map(|(name, profile)| {
        let is_own = profile.provider == provider;
        let found =
            stored.profiles_of(&profile.provider).into_iter().find(|found| found.id == name)?;
        check_validity(&found, if stops_turns && is_own { problem } else { Check::warn }, now_ms)
    });
    key.into_iter().chain(missing).chain(logins).collect()
}

/// The check of a stored key that has expired. `problem` is the severity if it cannot be renewed.
fn check_validity(
    profile: &AuthProfile,
    problem: fn(&'static str, String, String) -> Check,
    now_ms: u64,
) -> Option<Check> {
    const NAME: &str = "login";
    let name = &profile.id;
    match profile.validity(now_ms) {
        Validity::Valid => None,
        Validity::Renewable => {
            Some(Check::ok(NAME, format!("{name} has ended, and is renewed when it is used")))
        }
        Validity::Ended => {
            let end = local_minute(profile.expires_at.unwrap_or_default());
            Some(problem(
                NAME,
                format!("{name} ended {end} and cannot be renewed here"),
                format!(
                    "sign in again where it was made, or keep another key with `{}`",
                    replacing_command(name)
                ),
            ))
        }
    }
}

/// The check that lists the keys of the model's provider in the order in which they are tried.
fn check_key(
    selection: &Selection,
    config: &Config,
    stored: &AuthFile,
    home: &Home,
    there: &[&AuthProfile],
) -> Option<Check> {
    let provider = selection.reference.provider.as_str();
    if KeySource::find(provider, config, home, stored) == KeySource::Cloud {
        return Some(check_cloud(selection.model(), home));
    }
    let is_given = |profile: &&&AuthProfile| profile.origin == ProfileOrigin::Config;
    let given: Vec<String> = there
        .iter()
        .filter(is_given)
        .filter(|profile| profile.source.is_some())
        .map(|profile| name_of_given(profile, home))
        .collect();
    let kept = there.iter().filter(|profile| !is_given(profile)).count();
    let message = match (given.len(), kept) {
        (0, 0) => return None,
        (0, _) => format!("{} for {provider}, kept by `myclaw auth`", counted_keys(kept)),
        (count, 0) => format!("{} for {provider}: {}", counted_keys(count), given.join(", ")),
        (count, _) => format!(
            "{} for {provider}: {}, and {} kept here",
            counted_keys(count),
            given.join(", "),
            counted_keys(kept)
        ),
    };
    Some(Check::ok("key", message))
}

/// The name of a key of the config, and where it comes from.
fn name_of_given(profile: &AuthProfile, home: &Home) -> String {
    let id = &profile.id;
    match (&profile.source, look_for_profile(profile, home)) {
        (Some(WrittenAs::Environment(name)), _) if name != id => format!("{id} (from {name})"),
        (_, KeyPresence::NotTried(place)) => format!("{id} ({place}, not tried)"),
        _ => id.clone(),
    }
}

fn counted_keys(count: usize) -> String {
    if count == 1 { "1 key".to_owned() } else { format!("{count} keys") }
}

/// Whether files that hold keys can be read by their owner alone, and the store by this program.
pub(super) fn check_files(
    config: &Config,
    agent: Option<&ResolvedAgent>,
    home: &Home,
) -> Vec<Check> {
    const NAME: &str = "key files";
    let store = agent.map(|agent| home.keys_of(agent));
    let mut holding_keys = vec![home.paths.state_dir().join(".env")];
    let config_file = home.paths.config_file();
    if fs::read_to_string(config_file).is_ok_and(|text| holds_literal_secret(&text)) {
        holding_keys.push(config_file.to_path_buf());
    }
    holding_keys.extend(store.iter().filter_map(|store| store.file()).map(ToOwned::to_owned));
    let stored = store.as_ref().and_then(|store| store.load().ok()).unwrap_or_default();
    holding_keys.extend(key_files(config, &stored).into_iter().filter(|path| path.is_file()));
    let mut checks: Vec<Check> = holding_keys
        .iter()
        .filter(|path| !is_private(path))
        .map(|path| {
            let path = path.display();
            let message = format!("others on this machine can read {path}, which may hold keys");
            Check::warn(NAME, message, format!("chmod 600 {path}"))
        })
        .collect();
    if let Some(Err(error)) = store.as_ref().map(AuthStore::load) {
        checks.push(Check::warn(NAME, error.to_string(), "see docs/use/auth.md"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "readable by their owner alone"));
    }
    checks
}
