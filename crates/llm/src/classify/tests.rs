use super::*;
use ErrorClass::{Auth, Billing, ContextOverflow, Quota, RateLimit, Timeout, Unknown};

/// Bodies as the hosts send them: status, body, class, code.
const BODIES: &[(u16, &str, ErrorClass, Option<&str>)] = &[
    // Anthropic
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 211803 tokens > 200000 maximum"},"request_id":"req_011CS500"}"#,
        ContextOverflow,
        Some("invalid_request_error"),
    ),
    (
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ContextOverflow,
        Some("request_too_large"),
    ),
    (
        403,
        r#"{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission"}}"#,
        Auth,
        Some("permission_error"),
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute"}}"#,
        RateLimit,
        Some("rate_limit_error"),
    ),
    (
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        Timeout,
        Some("overloaded_error"),
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: tool_use ids were found without tool_result blocks"},"request_id":"req_500_429_timeouts"}"#,
        Unknown,
        Some("invalid_request_error"),
    ),
    // OpenAI and Azure
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        ContextOverflow,
        Some("context_length_exceeded"),
    ),
    (
        429,
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        Quota,
        Some("insufficient_quota"),
    ),
    (
        429,
        r#"{"error":{"message":"Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
        RateLimit,
        Some("rate_limit_exceeded"),
    ),
    (
        400,
        r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
        Unknown,
        Some("unsupported_parameter"),
    ),
    (
        500,
        r#"{"error":{"message":"The server had an error while processing your request. Sorry about that!","type":"server_error","param":null,"code":null}}"#,
        Timeout,
        Some("server_error"),
    ),
    (
        404,
        r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
        Unknown,
        Some("model_not_found"),
    ),
    // Groq
    (
        413,
        r#"{"error":{"message":"Request too large for model `llama-3.3-70b` on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ContextOverflow,
        Some("rate_limit_exceeded"),
    ),
    // OpenRouter
    (
        402,
        r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/credits","code":402}}"#,
        Billing,
        None,
    ),
    (
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"You exceeded your current quota\",\"code\":\"insufficient_quota\"}}","provider_name":"OpenAI"}}}"#,
        Quota,
        Some("insufficient_quota"),
    ),
    // xAI: sentences where others have codes
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains too many tokens."}"#,
        ContextOverflow,
        None,
    ),
    // DeepSeek
    (
        402,
        r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
        Billing,
        Some("invalid_request_error"),
    ),
    // Mistral
    (401, r#"{"message":"Unauthorized","request_id":"500"}"#, Auth, None),
    (
        422,
        r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]},"type":"invalid_request_error","param":null,"code":null}"#,
        Unknown,
        Some("invalid_request_error"),
    ),
    // Google's compatible endpoint
    (
        429,
        r#"[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#,
        RateLimit,
        Some("RESOURCE_EXHAUSTED"),
    ),
    (
        400,
        r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
        Unknown,
        Some("INVALID_ARGUMENT"),
    ),
    // Local servers
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
        ContextOverflow,
        Some("exceed_context_size_error"),
    ),
    (
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
        ContextOverflow,
        Some("BadRequestError"),
    ),
    (
        404,
        r#"{"error":{"message":"model \"qwen9\" not found, try pulling it first","type":"api_error","param":null,"code":null}}"#,
        Unknown,
        Some("api_error"),
    ),
    (500, r#"{"error":"llama runner process has terminated: signal: killed"}"#, Timeout, None),
    (
        500,
        r#"{"error":{"message":"input exceeds the context window","type":"server_error"}}"#,
        ContextOverflow,
        Some("server_error"),
    ),
    (
        422,
        r#"{"detail":[{"loc":["body","messages"],"msg":"field required","type":"value_error.missing"}]}"#,
        Unknown,
        None,
    ),
    // Gateways
    (504, "<html><head><title>504 Gateway Time-out</title></head></html>", Timeout, None),
    (408, "", Timeout, None),
    (400, "upstream connect error: connection timed out", Timeout, None),
    (400, "You have hit the billing hard limit", Quota, None),
];

#[test]
fn real_bodies_get_their_class() {
    for (status, body, class, code) in BODIES {
        let error = http_error(*status, None, body, None);
        assert_eq!((error.class, error.code.as_deref()), (*class, *code), "{status} {body}");
        assert_eq!(error.status, Some(*status));
        assert!(!error.message.contains('\n') && error.message.len() < 600, "{}", error.message);
    }
}

#[test]
fn a_delay_in_the_body_is_kept_unless_a_header_has_one() {
    let body = r#"[{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}]"#;
    assert_eq!(http_error(429, None, body, None).retry_after, Some(Duration::from_millis(34_500)));
    assert_eq!(
        http_error(429, None, body, Some(Duration::from_secs(1))).retry_after,
        Some(Duration::from_secs(1))
    );
}

/// The order without a code: 401 and 403, 429, 402, overflow, time-out, quota, 5xx.
#[test]
fn the_status_comes_before_the_words_and_words_before_5xx() {
    let words = "context window exceeded, timed out, quota";
    for (status, class) in
        [(401, Auth), (403, Auth), (429, RateLimit), (402, Billing), (500, ContextOverflow)]
    {
        assert_eq!(classify(Some(status), [], words), class, "{status}");
    }
    assert_eq!(classify(None, [], "ETIMEDOUT while over QUOTA"), Timeout);
    assert_eq!(classify(Some(503), [], "quota"), Quota);
    assert_eq!(classify(Some(503), [], "no reason"), Timeout);
    assert_eq!(classify(Some(400), [], "no reason"), Unknown);
    assert_eq!(classify(None, [], "no reason"), Unknown);
}

#[test]
fn a_code_decides_whatever_the_status_and_the_words_are() {
    for (code, class) in [
        ("insufficient_quota", Quota),
        ("context_length_exceeded", ContextOverflow),
        ("INVALID_API_KEY", Auth),
        ("billing_not_active", Billing),
        ("rate_limit_error", RateLimit),
        ("timeout_error", Timeout),
    ] {
        for status in [Some(400), Some(429), Some(500), None] {
            assert_eq!(
                classify(status, ["tokens", code], "max_tokens timeout quota"),
                class,
                "{code} {status:?}"
            );
        }
    }
}

#[test]
fn every_phrase_counts_in_any_case() {
    let phrases = [
        (OVERFLOW_PHRASES.as_slice(), ContextOverflow),
        (TIMEOUT_PHRASES.as_slice(), Timeout),
        (QUOTA_PHRASES.as_slice(), Quota),
    ];
    for (phrases, class) in phrases {
        for phrase in phrases {
            assert_eq!(
                classify(Some(400), [], &format!("Bad: {} here", phrase.to_uppercase())),
                class,
                "{phrase}"
            );
        }
    }
}

#[test]
fn numbers_in_words_mean_nothing() {
    for text in
        ["request id 500", "req_429 failed", "error 401 in trace 503", "see https://h.example/402"]
    {
        assert_eq!(classify(Some(400), [], text), Unknown, "{text}");
        assert_eq!(stream_error(&format!(r#"{{"error":{{"message":"{text}"}}}}"#)).class, Unknown);
    }
}

#[test]
fn a_failure_in_a_stream_is_the_same_failure() {
    for (data, class, code) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Timeout,
            Some("overloaded_error"),
        ),
        (
            r#"{"error":{"code":502,"message":"Upstream error from Chutes"},"choices":[]}"#,
            Timeout,
            None,
        ),
        (r#"{"error":{"code":429,"message":"slow down"}}"#, RateLimit, None),
        (
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            ContextOverflow,
            Some("context_length_exceeded"),
        ),
        (r#"{"error":"boom"}"#, Unknown, None),
        (
            r#"{"error":{"type":"server_error","message":"out of memory"}}"#,
            Timeout,
            Some("server_error"),
        ),
        (
            r#"{"error":{"type":"api_error","message":"token limit"}}"#,
            ContextOverflow,
            Some("api_error"),
        ),
        ("Internal network error", Timeout, None),
    ] {
        let error = stream_error(data);
        assert_eq!(
            (error.class, error.code.as_deref(), error.status),
            (class, code, Some(200)),
            "{data}"
        );
    }
}

#[test]
fn long_and_wild_texts_become_one_short_line() {
    let error = http_error(
        400,
        None,
        &format!("line one\n\tline\u{1b}[31m two {}", "x".repeat(1000)),
        None,
    );
    assert!(
        error.message.starts_with("answered 400: line one line [31m two xxx"),
        "{}",
        error.message
    );
    assert!(error.message.ends_with('…') && error.message.chars().count() < 450);
}
