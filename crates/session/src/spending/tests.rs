use super::days_since_1970;

#[test]
fn days_are_counted_over_leap_years() {
    for (day, number) in [
        ("1970-01-01", 0),
        ("1970-03-01", 59),
        ("2000-02-29", 11_016),
        ("2000-03-01", 11_017),
        ("2026-01-31", 20_484),
        ("2100-03-01", 47_541),
    ] {
        assert_eq!(days_since_1970(day), Some(number), "{day}");
    }
    assert_eq!(days_since_1970(""), None);
    assert_eq!(days_since_1970("soon"), None);
}
