//! What gateways make of the formats: answers that are put together wrongly, and failures without a mark.

use myclaw_llm::{Api, ContentBlock, ErrorClass};
use serde_json::{Value, json};

use crate::decoding::openai;
use crate::formats::FORMATS;
use crate::support::*;

async fn asked(api: Api, steps: Vec<Step>) -> (Outcome, String) {
    let server = Server::start([steps]).await;
    let outcome = call(&provider(), &model(api, &format!("{}/v1", server.url()))).await;
    let message = outcome.result.as_ref().err().map(|_| outcome.error().message.clone());
    let host = format!("127.0.0.1:{}", server.port);
    (outcome, message.unwrap_or_default().replace(&host, "HOST"))
}

#[tokio::test]
async fn a_message_beside_an_empty_delta_is_the_answer() {
    for delta in [json!({}), json!({"role": "assistant", "content": ""})] {
        let choice = json!({
            "index": 0,
            "delta": delta,
            "message": {"role": "assistant", "content": "Here."},
            "finish_reason": "stop",
        });
        let body = json!({"object": "chat.completion", "choices": [choice]}).to_string();
        for steps in [
            answer("200 OK", "application/json", &body),
            stream(format!("data: {body}\n\ndata: [DONE]\n\n")),
        ] {
            let (outcome, _) = asked(Api::OpenaiCompletions, steps).await;
            assert_eq!(outcome.message().text(), "Here.");
        }
    }
}

#[test]
fn only_one_of_several_choices_is_read() {
    let choice = |index: u64, text: &str, reason: Value| json!({"index": index, "delta": {"content": text}, "finish_reason": reason});
    let chunks = [
        json!({"choices": [choice(0, "One", Value::Null), choice(1, "Eins", Value::Null)]}),
        json!({"choices": [choice(1, " zwei", json!("length"))]}),
        json!({"choices": [choice(0, " two", json!("stop"))]}),
    ];
    let (message, _) = openai(&chunks);
    assert_eq!(message.unwrap().text(), "One two");
    // A host may number its only choice as it likes.
    let (message, _) = openai(&[json!({"choices": [choice(1, "Eins", json!("stop"))]})]);
    assert_eq!(message.unwrap().text(), "Eins");
}

/// Each fragment ends like a whole object and repeats the name, so the text must not be read anew for each.
#[test]
fn a_name_repeated_with_every_fragment_begins_no_call() {
    let piece = |arguments: &str| {
        let call = json!({"index": 0, "function": {"name": "write", "arguments": arguments}});
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    };
    let mut chunks = vec![piece("{\"content\":\"")];
    chunks.extend(std::iter::repeat_n(piece("fn f() {}{}{}"), 20_000));
    chunks.push(piece("\"}"));
    let (message, _) = openai(&chunks);
    let message = message.unwrap();
    let [ContentBlock::ToolCall(call)] = message.content.as_slice() else { panic!("one call") };
    assert_eq!(call.arguments["content"], "fn f() {}{}{}".repeat(20_000));
    // Two whole objects are two calls all the same.
    let (message, _) = openai(&[piece("{\"content\":\"a\"}"), piece("{\"content\":\"b\"}")]);
    assert_eq!(message.unwrap().tool_calls().count(), 2);
}

#[tokio::test]
async fn a_failure_without_a_mark_gets_the_class_of_its_body() {
    use ErrorClass::{Auth, ContextOverflow, Quota, RateLimit, Timeout};
    for (body, class) in [
        (
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}"#,
            ContextOverflow,
        ),
        (
            r#"{"object":"error","message":"Internal server error","type":"InternalServerError","code":500}"#,
            Timeout,
        ),
        (r#"{"message":"Rate limit reached for requests","code":429}"#, RateLimit),
        (r#"{"message":"You exceeded your current quota"}"#, Quota),
        (r#"{"detail":"Invalid API key"}"#, Auth),
        (r#"{"detail":"Request timed out"}"#, Timeout),
    ] {
        for format in FORMATS.into_iter().filter(|format| format.api != Api::BedrockConverse) {
            let api = format.api;
            for text in [
                format!("data: {body}\n\n"),
                format!("event: error\ndata: {body}\n\n"),
                format!("error: {body}\n\n"),
            ] {
                let (outcome, message) = asked(api, stream(&text)).await;
                let error = outcome.error();
                assert_eq!(
                    (error.class, error.status),
                    (class, Some(200)),
                    "{api:?} {text} {message}"
                );
            }
        }
    }
}

/// A sign of life is no failure.
#[tokio::test]
async fn events_that_say_nothing_are_passed_over() {
    let body = concat!(
        "data: {\"type\":\"keepalive\"}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    );
    let (outcome, _) = asked(Api::OpenaiCompletions, stream(body)).await;
    assert_eq!(outcome.message().text(), "Hi.");
}

#[tokio::test]
async fn a_wrong_address_is_shown_as_it_was_called() {
    let missing = answer("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#);
    let (_, message) = asked(Api::AnthropicMessages, missing).await;
    assert_eq!(
        message,
        "testing at HOST: answered 404: Not Found; check the base URL and the model id (the call went to http://HOST/v1/messages)"
    );
    let server =
        Server::start([answer("404 Not Found", "application/json", r#"{"detail":"Not Found"}"#)])
            .await;
    let base = format!("http://127.0.0.1:{}/v1?key=secret-in-the-address", server.port);
    let outcome = call(&provider(), &model(Api::OpenaiCompletions, &base)).await;
    let message = &outcome.error().message;
    assert!(message.contains("/v1/chat/completions)") && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn a_body_that_can_be_no_answer_is_described() {
    let gzip = [&[0x1F_u8, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3][..], b"garbage\n\n"].concat();
    let lines = |status: &str, lines: &[&str], body: &[u8]| {
        let length = format!("content-length: {}", body.len());
        let lines: Vec<&str> = lines.iter().copied().chain([length.as_str()]).collect();
        vec![send([head(status, &lines).into_bytes(), body.to_vec()].concat())]
    };
    let compressed = |name: &str| {
        format!(
            "testing at HOST: answered with a body compressed by {name}, which was not asked for: a proxy in between compresses it"
        )
    };
    for (steps, expected) in [
        (lines("200 OK", &["content-encoding: br"], b"xyz"), compressed("br")),
        (lines("200 OK", &[], &gzip), compressed("gzip")),
        (
            vec![send("HTTP/1.1 204 No Content\r\n\r\n")],
            "testing at HOST: answered 204, which means without content: check the base URL"
                .to_owned(),
        ),
        (
            lines("503 Service Unavailable", &["content-encoding: gzip"], &gzip),
            "testing at HOST: answered 503: (a body compressed by gzip)".to_owned(),
        ),
    ] {
        let (outcome, message) = asked(Api::OpenaiCompletions, steps).await;
        assert_eq!(message, expected);
        assert!(outcome.error().status.is_none_or(|status| [200, 204, 503].contains(&status)));
    }
}
