use serde_json::json;

use super::*;

#[test]
fn removes_the_key_wherever_it_stands() {
    let key = "my-very-own-token";
    assert_eq!(redact("bad key my-very-own-token!", Some(key)), "bad key [redacted]!");
    assert_eq!(
        redact("?key=my-very-own-token&a=my-very-own-token", Some(key)),
        "?key=[redacted]&a=[redacted]"
    );
}

#[test]
fn removes_what_looks_like_a_key() {
    for (text, clean) in [
        (
            "Incorrect API key provided: sk-proj-abcdef123456.",
            "Incorrect API key provided: [redacted].",
        ),
        (
            "Incorrect API key provided: sk-ab***********wxyz. You",
            "Incorrect API key provided: [redacted]. You",
        ),
        ("got 'sk-ant-api03-A_b-c' here", "got '[redacted]' here"),
        ("Bearer gsk_0123456789", "Bearer [redacted]"),
        ("AIzaSyA-0123456789", "[redacted]"),
    ] {
        assert_eq!(redact(text, None), clean);
    }
}

#[test]
fn leaves_words_alone() {
    for text in [
        "a sk-1 b",
        "task-management-system",
        "disk_quota_exceeded",
        "é sk-",
        "ollama is not running",
    ] {
        assert_eq!(redact(text, Some("ollama")), text);
    }
}

#[test]
fn removes_the_whole_of_a_secret_that_holds_another() {
    let secrets = ["a-token-of-mine", "Bearer a-token-of-mine"];
    assert_eq!(
        redact("got Bearer a-token-of-mine, a-token-of-mine", secrets),
        "got [redacted], [redacted]"
    );
}

#[test]
fn removes_keys_of_other_services_and_leaves_what_is_around_them() {
    let token = "A".repeat(34) + "1";
    let pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAA\n-----END OPENSSH PRIVATE KEY-----";
    for (text, clean) in [
        ("GITHUB_TOKEN=ghp_0123456789abcdefABCD\n", "GITHUB_TOKEN=[redacted]\n"),
        ("a github_pat_11ABCDEFG0123456789_x b", "a [redacted] b"),
        ("xoxb-123456-abcdef,", "[redacted],"),
        ("id AKIAIOSFODNN7EXAMPLE.", "id [redacted]."),
        (&format!("TELEGRAM=123456789:{token} x"), "TELEGRAM=[redacted] x"),
        ("Authorization: Bearer abcdefghij0123456789", "Authorization: Bearer [redacted]"),
        ("postgres://ann:s3cr3t@db/x", "postgres://ann:[redacted]@db/x"),
        ("https://:pa:ss@h", "https://:[redacted]@h"),
        (pem, "-----BEGIN OPENSSH PRIVATE KEY-----[redacted]-----END OPENSSH PRIVATE KEY-----"),
        (
            &pem.replace('\n', "\\n"),
            "-----BEGIN OPENSSH PRIVATE KEY-----[redacted]-----END OPENSSH PRIVATE KEY-----",
        ),
        (
            "x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U y",
            "x [redacted] y",
        ),
        ("é sk-proj-0123456789 é", "é [redacted] é"),
    ] {
        assert_eq!(redact(text, None), clean);
    }
}

#[test]
fn leaves_code_and_addresses_alone() {
    for text in [
        "struct sk_buff_head; sk_psock_get(); hf_hub_download",
        "https://user@example.org:8080/a:b@c",
        "postgres://ann:${PASSWORD}@db ssh://git@host/x",
        "Bearer tokens are described below. Bearer authentication_required",
        "12:30:45 12345678:short 1234567890123456",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "ghp_ eyJ npm_config_registry AKIA",
        "-- a::b://",
    ] {
        assert_eq!(redact(text, None), text);
    }
}

#[test]
fn counts_and_reads_all_texts_of_a_value_but_pictures() {
    let mut redactor = Redactor::new(["my-very-own-token"]);
    let mut value = json!({"a": ["sk-0123456789", {"b": "my-very-own-token my-very-own-token"}], "data": "sk-0123456789", "n": 1});
    redactor.clean_value(&mut value);
    assert_eq!(
        value,
        json!({"a": ["[redacted]", {"b": "[redacted] [redacted]"}], "data": "sk-0123456789", "n": 1})
    );
    assert_eq!(redactor.removed(), 3);
}

#[test]
fn a_key_that_begins_like_another_one_leaves_nothing_of_it() {
    for secrets in [["abcd-efgh", "abcd-efgh-ijkl"], ["abcd-efgh-ijkl", "abcd-efgh"]] {
        let text = "one abcd-efgh-ijkl, two abcd-efgh";
        assert_eq!(redact(text, secrets), "one [redacted], two [redacted]");
    }
}

#[test]
fn what_is_shown_twice_is_counted_once() {
    let mut redactor = Redactor::new(["abcd-efgh"]);
    assert_eq!(redactor.clean("abcd-efgh abcd-efgh"), "[redacted] [redacted]");
    redactor.uncounted(|redactor| assert_eq!(redactor.clean("abcd-efgh"), "[redacted]"));
    assert_eq!(redactor.removed(), 2);
}

#[test]
fn a_mask_in_a_key_makes_it_one_and_a_short_id_no_token() {
    let secret = "Ab3d5".repeat(7);
    for (text, expected) in [
        ("sk-abcdefg...wxyz".to_owned(), "[redacted]".to_owned()),
        ("sk-abcdefg***wxyz".to_owned(), "[redacted]".to_owned()),
        ("sk-abcdefg.wxyz".to_owned(), "sk-abcdefg.wxyz".to_owned()),
        (format!("12345678:{secret}"), "[redacted]".to_owned()),
        (format!("1234567:{secret}"), format!("1234567:{secret}")),
        (format!("12345678:{secret}x"), format!("12345678:{secret}x")),
    ] {
        assert_eq!(redact(&text, []), expected, "{text}");
    }
}
