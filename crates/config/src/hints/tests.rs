use super::{ADDRESS, KEYS_ELSEWHERE, MODEL, RULES, SANDBOX, for_address, for_key, longer_keys};
use crate::{ConfigPath, unknown_key};

#[test]
fn a_key_with_a_known_word_is_found_in_its_own_section() {
    let telegram = ["botToken", "dmPolicy", "historyLimit", "mode"];
    assert_eq!(longer_keys("token", telegram.into_iter()), ["botToken"]);
    assert_eq!(longer_keys("limit", telegram.into_iter()), ["historyLimit"]);
    assert_eq!(longer_keys("policy", telegram.into_iter()), ["dmPolicy"]);
    assert!(longer_keys("tok", telegram.into_iter()).is_empty());
    assert!(longer_keys("", telegram.into_iter()).is_empty());
    assert_eq!(
        longer_keys("token", ["botToken", "appToken"].into_iter()),
        ["botToken", "appToken"],
        "either may be meant"
    );
    assert!(longer_keys("token", ["aToken", "bToken", "cToken"].into_iter()).is_empty());
}

#[test]
fn an_address_without_a_scheme_gets_one_and_secrets_are_not_repeated() {
    for (text, written) in [
        ("localhost:8080/v1", Some("write `http://localhost:8080/v1`")),
        ("localhost", Some("write `http://localhost`")),
        ("127.0.0.1:11434", Some("write `http://127.0.0.1:11434`")),
        ("[::1]:8080", Some("write `http://[::1]:8080`")),
        ("gpu.lan:8000/v1", Some("write `http://gpu.lan:8000/v1`")),
        ("https://example.com", None),
    ] {
        assert_eq!(for_address(text).as_deref(), written, "{text}");
    }
    for secret in ["sk-ant-api03-abc.def", "user:secret@example.com", "key with spaces"] {
        let advice = for_address(secret).expect("advice");
        assert!(!advice.contains(secret) && advice.contains("https://"), "{advice}");
    }
}

#[test]
fn keys_of_other_programs_are_explained() {
    for (path, key, word) in [
        (ConfigPath::default().key("mcpServers"), "mcpServers", "write it as `mcp: { servers:"),
        (ConfigPath::default().key("agents").key("mcp"), "mcp", "write it as `mcp: { servers:"),
        (ConfigPath::default().key("permissions"), "permissions", "docs/operate/policy.md"),
        (ConfigPath::default().key("provider").key("apiKey"), "apiKey", "authProfiles"),
        (ConfigPath::default().key("hooks").key("PreToolUse"), "PreToolUse", "tool_call"),
        (
            ConfigPath::default().key("hooks").key("before_tool_call"),
            "before_tool_call",
            "tool_call",
        ),
        (ConfigPath::default().key("botToken"), "botToken", "channels.telegram.botToken"),
        (
            ConfigPath::default().key("hooks").key("tool_call").index(0).key("tools"),
            "tools",
            "`match`",
        ),
        (ConfigPath::default().key("channels").key("irc").key("enabled"), "enabled", "take it out"),
        (ConfigPath::default().key("gateway").key("auth"), "auth", "`token`"),
    ] {
        assert!(for_key(&path, key).is_some_and(|advice| advice.contains(word)), "{path}");
    }
    assert_eq!(for_key(&ConfigPath::default().key("agents").key("apiKey"), "apiKey"), None);
}

#[test]
fn every_place_that_a_hint_names_exists() {
    let advice = KEYS_ELSEWHERE.iter().map(|(_, advice)| *advice);
    for advice in advice.chain([RULES, SANDBOX, MODEL, ADDRESS]) {
        for quoted in advice.split('`').skip(1).step_by(2) {
            let place = quoted.split([' ', '{']).next().unwrap_or_default().trim_end_matches(':');
            let place = place.replace(".NAME", "[\"name\"]");
            let first = place.split(['.', '[']).next().unwrap_or_default();
            if place.contains('.') && unknown_key(&ConfigPath::default().key(first)).is_none() {
                let path: ConfigPath =
                    place.parse().unwrap_or_else(|_| panic!("{advice}: {place}"));
                assert_eq!(unknown_key(&path), None, "{advice}");
            }
        }
    }
}
