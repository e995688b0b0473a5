//! How keys that fail are treated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values;

/// First cooldown after a failure, in seconds: what a run itself waits.
const DEFAULT_FIRST_SECONDS: u64 = 1;
/// Longest cooldown after failures, in seconds: what a run itself waits.
const DEFAULT_LONGEST_SECONDS: u64 = 60;
/// Factor by which each further failure extends a cooldown.
const DEFAULT_FACTOR: u32 = 2;
/// A day: a key that has not failed since counts as sound.
const DEFAULT_FORGET_AFTER_SECONDS: u64 = 86_400;
/// A week: the user would have forgotten a longer cooldown.
const MAX_COOLDOWN_SECONDS: u64 = 7 * 86_400;

/// How keys that fail are treated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AuthConfig {
    /// The cooldown of a key that failed, in later runs. Within one run it is always 1 second, doubling up to 60.
    pub cooldowns: CooldownConfig,
}

/// The cooldown of a key that failed, in later runs. A delay that the provider asks for takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CooldownConfig {
    /// Seconds after the first failure.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_COOLDOWN_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_COOLDOWN_SECONDS))]
    pub first_seconds: u64,
    /// What each further failure multiplies it by.
    #[serde(deserialize_with = "values::within::<_, _, 1, 100>")]
    #[schemars(range(min = 1, max = 100))]
    pub factor: u32,
    /// Seconds that it never exceeds.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_COOLDOWN_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_COOLDOWN_SECONDS))]
    pub longest_seconds: u64,
    /// Seconds after the first failure for lack of credit; they double with each further one.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_COOLDOWN_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_COOLDOWN_SECONDS))]
    pub billing_first_seconds: u64,
    /// Seconds that the cooldown for lack of credit never exceeds.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_COOLDOWN_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_COOLDOWN_SECONDS))]
    pub billing_longest_seconds: u64,
    /// Seconds without a failure after which earlier ones no longer count.
    #[serde(deserialize_with = "values::within::<_, _, 1, MAX_COOLDOWN_SECONDS>")]
    #[schemars(range(min = 1, max = MAX_COOLDOWN_SECONDS))]
    pub forget_after_seconds: u64,
}

impl Default for CooldownConfig {
    fn default() -> Self {
        Self {
            first_seconds: DEFAULT_FIRST_SECONDS,
            factor: DEFAULT_FACTOR,
            longest_seconds: DEFAULT_LONGEST_SECONDS,
            billing_first_seconds: DEFAULT_FIRST_SECONDS,
            billing_longest_seconds: DEFAULT_LONGEST_SECONDS,
            forget_after_seconds: DEFAULT_FORGET_AFTER_SECONDS,
        }
    }
}
