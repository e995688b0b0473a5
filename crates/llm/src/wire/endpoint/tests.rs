use super::*;

#[test]
fn base_urls_as_people_write_them() {
    for (api, base, expected) in [
        (
            Api::AnthropicMessages,
            "https://api.anthropic.com",
            "https://api.anthropic.com/v1/messages",
        ),
        (
            Api::AnthropicMessages,
            "https://api.anthropic.com/v1/",
            "https://api.anthropic.com/v1/messages",
        ),
        (
            Api::AnthropicMessages,
            "https://h.example/anthropic/v1/messages",
            "https://h.example/anthropic/v1/messages",
        ),
        (
            Api::AnthropicMessages,
            "https://api.deepseek.com/anthropic",
            "https://api.deepseek.com/anthropic/v1/messages",
        ),
        (
            Api::AnthropicMessages,
            "https://gateway.ai.cloudflare.com/v1/account/name/anthropic/",
            "https://gateway.ai.cloudflare.com/v1/account/name/anthropic/v1/messages",
        ),
        (
            Api::AnthropicMessages,
            "https://h.example/claude/messages",
            "https://h.example/claude/messages",
        ),
        (Api::GoogleGenerativeAi, "https://h.example/gemini", "https://h.example/gemini/v1beta"),
        (
            Api::GoogleGenerativeAi,
            "https://h.example/v1/projects/p/locations/l/publishers/google",
            "https://h.example/v1/projects/p/locations/l/publishers/google",
        ),
        (
            Api::OpenaiCompletions,
            "https://api.openai.com/v1",
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            Api::OpenaiCompletions,
            " http://127.0.0.1:11434 ",
            "http://127.0.0.1:11434/v1/chat/completions",
        ),
        (Api::OpenaiCompletions, "http://[::1]:8080/", "http://[::1]:8080/v1/chat/completions"),
        (
            Api::OpenaiCompletions,
            "https://h.example/api/v1/chat/completions",
            "https://h.example/api/v1/chat/completions",
        ),
        (
            Api::OpenaiCompletions,
            "https://h.example/openai?api-version=1",
            "https://h.example/openai/chat/completions?api-version=1",
        ),
        (
            Api::GoogleGenerativeAi,
            "https://generativelanguage.googleapis.com",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        (Api::GoogleGenerativeAi, "https://h.example/v1/models/", "https://h.example/v1"),
        (
            Api::GoogleGenerativeAi,
            "https://h.example/v1beta/models/gemini-3:streamGenerateContent?a=b",
            "https://h.example/v1beta?a=b",
        ),
    ] {
        assert_eq!(call_url(api, base).unwrap().as_str(), expected, "{base}");
    }
    assert_eq!(
        models_url(Api::OpenaiCompletions, "http://localhost:1234/v1/").unwrap().as_str(),
        "http://localhost:1234/v1/models"
    );
    assert_eq!(
        models_url(Api::AnthropicMessages, "https://api.anthropic.com").unwrap().as_str(),
        "https://api.anthropic.com/v1/models"
    );
    assert_eq!(
        models_url(Api::GoogleGenerativeAi, "https://h.example/v1beta").unwrap().as_str(),
        "https://h.example/v1beta/models?pageSize=1000"
    );
}

#[test]
fn bad_base_urls_say_what_is_wrong() {
    for base in ["", "localhost:8080", "ftp://h.example", "/v1", "http://"] {
        let error = call_url(Api::OpenaiCompletions, base).unwrap_err();
        assert!(
            error.message.starts_with(&format!("the base URL {base:?} is not usable: ")),
            "{error}"
        );
    }
    let error = call_url(Api::OpenaiCompletions, "ftp://me:secret@h.example").unwrap_err();
    assert!(!error.message.contains("secret"), "{error}");
}

#[test]
fn knows_this_machine() {
    for (url, expected) in [
        ("http://localhost:1", true),
        ("http://a.localhost", true),
        ("http://127.9.9.9", true),
        ("http://[::1]:1", true),
        ("http://0.0.0.0:8000", true),
        ("http://10.0.0.1", false),
        ("http://localhost.example", false),
    ] {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }
}
