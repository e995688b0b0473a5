use super::*;

#[test]
fn lengths_are_rounded_up_and_readable() {
    for (milliseconds, expected) in [
        (95_000, "95 s"),
        (94_001, "95 s"),
        (120_000, "2 min"),
        (121_000, "3 min"),
        (3_600_000, "1 h"),
        (86_399_500, "24 h"),
        (86_700_000, "24 h 5 min"),
    ] {
        assert_eq!(length(Duration::from_millis(milliseconds)), expected);
    }
}

#[test]
fn the_day_is_named_where_it_is_another() {
    let now_ms = 1_767_225_600_000;
    let later = until(now_ms, Duration::from_secs(3 * 86_400));
    assert!(later.contains("2026-01-0") && later.ends_with(", for 72 h"), "{later}");
}
