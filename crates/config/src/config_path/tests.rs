use super::*;

#[test]
fn is_written_as_one_would_write_it_in_code() {
    let path = ConfigPath::default().key("provider").key("authProfiles").index(0).key("apiKey");
    assert_eq!(path.to_string(), "provider.authProfiles[0].apiKey");
    assert_eq!(ConfigPath::default().to_string(), "");
    assert_eq!(ConfigPath::default().index(3).key("a").to_string(), "[3].a");
}

#[test]
fn quotes_keys_that_are_no_names() {
    let path = |key: &str| ConfigPath::default().key("models").key(key).to_string();
    assert_eq!(path("my.host"), "models[\"my.host\"]");
    assert_eq!(path(""), "models[\"\"]");
    assert_eq!(path("\u{1b}[31m"), "models[\"\\u{1b}[31m\"]");
    assert_eq!(path(&"x".repeat(100)), format!("models[\"{}\"…]", "x".repeat(64)));
}

#[test]
fn what_is_written_can_be_read() {
    let odd = ConfigPath::default().key("models").key("my.host").index(12).key("a-b").key("\"]");
    for path in [ConfigPath::default(), odd, ConfigPath::default().index(0).key("$schema")] {
        assert_eq!(path.to_string().parse(), Ok(path));
    }
    for text in [".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[0", "a[0]b", "a[\"b\"", "a[1.5]"] {
        assert_eq!(text.parse::<ConfigPath>(), Err(NotAPath), "{text}");
    }
}
