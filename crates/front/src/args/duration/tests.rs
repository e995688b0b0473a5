use std::time::Duration;

use super::Age;

#[test]
fn reads_each_unit() {
    for (text, seconds) in
        [("1s", 1), ("5m", 300), ("12h", 43_200), ("30d", 2_592_000), ("8w", 4_838_400)]
    {
        assert_eq!(text.parse(), Ok(Age(Duration::from_secs(seconds))), "{text}");
    }
}

#[test]
fn refuses_what_is_no_age() {
    for text in [
        "",
        "30",
        "d",
        "-3d",
        "+3d",
        "3.5h",
        "3 d",
        "3y",
        "３d",
        "99999999999999999999d",
        "40000000000000w",
    ] {
        let error = text.parse::<Age>().expect_err(text);
        assert!(error.contains("such as 30d"), "{text}: {error}");
    }
}

#[test]
fn refuses_no_time_at_all() {
    let error = "0d".parse::<Age>().expect_err("zero");
    assert!(error.contains("no time at all"), "{error}");
}
