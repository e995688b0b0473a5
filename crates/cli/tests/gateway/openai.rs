//! OpenAI's protocols, also with OpenAI's own clients.
//!
//! `MYCLAW_OPENAI_NODE` names the directory of the installed npm package, `MYCLAW_OPENAI_PYTHON` a Python that has the one
//! from PyPI; `scripts/test` installs both and sets the variables. Without one its test says that it was skipped.

use std::path::Path;
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_testkit::Stop;

use super::*;

#[test]
fn chat_completions_answer_whole_and_streamed() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let (status, models) = client.get("/v1/models").unwrap();
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("myclaw")));

    let ask = |stream: bool| {
        json!({
            "model": "myclaw", "stream": stream,
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "how are you?"}]},
            ],
        })
    };
    let (status, whole) = client.post("/v1/chat/completions", &ask(false)).unwrap();
    assert_eq!(status, 200, "{whole}");
    let message = json!({"role": "assistant", "content": "fine", "refusal": null});
    assert_eq!(whole["choices"][0]["message"], message);
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    let (status, streamed) = client.post("/v1/chat/completions", &ask(true)).unwrap();
    let streamed = streamed.as_str().unwrap();
    assert_eq!(status, 200, "{streamed}");
    assert!(streamed.contains(r#""role":"assistant""#), "{streamed}");
    let pieces = streamed.lines().filter_map(|line| line.strip_prefix("data: {"));
    let text: String = pieces
        .map(|piece| serde_json::from_str::<Value>(&format!("{{{piece}")).unwrap())
        .map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned())
        .collect();
    assert_eq!(text, "fine");
    assert!(streamed.contains("data: [DONE]"), "{streamed}");
    let question = bench.model.requests()[0].body_text();
    assert!(question.contains("be brief") && question.contains("how are you?"), "{question}");
    gateway.stop();
}

#[test]
fn a_user_continues_a_session_and_a_key_repeats_nothing() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    let ask = |key: &str, text: &str| {
        let body = json!({"user": "ann", "messages": [{"role": "user", "content": text}]});
        let header = format!("Idempotency-Key: {key}\r\n");
        let (status, answer) = client.post_with("/v1/chat/completions", &header, &body).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(ask("a", "<m1>"), "re: <m1>");
    assert_eq!(ask("a", "<m1>"), "re: <m1>");
    assert_eq!(ask("b", "<m2>"), "re: <m2>");
    let header = "Idempotency-Key: a\r\n";
    let other = json!({"user": "ann", "messages": [{"role": "user", "content": "<m9>"}]});
    let (status, answer) = client.post_with("/v1/chat/completions", header, &other).unwrap();
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("conflict")), "{answer}");
    let bad = json!({"messages": [{"role": "tool", "content": "x"}]});
    let (status, answer) = client.post("/v1/chat/completions", &bad).unwrap();
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("usage")));
    gateway.stop();
    assert_eq!(bench.said("openai-ann"), ["<m1>", "re: <m1>", "<m2>", "re: <m2>"]);
}

/// Programs write out what they leave open.
#[test]
fn switches_that_are_null_are_off() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let messages = json!([{"role": "user", "content": "hello"}]);
    for body in [
        json!({"messages": &messages, "stream": null, "stream_options": null, "user": null}),
        json!({"messages": &messages, "stream": false, "stream_options": {"include_usage": null}}),
    ] {
        let (status, answer) = client.post("/v1/chat/completions", &body).unwrap();
        assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("fine")));
    }
    let body = json!({"input": "hello", "stream": null, "background": null, "instructions": null,
        "previous_response_id": null});
    let (status, answer) = client.post("/v1/responses", &body).unwrap();
    assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
    gateway.stop();
}

/// The last message is the beginning of an answer.
#[test]
fn a_last_message_of_the_assistant_is_continued() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let messages = json!([
        {"role": "user", "content": "Count to ten."},
        {"role": "assistant", "content": "One, two, three"},
    ]);
    for (path, body) in [
        ("/v1/chat/completions", json!({"messages": &messages})),
        ("/v1/chat/completions", json!({"messages": &messages, "user": "ann"})),
        ("/v1/responses", json!({"input": &messages})),
    ] {
        let (status, answer) = client.post(path, &body).unwrap();
        assert_eq!(status, 200, "{path} {answer}");
        let question = json!(bench.model.requests().last().unwrap().messages()).to_string();
        assert!(question.contains("One, two, three"), "{path} {question}");
        assert!(question.contains("Continue your last message"), "{path} {question}");
    }
    gateway.stop();
}

#[test]
fn what_the_agent_cannot_do_for_a_program_is_refused() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    for (status, code, field, value) in [
        (404, "model_not_found", "model", json!("no-such-provider/gpt-4o")),
        (400, "unsupported_parameter", "tools", json!([{"type": "web_search"}])),
        (400, "unsupported_parameter", "temperature", json!("warm")),
        (400, "unsupported_parameter", "response_format", json!({"type": "json_object"})),
        (400, "unsupported_parameter", "text", json!({"format": {"type": "json_object"}})),
        (400, "unsupported_parameter", "tool_choice", json!("required")),
    ] {
        for path in ["/v1/chat/completions", "/v1/responses"] {
            let mut body =
                json!({"input": "hello", "messages": [{"role": "user", "content": "hello"}]});
            body[field] = value.clone();
            let (got, answer) = client.post(path, &body).unwrap();
            let error = &answer["error"];
            assert_eq!((got, &error["code"]), (status, &json!(code)), "{path} {field}: {answer}");
            assert_eq!(error["param"], field, "{answer}");
        }
    }
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 0);
}

/// What the schema of Open Responses requires of a response, besides the types below.
const REQUIRED: [&str; 32] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "user",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];

#[test]
fn a_response_has_every_field_that_its_schema_requires() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let body = json!({"input": "hello", "instructions": "be brief", "metadata": {"a": "b"}, "user": "ann"});
    let (_, whole) = client.post("/v1/responses", &body).unwrap();
    let path = format!("/v1/responses/{}", whole["id"].as_str().unwrap());
    let (_, stored) = client.get(&path).unwrap();
    let queued = json!({"input": "hello", "background": true});
    let (_, queued) = client.post("/v1/responses", &queued).unwrap();
    let streamed = json!({"input": "hello", "stream": true});
    let (_, streamed) = client.post("/v1/responses", &streamed).unwrap();
    let events = streamed.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|event| serde_json::from_str::<Value>(event).unwrap());
    let streamed = events.filter_map(|mut event| event.get_mut("response").map(Value::take));
    let mut all: Vec<Value> = streamed.collect();
    assert_eq!(all.len(), 3);
    all.extend([whole.clone(), stored, queued]);
    for response in all {
        let missing: Vec<_> =
            REQUIRED.iter().filter(|name| response.get(**name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} of {response}");
        for number in
            ["temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"]
        {
            assert!(response[number].is_number(), "{number}: {response}");
        }
        assert_eq!(response["text"]["format"]["type"], "text");
        assert_eq!(response["completed_at"].is_u64(), response["status"] == "completed");
    }
    assert_eq!((&whole["user"], &whole["metadata"]["a"]), (&json!("ann"), &json!("b")));
    assert_eq!(whole["instructions"], "be brief");
    gateway.stop();
}

#[test]
fn a_pdf_is_saved_where_the_agent_finds_it_also_after_a_kill() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    let gateway = bench.start();
    // JVBERi0xLjcK is "%PDF-1.7\n".
    let file =
        json!({"filename": "../a b.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjcK"});
    let mut part = file.clone();
    part["type"] = json!("input_file");
    let content = json!([part, {"type": "input_text", "text": "read <m1>"}]);
    let body = json!({"background": true, "input": [{"role": "user", "content": content}]});
    let (status, begun) = gateway.client.post("/v1/responses", &body).unwrap();
    assert_eq!((status, &begun["status"]), (200, &json!("queued")), "{begun}");
    bench.model.wait_for_requests_blocking(1);
    gateway.kill();
    gate.open();
    let gateway = bench.start();
    let client = &gateway.client;
    let id = begun["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    until("the answer", || client.get(&path).unwrap().1["status"] == "completed");
    let asked = client.get(&format!("{path}/input_items")).unwrap().1;
    let kinds = asked["data"][0]["content"].as_array().unwrap().iter().map(|part| &part["type"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["input_text", "input_file"]);
    // The last request names the file that is there, once.
    let saved: Vec<_> = std::fs::read_dir(bench.home.workspace().join("attachments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(saved.len(), 1, "{saved:?}");
    assert_eq!(std::fs::read(&saved[0]).unwrap(), b"%PDF-1.7\n");
    let name = saved[0].file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-0-_a b.pdf"), "{name}");
    let last = json!(bench.model.requests().last().unwrap().messages()).to_string();
    assert!(last.contains(&format!("is attachments/{name}]")), "{last}");
    // The same in a chat completion, with nothing else in the message.
    let content = json!([{"type": "file", "file": file}]);
    let body = json!({"messages": [{"role": "user", "content": content}]});
    let (status, answer) = client.post("/v1/chat/completions", &body).unwrap();
    assert_eq!(status, 200, "{answer}");
    let last = json!(bench.model.requests().last().unwrap().messages()).to_string();
    assert!(last.contains("is attachments/") && !last.contains("JVBER"), "{last}");
    gateway.stop();
}

#[test]
fn a_removed_response_leaves_no_bytes_in_the_store() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC";
    let bytes = format!("%PDF-1.7\n\0{}", "<bytes of the file>".repeat(2_000));
    let pdf = BASE64_STANDARD.encode(&bytes);
    let content = json!([
        {"type": "input_file", "filename": "a.pdf", "file_data": pdf},
        {"type": "input_image", "image_url": format!("data:image/png;base64,{picture}")},
        {"type": "input_text", "text": "words of the question <m1>"},
    ]);
    let body = json!({"input": [{"role": "user", "content": content}]});
    let (status, answer) = client.post("/v1/responses", &body).unwrap();
    assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    // Which of the three are in a file of the store.
    let kept = || {
        let files = std::fs::read_dir(bench.home.state_directory().join("gateway")).unwrap();
        let paths = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
        let files: Vec<Vec<u8>> = paths.map(|path| std::fs::read(path).unwrap()).collect();
        ["<bytes of the file>", picture, "words of the question"].map(|what| {
            let is_in = |file: &Vec<u8>| file.windows(what.len()).any(|at| at == what.as_bytes());
            files.iter().any(is_in)
        })
    };
    assert_eq!(kept(), [true; 3]);
    let delete = format!("{}\r\n", client.head("DELETE", &path));
    let (status, removed) = client.raw(&delete).unwrap();
    assert_eq!((status, removed.contains("response.deleted")), (200, true), "{removed}");
    assert_eq!(client.get(&path).unwrap().0, 404);
    assert_eq!(client.raw(&delete).unwrap().0, 404);
    gateway.kill();
    // A start empties the write-ahead log, in which older versions of pages are.
    let gateway = bench.start();
    assert_eq!(kept(), [false; 3]);
    assert_eq!(gateway.client.get(&path).unwrap().0, 404);
    gateway.stop();
}

/// Twenty words in pieces, no end at all, a call of the program's tool and what came of it, `a picture` if there is one, the name of a file that was saved, or `re: ` with the marks of the last message and of those before.
fn for_clients() -> Script {
    shared(|request, _| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("say many words") {
            let pause = Duration::from_millis(5);
            return Reply::anthropic()
                .repeated_text("word ", 20)
                .step()
                .event_by_event()
                .pause(pause);
        }
        if last.contains("fail now") {
            return Step::status(
                400,
                &[],
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
            );
        }
        if last.contains("cut short") {
            return Reply::anthropic().text("one two").stop(Stop::Length).step();
        }
        if last.contains("without end") {
            return Reply::anthropic().text("so").step().stall_after(200);
        }
        if last.contains(r#""type":"image""#) {
            return Reply::anthropic().text("a picture").step();
        }
        if let Some((_, rest)) = last.split_once("is attachments/") {
            // The name of the message and the number of the file stand before that of the file.
            let name = rest.split(']').next().unwrap_or_default().splitn(3, '-').nth(2);
            return Reply::anthropic().text(format!("saved as {}", name.unwrap_or(rest))).step();
        }
        if last.contains("[Result of get_weather") && last.contains("sunny") {
            return Reply::anthropic().text("it is sunny").step();
        }
        if last.contains("weather in Oslo") {
            let city = json!({"city": "Oslo"});
            return Reply::anthropic().tool_call("toolu_1", "get_weather", city).step();
        }
        if last.contains("as JSON") {
            return Reply::anthropic().text(r#"{"city":"Oslo"}"#).step();
        }
        let all = request.messages();
        let before = json!(all.iter().filter(|one| one["role"] == "user").collect::<Vec<_>>());
        let before = before.to_string();
        let new = marks(request).join(" ");
        let mut earlier: Vec<String> = Vec::new();
        for word in before.split('<').filter_map(|rest| rest.split_once('>')).map(|(word, _)| word)
        {
            let word = format!("<{word}>");
            let is_mark = word.starts_with("<m") && word[2..word.len() - 1].parse::<u64>().is_ok();
            if is_mark && !new.contains(&word) {
                earlier.push(word);
            }
        }
        let after = if earlier.is_empty() {
            String::new()
        } else {
            format!(", after {}", earlier.join(" "))
        };
        Reply::anthropic().text(format!("re: {new}{after}")).step()
    })
}

fn run_client(mut command: Command) {
    let bench = Bench::new(for_clients());
    let gateway = bench.start();
    command.env("PORT", bench.port.to_string());
    command.env("GATEWAY", format!("http://127.0.0.1:{}", bench.port));
    command.env("TOKEN", &gateway.client.token);
    RunningChild::spawn(&mut command).wait(PATIENCE * 2).assert_code(0);
    gateway.stop();
}

fn third_party(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/third-party").join(file)
}

#[test]
fn the_official_client_for_node_understands_all_of_it() {
    let Some(package) = std::env::var_os("MYCLAW_OPENAI_NODE") else {
        myclaw_testkit::skip_without("MYCLAW_OPENAI_NODE is not set; scripts/test sets it");
        return;
    };
    let mut command = Command::new("node");
    command.arg(third_party("openai-client.mjs")).env("OPENAI", package);
    run_client(command);
}

/// Runs a program for the Python that `scripts/test` installs packages for.
fn run_python(file: &str) {
    let python = std::env::var_os("MYCLAW_OPENAI_PYTHON").filter(|path| Path::new(path).exists());
    let Some(python) = python else {
        myclaw_testkit::skip_without(
            "MYCLAW_OPENAI_PYTHON names no program; scripts/test installs one",
        );
        return;
    };
    let mut command = Command::new(python);
    command.arg(third_party(file));
    run_client(command);
}

#[test]
fn the_official_client_for_python_understands_all_of_it() {
    run_python("openai_client.py");
}

#[test]
fn the_published_checks_of_open_responses_pass() {
    run_python("open_responses.py");
}

#[test]
fn parsers_of_others_read_the_metrics_and_the_frames() {
    run_python("gateway_wire.py");
}
