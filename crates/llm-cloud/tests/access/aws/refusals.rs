//! What AWS refuses, what a user reads of it, and what is done about it: a wrong clock, keys that ended, a stream that
//! was damaged.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use myclaw_llm::{Api, ErrorClass};

use super::*;

/// A refusal of AWS's.
fn refusal(status: &str, name: &str, headers: &str, message: &str) -> Vec<Step> {
    let kind = format!(
        "application/json\r\nx-amzn-errortype: {name}:http://internal.amazon.com/{headers}"
    );
    answer(status, &kind, &format!(r#"{{"message":"{message}"}}"#))
}

async fn refused(steps: Vec<Step>) -> (ErrorClass, Option<String>, String) {
    let server = Server::start([steps]).await;
    let provider = provider_with(&[("AWS_REGION", "us-east-1")]);
    let model = model(Api::BedrockConverse, &server.url());
    let outcome = call_with_key(&provider, &model, Some("AKID:secret-key:session-token")).await;
    let error = outcome.error();
    assert_eq!(server.requests().len(), 1);
    let message = error.message.replace(&format!("127.0.0.1:{}", server.port), "HOST");
    (error.class, error.code.clone(), message)
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    for (status, name, said, class, message) in [
        (
            "403 Forbidden",
            "ExpiredTokenException",
            "The security token included in the request is expired",
            ErrorClass::Auth,
            "The security token included in the request is expired; renew the AWS credentials (such as by `aws sso login`), or set new temporary keys",
        ),
        (
            "403 Forbidden",
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
            ErrorClass::Auth,
            "The security token included in the request is invalid; check the AWS access key, and the session token if there is one",
        ),
        (
            "403 Forbidden",
            "InvalidSignatureException",
            "The request signature we calculated does not match: x-amz-security-token:session-token",
            ErrorClass::Auth,
            "The request signature we calculated does not match: x-amz-security-token:[redacted]; check the secret key and the clock of this machine",
        ),
        (
            "403 Forbidden",
            "AccessDeniedException",
            "You don't have access to the model with the specified model ID.",
            ErrorClass::Auth,
            "You don't have access to the model with the specified model ID; ask for access to this model in the provider's console (AWS: also bedrock:InvokeModelWithResponseStream for the identity), and check the region",
        ),
        (
            "400 Bad Request",
            "ValidationException",
            "Invocation of model ID m with on-demand throughput isn’t supported.",
            ErrorClass::Unknown,
            "Invocation of model ID m with on-demand throughput isn’t supported; use the id of the model's inference profile: the same with `us.`, `eu.` or `global.` before it",
        ),
        (
            "400 Bad Request",
            "ValidationException",
            "Input is too long for requested model.",
            ErrorClass::ContextOverflow,
            "Input is too long for requested model",
        ),
        (
            "429 Too Many Requests",
            "ThrottlingException",
            "Too many tokens, please wait before trying again.",
            ErrorClass::RateLimit,
            "Too many tokens, please wait before trying again",
        ),
        (
            "424 Failed Dependency",
            "ModelErrorException",
            "The model failed.",
            ErrorClass::Timeout,
            "The model failed",
        ),
    ] {
        let number = &status[..3];
        assert_eq!(
            refused(refusal(status, name, "", said)).await,
            (
                class,
                Some(name.to_owned()),
                format!("testing at HOST: answered {number} ({name}): {message}")
            )
        );
    }
}

#[tokio::test]
async fn a_wrong_clock_is_corrected_once_and_remembered() {
    let server_time = SystemTime::now() + Duration::from_secs(3 * 3600);
    let server_time = Timestamp::try_from(server_time).unwrap();
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&server_time).unwrap();
    let date = format!("\r\ndate: {date}");
    let skewed = || {
        refusal(
            "403 Forbidden",
            "InvalidSignatureException",
            &date,
            "Signature expired: 20260101T000000Z",
        )
    };
    let server = Server::start([skewed(), stream(ANSWER), stream(ANSWER), skewed()]).await;
    let model = model(Api::BedrockConverse, &server.url());
    let provider = provider_with(&[("AWS_REGION", "us-east-1")]);
    for _ in 0..2 {
        call_with_key(&provider, &model, Some("AKID:s")).await.message();
    }
    let dates: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.header("x-amz-date").unwrap().to_owned())
        .collect();
    assert_eq!(dates.len(), 3, "the second call goes out with the right time at once");
    assert!(dates[1] > dates[0] && dates[2] >= dates[1], "{dates:?}");

    // Signed with the server's time already, so there is nothing left to correct.
    let outcome = call_with_key(&provider, &model, Some("AKID:s")).await;
    let message = &outcome.error().message;
    assert_eq!(server.requests().len(), 4);
    assert!(
        message.contains("Signature expired") && message.contains("behind the server's: set it"),
        "{message}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn expired_credentials_are_not_kept() {
    // Each run of the process gives another key.
    let command = r#"sh -c 'echo run >> "$HOME/runs"; echo "{\"AccessKeyId\":\"ASIA$(wc -l < "$HOME/runs" | tr -d " ")\",\"SecretAccessKey\":\"s\",\"Expiration\":\"2099-01-01T00:00:00Z\"}"'"#;
    let config = format!("[default]\nregion = us-east-1\ncredential_process = {command}\n");
    let home = home(&[("config", &config)]);
    let provider = provider_with(&[("HOME", text(home.path())), ("PATH", "/usr/bin:/bin")]);
    let expired = refusal("403 Forbidden", "ExpiredTokenException", "", "expired");
    let server = Server::start([expired, stream(ANSWER), stream(ANSWER)]).await;
    let model = model(Api::BedrockConverse, &server.url());
    call_with_key(&provider, &model, None).await.error();
    for _ in 0..2 {
        call_with_key(&provider, &model, None).await.message();
    }
    let ids: Vec<String> = server.requests().iter().map(|request| signer(request).0).collect();
    assert_eq!(ids, ["ASIA1", "ASIA2", "ASIA2"]);
}

#[tokio::test]
async fn a_damaged_stream_is_one_error() {
    let mut damaged = ANSWER.to_vec();
    for place in (0..damaged.len()).step_by(97).skip(1) {
        damaged[place] ^= 1;
        let server = Server::start([stream(&damaged)]).await;
        let model = model(Api::BedrockConverse, &server.url());
        let outcome = call_with_key(&provider_with(&[]), &model, Some("ABSK")).await;
        let error = outcome.error();
        assert_eq!(error.class, ErrorClass::Timeout, "byte {place}: {error}");
        assert!(error.message.contains("the event stream is damaged"), "byte {place}: {error}");
        damaged[place] ^= 1;
    }
}
