use proptest::prelude::*;

use super::*;

/// The values of the reference product.
const LONG: CooldownRules = CooldownRules {
    first: Duration::from_secs(60),
    factor: 5,
    longest: Duration::from_secs(3_600),
    billing_first: Duration::from_secs(5 * 3_600),
    billing_longest: Duration::from_secs(24 * 3_600),
    forget_after: Duration::from_secs(24 * 3_600),
};

fn failure(reason: FailureReason, at_ms: u64) -> Failure<'static> {
    Failure { model: "m", reason, retry_after: None, at_ms }
}

#[test]
fn rests_grow_as_the_rules_say() {
    let minutes = |reason, failures| LONG.cooldown(reason, failures).as_secs() / 60;
    assert_eq!([1, 2, 3, 4, 5].map(|n| minutes(FailureReason::RateLimit, n)), [1, 5, 25, 60, 60]);
    assert_eq!([1, 2, 3, 4].map(|n| minutes(FailureReason::Billing, n) / 60), [5, 10, 20, 24]);
    let short = CooldownRules::from(&myclaw_config::CooldownConfig::default());
    let seconds = |n| short.cooldown(FailureReason::Timeout, n).as_secs();
    assert_eq!([1, 2, 3, 6, 7, u32::MAX].map(seconds), [1, 2, 4, 32, 60, 60]);
}

#[test]
fn a_rate_limit_of_one_model_does_not_concern_another_but_a_refused_key_does() {
    let mut usage = UsageStats::default();
    usage.fail(&failure(FailureReason::RateLimit, 0), &LONG);
    assert_eq!(usage.cooldown("m", 0), Some((60_000, FailureReason::RateLimit)));
    assert_eq!(usage.cooldown("other", 0), None);
    assert_eq!(usage.cooldown("m", 60_000), None, "the boundary counts as available");
    usage.fail(&failure(FailureReason::Auth, 0), &LONG);
    assert_eq!(usage.cooldown("other", 0), Some((60_000, FailureReason::Auth)));
    usage.fail(&failure(FailureReason::Billing, 0), &LONG);
    let end = usage.cooldown_until.unwrap_or_default();
    let billing = usage.disabled_until.unwrap_or_default();
    assert_eq!(usage.profile_cooldown(end), Some((billing, FailureReason::Billing)));
    assert_eq!(usage.profile_cooldown(billing), None);
    // The second failure of the profile itself.
    assert_eq!(usage.cooldown("other", 0), Some((10 * 3_600_000, FailureReason::Billing)));
}

#[test]
fn what_the_provider_asks_for_goes_before_the_formula() {
    let mut usage = UsageStats::default();
    let asked = Failure {
        retry_after: Some(Duration::from_secs(7)),
        ..failure(FailureReason::RateLimit, 1_000)
    };
    usage.fail(&asked, &LONG);
    assert_eq!(usage.cooldown("m", 1_000), Some((8_000, FailureReason::RateLimit)));
}

#[test]
fn a_success_forgives_the_model_and_the_profile_but_no_other_model() {
    let mut usage = UsageStats::default();
    usage.fail(&failure(FailureReason::Auth, 0), &LONG);
    usage.fail(&failure(FailureReason::RateLimit, 0), &LONG);
    usage.fail(&Failure { model: "n", ..failure(FailureReason::RateLimit, 0) }, &LONG);
    usage.succeed("m", 5);
    assert_eq!((usage.cooldown("m", 5), usage.last_used), (None, Some(5)));
    assert!(
        usage.cooldown("n", 5).is_some() && usage.has_failures("n") && !usage.has_failures("m")
    );
}

#[test]
fn what_a_later_version_wrote_outlives_the_failures() {
    let text = r#"{"errorCount": 2, "lastUsed": 7, "keyMark": "ab", "later": "x"}"#;
    let mut usage: UsageStats = serde_json::from_str(text).unwrap();
    usage.forgive();
    let expected = serde_json::json!({"lastUsed": 7, "keyMark": "ab", "later": "x"});
    assert_eq!(serde_json::to_value(&usage).unwrap(), expected);
}

#[test]
fn failures_of_more_than_a_day_ago_no_longer_count() {
    let day = 24 * 3_600_000;
    for (later, expected) in [(day, 5 * 60_000), (day + 1, 60_000)] {
        let mut usage = UsageStats::default();
        usage.fail(&failure(FailureReason::RateLimit, 0), &LONG);
        usage.fail(&failure(FailureReason::RateLimit, later), &LONG);
        assert_eq!(usage.cooldown("m", later), Some((later + expected, FailureReason::RateLimit)));
    }
}

#[test]
fn a_clock_that_was_set_back_ends_every_rest() {
    let mut usage = UsageStats::default();
    usage.fail(&failure(FailureReason::Billing, 1_000_000), &LONG);
    usage.fail(&failure(FailureReason::Timeout, 1_000_000), &LONG);
    assert!(
        usage.cooldown("m", 1_000_000).is_some() && usage.cooldown("other", 1_000_000).is_some()
    );
    assert_eq!((usage.cooldown("m", 999_999), usage.profile_cooldown(999_999)), (None, None));
}

#[test]
fn the_stored_form_has_the_names_of_the_reference_product() {
    let mut usage = UsageStats { last_used: Some(3), ..UsageStats::default() };
    usage.fail(&failure(FailureReason::Auth, 10), &LONG);
    usage.fail(&failure(FailureReason::Timeout, 10), &LONG);
    let expected = serde_json::json!({
        "lastUsed": 3, "errorCount": 1, "cooldownUntil": 60_010, "lastFailureAt": 10,
        "failureCounts": {"auth": 1, "timeout": 1},
        "models": {"m": {"timeout": {"errorCount": 1, "cooldownUntil": 60_010, "lastFailureAt": 10}}},
    });
    assert_eq!(serde_json::to_value(&usage).ok(), Some(expected.clone()));
    assert_eq!(serde_json::from_value(expected).ok(), Some(usage));
}

fn any_reason() -> impl Strategy<Value = FailureReason> {
    prop::sample::select(vec![
        FailureReason::Auth,
        FailureReason::Billing,
        FailureReason::Quota,
        FailureReason::RateLimit,
        FailureReason::Timeout,
    ])
}

proptest! {
    /// Every cooldown ends, at most the longest cooldown after the last failure.
    #[test]
    fn no_rest_is_longer_than_the_longest(
        failures in prop::collection::vec((any_reason(), 0..200_000_000_u64), 1..40),
    ) {
        let mut usage = UsageStats::default();
        let mut now = 0;
        for (reason, pause) in failures {
            now += pause;
            usage.fail(&failure(reason, now), &LONG);
        }
        let longest = LONG.billing_longest.as_millis() as u64;
        prop_assert!(usage.cooldown("m", now).is_some());
        prop_assert_eq!(usage.cooldown("m", now + longest), None);
        usage.succeed("m", now);
        prop_assert_eq!(usage.cooldown("m", now), None);
        let stored = serde_json::to_string(&usage).ok().and_then(|text| serde_json::from_str(&text).ok());
        prop_assert_eq!(stored, Some(usage));
    }
}
