//! The scripted server as a client sees it, over a plain TCP connection.

#[cfg(test)]
mod client;

use std::time::Duration;

use client::Client;
use myclaw_testkit::{AnswerEnd, ModelServer, Reply, Script, Step};
use serde_json::{Value, json};

/// A small request that breaks no rule.
fn question(stream: bool) -> Value {
    json!({
        "model": "m", "max_tokens": 10, "stream": stream,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

#[test]
fn a_stream_arrives_as_scripted_and_the_request_is_kept_whole() {
    let server = ModelServer::spawn_blocking_thread(
        Reply::anthropic().text("Hello").in_deltas(2).usage(7, 3),
    );
    let mut client = Client::connect(server.address());
    let body = question(true);
    let response = client.post("/v1/messages?beta=true", &[("X-Api-Key", "k")], &body);

    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let events = response.events();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(events[2]["delta"], json!({"type": "text_delta", "text": "He"}));
    assert_eq!(events[3]["delta"], json!({"type": "text_delta", "text": "llo"}));
    assert_eq!(events[5]["delta"]["stop_reason"], "end_turn");
    assert_eq!(events[5]["usage"], json!({"output_tokens": 3}));

    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/v1/messages?beta=true")
    );
    assert_eq!(request.route(), "/v1/messages");
    assert_eq!(request.header("x-api-key"), Some("k"));
    assert_eq!(request.json(), &body);
    assert_eq!(request.body, body.to_string().as_bytes());
    assert_eq!(request.connection, 0);
    server.assert_finished();
}

#[test]
fn steps_follow_each_other_on_one_connection_and_end_in_a_clear_failure() {
    let server = ModelServer::spawn_blocking_thread([
        Reply::openai().text("one"),
        Reply::openai().tool_call("c1", "bash", json!({"command": "true"})),
    ]);
    let mut client = Client::connect(server.address());
    let first = client.post("/v1/chat/completions", &[], &question(false)).json();
    assert_eq!(first["choices"][0]["message"], json!({"role": "assistant", "content": "one"}));
    assert_eq!(first["choices"][0]["finish_reason"], "stop");
    let second = client.post("/v1/chat/completions", &[], &question(true)).events();
    assert_eq!(
        second.iter().filter(|event| event["choices"][0]["delta"]["tool_calls"].is_array()).count(),
        4
    );
    assert_eq!(second.last().unwrap()["usage"]["total_tokens"], 120);
    let third = client.post("/v1/chat/completions", &[], &question(true));
    assert_eq!(third.status, 500);
    assert!(third.text().contains("the script of the model server is over"), "{}", third.text());
    assert_eq!(server.connections(), 1);
    let refused =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.assert_finished()));
    assert!(refused.is_err(), "a call after the end must fail the test");
}

#[test]
fn a_request_that_breaks_pairing_is_refused_as_a_provider_would() {
    let server = ModelServer::spawn_blocking_thread(Reply::anthropic().text("never"));
    let mut client = Client::connect(server.address());
    let body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "assistant", "content": "hi"}]});
    let response = client.post("/v1/messages", &[], &body);
    assert_eq!(response.status, 400);
    assert_eq!(response.json()["error"]["type"], "invalid_request_error");
    assert!(server.requests().is_empty(), "a refused call takes no step");
    assert_eq!(server.all_requests().len(), 1);
}

#[test]
fn other_paths_take_no_step() {
    let server = ModelServer::spawn_blocking_thread(Script::new().models(["a", "b"]));
    let mut client = Client::connect(server.address());
    let models = client.get("/v1/models").json();
    let ids: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(client.get("/api/tags").status, 404);
    server.assert_finished();
}

#[test]
fn faults_hit_at_the_byte_that_was_asked_for() {
    let body = b"data: 1\n\ndata: 2\n\n".as_slice();
    let server = ModelServer::spawn_blocking_thread([
        Step::event_stream(body).cut_after(11),
        Step::event_stream(body).chunked_by(1),
        Step::event_stream(body).crlf().no_final_blank_line(),
        Step::empty_stream(),
        Step::status(429, &[("retry-after", "7")], "{}").cut_after(1),
        Step::raw("not http at all"),
        Step::html("<html>"),
        Step::event_stream(body).then_close(),
    ]);
    let ask = || Client::connect(server.address()).post("/v1/messages", &[], &question(true));

    let cut = ask();
    assert_eq!((cut.text().as_str(), cut.complete), ("data: 1\n\nda", false));
    let dribbled = ask();
    assert_eq!(
        (dribbled.body.as_slice(), dribbled.complete, dribbled.chunks),
        (body, true, body.len())
    );
    let crlf = ask();
    assert_eq!(crlf.text(), "data: 1\r\n\r\ndata: 2");
    let empty = ask();
    assert_eq!((empty.text().as_str(), empty.complete), ("", true));
    let short = ask();
    assert_eq!(
        (short.status, short.header("retry-after"), short.text().as_str()),
        (429, Some("7"), "{")
    );
    assert!(!short.complete);
    assert_eq!(
        Client::connect(server.address()).post_raw("/v1/messages", &question(true)),
        b"not http at all"
    );
    let html = ask();
    assert_eq!(html.header("content-type"), Some("text/html; charset=utf-8"));
    let closed = ask();
    assert_eq!((closed.body.as_slice(), closed.header("connection")), (body, Some("close")));
    server.wait_for_closed_connections_blocking(8);
    let ends: Vec<AnswerEnd> =
        server.requests().iter().map(|request| request.answer_end().unwrap().0).collect();
    assert_eq!(ends[0], AnswerEnd::Cut);
    assert_eq!(ends[1], AnswerEnd::Complete);
}

#[test]
fn a_stalled_answer_ends_when_the_client_goes() {
    let stall =
        Step::event_stream("data: 1\n\n").stall_with_keep_alives(4, Duration::from_millis(1));
    let server = ModelServer::spawn_blocking_thread(stall);
    let mut client = Client::connect(server.address());
    client.send_post("/v1/messages", &[], &question(true));
    client.read_until(b": keep-alive\n\n");
    drop(client);
    server.wait_for_closed_connections_blocking(1);
    assert_eq!(server.last_request().answer_end().unwrap().0, AnswerEnd::ClientGone);
}

#[tokio::test]
async fn a_closure_answers_and_the_server_stops_when_dropped() {
    let script = Script::answer_with(|request, number| {
        Reply::anthropic().text(format!("{number} {}", request.json()["model"])).into()
    });
    let server = ModelServer::start(script).await;
    let address = server.address();
    let texts = tokio::task::spawn_blocking(move || {
        let mut client = Client::connect(address);
        (0..3)
            .map(|_| {
                client.post("/v1/messages", &[], &question(false)).json()["content"][0]["text"]
                    .clone()
            })
            .collect::<Vec<_>>()
    })
    .await
    .unwrap();
    assert_eq!(texts, ["0 \"m\"", "1 \"m\"", "2 \"m\""]);
    assert_eq!(server.wait_for_requests(3).await.len(), 3);
    drop(server);
    // The task is cancelled at the runtime's next chance.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
