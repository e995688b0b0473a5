use super::*;

#[test]
fn variables_and_headers_that_hold_keys_are_told_from_others() {
    for name in [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "HFTOKEN",
        "x-api-key",
        "Authorization",
        "DB_PASSWORD",
        "CLIENT_SECRET_2",
        "AWS_SECRET_ACCESS_KEY",
        "Set-Cookie",
    ] {
        assert!(names_a_key(name), "{name}");
    }
    for name in ["MONKEY_PATH", "KEYBOARD", "TOKENS", "HOME", "LC_ALL", "X-Title", "AUTHOR"] {
        assert!(!names_a_key(name), "{name}");
    }
    for value in ["/run/secrets/key", "~/key", "./key", "https://example.com/token"] {
        assert!(!is_no_place(value), "{value}");
    }
    assert!(is_no_place("ab/cd+ef=="));
    assert_eq!([without_scheme("Bearer  abc-def "), without_scheme("abc")], ["abc-def", "abc"]);
}
