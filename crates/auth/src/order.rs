//! Merges several sources into one list: the profiles of a provider in the order in which they are tried.

use std::cmp::Reverse;

use secrecy::ExposeSecret;

use myclaw_config::KeySource;

use crate::{AuthFile, AuthProfile, FailureReason, ProfileOrigin};

/// The inputs for a list.
#[derive(Debug, Clone, Copy)]
pub struct OrderRules<'a> {
    /// The provider of the profiles.
    pub provider: &'a str,
    /// The model to call.
    pub model: &'a str,
    /// The only profile to use, by its id or its name in the store, if the caller requires one.
    pub pinned: Option<&'a str>,
    /// The current time, in milliseconds since the Unix epoch.
    pub now_ms: u64,
}

/// A profile and its state.
#[derive(Debug, Clone)]
pub struct Arranged {
    /// The profile.
    pub profile: AuthProfile,
    /// End of the cooldown from earlier runs, and its reason, if there is one.
    pub cooldown: Option<(u64, FailureReason)>,
    /// Whether the store holds failures that a success would clear.
    pub has_failures: bool,
}

/// The profiles of a provider, from the config (in its order) and from the store, in the order in which they are
/// tried.
///
/// A pinned profile is the only one in the list. Otherwise the preferred profile comes first, then those of the store's
/// explicit order, then those of the config, then the others by type, the least recently used first. Profiles in
/// cooldown come last, in the order in which their cooldowns end. A profile of the config overrides one of the store
/// with the same name, and of two with the same key the first is used. The list is empty if a pinned profile does not
/// exist.
pub fn arrange(
    configured: &[AuthProfile],
    store: &AuthFile,
    rules: &OrderRules<'_>,
) -> Vec<Arranged> {
    let provider = rules.provider;
    let stored = store.profiles_of(provider);
    let mut profiles: Vec<AuthProfile> = configured.to_vec();
    profiles.retain(|profile| profile.source.is_some() || stored.is_empty());
    profiles.extend(stored);
    without_repetitions(&mut profiles, provider);

    let pinned = rules.pinned.or_else(|| store.pinned.get(provider).map(String::as_str));
    if let Some(pinned) = pinned {
        let is_pinned = |profile: &AuthProfile| is_named(profile, provider, pinned);
        // A pin in the store to a missing profile is ignored, so that it does not lock the user out; such a pin by the
        // caller is an error.
        if rules.pinned.is_some() || profiles.iter().any(is_pinned) {
            profiles.retain(is_pinned);
        }
    }

    store.note_keys(provider, &profiles);

    let preferred = store.preferred.get(provider);
    let explicit = store.order.get(provider).map(Vec::as_slice).unwrap_or_default();
    let position = |profile: &AuthProfile| {
        explicit.iter().position(|name| is_named(profile, provider, name)).unwrap_or(usize::MAX)
    };
    let mut arranged: Vec<Arranged> = profiles
        .into_iter()
        .map(|profile| {
            let usage = store.usage(provider, &profile.id);
            Arranged {
                cooldown: store
                    .usage_now(provider, &profile)
                    .and_then(|usage| usage.cooldown(rules.model, rules.now_ms)),
                has_failures: usage.is_some_and(|usage| usage.has_failures(rules.model)),
                profile,
            }
        })
        .collect();
    // The sort is stable, so profiles of the config keep their order.
    arranged.sort_by_key(|Arranged { profile, cooldown, .. }| {
        let is_preferred = preferred.is_some_and(|name| is_named(profile, provider, name));
        let last_used =
            store.usage(provider, &profile.id).and_then(|usage| usage.last_used).unwrap_or(0);
        let unordered = match profile.origin {
            ProfileOrigin::Config => None,
            ProfileOrigin::Store => Some((profile.credential, last_used)),
        };
        (cooldown.map(|(until, _)| until), Reverse(is_preferred), position(profile), unordered)
    });
    arranged
}

fn is_named(profile: &AuthProfile, provider: &str, name: &str) -> bool {
    profile.id == name || profile.store_name(provider) == name
}

fn without_repetitions(profiles: &mut Vec<AuthProfile>, provider: &str) {
    let mut kept: Vec<AuthProfile> = Vec::with_capacity(profiles.len());
    for profile in profiles.drain(..) {
        let is_known = kept.iter().any(|other| {
            other.store_name(provider) == profile.store_name(provider) || same_key(other, &profile)
        });
        if !is_known {
            kept.push(profile);
        }
    }
    *profiles = kept;
}

fn same_key(one: &AuthProfile, other: &AuthProfile) -> bool {
    match (&one.source, &other.source) {
        (Some(KeySource::Literal(one)), Some(KeySource::Literal(other))) => {
            one.expose_secret() == other.expose_secret()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
