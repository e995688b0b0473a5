//! What is remembered about a profile's use, and its cooldown after a failure.
//!
//! A key that is refused or has no credit fails for every model of its provider, so that belongs to the profile. Too
//! many requests, an outage and an exhausted quota belong to one model: the same key may still serve another.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The reason of a failed call, as far as it concerns the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The key was refused.
    Auth,
    /// The account has no credit.
    Billing,
    /// A quota is used up.
    Quota,
    /// Too many requests for now.
    RateLimit,
    /// No answer in time, or a failure of the server.
    Timeout,
    /// A reason from a later version.
    #[serde(other)]
    Unknown,
}

/// What a failure affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// The profile with every model.
    Profile,
    /// The profile with one model.
    Model,
}

impl FailureReason {
    /// The name used in the store and in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Billing => "billing",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }

    /// What a failure for this reason affects.
    pub fn scope(self) -> FailureScope {
        match self {
            Self::Auth | Self::Billing => FailureScope::Profile,
            Self::Quota | Self::RateLimit | Self::Timeout | Self::Unknown => FailureScope::Model,
        }
    }

    /// Whether a short wait does not help.
    pub fn is_lasting(self) -> bool {
        match self {
            Self::Auth | Self::Billing | Self::Quota => true,
            Self::RateLimit | Self::Timeout | Self::Unknown => false,
        }
    }
}

/// The cooldowns after failures that are remembered beyond a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CooldownRules {
    /// Cooldown after the first failure.
    pub first: Duration,
    /// Factor for each further failure.
    pub factor: u32,
    /// Longest cooldown.
    pub longest: Duration,
    /// Cooldown after the first failure for lack of credit; it doubles.
    pub billing_first: Duration,
    /// Longest cooldown for lack of credit.
    pub billing_longest: Duration,
    /// Time without a failure after which earlier ones no longer count.
    pub forget_after: Duration,
}

impl From<&myclaw_config::CooldownConfig> for CooldownRules {
    fn from(config: &myclaw_config::CooldownConfig) -> Self {
        Self {
            first: Duration::from_secs(config.first_seconds),
            factor: config.factor,
            longest: Duration::from_secs(config.longest_seconds),
            billing_first: Duration::from_secs(config.billing_first_seconds),
            billing_longest: Duration::from_secs(config.billing_longest_seconds),
            forget_after: Duration::from_secs(config.forget_after_seconds),
        }
    }
}

impl CooldownRules {
    /// Cooldown after the nth failure in a row (from 1).
    pub fn cooldown(&self, reason: FailureReason, failures: u32) -> Duration {
        let (first, factor, longest) = match reason {
            FailureReason::Billing => (self.billing_first, 2, self.billing_longest),
            _ => (self.first, self.factor, self.longest),
        };
        let growth = factor.saturating_pow(failures.saturating_sub(1));
        first.saturating_mul(growth).min(longest)
    }
}

/// A failed call.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// Id of the model.
    pub model: &'a str,
    /// The reason.
    pub reason: FailureReason,
    /// The wait that the provider asked for; it overrides the formula.
    pub retry_after: Option<Duration>,
    /// Time of the failure, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// The record of a profile's use. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageStats {
    /// Mark of the key, if it is known: digits of a salted digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_mark: Option<String>,
    /// Time of the last successful call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
    /// Failures of the profile itself since its last success.
    #[serde(skip_serializing_if = "is_zero")]
    pub error_count: u32,
    /// End of the cooldown for every model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_until: Option<u64>,
    /// End of the time in which the account counts as being without credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_until: Option<u64>,
    /// Why it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<FailureReason>,
    /// Time of the last failure, for any reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<u64>,
    /// All failures since the counters were cleared, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_counts: BTreeMap<FailureReason, u32>,
    /// Failures with one model, by its id and by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, BTreeMap<FailureReason, ModelStats>>,
    /// Fields of a later version, kept unchanged.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// The record of a profile's failures with one model for one reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelStats {
    /// Failures since the last success.
    pub error_count: u32,
    /// End of the cooldown for this model.
    pub cooldown_until: u64,
    /// Time of the last failure.
    pub last_failure_at: u64,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl UsageStats {
    /// Records a failure.
    pub fn fail(&mut self, failure: &Failure<'_>, rules: &CooldownRules) {
        let forget_after = u64::try_from(rules.forget_after.as_millis()).unwrap_or(u64::MAX);
        let is_old = |last: u64| failure.at_ms.saturating_sub(last) > forget_after;
        if self.last_failure_at.is_some_and(is_old) {
            self.forgive();
        }
        self.last_failure_at = Some(failure.at_ms);
        let total = self.failure_counts.entry(failure.reason).or_default();
        *total = total.saturating_add(1);
        match failure.reason.scope() {
            FailureScope::Profile => {
                self.error_count = self.error_count.saturating_add(1);
                let until = cooldown_until(failure, rules, self.error_count);
                if failure.reason == FailureReason::Billing {
                    self.disabled_until = Some(until);
                    self.disabled_reason = Some(failure.reason);
                } else {
                    self.cooldown_until = Some(until);
                }
            }
            FailureScope::Model => {
                let reasons = self.models.entry(failure.model.to_owned()).or_default();
                let stats = reasons.entry(failure.reason).or_default();
                stats.error_count = stats.error_count.saturating_add(1);
                stats.cooldown_until = cooldown_until(failure, rules, stats.error_count);
                stats.last_failure_at = failure.at_ms;
            }
        }
    }

    /// Records a success: the next failure with this model, or of the profile, counts as the first.
    pub fn succeed(&mut self, model: &str, at_ms: u64) {
        self.last_used = Some(at_ms);
        self.error_count = 0;
        self.cooldown_until = None;
        self.disabled_until = None;
        self.disabled_reason = None;
        self.models.remove(model);
    }

    /// Clears every failure.
    pub fn forgive(&mut self) {
        let kept = std::mem::take(self);
        *self = Self {
            key_mark: kept.key_mark,
            last_used: kept.last_used,
            unknown: kept.unknown,
            ..Self::default()
        };
    }

    /// Whether the record is about another key than the one with this mark. False if one of them is unknown.
    pub(crate) fn is_about_other(&self, mark: Option<&str>) -> bool {
        self.key_mark.as_deref().zip(mark).is_some_and(|(known, mark)| known != mark)
    }

    /// Attributes the record to the key with this mark, if it is known. A record of another key is cleared.
    pub(crate) fn begin_with(&mut self, mark: Option<String>) {
        if self.is_about_other(mark.as_deref()) {
            self.forgive();
        }
        self.key_mark = mark.or(self.key_mark.take());
    }

    /// Whether the last failure is in the future. The clock was then set back since, so the times of cooldowns are
    /// invalid.
    fn is_ahead_of(&self, now_ms: u64) -> bool {
        self.last_failure_at.is_some_and(|at| at > now_ms)
    }

    /// End and reason of the profile's cooldown for a model, if it is in cooldown at `now_ms`. A cooldown that began
    /// under a clock that was ahead is over.
    pub fn cooldown(&self, model: &str, now_ms: u64) -> Option<(u64, FailureReason)> {
        if self.is_ahead_of(now_ms) {
            return None;
        }
        let of_profile = self.profile_cooldown(now_ms);
        let of_model = self.models.get(model).into_iter().flatten();
        of_model
            .map(|(reason, stats)| (stats.cooldown_until, *reason))
            .chain(of_profile)
            .filter(|(until, _)| *until > now_ms)
            .max()
    }

    /// End and reason of the profile's cooldown for every model, if it is in cooldown at `now_ms`.
    pub fn profile_cooldown(&self, now_ms: u64) -> Option<(u64, FailureReason)> {
        if self.is_ahead_of(now_ms) {
            return None;
        }
        let billing = self.disabled_reason.unwrap_or(FailureReason::Billing);
        [(self.cooldown_until, FailureReason::Auth), (self.disabled_until, billing)]
            .into_iter()
            .filter_map(|(until, reason)| Some((until.filter(|until| *until > now_ms)?, reason)))
            .max()
    }

    /// Whether a success with `model` would clear any failure.
    pub fn has_failures(&self, model: &str) -> bool {
        self.error_count > 0
            || self.cooldown_until.is_some()
            || self.disabled_until.is_some()
            || self.models.contains_key(model)
    }
}

fn cooldown_until(failure: &Failure<'_>, rules: &CooldownRules, failures: u32) -> u64 {
    let length = failure.retry_after.unwrap_or_else(|| rules.cooldown(failure.reason, failures));
    failure.at_ms.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
