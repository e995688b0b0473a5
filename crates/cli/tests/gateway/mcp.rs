//! `/mcp`: the gateway as an MCP server, in both kinds of revision.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::devices::device;
use super::*;

const VERSION: &str = "2026-07-28";

/// The parameters of a request of the revision without sessions.
fn stateless(abilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": abilities,
    });
    params
}

fn headers_of(method: &str, params: &Value) -> String {
    let name = params["name"].as_str().or(params["taskId"].as_str());
    let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
    format!("MCP-Protocol-Version: {VERSION}\r\nMcp-Method: {method}\r\n{name}")
}

/// Asks without a session; gives status and answer. One that comes on a stream is its last message.
fn ask_as(client: &Client, abilities: &Value, method: &str, params: Value) -> (u16, Value) {
    let headers =
        format!("{}Accept: application/json, text/event-stream\r\n", headers_of(method, &params));
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": stateless(abilities, params)});
    let (status, answer) = client.post_with("/mcp", &headers, &message).unwrap();
    let last = answer.as_str().and_then(|stream| messages_in(stream).pop());
    (status, last.unwrap_or(answer))
}

/// The messages of a stream, also where it comes in chunks.
fn messages_in(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn call(client: &Client, abilities: &Value, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    let (status, answer) = ask_as(client, abilities, "tools/call", params);
    assert_eq!(status, 200, "{answer}");
    answer["result"].clone()
}

fn tools(client: &Client) -> Vec<String> {
    let (_, answer) = ask_as(client, &json!({}), "tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Every command is asked about; this one leaves a file.
fn asking() -> (Bench, std::path::PathBuf) {
    let arguments = json!({"command": "touch touched"});
    let script = Script::answer_with(move |request, number| {
        let last = request.messages().last().map(|message| message["content"].to_string());
        match last.is_some_and(|last| last.contains("tool_result")) {
            true => Reply::anthropic().text("Done.").step(),
            false => Reply::anthropic()
                .tool_call(format!("call_{number}"), "bash", arguments.clone())
                .step(),
        }
    });
    let bench = Bench::new(script);
    bench.configure(|config| config["tools"] = json!({"exec": {"ask": "always"}}));
    let file = bench.home.workspace().join("touched");
    (bench, file)
}

#[test]
fn each_scope_has_its_tools_and_no_other() {
    let bench = Bench::new(answering("Hello."));
    let gateway = bench.start();
    let owner = &gateway.client;
    let all = ["ask", "sessions_search", "session_read", "memory_search", "send"];
    let reading = ["sessions_search", "session_read", "memory_search"];
    assert_eq!(tools(owner), all);
    assert_eq!(tools(&device(&bench, owner, "operator").0), all);
    let (reader, _) = device(&bench, owner, "read-only");
    assert_eq!(tools(&reader), reading);
    for tool in ["ask", "send"] {
        let params = json!({"name": tool, "arguments": {"message": "x"}});
        let (status, answer) = ask_as(&reader, &json!({}), "tools/call", params);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)), "{answer}");
    }
    for scope in ["webhook", "node"] {
        let (device, _) = device(&bench, owner, scope);
        assert_eq!(ask_as(&device, &json!({}), "tools/list", json!({})).0, 403, "{scope}");
    }
    // What it reads is what the owner has said.
    let said =
        call(owner, &json!({}), "ask", &json!({"message": "the <m1> question", "session": "talk"}));
    assert_eq!(said["structuredContent"], json!({"session": "talk", "reply": "Hello."}), "{said}");
    let found = call(&reader, &json!({}), "sessions_search", &json!({"query": "<M1>"}));
    assert_eq!(found["structuredContent"]["sessions"][0]["session"], "talk", "{found}");
    let read = call(&reader, &json!({}), "session_read", &json!({"session": "talk"}));
    assert_eq!(read["structuredContent"]["messages"][1]["text"], "Hello.", "{read}");
    // Only chats are written to.
    let nowhere = call(owner, &json!({}), "send", &json!({"session": "nowhere", "text": "x"}));
    assert_eq!(nowhere["isError"], true, "{nowhere}");
    assert!(text_of(&nowhere).contains("nobody has written to the session nowhere"), "{nowhere}");
    let sent =
        call(owner, &json!({}), "send", &json!({"session": "talk", "text": "Lunch is ready."}));
    assert_eq!(sent["structuredContent"]["status"], "sent", "{sent}");
    gateway.stop();
    assert_eq!(bench.said("talk"), ["the <m1> question", "Hello."]);
}

#[test]
fn a_device_that_only_reads_answers_no_question_and_stops_no_turn() {
    let (bench, file) = asking();
    let gateway = bench.start();
    let owner = &gateway.client;
    let (reader, _) = device(&bench, owner, "read-only");
    let tasks = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let asked = call(owner, &json!({"elicitation": {}}), "ask", &json!({"message": "go"}));
    let (id, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let task = format!("1.{}", asked["requestState"].as_str().unwrap());
    let yes = json!({id.as_str(): {"action": "accept", "content": {"answer": "once"}}});
    let waits = || owner.get("/api/approvals").unwrap().1["approvals"][0]["id"].is_string();
    for (method, abilities) in [
        ("tasks/update", &tasks),
        ("tasks/cancel", &tasks),
        // A client that cannot be asked would refuse.
        ("tasks/get", &json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})),
    ] {
        let params = json!({"taskId": task, "inputResponses": yes});
        let (status, answer) = ask_as(&reader, abilities, method, params);
        assert!(method == "tasks/get" || status == 400, "{method}: {answer}");
        assert!(waits() && !file.exists(), "{method}: {answer}");
    }
    let (status, answer) =
        ask_as(owner, &tasks, "tasks/update", json!({"taskId": task, "inputResponses": yes}));
    assert_eq!(status, 200, "{answer}");
    until("the command", || file.exists());
    gateway.stop();
}

#[test]
fn foreign_hosts_and_pages_and_wrong_tokens_are_refused() {
    let bench = Bench::new(answering("Hello."));
    let gateway = bench.start();
    let client = &gateway.client;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let post = |host: &str, more: &str| {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        client.raw(&request).unwrap().0
    };
    let (host, token) = (
        format!("127.0.0.1:{}", client.port),
        format!("Authorization: Bearer {}\r\n", client.token),
    );
    assert_eq!(post(&host, &token), 200);
    assert_eq!(post("evil.example.com", &token), 421);
    assert_eq!(post(&host, &format!("{token}Origin: http://evil.example.com\r\n")), 403);
    assert_eq!(post(&host, &format!("{token}Origin: http://{host}\r\n")), 200);
    assert_eq!(post(&host, ""), 401);
    assert_eq!(post(&host, "Authorization: Bearer none\r\n"), 401);
    let (status, answer) = client.get("/mcp").unwrap();
    assert_eq!((status, &answer["error"]["class"]), (405, &json!("method")));
    gateway.stop();
}

#[test]
fn a_question_is_answered_by_repeating_the_call_also_after_a_kill() {
    let abilities = json!({"elicitation": {}});
    for is_killed in [false, true] {
        let (bench, file) = asking();
        let mut gateway = bench.start();
        let asked = call(&gateway.client, &abilities, "ask", &json!({"message": "go"}));
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (id, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert!(request["params"]["message"].as_str().unwrap().contains("touch "), "{request}");
        if is_killed {
            gateway.kill();
            gateway = bench.start();
        }
        let answers = json!({id.as_str(): {"action": "accept", "content": {"answer": "once"}}});
        let params = |state: &str| json!({"name": "ask", "arguments": {"message": "go"}, "inputResponses": answers, "requestState": state});
        let state = asked["requestState"].as_str().unwrap();
        let (status, refused) =
            ask_as(&gateway.client, &abilities, "tools/call", params(&format!("{state}0")));
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32602)), "{refused}");
        assert!(!file.exists());
        let (_, answer) = ask_as(&gateway.client, &abilities, "tools/call", params(state));
        assert_eq!(text_of(&answer["result"]), "Done.", "{answer}");
        assert!(file.exists());
        // The same again is the same answer.
        let (_, again) = ask_as(&gateway.client, &abilities, "tools/call", params(state));
        assert_eq!(again, answer);
        gateway.stop();
    }
}

#[test]
fn a_client_with_a_session_is_asked_on_its_stream() {
    let (bench, file) = asking();
    let gateway = bench.start();
    let client = gateway.client.clone();
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}},
    })
    .to_string();
    let head = client.head("POST", "/mcp");
    let mut stream = TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    write!(
        stream,
        "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{begin}",
        begin.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(r#""protocolVersion":"2025-06-18""#), "{answer}");
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let session = format!("Mcp-Session-Id: {session}\r\n");

    let ask = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "ask", "arguments": {"message": "go"}, "_meta": {"progressToken": 5}},
    });
    let asking = client.clone();
    let accept = format!("{session}Accept: application/json, text/event-stream\r\n");
    let asked = std::thread::spawn(move || asking.post_with("/mcp", &accept, &ask).unwrap());
    // The question waits at the gateway too, and is answered there.
    until("the question", || {
        client.get("/api/approvals").unwrap().1["approvals"][0]["id"].is_string()
    });
    let open =
        client.get("/api/approvals").unwrap().1["approvals"][0]["id"].as_str().unwrap().to_owned();
    let (status, _) =
        client.post(&format!("/api/approvals/{open}"), &json!({"answer": "once"})).unwrap();
    assert_eq!(status, 200);
    let (status, stream) = asked.join().unwrap();
    let messages = messages_in(stream.as_str().unwrap());
    assert_eq!(status, 200);
    let question =
        messages.iter().find(|message| message["method"] == "elicitation/create").unwrap();
    // It was answered elsewhere, so it is taken back.
    let back =
        messages.iter().find(|message| message["method"] == "notifications/cancelled").unwrap();
    assert_eq!(back["params"]["requestId"], question["id"]);
    assert_eq!(text_of(&messages.last().unwrap()["result"]), "Done.", "{messages:?}");
    assert!(file.exists());
    let (status, _) = client
        .post_with(
            "/mcp",
            "Mcp-Session-Id: e-none\r\n",
            &json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}),
        )
        .unwrap();
    assert_eq!(status, 404);
    gateway.stop();
}

#[test]
fn a_connection_that_ends_gives_the_turn_up_and_a_task_goes_on_after_a_kill() {
    let gate = Gate::closed();
    let held = || Reply::anthropic().text("Too late.").step().hold_after(0, &gate);
    let script =
        Script::new().then(held()).then(held()).then_repeat(Reply::anthropic().text("Hello."));
    let bench = Bench::new(script);
    let gateway = bench.start();
    let client = &gateway.client;
    let params = json!({"name": "ask", "arguments": {"message": "first", "session": "a"}});
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": stateless(&json!({}), params.clone())}).to_string();
    let head = client.head("POST", "/mcp") + &headers_of("tools/call", &params);
    let mut stream = TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    write!(stream, "{head}Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    bench.model.wait_for_requests_blocking(1);
    drop(stream);
    bench.model.wait_for_closed_connections_blocking(1);

    let abilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let task = call(client, &abilities, "ask", &json!({"message": "second", "session": "b"}));
    assert_eq!(task["resultType"], "task", "{task}");
    gateway.kill();
    gate.open();
    let gateway = bench.start();
    let named = json!({"taskId": task["taskId"]});
    let get =
        || ask_as(&gateway.client, &abilities, "tasks/get", named.clone()).1["result"].clone();
    until("the end of the task", || get()["status"] == "completed");
    assert_eq!(text_of(&get()["result"]), "Hello.");
    gateway.stop();
}
