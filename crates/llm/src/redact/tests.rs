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
