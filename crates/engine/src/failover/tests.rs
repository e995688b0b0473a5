use super::*;

fn rotation(names: &[&str]) -> ProfileRotation {
    ProfileRotation::new(names.iter().map(|id| arranged(id, None)).collect())
}

fn arranged(id: &str, cooldown: Option<(u64, FailureReason)>) -> Arranged {
    Arranged { profile: AuthProfile::new(id, None), cooldown, has_failures: cooldown.is_some() }
}

fn error(class: ErrorClass) -> ModelError {
    ModelError::new(class, "no")
}

#[test]
fn the_cooldown_doubles_from_one_second_to_sixty() {
    let cooldowns: Vec<u64> = (1..=9).map(|failures| cooldown(failures).as_secs()).collect();
    assert_eq!(cooldowns, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(cooldown(u32::MAX), LONGEST_COOLDOWN);
}

#[test]
fn a_failed_profile_is_used_again_after_its_cooldown() {
    let mut rotation = rotation(&["a", "b"]);
    assert_eq!(rotation.pick(0), Pick::Ready(0));
    rotation.failed(0, &error(ErrorClass::RateLimit), 0);
    assert_eq!(rotation.pick(0), Pick::Ready(1));
    rotation.failed(1, &error(ErrorClass::Timeout), 0);
    assert_eq!(rotation.pick(0), Pick::Wait(Duration::from_secs(1)));
    assert_eq!(rotation.pick(1_000), Pick::Ready(0), "the boundary counts as available");
}

#[test]
fn a_clock_that_is_set_back_or_forward_ends_a_cooldown() {
    let mut rotation = rotation(&["a"]);
    rotation.failed(0, &error(ErrorClass::RateLimit), 1_000_000);
    assert_eq!(rotation.pick(1_000_000), Pick::Wait(Duration::from_secs(1)));
    assert_eq!(rotation.pick(999_999), Pick::Ready(0), "not: wait until the old time comes again");
    assert_eq!(rotation.pick(u64::MAX), Pick::Ready(0));
}

#[test]
fn a_wait_is_never_a_busy_loop() {
    let mut rotation = rotation(&["a"]);
    rotation.failed(0, &error(ErrorClass::Timeout), 0);
    assert_eq!(rotation.pick(999), Pick::Wait(SHORTEST_WAIT));
}

#[test]
fn success_makes_the_next_failure_the_first() {
    let mut rotation = rotation(&["a"]);
    rotation.failed(0, &error(ErrorClass::RateLimit), 0);
    rotation.failed(0, &error(ErrorClass::RateLimit), 1_000);
    assert_eq!(rotation.pick(1_000), Pick::Wait(Duration::from_secs(2)));
    rotation.succeeded(0);
    rotation.failed(0, &error(ErrorClass::RateLimit), 3_000);
    assert_eq!(rotation.pick(3_000), Pick::Wait(Duration::from_secs(1)));
}

#[test]
fn the_delay_that_the_provider_names_wins() {
    let mut rotation = rotation(&["a"]);
    rotation.failed(
        0,
        &ModelError { retry_after: Some(Duration::from_secs(7)), ..error(ErrorClass::RateLimit) },
        0,
    );
    assert_eq!(rotation.pick(0), Pick::Wait(Duration::from_secs(7)));
}

#[test]
fn a_delay_too_short_to_wait_for_is_lengthened() {
    let mut rotation = rotation(&["a"]);
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        let error = ModelError { retry_after: Some(delay), ..error(ErrorClass::RateLimit) };
        rotation.failed(0, &error, 0);
        assert_eq!(rotation.pick(0), Pick::Wait(SHORTEST_WAIT));
    }
}

#[test]
fn a_key_that_is_refused_for_good_is_not_tried_again() {
    for class in [ErrorClass::Auth, ErrorClass::Billing, ErrorClass::Quota] {
        let mut rotation = rotation(&["a", "b"]);
        assert!(rotation.has_other_than(0));
        rotation.failed(0, &error(class), 0);
        assert_eq!(rotation.pick(1_000_000), Pick::Ready(1));
        assert!(!rotation.has_other_than(1), "{class:?}");
        rotation.failed(1, &error(class), 1_000_000);
        assert_eq!(rotation.pick(9_000_000), Pick::Spent);
    }
}

#[test]
fn the_upcoming_profile_is_the_one_that_is_picked_next() {
    let mut rotation = rotation(&["a", "b"]);
    rotation.failed(0, &error(ErrorClass::RateLimit), 0);
    assert_eq!(rotation.upcoming(0), ("b".to_owned(), Duration::ZERO));
    rotation.failed(1, &error(ErrorClass::RateLimit), 500);
    assert_eq!(rotation.upcoming(600), ("a".to_owned(), Duration::from_millis(400)));
}

#[test]
fn a_cooldown_from_before_the_run_applies_unless_there_is_only_one_profile() {
    let cooldown = Some((5_000, FailureReason::RateLimit));
    let mut alone = ProfileRotation::new(vec![arranged("a", cooldown)]);
    assert_eq!((alone.pick(0), alone.cooldown_reason()), (Pick::Ready(0), None));
    assert!(alone.succeeded(0), "the store learns that it works again");
    assert!(!alone.succeeded(0));

    let mut two = ProfileRotation::new(vec![arranged("a", cooldown), arranged("b", cooldown)]);
    assert_eq!(two.pick(0), Pick::Wait(Duration::from_secs(5)));
    assert_eq!(two.cooldown_reason(), Some(FailureReason::RateLimit));
    assert_eq!(two.pick(5_000), Pick::Ready(0));
}

#[test]
fn a_profile_that_another_model_exhausted_is_exhausted_here_too() {
    let mut rotation = rotation(&["a", "b"]);
    rotation.exhaust("a");
    assert_eq!(rotation.pick(0), Pick::Ready(1));
    rotation.exhaust("b");
    assert_eq!(rotation.pick(0), Pick::Spent);
}
