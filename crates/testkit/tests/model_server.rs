//! The scripted server as a client sees it, over a plain TCP connection.

#[cfg(test)]
mod client;

use std::time::Duration;

use client::Client;
use myclaw_testkit::{AnswerEnd, Gate, ModelServer, Reply, Script, Step, WireFormat};
use serde_json::{Value, json};

/// A small request that breaks no rule of any format.
fn question(stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "hi"}]);
    json!({
        "model": "m", "max_tokens": 10, "stream": stream,
        "messages": messages, "input": messages,
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
fn a_gate_holds_an_answer_or_its_rest_until_it_is_opened() {
    let (whole, rest) = (Gate::closed(), Gate::closed());
    let body = b"data: 1\n\ndata: 2\n\n".as_slice();
    let server = ModelServer::spawn_blocking_thread([
        Step::event_stream(body).hold_after(0, &whole),
        Step::event_stream(body).hold_after(9, &rest),
    ]);
    let mut first = Client::connect(server.address());
    first.send_post("/v1/messages", &[], &question(true));
    server.wait_for_requests_blocking(1);
    let mut second = Client::connect(server.address());
    second.send_post("/v1/messages", &[], &question(true));
    second.read_until(b"data: 1\n\n");
    assert!(!first.has_more() && !second.has_more(), "a closed gate let something through");
    rest.open();
    second.read_until(b"data: 2\n\n");
    assert!(!first.has_more(), "the gate of another answer was opened");
    whole.open();
    assert_eq!(first.response().body, body);
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

#[test]
fn a_request_in_chunks_is_read_like_any_other() {
    let server = ModelServer::spawn_blocking_thread(Reply::anthropic().text("ok"));
    let mut client = Client::connect(server.address());
    let body = question(false).to_string();
    let (first, second) = body.split_at(7);
    client.send_raw(&format!(
        "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n\
         7\r\n{first}\r\n{:x};note=1\r\n{second}\r\n0\r\n\r\n",
        second.len()
    ));
    assert_eq!(client.response().status, 100);
    assert_eq!(client.response().status, 200);
    assert_eq!(server.last_request().json(), &question(false));
}

#[test]
fn what_is_no_request_is_answered_and_held_against_the_client() {
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let mut client = Client::connect(server.address());
    client.send_raw("hello\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status, response.header("connection")), (400, Some("close")));
    let finished =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.assert_finished()));
    assert!(
        finished.unwrap_err().downcast_ref::<String>().unwrap().contains("request line \"hello\"")
    );
}

/// A message with every kind of block.
fn everything(format: WireFormat) -> Reply {
    Reply::new(format)
        .thinking("Hm, ünïcode…", "sig")
        .redacted_thinking("opaque")
        .text("Hello, wörld")
        .tool_call("c1", "bash", json!({"command": "echo ü"}))
        .in_deltas(100)
        .tool_call("c2", "ls", json!({}))
        .cache_usage(5, 6)
        .with_pings()
}

#[test]
fn an_anthropic_stream_put_together_is_the_whole_answer() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(everything(
        WireFormat::AnthropicMessages,
    )));
    let mut client = Client::connect(server.address());
    let whole = client.post("/v1/messages", &[], &question(false)).json();
    let mut blocks: Vec<Value> = Vec::new();
    let mut inputs: Vec<String> = Vec::new();
    for event in client.post("/v1/messages", &[], &question(true)).events() {
        let delta = &event["delta"];
        let add = |field: &mut Value, name: &str| {
            *field = json!(format!("{}{}", field.as_str().unwrap(), delta[name].as_str().unwrap()));
        };
        match (event["type"].as_str().unwrap(), delta["type"].as_str().unwrap_or_default()) {
            ("content_block_start", _) => {
                blocks.push(event["content_block"].clone());
                inputs.push(String::new());
            }
            (_, "text_delta") => add(&mut blocks.last_mut().unwrap()["text"], "text"),
            (_, "thinking_delta") => add(&mut blocks.last_mut().unwrap()["thinking"], "thinking"),
            (_, "signature_delta") => {
                add(&mut blocks.last_mut().unwrap()["signature"], "signature")
            }
            (_, "input_json_delta") => {
                inputs.last_mut().unwrap().push_str(delta["partial_json"].as_str().unwrap())
            }
            _ => {}
        }
    }
    for (block, input) in blocks.iter_mut().zip(&inputs).filter(|(_, input)| !input.is_empty()) {
        block["input"] = serde_json::from_str(input).unwrap();
    }
    assert_eq!(Value::Array(blocks), whole["content"]);
    assert_eq!(whole["content"].as_array().unwrap().len(), 5);
    assert_eq!(whole["stop_reason"], "tool_use");
    assert_eq!(whole["usage"]["cache_read_input_tokens"], 5);
}

#[test]
fn an_openai_stream_put_together_is_the_whole_answer() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(everything(
        WireFormat::OpenAiCompletions,
    )));
    let mut client = Client::connect(server.address());
    let whole = client.post("/v1/chat/completions", &[], &question(false)).json();
    let (mut text, mut reasoning, mut calls, mut usage) =
        (String::new(), String::new(), Vec::new(), Value::Null);
    for event in client.post("/v1/chat/completions", &[], &question(true)).events() {
        let delta = &event["choices"][0]["delta"];
        text.push_str(delta["content"].as_str().unwrap_or_default());
        reasoning.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().unwrap_or(&Vec::new()) {
            if call["id"].is_string() {
                calls.push(
                    json!({"id": call["id"], "type": call["type"], "function": call["function"]}),
                );
            } else {
                let arguments =
                    &mut calls[call["index"].as_u64().unwrap() as usize]["function"]["arguments"];
                let fragment = call["function"]["arguments"].as_str().unwrap();
                *arguments = json!(format!("{}{fragment}", arguments.as_str().unwrap()));
            }
        }
        if event["usage"].is_object() {
            usage = event["usage"].clone();
        }
    }
    let message = json!({
        "role": "assistant", "content": text, "reasoning_content": reasoning, "tool_calls": calls,
    });
    assert_eq!(message, whole["choices"][0]["message"]);
    assert_eq!(usage, whole["usage"]);
    assert_eq!(usage["prompt_tokens"], 111);
}

#[test]
fn a_responses_stream_put_together_is_the_whole_answer() {
    let server =
        ModelServer::spawn_blocking_thread(Script::repeat(everything(WireFormat::OpenAiResponses)));
    let mut client = Client::connect(server.address());
    let whole = client.post("/v1/responses", &[], &question(false)).json();
    let mut pieces = vec![String::new(); 5];
    let mut items = Vec::new();
    let mut last = Value::Null;
    for (number, event) in
        client.post("/v1/responses", &[], &question(true)).events().into_iter().enumerate()
    {
        assert_eq!(event["sequence_number"], number);
        if let Some(delta) = event["delta"].as_str() {
            pieces[event["output_index"].as_u64().unwrap() as usize].push_str(delta);
        }
        if event["type"] == "response.output_item.done" {
            items.push(event["item"].clone());
        }
        last = event;
    }
    assert_eq!(pieces, ["Hm, ünïcode…", "", "Hello, wörld", "{\"command\":\"echo ü\"}", "{}"]);
    assert_eq!((&last["type"], &last["response"]), (&json!("response.completed"), &whole));
    assert_eq!(Value::Array(items), whole["output"]);
    assert_eq!(whole["usage"]["input_tokens"], 111);
}

#[test]
fn a_failure_within_a_stream_ends_it_without_its_proper_end() {
    for (format, path) in [
        (WireFormat::AnthropicMessages, "/v1/messages"),
        (WireFormat::OpenAiCompletions, "/v1/chat/completions"),
        (WireFormat::GoogleGenerativeAi, "/v1beta/models/m:streamGenerateContent?alt=sse"),
        (WireFormat::OpenAiResponses, "/v1/responses"),
    ] {
        let reply = Reply::new(format).text("Hel").fails_with("overloaded_error", "Overloaded");
        let server = ModelServer::spawn_blocking_thread(reply);
        let body = match format {
            WireFormat::GoogleGenerativeAi => {
                json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
            }
            _ => question(true),
        };
        let response = Client::connect(server.address()).post(path, &[], &body);
        assert!(response.complete && response.status == 200);
        let last = response.events().pop().unwrap();
        let kind = if format == WireFormat::GoogleGenerativeAi { "status" } else { "type" };
        assert_eq!(
            (&last["error"][kind], &last["error"]["message"]),
            (&json!("overloaded_error"), &json!("Overloaded"))
        );
        for end in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!response.text().contains(end), "{end}");
        }
    }
}

#[test]
fn a_reset_and_a_silent_stall_are_seen_as_such() {
    let body = b"data: 1\n\ndata: 2\n\n".as_slice();
    let server = ModelServer::spawn_blocking_thread([
        Step::event_stream(body).reset_after(9),
        Step::event_stream(body).stall_after(9),
        Step::event_stream(body).stall_with_keep_alives(10, Duration::from_millis(1)),
    ]);
    let mut client = Client::connect(server.address());
    client.send_post("/v1/messages", &[], &question(true));
    assert_eq!(client.read_to_end().unwrap_err(), std::io::ErrorKind::ConnectionReset);
    let mut client = Client::connect(server.address());
    client.send_post("/v1/messages", &[], &question(true));
    client.read_until(b"data: 1\n\n\r\n");
    drop(client);
    let mut client = Client::connect(server.address());
    client.send_post("/v1/messages", &[], &question(true));
    // The event that holds byte 10 is whole before the first comment.
    client.read_until(b"data: 2\n\n\r\ne\r\n: keep-alive\n\n\r\n");
    drop(client);
    server.wait_for_closed_connections_blocking(3);
}

#[test]
fn a_script_that_panics_fails_the_test() {
    let server =
        ModelServer::spawn_blocking_thread(Script::answer_with(|_, _| panic!("no such turn")));
    Client::connect(server.address()).send_post("/v1/messages", &[], &question(true));
    server.wait_for_closed_connections_blocking(1);
    let finished =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.assert_finished()));
    assert!(finished.unwrap_err().downcast_ref::<String>().unwrap().contains("panicked"));
}

/// The JSON payloads of a binary event stream, with the names of their events. Checksums are checked elsewhere.
#[cfg(test)]
fn payloads(mut body: &[u8]) -> Vec<(String, Value)> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
    let mut payloads = Vec::new();
    while !body.is_empty() {
        let (message, rest) = body.split_at(number(body));
        let (headers, payload) = message[12..message.len() - 4].split_at(number(&message[4..]));
        // The first header's name, the type of its value, and the value's length stand before the name.
        let value = 1 + usize::from(headers[0]) + 1;
        let length = usize::from(headers[value + 1]);
        let name = String::from_utf8(headers[value + 2..value + 2 + length].to_vec()).unwrap();
        payloads.push((name, serde_json::from_slice(payload).unwrap()));
        body = rest;
    }
    payloads
}

#[test]
fn a_bedrock_stream_put_together_is_the_whole_answer() {
    let reply = everything(WireFormat::BedrockConverse);
    let whole: Value = serde_json::from_slice(&reply.whole_body("m")).unwrap();
    let mut blocks = vec![json!({}); 5];
    for (name, event) in payloads(&reply.stream_body("m")) {
        let index = event["contentBlockIndex"].as_u64().unwrap_or_default() as usize;
        let added = match name.as_str() {
            "contentBlockStart" => event["start"].clone(),
            "contentBlockDelta" => event["delta"].clone(),
            "messageStop" => {
                assert_eq!(event["stopReason"], whole["stopReason"]);
                continue;
            }
            "metadata" => {
                assert_eq!(event["usage"], whole["usage"]);
                continue;
            }
            _ => continue,
        };
        merge(&mut blocks[index], &added);
    }
    for block in &mut blocks {
        if let Some(text) = block["toolUse"]["input"].as_str() {
            block["toolUse"]["input"] = serde_json::from_str(text).unwrap();
        } else if block["reasoningContent"]["text"].is_string() {
            *block = json!({"reasoningContent": {"reasoningText": block["reasoningContent"]}});
        } else if let Some(block) = block.as_object_mut() {
            block.retain(|_, value| !value.is_null());
        }
    }
    assert_eq!(Value::Array(blocks), whole["output"]["message"]["content"]);

    let failing = Reply::bedrock().text("Hel").fails_with("throttlingException", "slow");
    let last = payloads(&failing.stream_body("m")).pop().unwrap();
    assert_eq!(last, ("throttlingException".to_owned(), json!({"message": "slow"})));
}

/// Adds the text and the members of `added` to `block`.
fn merge(block: &mut Value, added: &Value) {
    match (block, added) {
        (Value::Object(block), Value::Object(added)) => {
            for (name, value) in added {
                merge(block.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (block, added) => *block = added.clone(),
    }
}

#[test]
fn a_bedrock_call_must_say_who_makes_it() {
    let server = ModelServer::spawn_blocking_thread(Script::repeat(Reply::bedrock().text("hi")));
    let mut client = Client::connect(server.address());
    let path = "/model/m/converse-stream";
    let body = json!({"messages": [{"role": "user", "content": [{"text": "a"}]}]});
    let signature = |scope: &str, names: &str, digits: &str| {
        format!(
            "AWS4-HMAC-SHA256 Credential=AKID/{scope}, SignedHeaders={names}, Signature={digits}"
        )
    };
    let digits = "0f".repeat(32);
    let right = signature("20150830/us-east-1/bedrock/aws4_request", "host;x-amz-date", &digits);
    let elsewhere = signature("20150830/us-east-1/s3/aws4_request", "host;x-amz-date", &digits);
    let without_host = signature("20150830/us-east-1/bedrock/aws4_request", "x-amz-date", &digits);
    let too_short = signature("20150830/us-east-1/bedrock/aws4_request", "host;x-amz-date", "0f");
    for (authorization, status) in [
        ("Bearer key", 200),
        (right.as_str(), 200),
        ("Basic key", 400),
        (elsewhere.as_str(), 400),
        (without_host.as_str(), 400),
        (too_short.as_str(), 400),
    ] {
        let headers = [("authorization", authorization), ("x-amz-date", "20150830T123600Z")];
        assert_eq!(client.post(path, &headers, &body).status, status, "{authorization}");
    }
    assert_eq!(client.post(path, &[], &body).status, 400);
    let another_day = [("authorization", right.as_str()), ("x-amz-date", "20150831T000000Z")];
    assert_eq!(client.post(path, &another_day, &body).status, 400);
}
