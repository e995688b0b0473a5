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
