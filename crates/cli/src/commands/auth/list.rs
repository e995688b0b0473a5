//! `myclaw auth list`.

use myclaw_auth::{
    Arranged, CredentialType, FailureReason, ProfileOrigin, StoredProfile, UsageStats, Validity,
    replacing_command,
};
use myclaw_config::{ExposeSecret, KeySource};
use serde::Serialize;

use super::Keys;
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::terminal::escaped;
use myclaw_front::time::{local_minute, now_ms};

/// The prefix of a key's place for a variable.
const VARIABLE: &str = "env:";
/// Shown characters of a key: enough to distinguish two keys.
const SHOWN: usize = 4;
/// Keys shorter than this are not shown even in part.
const SHORTEST_SHOWN: usize = 16;

/// A key as it is listed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    provider: String,
    profile: String,
    #[serde(rename = "type")]
    kind: CredentialType,
    origin: ProfileOrigin,
    /// Its last characters, or where it is kept.
    key: String,
    state: State,
    /// Its cooldowns.
    cooldown: Vec<Cooldown>,
    /// Milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<u64>,
    pinned: bool,
    preferred: bool,
    /// Whose login it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// What that person has paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// Until when the credential is good, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Cooldown,
    /// The key has expired and cannot be renewed.
    Expired,
    /// The key has expired or was never used, and is renewed on use.
    Renewable,
}

/// A cooldown after failures.
#[derive(Debug, Serialize)]
struct Cooldown {
    /// The model that it applies to; `None` for all models.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    reason: FailureReason,
    /// Milliseconds since the Unix epoch.
    until: u64,
}

/// Prints the list.
pub(super) fn run(keys: &Keys, provider: Option<&str>, json: bool) -> Result<(), CliError> {
    let providers = match provider {
        Some(name) => vec![keys.known_provider(name)?],
        None => keys.providers(),
    };
    let now_ms = now_ms();
    let listed: Vec<Listed> = providers
        .iter()
        .flat_map(|provider| {
            keys.of(provider).into_iter().map(|entry| listed(keys, provider, entry, now_ms))
        })
        .collect();
    let mut printer = Printer::stdout();
    if json {
        listed.iter().try_for_each(|key| printer.json(key))?;
    } else if listed.is_empty() {
        note("no keys yet; `myclaw auth add anthropic` keeps one");
    } else {
        printer.safe_lines(table(&listed))?;
    }
    printer.finish()?;
    if !json {
        for key in listed.iter().filter(|key| key.state == State::Expired) {
            note(format_args!("myclaw: {}", escaped(&how_to_replace(&key.profile))));
        }
    }
    Ok(())
}

/// The message about a key that has expired and cannot be renewed here.
fn how_to_replace(name: &str) -> String {
    let command = replacing_command(name);
    format!(
        "{name} has expired and cannot be renewed here; sign in again where it was made, or keep another key with `{command}`"
    )
}

fn listed(keys: &Keys, provider: &str, entry: Arranged, now_ms: u64) -> Listed {
    let profile = entry.profile;
    let store_name = profile.store_name(provider);
    let usage = keys.file.usage_now(provider, &profile);
    let cooldown = usage.map(|usage| cooldowns(usage, now_ms)).unwrap_or_default();
    let is_named =
        |name: Option<&String>| name.is_some_and(|name| *name == store_name || *name == profile.id);
    let state = match profile.validity(now_ms) {
        Validity::Renewable => State::Renewable,
        Validity::Ended => State::Expired,
        Validity::Valid if cooldown.is_empty() => State::Ok,
        Validity::Valid => State::Cooldown,
    };
    let stored = keys.file.profiles().find(|(name, _)| *name == profile.id);
    let of_login = |text: fn(&StoredProfile) -> &Option<String>| {
        stored.and_then(|(_, stored)| text(stored).clone())
    };
    Listed {
        account: of_login(|stored| &stored.account),
        plan: of_login(|stored| &stored.plan),
        expires: profile.expires_at,
        pinned: is_named(keys.file.pinned.get(provider)),
        preferred: is_named(keys.file.preferred.get(provider)),
        provider: provider.to_owned(),
        kind: profile.credential,
        origin: profile.origin,
        key: profile.source.as_ref().map_or_else(|| "-".to_owned(), shown),
        state,
        cooldown,
        last_used: usage.and_then(|usage| usage.last_used),
        profile: profile.id,
    }
}

fn cooldowns(usage: &UsageStats, now_ms: u64) -> Vec<Cooldown> {
    let of_profile = usage.profile_cooldown(now_ms).map(|(until, reason)| Cooldown {
        model: None,
        reason,
        until,
    });
    let of_models = usage.models.iter().flat_map(|(model, reasons)| {
        reasons.iter().filter(|(_, stats)| stats.cooldown_until > now_ms).map(|(reason, stats)| {
            Cooldown { model: Some(model.clone()), reason: *reason, until: stats.cooldown_until }
        })
    });
    of_profile.into_iter().chain(of_models).collect()
}

/// `…abcd`, or where the key is kept.
fn shown(source: &KeySource) -> String {
    let KeySource::Literal(key) = source else { return source.describe().unwrap_or_default() };
    let characters: Vec<char> = key.expose_secret().chars().collect();
    if characters.len() < SHORTEST_SHOWN {
        return "…".to_owned();
    }
    std::iter::once('…').chain(characters[characters.len() - SHOWN..].iter().copied()).collect()
}

fn table(listed: &[Listed]) -> Vec<String> {
    let head = ["PROVIDER", "PROFILE", "TYPE", "FROM", "KEY", "LAST USED", "STATE"];
    let rows = listed.iter().map(|key| {
        let from = match key.origin {
            ProfileOrigin::Config if key.key.starts_with(VARIABLE) => "variable",
            ProfileOrigin::Config => "config",
            ProfileOrigin::Store => "store",
        };
        vec![
            key.provider.clone(),
            key.profile.clone(),
            key.kind.as_str().to_owned(),
            from.to_owned(),
            key.key.clone(),
            local_minute(key.last_used.unwrap_or(0)),
            state(key),
        ]
    });
    columns(&std::iter::once(head.map(str::to_owned).to_vec()).chain(rows).collect::<Vec<_>>())
}

/// Why a key is not used, for people: most failures that count as time-outs are none.
fn cause(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Timeout => "no answer",
        other => other.as_str(),
    }
}

/// `ok, pinned`, `cooldown until 2026-11-21 23:42 (auth)`.
fn state(key: &Listed) -> String {
    let mut words: Vec<String> = match key.state {
        State::Ok => vec!["ok".to_owned()],
        State::Expired => vec!["expired".to_owned()],
        State::Renewable => vec!["expired, renewed when used".to_owned()],
        State::Cooldown => Vec::new(),
    };
    words.extend(key.cooldown.iter().map(|cooldown| {
        let model =
            cooldown.model.as_ref().map(|model| format!(" for {model}")).unwrap_or_default();
        format!(
            "cooldown{model} until {} ({})",
            local_minute(cooldown.until),
            cause(cooldown.reason)
        )
    }));
    if matches!(key.state, State::Ok | State::Cooldown) {
        words.extend(key.expires.map(|expires| format!("until {}", local_minute(expires))));
    }
    words.extend(key.account.as_ref().map(|account| format!("of {account}")));
    words.extend(key.plan.as_ref().map(|plan| format!("plan {plan}")));
    words.extend(key.pinned.then(|| "pinned".to_owned()));
    words.extend(key.preferred.then(|| "preferred".to_owned()));
    words.join(", ")
}
