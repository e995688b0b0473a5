use serde_json::json;

use super::*;

const KEY: &str = "sk-Live/7+q\"Zt9w==";

fn known() -> KnownSecrets {
    let known = KnownSecrets::default();
    known.learn([KEY, "short", "  token-of-the-bot-123 \n"]);
    known
}

fn without(text: &str) -> String {
    known().without(text).into_owned()
}

#[test]
fn a_key_goes_in_each_of_its_forms_and_the_rest_stays() {
    let padded = |before: &str, after: &str| {
        use base64::engine::general_purpose::{STANDARD, URL_SAFE};
        let text = format!("{before}{KEY}{after}");
        [STANDARD.encode(&text), URL_SAFE.encode(&text)]
    };
    for form in [
        KEY.to_owned(),
        "sk-Live/7+q\\\"Zt9w==".to_owned(),
        "sk-Live\\/7+q\\\"Zt9w==".to_owned(),
        "sk-Live%2F7%2Bq%22Zt9w%3D%3D".to_owned(),
        "sk-Live%2f7%2bq%22Zt9w%3d%3d".to_owned(),
        KEY.bytes().map(|byte| format!("{byte:02x}")).collect(),
        KEY.bytes().map(|byte| format!("{byte:02X}")).collect(),
    ] {
        assert_eq!(without(&format!("α {form} ω\r\n\0")), "α [redacted] ω\r\n\0", "{form}");
    }
    for (before, after) in [("", ""), ("u:", ""), ("user:", "x"), ("abc", "\n"), ("abcd", "yz")] {
        for text in padded(before, after) {
            let clean = without(&text);
            assert!(clean.contains(REMOVED), "{before:?} {after:?} {text}: {clean}");
            assert!(clean.len() < REMOVED.len() + text.len() / 2 + 4, "{text}: {clean}");
        }
    }
}

#[test]
fn text_without_keys_is_not_copied() {
    let known = known();
    for text in ["", "short", "sk-Live", "the token-of-the-bot is not shown", "\u{feff}naïve\r\n"]
    {
        assert!(matches!(known.without(text), Cow::Borrowed(same) if same == text), "{text}");
    }
    assert!(matches!(KnownSecrets::default().without(KEY), Cow::Borrowed(_)));
}

#[test]
fn a_key_that_was_cut_at_an_end_goes_too() {
    assert_eq!(without("-the-bot-123 is the end"), "[redacted] is the end");
    assert_eq!(without("the beginning token-of-t"), "the beginning [redacted]");
    assert_eq!(without("bot-123 of seven bytes"), "bot-123 of seven bytes");
    assert_eq!(without("token-of-the-bot-123"), "[redacted]");
    assert_eq!(without("token-of-the-bot-12"), "[redacted]");
}

#[test]
fn of_two_keys_at_one_place_the_longer_one_goes() {
    let known = KnownSecrets::default();
    known.learn(["abcdefgh", "abcdefgh-ijkl"]);
    assert_eq!(known.without("1 abcdefgh-ijkl 2 abcdefgh 3"), "1 [redacted] 2 [redacted] 3");
}

#[test]
fn results_lose_keys_in_texts_details_and_names() {
    let mut output = ToolOutput {
        content: vec![
            ContentBlock::text(format!("one {KEY}")),
            ContentBlock::text("two token-of-the-bot-123"),
        ],
        details: Some(json!({
            "diff": [format!("+{KEY}")], "token-of-the-bot-123": {"n": 1, "same": true}
        })),
        is_error: true,
    };
    known().remove_from(&mut output);
    let expected = ToolOutput {
        content: vec![ContentBlock::text("one [redacted]"), ContentBlock::text("two [redacted]")],
        details: Some(json!({"diff": ["+[redacted]"], "[redacted]": {"n": 1, "same": true}})),
        is_error: true,
    };
    assert_eq!(output, expected);
}

#[test]
fn a_key_that_is_learned_later_goes_as_well() {
    let known = known();
    assert_eq!(known.without("renewed-access-token"), "renewed-access-token");
    known.learn(["renewed-access-token"]);
    assert_eq!(known.without("(renewed-access-token)"), "([redacted])");
    assert_eq!(known.without(KEY), "[redacted]");
    assert_eq!(format!("{known:?}"), "KnownSecrets");
}
