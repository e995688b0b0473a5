//! What `myclaw doctor` says of keys: whether there are any, whether they can still be used, and who can read them. What
//! they are is never said.

use std::fs;

use myclaw_auth::{
    AuthFile, AuthProfile, AuthStore, OrderRules, Validity, arrange, is_private, replacing_command,
};
use myclaw_config::{AgentSettings, Config, holds_literal_secret};
use myclaw_engine::ModelChoice;
use myclaw_llm::ModelRef;

use super::Check;
use crate::commands::models::KeySource;
use crate::model_choice::ChosenModel;
use crate::settings::Home;
use crate::time::{local_minute, now_ms};

/// Whether there is a key for the model that answers, and which of the stored keys have ended.
pub(super) fn check_keys(model: &ChosenModel, stored: &AuthFile, home: &Home) -> Vec<Check> {
    let now_ms = now_ms();
    let has_ended = |config: &Config, reference: &ModelRef| {
        let given = ModelChoice::from_config(config, reference).profiles;
        let rules = OrderRules {
            provider: &reference.provider,
            model: &reference.id,
            pinned: None,
            now_ms,
        };
        let tried = arrange(&given, stored, &rules);
        let is_over = |profile: &AuthProfile| profile.validity(now_ms) == Validity::Ended;
        !tried.is_empty() && tried.iter().all(|entry| is_over(&entry.profile))
    };
    let is_locked_out = has_ended(&model.config, &model.reference);
    let fallback_helps =
        model.fallbacks.iter().any(|(reference, config)| !has_ended(config, reference));
    let key = if is_locked_out { None } else { check_key(model, stored, home, now_ms) };
    let logins = stored.profiles().filter_map(|(name, profile)| {
        let provider = profile.provider.as_str();
        let stops_turns = is_locked_out && !fallback_helps && provider == model.reference.provider;
        let found = stored.profiles_of(provider).into_iter().find(|found| found.id == name)?;
        check_validity(&found, if stops_turns { Check::fail } else { Check::warn }, now_ms)
    });
    key.into_iter().chain(logins).collect()
}

/// What is to be said of a stored key that has ended. `problem` is how much it matters that it cannot be renewed.
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

/// Whether there is a key for the model's provider.
fn check_key(model: &ChosenModel, stored: &AuthFile, home: &Home, now_ms: u64) -> Option<Check> {
    let provider = model.reference.provider.as_str();
    let mut usable = stored.profiles_of(provider);
    usable.retain(|profile| profile.validity(now_ms) != Validity::Ended);
    let (kept, more) = (usable.len(), kept_too(usable.len()));
    let message = match KeySource::find(provider, &model.config, home, stored) {
        KeySource::Profiles(names) => {
            format!("{} for {provider}: {}{more}", counted_keys(names.len()), names.join(", "))
        }
        KeySource::ConfigFile => format!("1 key for {provider}"),
        KeySource::Variable(variable) => format!("{variable} for {provider}{more}"),
        _ if kept > 0 => format!("{} for {provider}, kept by `myclaw auth`", counted_keys(kept)),
        _ => return None,
    };
    Some(Check::ok("key", message))
}

/// What is said of keys in the store behind other keys.
fn kept_too(kept: usize) -> String {
    if kept == 0 { String::new() } else { format!(", and {} kept here", counted_keys(kept)) }
}

fn counted_keys(count: usize) -> String {
    if count == 1 { "1 key".to_owned() } else { format!("{count} keys") }
}

/// Whether files that hold keys can be read by their owner alone, and the store by this program.
pub(super) fn check_files(agent: Option<&AgentSettings>, home: &Home) -> Vec<Check> {
    const NAME: &str = "key files";
    let store = agent.and_then(|agent| agent.agent_dir.as_deref()).map(AuthStore::in_agent_dir);
    let mut holding_keys = vec![home.paths.state_dir().join(".env")];
    let config_file = home.paths.config_file();
    if fs::read_to_string(config_file).is_ok_and(|text| holds_literal_secret(&text)) {
        holding_keys.push(config_file.to_path_buf());
    }
    holding_keys.extend(store.iter().map(|store| store.path().to_path_buf()));
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
        checks.push(Check::warn(NAME, error.to_string(), "see docs/auth.md"));
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "readable by their owner alone"));
    }
    checks
}
