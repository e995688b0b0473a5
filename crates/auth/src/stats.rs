//! What is remembered about a profile's use, and its cooldown after a failure.
//!
//! A key that is refused or has no credit fails for every model of its provider, so that belongs to the profile. Too
//! many requests, an outage and a spent quota belong to one model: the same key may still serve another.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Why a call with a profile failed, as far as the profile is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureReason {
    /// The key was refused.
    Auth,
    /// There is no credit.
    Billing,
    /// A quota is used up.
    Quota,
    /// Too many requests for now.
    RateLimit,
    /// No answer in time, or a failure of the server.
    Timeout,
    /// A reason that a later version knows.
    #[serde(other)]
    Unknown,
}

/// What a failure says something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureScope {
    /// The profile, whatever the model.
    Profile,
    /// The profile together with one model.
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

    /// What a failure for this reason says something about.
    pub fn scope(self) -> FailureScope {
        match self {
            Self::Auth | Self::Billing => FailureScope::Profile,
            Self::Quota | Self::RateLimit | Self::Timeout | Self::Unknown => FailureScope::Model,
        }
    }

    /// Whether waiting a moment does not help.
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
    /// What each further failure multiplies it by.
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
    pub fn rest(&self, reason: FailureReason, failures: u32) -> Duration {
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
    /// The model's id.
    pub model: &'a str,
    /// Why.
    pub reason: FailureReason,
    /// How long the provider asked to wait; it goes before the formula.
    pub retry_after: Option<Duration>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

/// What is remembered about a profile's use. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageStats {
    /// Which key it is about, as far as the store knows: digits of a salted digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_mark: Option<String>,
    /// When a call with it succeeded last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
    /// Failures of the profile itself since its last success.
    #[serde(skip_serializing_if = "is_zero")]
    pub error_count: u32,
    /// Until when the profile is in cooldown, for every model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_until: Option<u64>,
    /// Until when it counts as being without credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_until: Option<u64>,
    /// Why it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<FailureReason>,
    /// When it failed last, for whatever reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<u64>,
    /// All failures since the counters were forgotten, by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_counts: BTreeMap<FailureReason, u32>,
    /// Failures with one model, by its id and by reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, BTreeMap<FailureReason, ModelStats>>,
    /// Fields of a later version, kept as they are.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What is remembered about a profile's failures with one model for one reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelStats {
    /// Failures since the last success.
    pub error_count: u32,
    /// Until when the profile is in cooldown for this model.
    pub cooldown_until: u64,
    /// When it failed last.
    pub last_failure_at: u64,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl UsageStats {
    /// Remembers a failure.
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
                let until = rest_until(failure, rules, self.error_count);
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
                stats.cooldown_until = rest_until(failure, rules, stats.error_count);
                stats.last_failure_at = failure.at_ms;
            }
        }
    }

    /// Remembers a success: the next failure with this model, or of the profile, counts as the first.
    pub fn succeed(&mut self, model: &str, at_ms: u64) {
        self.last_used = Some(at_ms);
        self.error_count = 0;
        self.cooldown_until = None;
        self.disabled_until = None;
        self.disabled_reason = None;
        self.models.remove(model);
    }

    /// Forgets every failure.
    pub fn forgive(&mut self) {
        let kept = std::mem::take(self);
        *self = Self {
            key_mark: kept.key_mark,
            last_used: kept.last_used,
            unknown: kept.unknown,
            ..Self::default()
        };
    }

    /// Whether it is about another key than the one with this mark. Where one of them is not known, it counts.
    pub(crate) fn is_about_other(&self, mark: Option<&str>) -> bool {
        self.key_mark.as_deref().zip(mark).is_some_and(|(known, mark)| known != mark)
    }

    /// From here on it is about the key with this mark, if that is known: what happened to another one is forgotten.
    pub(crate) fn begin_with(&mut self, mark: Option<String>) {
        if self.is_about_other(mark.as_deref()) {
            self.forgive();
        }
        self.key_mark = mark.or(self.key_mark.take());
    }

    /// Whether the last failure lies ahead: the clock was set back since, and the times of cooldowns mean nothing.
    fn is_ahead_of(&self, now_ms: u64) -> bool {
        self.last_failure_at.is_some_and(|at| at > now_ms)
    }

    /// Until when the profile is in cooldown for a model, and why, if it is at `now_ms`. A cooldown that began under a clock
    /// which was ahead is over.
    pub fn resting(&self, model: &str, now_ms: u64) -> Option<(u64, FailureReason)> {
        if self.is_ahead_of(now_ms) {
            return None;
        }
        let of_profile = self.resting_profile(now_ms);
        let of_model = self.models.get(model).into_iter().flatten();
        of_model
            .map(|(reason, stats)| (stats.cooldown_until, *reason))
            .chain(of_profile)
            .filter(|(until, _)| *until > now_ms)
            .max()
    }

    /// Until when the profile is in cooldown for every model, and why, if it is at `now_ms`.
    pub fn resting_profile(&self, now_ms: u64) -> Option<(u64, FailureReason)> {
        if self.is_ahead_of(now_ms) {
            return None;
        }
        let billing = self.disabled_reason.unwrap_or(FailureReason::Billing);
        [(self.cooldown_until, FailureReason::Auth), (self.disabled_until, billing)]
            .into_iter()
            .filter_map(|(until, reason)| Some((until.filter(|until| *until > now_ms)?, reason)))
            .max()
    }

    /// Whether there is any failure to be cleared by a success with `model`.
    pub fn has_failures(&self, model: &str) -> bool {
        self.error_count > 0
            || self.cooldown_until.is_some()
            || self.disabled_until.is_some()
            || self.models.contains_key(model)
    }
}

fn rest_until(failure: &Failure<'_>, rules: &CooldownRules, failures: u32) -> u64 {
    let rest = failure.retry_after.unwrap_or_else(|| rules.rest(failure.reason, failures));
    failure.at_ms.saturating_add(u64::try_from(rest.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
