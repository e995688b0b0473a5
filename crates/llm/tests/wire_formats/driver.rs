//! The driver against a real socket.

use std::time::Duration;

use crate::decoding::{ANTHROPIC, OPENAI};
use crate::formats::FORMATS;
use crate::support::*;
use myclaw_llm::{
    Api, CallFailure, CallLimits, ContentBlock, ErrorClass, Message, PairedMessages, StopReason,
    StreamEvent, ThinkingLevel, ToolResultMessage, UserMessage,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn text_stream(text: &str) -> String {
    let delta = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]});
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    format!("data: {delta}\n\ndata: {finish}\n\ndata: [DONE]\n\n")
}

#[tokio::test]
async fn every_format_streams_over_a_socket() {
    for format in FORMATS {
        let server = Server::start([stream(format.streams[0])]).await;
        let outcome = call(&provider(), &model(format.api, &server.url())).await;
        let message = outcome.message();
        assert_eq!(message.stop_reason, StopReason::ToolUse);
        assert_eq!(
            message.tool_calls().map(|call| call.name.as_str()).collect::<Vec<_>>(),
            ["read", "ls"]
        );
        assert_eq!(outcome.events.first(), Some(&StreamEvent::Start));
        let done =
            StreamEvent::Done { reason: StopReason::ToolUse, message: Box::new(message.clone()) };
        assert_eq!(outcome.events.last(), Some(&done));
    }
}

#[tokio::test]
async fn requests_carry_the_headers_of_their_format() {
    for format in FORMATS {
        let server = Server::start([stream(format.streams[0])]).await;
        call(&provider(), &model(format.api, &server.url())).await.message();
        let request = &server.requests()[0];
        let line = format!("POST {} HTTP/1.1", format.path);
        assert!(request.head.starts_with(&line), "{}", request.head);
        for (name, value) in format.headers {
            assert_eq!(request.header(name), Some(*value), "{name}");
        }
        let is_key = |name: &&str| request.header(name).is_some_and(|value| value.contains(KEY));
        let keys = ["x-api-key", "authorization", "api-key", "x-goog-api-key"];
        assert!(keys.iter().filter(|name| is_key(name)).count() <= 1, "{}", request.head);
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("user-agent"), Some("myclaw-test/1"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
    }
}

/// Some proxies drop `stream: true`, and some label streams as JSON or the other way round.
#[tokio::test]
async fn an_answer_is_read_whatever_its_content_type_says() {
    let document = json!({
        "choices": [{"message": {"role": "assistant", "content": "Four."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    })
    .to_string();
    let events = text_stream("Four.");
    for (content_type, body) in [
        ("application/json", &document),
        ("text/event-stream", &document),
        ("application/json", &events),
        ("text/plain", &events),
    ] {
        let server = Server::start([answer("200 OK", content_type, &format!("\n{body}"))]).await;
        let outcome = call(&provider(), &model(Api::OpenaiCompletions, &server.url())).await;
        assert_eq!(outcome.message().text(), "Four.");
        assert!(
            outcome
                .events
                .contains(&StreamEvent::TextDelta { index: 0, delta: "Four.".to_owned() })
        );
    }
}

#[tokio::test]
async fn counters_that_lack_their_last_line_end_count() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let body = text_stream("a").replace("data: [DONE]\n\n", &format!("data: {usage}"));
    let server = Server::start([answer("200 OK", "text/event-stream", &body)]).await;
    let outcome = call(&provider(), &model(Api::OpenaiCompletions, &server.url())).await;
    assert_eq!((outcome.message().usage.input, outcome.message().usage.output), (3, 2));
}

#[tokio::test]
async fn one_connection_serves_a_whole_run() {
    let refusal =
        answer("429 Too Many Requests", "application/json", r#"{"error":{"message":"slow"}}"#);
    let late_end = {
        let mut steps = stream(ANTHROPIC);
        let end = steps.pop().unwrap();
        steps.extend([Step::Wait(Duration::from_millis(20)), end]);
        steps
    };
    let server = Server::start([stream(ANTHROPIC), late_end, refusal, stream(ANTHROPIC)]).await;
    let provider = provider();
    let model = model(Api::AnthropicMessages, &server.url());
    for _ in 0..4 {
        let _ = call(&provider, &model).await;
    }
    assert_eq!(
        server.requests().iter().map(|request| request.connection).collect::<Vec<_>>(),
        [1, 1, 1, 1]
    );
}

#[tokio::test]
async fn an_abort_closes_the_connection_and_keeps_what_came() {
    let partial = "data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n";
    let server = Server::start([vec![
        send(chunked_head()),
        Step::Send(chunk(partial.as_bytes())),
        Step::WaitForClose,
    ]])
    .await;
    let provider = provider();
    let model = model(Api::OpenaiCompletions, &server.url());
    let cancel = CancellationToken::new();
    let key = secrecy::SecretString::from(KEY);
    let messages = hello();
    let request = myclaw_llm::ModelRequest {
        model: &model,
        system_prompt: "",
        messages: &messages,
        tools: &[],
        tool_use: myclaw_llm::ToolUse::Auto,
        max_output: None,
        options: None,
        thinking: ThinkingLevel::Off,
        api_key: Some(&key),
        limits: CallLimits::default(),
    };
    let mut events = Vec::new();
    let stop = cancel.clone();
    let result = myclaw_llm::Provider::call(&provider, request, &cancel, &mut |event| {
        if matches!(event, StreamEvent::TextDelta { .. }) {
            stop.cancel();
        }
        events.push(event);
    })
    .await;
    let Err(CallFailure::Aborted { partial: Some(partial) }) = result else { panic!("{result:?}") };
    assert_eq!((partial.text(), partial.stop_reason), ("so far".to_owned(), StopReason::Aborted));
    assert_eq!(
        events.last(),
        Some(&StreamEvent::Error { reason: StopReason::Aborted, error: "aborted".to_owned() })
    );
    server.wait_until_client_closed().await;
}

#[tokio::test]
async fn an_abort_before_the_answer_closes_the_connection() {
    let server = Server::start([vec![Step::WaitForClose]]).await;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        stop.cancel();
    });
    let model = model(Api::AnthropicMessages, &server.url());
    let outcome = call_with(&provider(), &model, &hello(), CallLimits::default(), &cancel).await;
    assert_eq!(outcome.result, Err(CallFailure::Aborted { partial: None }));
    server.wait_until_client_closed().await;
}

fn short_limits() -> CallLimits {
    CallLimits {
        connect: Duration::from_secs(5),
        first_event: Duration::from_millis(150),
        between_events: Duration::from_millis(100),
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n";
    let text = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
    let endless = |piece: &str| {
        (0..6000)
            .flat_map(|_| {
                [Step::Send(chunk(piece.as_bytes())), Step::Wait(Duration::from_millis(10))]
            })
            .collect()
    };
    let begin = |pieces: &[&str]| -> Vec<Step> {
        std::iter::once(send(chunked_head()))
            .chain(pieces.iter().map(|p| Step::Send(chunk(p.as_bytes()))))
            .collect()
    };
    let comments: Vec<Step> = endless(": keep-alive\n\n");
    let pings: Vec<Step> = endless(ping);
    for (name, steps, message, has_partial) in [
        ("no head", vec![Step::WaitForClose], "no event within 0.15 s of the request", false),
        (
            "no event",
            [begin(&[]), vec![Step::WaitForClose]].concat(),
            "no event within 0.15 s of the request",
            false,
        ),
        (
            "comments",
            [begin(&[]), comments.clone()].concat(),
            "no event within 0.15 s of the request",
            false,
        ),
        (
            "pings",
            [begin(&[]), pings.clone()].concat(),
            "no event within 0.15 s of the request",
            false,
        ),
        (
            "stall",
            [begin(&[start, text]), vec![Step::WaitForClose]].concat(),
            "no event for 0.1 s: the answer was given up",
            true,
        ),
        (
            "stall with comments",
            [begin(&[start, text]), comments].concat(),
            "no event for 0.1 s: the answer was given up",
            true,
        ),
        (
            "stall with pings",
            [begin(&[start, text]), pings].concat(),
            "no event for 0.1 s: the answer was given up",
            true,
        ),
    ] {
        let server = Server::start([steps]).await;
        let model = model(Api::AnthropicMessages, &server.url());
        let cancel = CancellationToken::new();
        let messages = hello();
        let provider = provider();
        let calling = call_with(&provider, &model, &messages, short_limits(), &cancel);
        // The endless scripts go on for a minute.
        let outcome = tokio::time::timeout(Duration::from_secs(20), calling).await.expect(name);
        let Err(CallFailure::Failed { error, partial }) = &outcome.result else {
            panic!("{name}: {outcome:?}")
        };
        assert_eq!(error.class, ErrorClass::Timeout, "{name}");
        assert_eq!(
            error.message,
            format!("testing at 127.0.0.1:{}: {message}", server.port),
            "{name}"
        );
        assert_eq!(partial.is_some(), has_partial, "{name}");
    }
}

#[tokio::test]
async fn a_stream_that_goes_on_is_never_given_up() {
    let delta = |text: &str| {
        chunk(
            format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
                .as_bytes(),
        )
    };
    // Longer in all than the limit between two events.
    let limits = CallLimits { between_events: Duration::from_secs(1), ..CallLimits::default() };
    let mut steps = vec![send(chunked_head())];
    for _ in 0..24 {
        steps.extend([Step::Send(delta("x")), Step::Wait(Duration::from_millis(50))]);
    }
    steps.extend([Step::Send(chunk(b"data: [DONE]\n\n")), send("0\r\n\r\n")]);
    let server = Server::start([steps]).await;
    let model = model(Api::OpenaiCompletions, &server.url());
    let outcome = call_with(&provider(), &model, &hello(), limits, &CancellationToken::new()).await;
    assert_eq!(outcome.message().text(), "x".repeat(24));
}

#[tokio::test]
async fn results_of_calls_reach_the_server() {
    let server = Server::start([stream(OPENAI), stream(text_stream("done"))]).await;
    let provider = provider();
    let model = model(Api::OpenaiCompletions, &server.url());
    let first = call(&provider, &model).await.message().clone();
    let mut messages =
        vec![Message::User(UserMessage::text("hello", 1)), Message::Assistant(first.clone())];
    messages.extend(first.tool_calls().map(|call| {
        Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            content: vec![ContentBlock::text(format!("result of {}", call.name))],
            is_error: false,
            details: None,
            timestamp: 2,
        })
    }));
    let messages = PairedMessages::repair(messages);
    let outcome =
        call_with(&provider, &model, &messages, CallLimits::default(), &CancellationToken::new())
            .await;
    assert_eq!(outcome.message().text(), "done");
    let second = &server.requests()[1];
    assert_eq!(second.connection, 1);
    assert_eq!(
        second.body["messages"],
        json!([
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "Let me look – \"now\" 🦀.\n", "tool_calls": [
                {"id": "call_DdmO9pD3xa9XTPNJ32zg2hcA", "type": "function",
                 "function": {"name": "read", "arguments": "{\"path\":\"notes.md\",\"limit\":20}"}},
                {"id": "call_hcAxxDdmO9pD3xa9XTPNJ32z", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            ]},
            {"role": "tool", "content": "result of read", "tool_call_id": "call_DdmO9pD3xa9XTPNJ32zg2hcA"},
            {"role": "tool", "content": "result of ls", "tool_call_id": "call_hcAxxDdmO9pD3xa9XTPNJ32z"},
        ])
    );
}

/// What was complete may go on: then silence is a cut answer again, after the whole time between two events.
#[tokio::test]
async fn an_answer_that_goes_on_behind_its_end_is_incomplete_again() {
    let event = |content: &str, reason: Option<&str>| {
        let choice = json!({"delta": {"content": content}, "finish_reason": reason});
        Step::Send(chunk(format!("data: {}\n\n", json!({"choices": [choice]})).as_bytes()))
    };
    let pause = || Step::Wait(Duration::from_millis(20));
    let begun = vec![send(chunked_head()), event("one", Some("stop")), pause()];
    let more = vec![event(" two", None), pause()];
    let ask = async |steps: Vec<Step>| {
        let server = Server::start([steps]).await;
        let model = model(Api::OpenaiCompletions, &server.url());
        let limits =
            CallLimits { between_events: Duration::from_millis(600), ..CallLimits::default() };
        call_with(&provider(), &model, &hello(), limits, &CancellationToken::new()).await
    };
    for last in [Step::WaitForClose, Step::Reset] {
        let outcome = ask([&begun[..], std::slice::from_ref(&last)].concat()).await;
        assert_eq!(outcome.message().text(), "one", "{last:?}");
        let outcome = ask([&begun[..], &more[..], std::slice::from_ref(&last)].concat()).await;
        assert_eq!(outcome.error().class, ErrorClass::Timeout, "{last:?}");
        let Err(CallFailure::Failed { partial: Some(partial), .. }) = &outcome.result else {
            panic!("{outcome:?}")
        };
        assert_eq!(partial.text(), "one two");
    }
    let again = vec![event("", Some("stop")), Step::WaitForClose];
    let outcome = ask([begun, more, again].concat()).await;
    assert_eq!(outcome.message().text(), "one two");
}
