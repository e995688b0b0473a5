use std::collections::HashMap;
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::rules::PHRASES;
use super::*;
use ErrorClass::{Auth, Billing, ContextOverflow, Quota, RateLimit, Timeout, Unknown};

/// Real errors, one file for each wire format; see the README next to them.
const CORPUS: [(&str, &str); 5] = [
    ("openai-completions", include_str!("../../tests/data/errors/openai-completions.jsonl")),
    ("openai-responses", include_str!("../../tests/data/errors/openai-responses.jsonl")),
    ("anthropic-messages", include_str!("../../tests/data/errors/anthropic-messages.jsonl")),
    ("google-generative-ai", include_str!("../../tests/data/errors/google-generative-ai.jsonl")),
    ("bedrock-converse", include_str!("../../tests/data/errors/bedrock-converse.jsonl")),
];

/// The moment at which the corpus is read: dates in it are compared with this one (2026-03-31T23:33:20Z).
const CORPUS_TIME: Duration = Duration::from_secs(1_775_000_000);

/// One line of the corpus.
#[derive(Deserialize)]
struct Case {
    provider: String,
    #[serde(rename = "where")]
    place: Place,
    status: u16,
    #[serde(default)]
    headers: HashMap<String, String>,
    body: String,
    class: ErrorClass,
    code: Option<String>,
    delay_ms: Option<u64>,
    source: String,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Place {
    Http,
    Page,
    Event,
}

impl Case {
    fn error(&self) -> ModelError {
        if self.place == Place::Event {
            return stream_error(&self.body);
        }
        let headers = (&self.headers).try_into().unwrap();
        http_error(self.status, &headers, &self.body, UNIX_EPOCH + CORPUS_TIME)
    }
}

fn corpus() -> Vec<Case> {
    let lines = CORPUS.iter().flat_map(|(_, lines)| lines.lines());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn real_errors_get_their_class() {
    let cases = corpus();
    assert!(cases.len() >= 399, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let error = case.error();
        let delay_ms = error.retry_after.map(|delay| delay.as_millis());
        let found = (error.class, error.code.as_deref(), delay_ms);
        let expected = (case.class, case.code.as_deref(), case.delay_ms.map(u128::from));
        if found != expected {
            wrong.push(format!(
                "{} {}: found {found:?}, expected {expected:?}\n  {} ({})",
                case.provider, case.status, error.message, case.source
            ));
        }
        assert_eq!(error.status, Some(case.status), "{}", case.source);
        assert!(!error.message.contains('\n') && error.message.len() < 1000, "{}", error.message);
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// The corpus is read by people too: each line says where its body was seen.
#[test]
fn every_real_error_names_its_source() {
    for case in corpus() {
        assert!(
            ["https://", "PyPI ", "npm "].iter().any(|kind| case.source.starts_with(kind)),
            "{}",
            case.source
        );
    }
}

#[test]
fn a_header_wins_over_the_body_and_the_body_over_the_limits() {
    let body = r#"[{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}]"#;
    let delay = |headers: &[(&str, &str)]| {
        let headers: HashMap<String, String> =
            headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        http_error(429, &(&headers).try_into().unwrap(), body, UNIX_EPOCH).retry_after
    };
    let limits = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "7s")];
    assert_eq!(delay(&limits), Some(Duration::from_millis(34_500)));
    assert_eq!(delay(&[limits[0], limits[1], ("retry-after", "1")]), Some(Duration::from_secs(1)));
}

#[test]
fn a_delay_is_kept_only_where_time_helps() {
    let delay = |status, code| {
        let body = format!(r#"{{"error":{{"code":"{code}","message":"try again in 20s"}}}}"#);
        http_error(status, &HeaderMap::new(), &body, UNIX_EPOCH).retry_after
    };
    let twenty = Some(Duration::from_secs(20));
    for (status, code, expected) in [
        (429, "rate_limit_exceeded", twenty),
        (503, "none", twenty),
        (429, "insufficient_quota", twenty),
        (401, "none", None),
        (402, "none", None),
        (400, "context_length_exceeded", None),
        (400, "none", None),
    ] {
        assert_eq!(delay(status, code), expected, "{status} {code}");
    }
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

/// Servers between here and the model send any status with the words of the host behind them.
#[test]
fn words_say_what_a_status_leaves_open() {
    for (words, class) in [
        ("invalid x-api-key", Auth),
        ("The x-api-key header is missing", Auth),
        ("Malformed authorization header", Auth),
        ("your access token was revoked", Auth),
        ("The API key does not exist.", Auth),
        ("You're out of usage credits", Billing),
        ("Your team has run out of credits for this month", Billing),
        ("The prepaid balance of this account is used up", Billing),
        ("You have an unpaid invoice.", Billing),
        ("Access is suspended because of overdue invoices", Billing),
        ("Your last payment failed; update the card", Billing),
        ("该模型当前访问量过大，请您稍后再试", RateLimit),
        ("当前模型请求量过大，请稍后重试", RateLimit),
        // Other things are invalid, used up or not found.
        ("invalid schema for function 'pay': api_key is not valid", Unknown),
        ("messages.2: tool call without its access token is invalid", Unknown),
        ("unknown tool `api_key_lookup` not found", Unknown),
        ("choices are exhausted", Unknown),
        ("an invoice is attached to the message", Unknown),
        ("temperature is out of range", Unknown),
    ] {
        for status in [Some(400), Some(422), None] {
            assert_eq!(classify(status, ["invalid_request_error"], words), class, "{words}");
        }
    }
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
    for (class, phrases) in PHRASES {
        for phrase in *phrases {
            assert_eq!(
                classify(Some(400), [], &format!("Bad: {} here", phrase.to_uppercase())),
                *class,
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

/// A request that a plan can never serve must become smaller; one that fits later has to wait.
#[test]
fn a_request_above_the_whole_limit_is_an_overflow() {
    for (words, class) in [
        ("on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce", ContextOverflow),
        ("on tokens per min (TPM): Limit: 6,000, Requested: 12,500.", ContextOverflow),
        ("on tokens per day (TPD): Limit 6000, Used 12, Requested 9000.", ContextOverflow),
        ("on tokens per minute (TPM): Limit 6000, Requested 6000", RateLimit),
        ("on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443.", RateLimit),
        ("on tokens per day (TPD): Limit 6000, Used 5034, Requested 1443.", Quota),
        ("on requests per min (RPM): Limit 3, Used 3, Requested 1.", RateLimit),
        ("request too large, slow down", RateLimit),
        ("limit reached, requested 9000", RateLimit),
        ("Requested 9000, limit 6000", RateLimit),
    ] {
        assert_eq!(classify(Some(429), ["rate_limit_exceeded"], words), class, "{words}");
    }
    // A balance is not mended by a shorter request.
    let spent = "tokens: limit 5, requested 9";
    assert_eq!(classify(Some(402), [], spent), Billing);
    assert_eq!(classify(Some(429), ["insufficient_quota"], spent), Quota);
    let body = r#"{"error":{"message":"Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size"}}"#;
    let message = http_error(413, &HeaderMap::new(), body, UNIX_EPOCH).message;
    assert!(message.contains("; one request is larger than the plan's limit"), "{message}");
}

#[test]
fn long_and_wild_texts_become_one_short_line() {
    let error = http_error(
        400,
        &HeaderMap::new(),
        &format!("line one\n\tline\u{1b}[31m two {}", "x".repeat(1000)),
        UNIX_EPOCH,
    );
    assert!(
        error.message.starts_with("answered 400: line one line [31m two xxx"),
        "{}",
        error.message
    );
    assert!(error.message.ends_with('…') && error.message.chars().count() < 450);
}
