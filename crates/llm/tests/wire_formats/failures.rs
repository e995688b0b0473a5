//! What goes wrong between a request and its answer: each ends in one classified error with one clear line.

use std::time::Duration;

use myclaw_llm::{Api, CallFailure, ErrorClass, StopReason, StreamEvent, list_models};
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::decoding::OPENAI;
use crate::formats::FORMATS;
use crate::support::*;

async fn failure(api: Api, steps: Vec<Step>) -> (Outcome, String) {
    let server = Server::start([steps]).await;
    let outcome = call(&provider(), &model(api, &server.url())).await;
    let message = outcome.error().message.clone();
    // Others than the owner may see the event.
    let shown = outcome.error().message_without_address().to_owned();
    assert!(!shown.contains("127.0.0.1"), "{shown}");
    assert_eq!(
        outcome.events.last(),
        Some(&StreamEvent::Error { reason: StopReason::Error, error: shown })
    );
    assert!(!message.contains(KEY) && !message.contains('\n'), "{message}");
    (outcome, message.replace(&format!("127.0.0.1:{}", server.port), "HOST"))
}

#[tokio::test]
async fn answers_that_are_no_success() {
    let json = "application/json";
    let page = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>timeout</body></html>";
    for (status, content_type, body, class, code, message) in [
        (
            "401 Unauthorized",
            json,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_500"}"#,
            ErrorClass::Auth,
            Some("authentication_error"),
            "testing at HOST: answered 401 (authentication_error): invalid x-api-key; check the API key",
        ),
        (
            "401 Unauthorized",
            json,
            r#"{"error":{"message":"Incorrect API key provided: sk-test-0123456789abcdef. You can find your key in the console.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            ErrorClass::Auth,
            Some("invalid_api_key"),
            "testing at HOST: answered 401 (invalid_api_key): Incorrect API key provided: [redacted]. You can find your key in the console; check the API key",
        ),
        (
            "502 Bad Gateway",
            "text/html",
            page,
            ErrorClass::Timeout,
            None,
            "testing at HOST: answered 502 with a web page instead of JSON (502 Bad Gateway); a gateway in front of the server failed",
        ),
        (
            "404 Not Found",
            "text/plain",
            "404 page not found\n",
            ErrorClass::Unknown,
            None,
            "testing at HOST: answered 404: 404 page not found; check the base URL and the model id (the call went to http://HOST/v1/chat/completions)",
        ),
        (
            "503 Service Unavailable",
            json,
            "",
            ErrorClass::Timeout,
            None,
            "testing at HOST: answered 503 without a reason",
        ),
        (
            "302 Found",
            "text/plain\r\nlocation: https://login.example/",
            "",
            ErrorClass::Unknown,
            None,
            "testing at HOST: answered 302, a redirect to https://login.example/: if that is right, make it the base URL",
        ),
    ] {
        let (outcome, shown) =
            failure(Api::OpenaiCompletions, answer(status, content_type, body)).await;
        assert_eq!(shown, message);
        let error = outcome.error();
        let number: u16 = status[..3].parse().unwrap();
        assert_eq!(
            (error.class, error.code.as_deref(), error.status),
            (class, code, Some(number)),
            "{shown}"
        );
        assert!(matches!(outcome.result, Err(CallFailure::Failed { partial: None, .. })));
    }
}

#[tokio::test]
async fn the_delay_that_a_server_asks_for_is_kept() {
    for (header, delay) in
        [("retry-after: 7", 7000), ("retry-after-ms: 1500\r\nretry-after: 9", 1500)]
    {
        let body = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
        let steps = answer("429 Too Many Requests", &format!("application/json\r\n{header}"), body);
        let (outcome, _) = failure(Api::AnthropicMessages, steps).await;
        assert_eq!(outcome.error().class, ErrorClass::RateLimit);
        assert_eq!(outcome.error().retry_after, Some(Duration::from_millis(delay)));
    }
}

#[tokio::test]
async fn an_endless_error_body_is_cut() {
    let mut steps =
        vec![send(head("500 Oops", &["content-type: text/plain", "transfer-encoding: chunked"]))];
    steps.extend((0..1000).map(|_| Step::Send(chunk(&[b'x'; 1000]))));
    steps.push(Step::WaitForClose);
    let (outcome, message) = failure(Api::OpenaiCompletions, steps).await;
    assert_eq!(outcome.error().class, ErrorClass::Timeout);
    assert_eq!(message, format!("testing at HOST: answered 500: {}…", "x".repeat(400)));
}

#[tokio::test]
async fn answers_that_are_no_answer() {
    let sse = "text/event-stream";
    let json = "application/json";
    for (api, content_type, body, class, message) in [
        (
            Api::OpenaiCompletions,
            "text/html",
            "<html><title>Sign in</title></html>",
            ErrorClass::Unknown,
            "answered with a web page instead of JSON (Sign in); check the base URL; if it is right, a proxy or a sign-in page of this network answered instead",
        ),
        (
            Api::OpenaiCompletions,
            json,
            "",
            ErrorClass::Timeout,
            "answered 200 with an empty body: try again, or check the base URL",
        ),
        (
            Api::OpenaiCompletions,
            json,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"slow","provider_name":"X"}}}"#,
            ErrorClass::RateLimit,
            "reported an error: Provider returned error: slow",
        ),
        (
            Api::OpenaiCompletions,
            "text/plain",
            "Ollama is running",
            ErrorClass::Unknown,
            "answered with something that is not a stream of events (\"Ollama is running\"): check the base URL",
        ),
        (
            Api::OpenaiCompletions,
            sse,
            "data: [DONE]\n\n",
            ErrorClass::Timeout,
            "the answer is empty: it ended without content and without a finish reason",
        ),
        (
            Api::AnthropicMessages,
            sse,
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            ErrorClass::Timeout,
            "the answer was cut off: the stream ended before the message was complete",
        ),
    ] {
        let (outcome, shown) = failure(api, answer("200 OK", content_type, body)).await;
        assert_eq!(shown, format!("testing at HOST: {message}"));
        assert_eq!(outcome.error().class, class, "{shown}");
    }
}

#[tokio::test]
async fn streams_that_report_a_failure() {
    for format in FORMATS {
        let (body, message) = format.failing_stream;
        let (outcome, shown) = failure(format.api, stream(body)).await;
        assert_eq!(shown, format!("testing at HOST: {message}"));
        let error = outcome.error();
        assert_eq!((error.class, error.status), (ErrorClass::Timeout, Some(200)), "{shown}");
    }
}

#[tokio::test]
async fn a_failure_inside_the_stream_keeps_what_was_shown() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"upstream\",\"code\":502}}\n\n";
    let (outcome, _) = failure(Api::OpenaiCompletions, stream(format!("{text}{error}"))).await;
    let Err(CallFailure::Failed { error, partial: Some(partial) }) = &outcome.result else {
        panic!("{outcome:?}")
    };
    assert_eq!((error.class, error.status), (ErrorClass::Timeout, Some(200)));
    assert_eq!((partial.text().as_str(), partial.stop_reason), ("half", StopReason::Error));
    assert_eq!(partial.error_message.as_deref(), Some(error.message_without_address()));
}

#[tokio::test]
async fn servers_that_cannot_be_reached() {
    let free_port = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    };
    for (base_url, class, message) in [
        (
            format!("http://127.0.0.1:{free_port}/v1"),
            ErrorClass::Timeout,
            format!("testing: nothing listens at http://127.0.0.1:{free_port} (is the server running?)"),
        ),
        (
            "http://no-such-host.invalid/v1".to_owned(),
            ErrorClass::Timeout,
            "testing: the host no-such-host.invalid cannot be found: check the base URL and the network".to_owned(),
        ),
        (
            "http://bedrock-runtime.nowhere-1.amazonaws.com.invalid".to_owned(),
            ErrorClass::Timeout,
            "testing: the host bedrock-runtime.nowhere-1.amazonaws.com.invalid cannot be found: check the AWS region and the network".to_owned(),
        ),
        (
            "localhost:8080".to_owned(),
            ErrorClass::Unknown,
            "testing: the base URL \"localhost:8080\" is not usable: it must begin with http:// or https:// and name a host"
                .to_owned(),
        ),
    ] {
        let outcome = call(&provider(), &model(Api::OpenaiCompletions, &base_url)).await;
        assert_eq!((outcome.error().message.as_str(), outcome.error().class), (message.as_str(), class));
    }
}

#[tokio::test]
async fn a_server_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let https = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let outcome = call(&provider(), &model(Api::OpenaiCompletions, &https)).await;
    let message = &outcome.error().message;
    assert!(
        message.starts_with(&format!("testing: no secure connection to {https} (")),
        "{message}"
    );
    assert_eq!(outcome.error().class, ErrorClass::Unknown);
}

#[tokio::test]
async fn a_server_that_hangs_up_before_it_answers() {
    for steps in [
        vec![Step::Close],
        vec![Step::Reset],
        vec![send("HTTP/1.1 200 OK\r\ncontent-"), Step::Close],
    ] {
        let (outcome, message) = failure(Api::OpenaiCompletions, steps).await;
        assert_eq!(message, "testing: the connection to http://HOST broke before the answer came");
        assert_eq!(outcome.error().class, ErrorClass::Timeout);
    }
}

/// Cuts a stream at a handful of places, in every way a connection ends.
#[tokio::test]
async fn a_stream_cut_anywhere_is_whole_or_a_classified_error() {
    for format in FORMATS {
        let (api, body) = (format.api, format.streams[0]);
        let server = Server::start([stream(body)]).await;
        let whole = call(&provider(), &model(api, &server.url())).await.message().content.clone();
        for cut in (0..body.len()).step_by(body.len() / 12).chain([body.len() - 1]) {
            let piece = &body[..cut];
            let of_known_length = head("200 OK", &[&format!("content-length: {}", body.len())]);
            let until_close = head("200 OK", &["connection: close"]);
            for steps in [
                vec![send(chunked_head()), Step::Send(chunk(piece)), Step::Close],
                vec![
                    send(chunked_head()),
                    Step::Send(chunk(piece)),
                    Step::Wait(Duration::from_millis(5)),
                    Step::Reset,
                ],
                vec![send(chunked_head()), Step::Send(chunk(piece)), send("0\r\n\r\n")],
                vec![send(&of_known_length), Step::Send(piece.to_vec()), Step::Close],
                vec![send(&until_close), Step::Send(piece.to_vec()), Step::Close],
            ] {
                let server = Server::start([steps]).await;
                let outcome = call(&provider(), &model(api, &server.url())).await;
                match &outcome.result {
                    Ok(message) => assert_eq!(message.content, whole, "cut at {cut}"),
                    Err(CallFailure::Failed { error, partial }) => {
                        assert_eq!(error.class, ErrorClass::Timeout, "cut at {cut}: {error}");
                        let visible = outcome.events.iter().any(StreamEvent::is_visible_output);
                        assert_eq!(partial.is_some(), visible, "cut at {cut}");
                    }
                    Err(aborted) => panic!("cut at {cut}: {aborted}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_broken_call_leaves_the_provider_usable() {
    let server = Server::start([vec![send(chunked_head()), Step::Close], stream(OPENAI)]).await;
    let provider = provider();
    let model = model(Api::OpenaiCompletions, &server.url());
    call(&provider, &model).await.error();
    assert_eq!(call(&provider, &model).await.message().stop_reason, StopReason::ToolUse);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_is_replaced_without_a_word() {
    let server = Server::start([stream(OPENAI), vec![Step::Close], stream(OPENAI)]).await;
    let (provider, model) = (provider(), model(Api::OpenaiCompletions, &server.url()));
    call(&provider, &model).await.message();
    assert_eq!(call(&provider, &model).await.message().stop_reason, StopReason::ToolUse);
    assert_eq!((server.requests().len(), server.connections()), (3, 2));
    assert_eq!(server.requests()[2].body, server.requests()[1].body);
}

#[tokio::test]
async fn a_first_request_that_breaks_is_not_sent_again() {
    let server = Server::start([vec![Step::Close], stream(OPENAI)]).await;
    let model = model(Api::OpenaiCompletions, &server.url());
    assert_eq!(call(&provider(), &model).await.error().class, ErrorClass::Timeout);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirects_stay_on_their_host() {
    let other = Server::start([stream(OPENAI)]).await;
    let away = head(
        "307 Temporary Redirect",
        &["content-length: 0", &format!("location: {}/v1/chat/completions", other.url())],
    );
    let near =
        head("308 Permanent Redirect", &["content-length: 0", "location: /v2/chat/completions"]);
    let server = Server::start([vec![send(away)], vec![send(near)], stream(OPENAI)]).await;
    let (provider, model) = (provider(), model(Api::OpenaiCompletions, &server.url()));
    assert_eq!(call(&provider, &model).await.error().status, Some(307));
    assert_eq!(call(&provider, &model).await.message().stop_reason, StopReason::ToolUse);
    assert!(other.requests().is_empty());
    assert!(server.requests()[2].head.starts_with("POST /v2/chat/completions"));
    assert_eq!(server.requests()[2].body, server.requests()[1].body);
}

#[tokio::test]
async fn models_are_listed() {
    let list = r#"{"object":"list","data":[{"id":"qwen3:4b","object":"model"},{"id":"llama3.2"}]}"#;
    let server = Server::start([
        answer("200 OK", "application/json", list),
        answer(
            "401 Unauthorized",
            "application/json",
            r#"{"error":"bad key sk-test-0123456789abcdef"}"#,
        ),
        answer("200 OK", "text/html", "<html></html>"),
        vec![Step::WaitForClose],
    ])
    .await;
    let key = SecretString::from(KEY);
    let ask = |api, timeout| {
        let (url, key) = (server.url(), key.clone());
        async move { list_models(&url, api, Some(&key), Duration::from_millis(timeout)).await }
    };
    assert_eq!(ask(Api::OpenaiCompletions, 5000).await.unwrap(), ["qwen3:4b", "llama3.2"]);
    let host = format!("127.0.0.1:{}", server.port);
    let refused = ask(Api::AnthropicMessages, 5000).await.unwrap_err();
    assert_eq!(
        refused.message,
        format!("{host}: answered 401: bad key [redacted]; check the API key")
    );
    let page = ask(Api::OpenaiCompletions, 5000).await.unwrap_err();
    assert_eq!(
        page.message,
        format!("{host}: answered with something that is not a list of models: check the base URL")
    );
    let silent = ask(Api::OpenaiCompletions, 50).await.unwrap_err();
    assert_eq!(silent.message, format!("{host}: no list of models within 0.05 s"));
    let requests = server.requests();
    assert!(requests[0].head.starts_with("GET /v1/models"));
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(requests[1].header("x-api-key"), Some(KEY));
}

/// Some formats report early what a request cost. That is known though nothing of the answer was seen.
#[tokio::test]
async fn a_failure_that_nobody_saw_says_what_it_cost() {
    let cases: [(Api, &str); 4] = [
        (
            Api::AnthropicMessages,
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":40,\"output_tokens\":2}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        ),
        (
            Api::OpenaiCompletions,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":2}}\n\ndata: {\"error\":{\"code\":503,\"message\":\"Overloaded\"}}\n\n",
        ),
        (
            Api::OpenaiResponses,
            "data: {\"type\":\"response.failed\",\"response\":{\"id\":\"r\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"Overloaded\"},\"usage\":{\"input_tokens\":40,\"output_tokens\":2}}}\n\n",
        ),
        (
            Api::GoogleGenerativeAi,
            "data: {\"usageMetadata\":{\"promptTokenCount\":40,\"candidatesTokenCount\":2,\"totalTokenCount\":42}}\n\ndata: {\"error\":{\"code\":503,\"message\":\"Overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n",
        ),
    ];
    for (api, body) in cases {
        let (outcome, message) = failure(api, stream(body)).await;
        assert!(message.contains("Overloaded"), "{message}");
        let Err(failed) = &outcome.result else { panic!("{api:?}") };
        let usage = failed.usage().unwrap_or_else(|| panic!("{api:?}: no usage"));
        assert_eq!((usage.input, usage.output, usage.total_tokens), (40, 2, 42), "{api:?}");
        assert_eq!((usage.cost.input, usage.cost.output), (40.0 / 1e6, 20.0 / 1e6), "{api:?}");
        assert!(matches!(failed, CallFailure::Failed { partial: None, .. }), "{api:?}");
    }
    let (outcome, _) = failure(Api::AnthropicMessages, answer("503 Busy", "text/plain", "")).await;
    assert_eq!(outcome.result.unwrap_err().usage(), None);
}

/// The values of the user's own headers may be secrets, such as the token of a gateway.
#[tokio::test]
async fn the_user_s_own_headers_are_in_no_message() {
    let body = r#"{"error":{"message":"team SECRETHEADER-123456789 with Bearer gateway-token-42, that is gateway-token-42, is unknown","code":"SECRETHEADER-123456789"}}"#;
    let server = Server::start([answer("400 Bad Request", "application/json", body)]).await;
    let mut model = model(Api::OpenaiCompletions, &server.url());
    let headers =
        [("x-team", "SECRETHEADER-123456789"), ("Authorization", "Bearer gateway-token-42")];
    model.quirks.headers = headers
        .map(|(name, value)| (name.to_owned(), SecretString::from(value)))
        .into_iter()
        .collect();
    let outcome = call(&provider(), &model).await;
    let error = outcome.error();
    assert_eq!(error.code.as_deref(), Some("[redacted]"));
    assert!(
        error.message.ends_with(
            "answered 400 ([redacted]): team [redacted] with [redacted], that is [redacted], is unknown"
        ),
        "{}",
        error.message
    );
}
