//! What providers themselves say about a wrong key, a wrong model, a wrong address, an expired token and a wrong clock:
//! each in its own words, and each ends in one message that says what to fix.

use myclaw_testkit::{ModelServer, Script, Step, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::{assert_fails, assert_goes_on, config, count, home_for, rows, run, said, serve};

/// A refusal of one provider.
struct Refusal {
    status: u16,
    /// Amazon names its errors in a header.
    kind: Option<&'static str>,
    body: Value,
}

fn refusal(status: u16, body: Value) -> Refusal {
    Refusal { status, kind: None, body }
}

fn of_amazon(status: u16, kind: &'static str, message: &str) -> Refusal {
    Refusal { status, kind: Some(kind), body: json!({"message": message}) }
}

fn of_anthropic(status: u16, kind: &str, message: &str) -> Refusal {
    refusal(status, json!({"type": "error", "error": {"type": kind, "message": message}}))
}

fn of_openai(status: u16, code: &str, message: &str) -> Refusal {
    let error =
        json!({"message": message, "type": "invalid_request_error", "param": null, "code": code});
    refusal(status, json!({"error": error}))
}

fn of_google(status: u16, kind: &str, message: &str, details: &Value) -> Refusal {
    let error = json!({"code": status, "message": message, "status": kind, "details": details});
    refusal(status, json!({"error": error}))
}

impl Refusal {
    fn step(&self) -> Step {
        let kind: Vec<(&str, &str)> =
            self.kind.iter().map(|kind| ("x-amzn-errortype", *kind)).collect();
        Step::status(self.status, &kind, self.body.to_string())
    }
}

/// Checks that the turn ends in one message with these words, and that what the user said is kept.
fn assert_refused(server: &ModelServer, home: &TempHome, format: WireFormat, words: &[&str]) {
    assert_fails(&run(home, &["run", "hello"]), 4, words);
    server.assert_finished();
    assert_eq!(rows(home, "main"), said(&[("user", "hello")]));
    assert_eq!(count(&assert_goes_on(home, format, "main"), "hello"), 1);
}

fn assert_each(refusal: impl Fn(WireFormat) -> Refusal, words: &[&str]) {
    for format in WireFormat::ALL {
        let server = serve(refusal(format).step());
        let home = home_for(&server, format);
        assert_refused(&server, &home, format, words);
    }
}

#[test]
fn a_wrong_key() {
    let wrong = |format| match format {
        WireFormat::AnthropicMessages => {
            of_anthropic(401, "authentication_error", "invalid x-api-key")
        }
        WireFormat::OpenAiCompletions | WireFormat::OpenAiResponses => {
            of_openai(401, "invalid_api_key", "Incorrect API key provided: test-key.")
        }
        WireFormat::GoogleGenerativeAi => of_google(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            &json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID", "domain": "googleapis.com",
            }]),
        ),
        WireFormat::BedrockConverse => of_amazon(
            403,
            "AccessDeniedException",
            "Authentication failed: Please make sure your API Key is valid.",
        ),
    };
    assert_each(wrong, &["127.0.0.1", "check the API key"]);
}

#[test]
fn a_wrong_model() {
    let wrong = |format| match format {
        WireFormat::AnthropicMessages => of_anthropic(404, "not_found_error", "model: no-such"),
        WireFormat::OpenAiCompletions | WireFormat::OpenAiResponses => {
            of_openai(404, "model_not_found", "The model `no-such` does not exist.")
        }
        WireFormat::GoogleGenerativeAi => of_google(
            404,
            "NOT_FOUND",
            "models/no-such is not found for API version v1beta.",
            &json!([]),
        ),
        WireFormat::BedrockConverse => {
            of_amazon(400, "ValidationException", "The provided model identifier is invalid.")
        }
    };
    assert_each(wrong, &["127.0.0.1", "the model id"]);
}

#[test]
fn a_wrong_address() {
    for format in WireFormat::ALL {
        let page = "<html><head><title>404 Not Found</title></head><body>nginx</body></html>";
        for step in [
            Step::status(404, &[("content-type", "text/plain")], "404 page not found"),
            Step::status(404, &[("content-type", "text/html")], page),
            Step::status(404, &[], ""),
        ] {
            let server = serve(step);
            let home = home_for(&server, format);
            assert_refused(&server, &home, format, &["127.0.0.1", "404", "base URL"]);
        }
    }
}

#[test]
fn a_token_that_has_expired() {
    let expired = |format| match format {
        WireFormat::AnthropicMessages => {
            of_anthropic(401, "authentication_error", "OAuth token has expired.")
        }
        WireFormat::OpenAiCompletions | WireFormat::OpenAiResponses => {
            of_openai(401, "token_expired", "Provided authentication token is expired.")
        }
        WireFormat::GoogleGenerativeAi => of_google(
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials. Expected OAuth 2 access token.",
            &json!([{"reason": "ACCESS_TOKEN_EXPIRED"}]),
        ),
        WireFormat::BedrockConverse => of_amazon(
            403,
            "ExpiredTokenException",
            "The security token included in the request is expired",
        ),
    };
    let words = |format| match format {
        WireFormat::BedrockConverse => "renew the AWS credentials",
        _ => "sign in again: the token has expired",
    };
    for format in WireFormat::ALL {
        let server = serve(expired(format).step());
        let home = home_for(&server, format);
        assert_refused(&server, &home, format, &["127.0.0.1", words(format)]);
    }
}

/// Amazon's signatures hold the time. The second try is signed with the server's, and the message says what is wrong.
#[test]
fn a_clock_that_is_wrong() {
    let format = WireFormat::BedrockConverse;
    let step = || {
        let message = "Signature expired: 20200101T000000Z is now earlier than 20200101T001500Z";
        let headers = [
            ("x-amzn-errortype", "InvalidSignatureException"),
            ("date", "Wed, 01 Jan 2020 00:20:00 GMT"),
        ];
        Step::status(403, &headers, json!({"message": message}).to_string())
    };
    let server = serve(Script::from([step(), step()]));
    let home = TempHome::new();
    let mut config = config(server.url(), format);
    config["provider"]["authProfiles"][0]["apiKey"] = json!("AKIDEXAMPLE:test-key-of-amazon");
    home.write_config(&config);
    home.write(home.state_directory().join(".env"), "AWS_REGION=eu-west-1\n");
    let words = ["Signature expired", "the clock of this machine is", "ahead the server's: set it"];
    assert_refused(&server, &home, format, &words);
}
