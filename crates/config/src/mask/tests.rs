use proptest::prelude::*;

use super::*;

/// A secret that has no known form, so that only its position identifies it.
const PLAIN_SECRET: &str = "hunter2";

#[test]
fn blanks_the_values_of_secret_keys_however_broken_the_text() {
    for text in [
        "{apiKey: 'hunter2'}",
        "{\"apiKey\": \"hunter2\"}",
        "{'token' : 'hunter2'}",
        "{botToken:\n  // why\n  /* not */ 'hunter2'}",
        "{apiKey: 'hunter2",
        "{apiKey: hunter2}",
        "{apiKey = 'hunter2'}",
        "{apiKey: AA/hunter2+AA== }",
        "{apiKey 'hunter2'}",
        "{api_key: 'hunter2'}",
        "{apikey: 'hunter2'}",
        "{apiKye: 'hunter2'}",
        "{botTokn: 'hunter2'}",
        "{tokn: 'hunter2'}",
        "{password: 'hunter2'}",
        "{key: 'hunter2'}",
        "{apiKey: ['a', 'hunter2']}",
        "{apiKey: {value: 'hunter2'}}",
        "{authProfiles: ['hunter2']}",
        "{authProfiles: 'hunter2'}",
        "// apiKey: 'hunter2'",
        "{apiKey: 'it\\'s hunter2'}",
        "{apiKey: 'a \\\n hunter2'}",
        "{baseUrl: 'https://me:hunter2@host/v1'}",
        "{baseUrl: 'https://hunter2@host'}",
        "{apiKey: `hunter2`}",
        "{apiKey: \"${A}hunter2\"}",
    ] {
        let masked = mask_secrets(text);
        assert!(!masked.contains(PLAIN_SECRET), "{text} gave {masked}");
        assert_eq!(masked.len(), text.len());
    }
}

#[test]
fn blanks_what_looks_like_a_key_wherever_it_stands() {
    for secret in [
        "sk-ant-api03-abcdefghij",
        "sk-proj-0123456789",
        "AIzaSyA0123456789",
        "ghp_0123456789abcdef",
        "0123456789abcdef0123456789abcdef",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA1b",
    ] {
        for text in
            [format!("{{model: '{secret}'}}"), format!("// {secret}"), format!("{{'{secret}': 1}}")]
        {
            let masked = mask_secrets(&text);
            assert!(!masked.contains(secret), "{text} gave {masked}");
        }
    }
}

#[test]
fn leaves_everything_else() {
    for text in [
        "{provider: {name: 'anthropic', model: 'claude-sonnet-4-20250514', authProfiles: [{id: 'primary', apiKey: \"${ANTHROPIC_API_KEY}\"}]}}",
        "{model: 'meta-llama/Llama-3.3-70B-Instruct-Turbo', maxTokens: 100}",
        "{agent: {workspaceDir: '/home/somebody/a/very/long/path/to/a/directory/2024'}}",
        "{token: '${MYCLAW_GATEWAY_TOKEN}', baseUrl: 'http://127.0.0.1:8080/v1'}",
        "the apiKey is used, and the token too",
        crate::STARTER_CONFIG,
    ] {
        assert_eq!(mask_secrets(text), text);
    }
}

#[test]
fn hostile_text_takes_no_long_time() {
    for part in [
        "apiKey:[",
        "apiKey:{",
        "authProfiles:[",
        "authProfiles:{",
        "apiKey:'",
        "apiKey:`\"",
        "apiKey:",
        "token ",
        "://@",
    ] {
        let text = part.repeat(128 * 1024 / part.len());
        assert_eq!(mask_secrets(&text).len(), text.len(), "{part}");
    }
}

proptest! {
    #[test]
    fn keeps_every_place(text in "([a-z'\":,\\[\\]{}=/*\\\\\n ]|apiKey|token|authProfiles|://|@|\\$\\{A\\}|\\PC){0,60}") {
        let masked = mask_secrets(&text);
        prop_assert_eq!(masked.len(), text.len());
        let line_ends = |text: &str| text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
        prop_assert_eq!(line_ends(&masked), line_ends(&text));
    }
}
