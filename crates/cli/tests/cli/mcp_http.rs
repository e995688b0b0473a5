//! MCP servers behind HTTP: all forms of the transport, and what such servers do wrong.

use std::fs;
use std::thread;

use myclaw_testkit::{McpHttpServer, ModelServer, TempHome, WireFormat};
use serde_json::{Value, json};

use crate::mcp::{approve, calls, results};
use crate::run;

/// A home whose model is `model`, with the server at `path` of `remote` as `faults`.
fn write_config(home: &TempHome, model: &ModelServer, remote: &McpHttpServer, path: &str) {
    let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["limits"]["repeatedCalls"] = json!(0);
    config["mcp"]["servers"]["faults"] = json!({
        "url": format!("{}{path}", remote.url), "headers": {"X-Key": "key-of-the-owner"}, "timeoutSeconds": 6,
    });
    home.write_config(&config);
}

/// What the server in `mode` answers to these calls, and what it was asked.
fn answers(mode: &str, wanted: &[(&str, Value)]) -> (Vec<String>, Vec<Value>) {
    let home = TempHome::new();
    let remote = McpHttpServer::start(&home, mode);
    let model = calls(wanted);
    write_config(&home, &model, &remote, "/mcp");
    approve(&home);
    run(&home, &["run", "go on"]).assert_code(0);
    (results(&model), remote.requests())
}

/// A call of a tool of the server, through the one that finds them.
fn call(tool: &str, arguments: &Value) -> (&'static str, Value) {
    ("mcp__tools", json!({"call": format!("faults__{tool}"), "arguments": arguments}))
}

#[test]
fn servers_of_all_forms_are_spoken_with() {
    for (mode, revision) in
        [("sessions", "2025-11-25"), ("stateless", "2026-07-28"), ("old", "2024-11-05")]
    {
        let (home, model) = (TempHome::new(), calls(&[call("echo", &json!({"text": "hello"}))]));
        let remote = McpHttpServer::start(&home, mode);
        write_config(&home, &model, &remote, "/mcp");
        let tested = run(&home, &["mcp", "test"]);
        tested.assert_code(0);
        let shown = format!("revision {revision}");
        assert!(tested.stdout().contains(&shown), "{mode}: {}", tested.stdout());
        approve(&home);
        run(&home, &["run", "go on"]).assert_code(0);
        let read = &results(&model)[0];
        assert!(read.contains("echo: hello") && read.contains("They are data"), "{mode}: {read}");
        let requests = remote.requests();
        assert!(!requests.is_empty());
        for request in requests {
            assert_eq!(request["headers"]["x-key"], "key-of-the-owner", "{request}");
        }
        let listed = run(&home, &["mcp", "list"]);
        assert!(listed.stdout().contains(&format!("{}/mcp", remote.url)), "{}", listed.stdout());
    }
}

#[test]
fn a_server_that_answers_the_first_request_late_is_asked_again() {
    // Each waits for the server, so both wait at the same time.
    thread::scope(|scope| {
        for mode in ["busy", "agreeing"] {
            scope.spawn(move || {
                let (results, _) = answers(mode, &[call("echo", &json!({"text": "hello"}))]);
                assert!(results[0].contains("echo: hello"), "{mode}: {}", results[0]);
            });
        }
    });
}

#[test]
fn a_request_that_changes_nothing_is_made_again_when_its_connection_ends_under_it() {
    let echo = call("echo", &json!({"text": "hello"}));
    let (results, requests) = answers("closing", &[echo.clone(), echo]);
    let ids = |method: &str| -> Vec<&Value> {
        let bodies = requests.iter().map(|request| &request["body"]);
        bodies.filter(|body| body["method"] == method).map(|body| &body["id"]).collect()
    };
    for method in ["server/discover", "tools/list"] {
        let [first, second, ..] = ids(method)[..] else { panic!("{method}: {requests:?}") };
        assert_eq!(first, second, "{method} is made again");
    }
    // Nobody knows what the first call has done.
    assert!(results[0].contains("broke before the answer came"), "{}", results[0]);
    assert!(results[1].contains("echo: hello"), "{}", results[1]);
    let [first, second] = ids("tools/call")[..] else { panic!("two calls: {requests:?}") };
    assert_ne!(first, second);
}

#[test]
fn a_message_without_a_session_repeats_itself_in_its_headers() {
    let wanted = [call("region", &json!({"region": "Köln"})), call("broken", &json!({}))];
    let (results, requests) = answers("stateless", &wanted);
    assert!(results[0].contains("region: =?base64?S8O2bG4=?="), "{}", results[0]);
    assert!(results[1].contains("there is no MCP tool"), "{}", results[1]);
    let called = requests.iter().find(|request| request["body"]["method"] == "tools/call");
    let headers = &called.expect("a call")["headers"];
    assert_eq!(
        (&headers["mcp-method"], &headers["mcp-name"]),
        (&json!("tools/call"), &json!("region"))
    );
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert!(requests.iter().all(|request| request["method"] == "POST"), "{requests:?}");
}

#[test]
fn each_fault_over_http_fails_its_own_call_only() {
    let echo = call("echo", &json!({"text": "alive"}));
    let faults: &[(&str, Value, &str)] = &[
        ("html", json!({}), "text/html, which is no answer of an MCP server: check `url`"),
        ("five", json!({}), "answered HTTP 503"),
        ("away", json!({}), "sends requests on to http://localhost"),
        ("nearby", json!({}), "nearby:"),
        ("unauthorized", json!({}), "HTTP 401"),
        ("forbidden", json!({}), "HTTP 403"),
        ("other", json!({}), "did not answer what was asked"),
        ("empty", json!({}), "answered HTTP 202 without an answer"),
        ("half", json!({}), "broke off before the answer was whole"),
        ("cut_for_ever", json!({}), "broke off before the answer was whole"),
        ("huge", json!({"n": 20}), "too large: at most 16 MB"),
        ("huge_stream", json!({"n": 20}), "too large: at most 16 MB"),
        ("flood", json!({}), "more than 64 MB that nobody had asked for"),
        ("silent", json!({}), "has not answered `tools/call` in 6 s"),
        // Eight seconds with signs of progress.
        ("slow", json!({"n": 80}), "slow:"),
    ];
    for (mode, faults) in ["sessions", "stateless"].into_iter().flat_map(|mode| {
        // As many calls as a turn may have.
        faults.chunks(8).map(move |faults| (mode, faults))
    }) {
        let mut wanted = Vec::new();
        for (tool, arguments, _) in faults {
            wanted.extend([call(tool, arguments), echo.clone()]);
        }
        let (results, requests) = answers(mode, &wanted);
        for (index, (tool, _, words)) in faults.iter().enumerate() {
            assert!(results[2 * index].contains(words), "{mode} {tool}: {}", results[2 * index]);
            let after = &results[2 * index + 1];
            assert!(after.contains("echo: alive"), "{mode} after {tool}: {after}");
        }
        assert!(requests.iter().all(|request| request["path"] != "/elsewhere"), "{mode}");
        let of = |method: &str| {
            requests.iter().filter(|request| request["body"]["method"] == method).count()
        };
        assert_eq!(of("initialize"), if mode == "sessions" { 2 } else { 0 });
        let has_silence = faults.iter().any(|(tool, ..)| *tool == "silent");
        let told = usize::from(mode == "sessions" && has_silence);
        assert_eq!(of("notifications/cancelled"), told, "{mode}");
    }
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_again_and_a_lost_session_begun_again() {
    let wanted = [
        call("cut", &json!({"text": "hello"})),
        call("count", &json!({})),
        call("forget", &json!({})),
        call("count", &json!({})),
        call("change", &json!({})),
        call("count", &json!({})),
    ];
    let (results, requests) = answers("sessions", &wanted);
    for (index, words) in
        ["cut: hello", "count: 1", "forget:", "count: 2", "change:", "count: 3"].iter().enumerate()
    {
        assert!(results[index].contains(words), "{index} {words}: {}", results[index]);
    }
    let resumed = |request: &&Value| request["headers"]["last-event-id"].is_string();
    assert_eq!(requests.iter().filter(resumed).count(), 1);
    let begun = requests.iter().filter(|request| request["body"]["method"] == "initialize");
    // The approval, the run, and after the loss.
    assert_eq!(begun.count(), 3);
}

/// The headers of the config are for one origin.
#[test]
fn a_server_of_the_first_transport_that_wants_requests_at_another_origin_gets_none() {
    let home = TempHome::new();
    let remote = McpHttpServer::start(&home, "astray");
    let model = calls(&[]);
    write_config(&home, &model, &remote, "/mcp");
    let output = run(&home, &["mcp", "approve", "faults", "--yes"]);
    output.assert_code(1);
    let words = "the server wants requests at another origin";
    assert!(output.stderr().contains(words), "{}", output.stderr());
    let paths: Vec<Value> = remote.requests().iter().map(|it| it["path"].clone()).collect();
    assert!(paths.iter().all(|path| path == "/mcp"), "{paths:?}");
}

#[test]
fn a_server_that_is_away_or_no_mcp_server_is_reported() {
    let (home, model) = (TempHome::new(), calls(&[]));
    let remote = McpHttpServer::start(&home, "stateless");
    write_config(&home, &model, &remote, "/mcp");
    let mut config: Value =
        serde_json::from_str(&fs::read_to_string(home.config_path()).unwrap()).unwrap();
    for (url, words) in [
        ("http://127.0.0.1:9/mcp".to_owned(), "nothing listens at http://127.0.0.1:9"),
        (format!("{}/v1/none", model.url()), "answered HTTP 404"),
    ] {
        config["mcp"]["servers"]["faults"]["url"] = json!(url);
        home.write_config(&config);
        let tested = run(&home, &["mcp", "test"]);
        tested.assert_code(1);
        assert!(tested.stdout().contains(words), "{words}: {}", tested.stdout());
    }
    for (url, words) in [
        ("ftp://x.example/mcp", "does not begin with https://"),
        ("https://me:secret@x.example/mcp", "belongs into `headers`"),
        ("mcp", "no request can be sent"),
    ] {
        config["mcp"]["servers"]["faults"]["url"] = json!(url);
        home.write_config(&config);
        let refused = run(&home, &["mcp", "test"]);
        assert_ne!(refused.code(), Some(0));
        assert!(refused.stderr().contains(words), "{words}: {}", refused.stderr());
    }
}

#[test]
fn a_server_with_an_address_is_added_with_its_headers() {
    let (home, model) = (TempHome::new(), calls(&[call("echo", &json!({"text": "hello"}))]));
    let remote = McpHttpServer::start(&home, "sessions");
    home.write_config(&TempHome::config_for(model.url(), WireFormat::AnthropicMessages));
    let url = format!("{}/mcp?key=hidden-in-the-query", remote.url);
    let words = ["mcp", "add", "faults", "--url", &url, "--header", "X-Key: plain", "--yes"];
    let added = run(&home, &words);
    added.assert_code(0);
    assert!(added.stdout().contains("remote 1, revision 2025-11-25"), "{}", added.stdout());
    run(&home, &words).assert_code(0);
    assert_eq!(remote.requests()[0]["headers"]["x-key"], "plain");
    let listed = run(&home, &["mcp", "list"]);
    assert!(listed.stdout().contains("/mcp?…"), "{}", listed.stdout());
    assert!(!listed.stdout().contains("hidden-in-the-query"), "{}", listed.stdout());
    run(&home, &["run", "go on"]).assert_code(0);
    assert!(results(&model)[0].contains("echo: hello"), "{}", results(&model)[0]);
    let refused = run(&home, &["mcp", "add", "other", "--url", &url, "--header", "no header"]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("is no header"), "{}", refused.stderr());
}
