//! Traces for a receiver of OpenTelemetry.

use std::collections::BTreeMap;

use super::*;

/// What a span says: its name, its parent's name, its attributes as text, and its status.
type Shown = (String, Option<String>, BTreeMap<String, String>, Value);

fn spans(receiver: &ModelServer) -> Vec<Value> {
    let requests = receiver.all_requests();
    let bodies = requests.iter().map(|request| request.json().clone());
    bodies
        .flat_map(|body| {
            body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        })
        .collect()
}

/// A value of OTLP's JSON as text.
fn value(value: &Value) -> String {
    let list = &value["arrayValue"]["values"];
    match value.as_object().unwrap().values().next().unwrap() {
        Value::String(text) => text.clone(),
        _ if list.is_array() => list[0]["stringValue"].as_str().unwrap().to_owned(),
        other => other.to_string(),
    }
}

fn shown(spans: &[Value]) -> Vec<Shown> {
    let name = |id: &Value| {
        let parent = spans.iter().find(|span| span["spanId"] == *id);
        parent.map(|span| span["name"].as_str().unwrap().to_owned())
    };
    let shown = spans.iter().map(|span| {
        let attributes = span["attributes"].as_array().unwrap().iter();
        let attributes = attributes
            .map(|entry| (entry["key"].as_str().unwrap().to_owned(), value(&entry["value"])))
            .collect();
        let own = span["name"].as_str().unwrap().to_owned();
        (own, name(&span["parentSpanId"]), attributes, span["status"].clone())
    });
    shown.collect()
}

fn attributes(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn receiver(script: Script) -> ModelServer {
    ModelServer::spawn_blocking_thread(script.answer_every_route().accept_invalid_requests())
}

#[test]
fn a_run_is_a_trace_with_its_calls_and_tools() {
    let taken = || Step::status(200, &[("content-type", "application/json")], "{}");
    let away = Step::status(503, &[], "");
    let receiver = receiver(Script::new().then(away).then_repeat(taken()));
    let call =
        Reply::anthropic().usage(1_000, 20).tool_call("c1", "read", json!({"path": "gone.md"}));
    let bench = Bench::new(Script::new().then(call).then(Step::status(
        400,
        &[],
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
    )));
    bench.configure(|config| {
        config["gateway"]["telemetry"] =
            json!({"endpoint": receiver.url(), "headers": {"x-key": "k1"}, "serviceName": "claw"});
    });
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "a secret question").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "reported");
    // The receiver is away at first; what waits is sent at the stop, or before it.
    receiver.wait_for_requests_blocking(1);
    gateway.stop();
    let requests = receiver.all_requests();
    assert!(requests.len() >= 2, "{}", requests.len());
    assert_eq!(receiver.connections(), 1, "the connection is kept");
    for request in &requests {
        assert_eq!(request.path, "/v1/traces");
        assert_eq!(request.header("x-key"), Some("k1"));
        let resource = &request.json()["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(*resource, json!({"key": "service.name", "value": {"stringValue": "claw"}}));
        let text = request.json().to_string();
        assert!(!text.contains("a secret question") && !text.contains("gone.md"), "{text}");
    }
    // What the receiver did not take came once more.
    let refused = requests[0].json()["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
    let all = spans(&receiver);
    let mut spans: Vec<Value> = all[refused.as_array().unwrap().len()..].to_vec();
    let end = |span: &Value| span["endTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap();
    spans.sort_by_key(end);
    let traces: std::collections::BTreeSet<&str> =
        spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "{spans:?}");
    check_spans(&spans);
    validate(&bench, &requests.iter().map(|request| request.json().clone()).collect::<Vec<_>>());
}

/// A call of the model, a tool that fails, another call that fails, and the run around them.
fn check_spans(spans: &[Value]) {
    for span in spans {
        let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|key| span[key].as_str().unwrap().parse::<u64>().unwrap());
        assert!(start <= end && span["spanId"].as_str().unwrap().len() == 16, "{span}");
    }
    let session = "agent:main:channel:cli:account:default:peer:direct:main";
    let shown = shown(spans);
    let names: Vec<(&str, Option<&str>)> =
        shown.iter().map(|(name, parent, ..)| (name.as_str(), parent.as_deref())).collect();
    let model = shown[0].2["gen_ai.request.model"].clone();
    let (chat, agent) = (format!("chat {model}"), "invoke_agent main");
    assert_eq!(
        names,
        [
            (chat.as_str(), Some(agent)),
            ("execute_tool read", Some(agent)),
            (chat.as_str(), Some(agent)),
            (agent, None)
        ]
    );
    let kinds: Vec<u64> = spans.iter().map(|span| span["kind"].as_u64().unwrap()).collect();
    assert_eq!(kinds, [3, 1, 3, 1]);
    let first = &shown[0].2;
    for (key, expected) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.usage.input_tokens", "1000"),
        ("gen_ai.usage.output_tokens", "20"),
        ("gen_ai.response.finish_reasons", "tool_calls"),
    ] {
        assert_eq!(first[key], expected, "{first:?}");
    }
    assert_eq!(
        (&shown[1].2, &shown[1].3),
        (
            &attributes(&[
                ("error.type", "tool_error"),
                ("gen_ai.operation.name", "execute_tool"),
                ("gen_ai.tool.call.id", "c1"),
                ("gen_ai.tool.name", "read"),
            ]),
            &json!({"code": 2, "message": ""})
        )
    );
    assert!(shown[2].2.contains_key("error.type") && shown[2].3["code"] == 2, "{:?}", shown[2]);
    let run = &shown[3];
    assert_eq!((run.2["gen_ai.conversation.id"].as_str(), &run.3["code"]), (session, &json!(2)));
    assert_eq!(run.2["gen_ai.usage.input_tokens"], "1000");
}

/// Reads the requests with the protocol's own classes for Python.
fn validate(bench: &Bench, bodies: &[Value]) {
    let Some(python) = std::env::var_os("MYCLAW_OPENAI_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_OPENAI_PYTHON is not set; scripts/test sets it");
        return;
    };
    let lines: String = bodies.iter().map(|body| format!("{body}\n")).collect();
    let mut command = std::process::Command::new(python);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.arg(root.join("tests/third-party/traces.py"));
    command.arg(bench.home.write("traces", lines));
    RunningChild::spawn(&mut command).wait(PATIENCE).assert_code(0);
}

#[test]
fn a_receiver_that_is_away_delays_nothing() {
    let bench = Bench::new(answering("hello"));
    bench.configure(|config| {
        // Nobody listens there.
        config["gateway"]["telemetry"] =
            json!({"endpoint": format!("http://127.0.0.1:{}", free_port())});
    });
    let gateway = bench.start();
    for number in 0..5 {
        let id = gateway.client.send("main", &number.to_string(), "hello").unwrap();
        assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "answered");
    }
    gateway.stop();
}

#[test]
fn a_reload_changes_the_receiver() {
    let ok = || Step::status(200, &[("content-type", "application/json")], "{}");
    let second = receiver(Script::new().then_repeat(ok()));
    let bench = Bench::new(answering("hello"));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "before").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "answered");
    bench.configure(|config| {
        config["gateway"]["telemetry"] = json!({"endpoint": second.url()});
    });
    gateway.child.wait_for_stderr("the config was reloaded");
    let id = gateway.client.send("main", "two", "after").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "answered");
    gateway.stop();
    let spans = spans(&second);
    let runs = spans.iter().filter(|span| span["name"] == "invoke_agent main");
    assert_eq!(runs.count(), 1, "{spans:?}");
}
