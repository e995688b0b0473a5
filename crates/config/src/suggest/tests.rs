use super::*;

const KEYS: [&str; 6] = ["authProfiles", "apiKey", "baseUrl", "model", "name", "id"];

#[test]
fn finds_what_was_meant() {
    for (word, meant) in [
        ("authProfile", "authProfiles"),
        ("auth_profiles", "authProfiles"),
        ("AUTH-PROFILES", "authProfiles"),
        ("apikey", "apiKey"),
        ("api_key", "apiKey"),
        ("apiKye", "apiKey"),
        ("baseURL", "baseUrl"),
        ("modle", "model"),
        ("nam", "name"),
        ("ID", "id"),
    ] {
        assert_eq!(nearest(word, KEYS), Some(meant), "{word}");
    }
}

#[test]
fn suggests_nothing_far_off() {
    for word in ["temperature", "x", "", "ünknown", &"a".repeat(100_000)] {
        assert_eq!(nearest(word, KEYS), None);
    }
}

#[test]
fn counts_letters_added_dropped_changed_and_swapped() {
    let letters = |word: &str| word.chars().collect::<Vec<_>>();
    for (left, right, expected) in [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("abc", "abd", 1),
        ("abc", "acb", 1),
        ("abcd", "badc", 2),
    ] {
        assert_eq!(distance(&letters(left), &letters(right)), expected, "{left} {right}");
        assert_eq!(distance(&letters(right), &letters(left)), expected, "{right} {left}");
    }
}
