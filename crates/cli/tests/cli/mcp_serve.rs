//! MyClaw as an MCP server over standard input and output.

use std::fs;
use std::time::Duration;

use myclaw_testkit::{
    Gate, ModelServer, Reply, RunningChild, Script, Signal, TempHome, WireFormat,
};
use serde_json::{Value, json};

use crate::approvals::home_asking;
use crate::mcp::{approve, calls, home_of};
use crate::{home_with, myclaw};

const PATIENCE: Duration = Duration::from_secs(60);
/// What a client of the revision without sessions says of itself.
const ABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client that has started the server.
pub(crate) struct Client {
    child: RunningChild,
    next: u64,
}

impl Client {
    fn start(home: &TempHome) -> Self {
        Self { child: RunningChild::spawn_piped(&mut myclaw(home, &["mcp", "serve"])), next: 0 }
    }

    /// A client with a session of 2025-11-25.
    pub(crate) fn begin(home: &TempHome, abilities: &Value) -> Self {
        let mut client = Self::start(home);
        let answer = client.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": abilities,
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.child.send(&format!("{message}\n"));
    }

    /// Sends a request; gives its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn answer(&self, id: u64) -> Value {
        let line = self.child.wait_for_stdout_line(&format!("\"id\":{id},"));
        serde_json::from_str(&line).expect("a message")
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// The request of the server that asks its client, once it is there.
    pub(crate) fn question(&self) -> Value {
        let line = self.child.wait_for_stdout_line("elicitation/create");
        serde_json::from_str(&line).expect("a message")
    }

    /// Closes the connection; the server ends by itself.
    pub(crate) fn end(mut self) {
        self.child.close_stdin();
        self.child.wait(PATIENCE).assert_code(0);
    }

    fn kill(self) {
        self.child.signal(Signal::Kill);
        self.child.wait(PATIENCE);
    }
}

/// The parameters of a request of the revision without sessions.
fn stateless(abilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        ABILITIES: abilities,
    });
    params
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn ask_of(message: &str) -> Value {
    json!({"name": "ask", "arguments": {"message": message}})
}

/// A model that wants to run `touch`, and the file that this makes.
fn touching() -> (TempHome, ModelServer, std::path::PathBuf) {
    let arguments = json!({"command": "touch touched"});
    let (home, server) = home_asking(&json!({"exec": {"ask": "always"}}), "bash", arguments);
    let file = home.workspace().join("touched");
    (home, server, file)
}

#[test]
fn a_client_asks_continues_a_session_finds_it_and_reads_it() {
    let server = ModelServer::spawn_blocking_thread(Script::from(vec![
        Reply::anthropic().text("It is blue."),
        Reply::anthropic().text("As I said."),
    ]));
    let home = home_with(&server);
    let mut client = Client::begin(&home, &json!({}));
    let tools = client.ask("tools/list", &json!({}));
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ask", "sessions_search", "session_read", "memory_search"]);

    let first = client.call("ask", &json!({"message": "What colour is the sky?"}));
    assert_eq!(text_of(&first), "It is blue.");
    let session = first["structuredContent"]["session"].as_str().unwrap().to_owned();
    assert_eq!(first["structuredContent"]["reply"], "It is blue.");
    let second = client.call("ask", &json!({"message": "Sure?", "session": session}));
    assert_eq!(second["structuredContent"], json!({"session": session, "reply": "As I said."}));

    let found =
        client.call("sessions_search", &json!({"query": "COLOUR"}))["structuredContent"].clone();
    assert_eq!(found["total"], 1, "{found}");
    assert_eq!(found["sessions"][0]["session"], json!(session));
    assert!(found["sessions"][0]["message"]["text"].as_str().unwrap().contains("What colour"));
    assert_eq!(
        client.call("sessions_search", &json!({"query": "nowhere"}))["structuredContent"]["total"],
        0
    );
    let read = client.call("session_read", &json!({"session": session, "limit": 3}));
    let messages = read["structuredContent"]["messages"].as_array().unwrap();
    let texts: Vec<&str> = messages.iter().map(|row| row["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["It is blue.", "Sure?", "As I said."]);
    let before = json!({"session": session, "before": messages[0]["id"]});
    let read = client.call("session_read", &before);
    assert_eq!(read["structuredContent"]["messages"].as_array().unwrap().len(), 1, "{read}");
    client.end();
}

#[test]
fn memory_is_searched_and_keys_stay_here() {
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let home = home_with(&server);
    home.write_in_workspace(
        "memory/notes.md",
        "The password of the shed is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789.\n",
    );
    let mut client = Client::begin(&home, &json!({}));
    let found = client.call("memory_search", &json!({"query": "shed"}));
    assert!(text_of(&found).contains("password of the shed"), "{found}");
    assert!(!found.to_string().contains("abcdefghijklmnopqrstuvwxyz"), "{found}");
    client.end();
}

#[test]
fn a_call_that_needs_an_approval_is_asked_about_in_the_program_that_asked() {
    for (said, runs, heard) in [
        (json!({"action": "accept", "content": {"answer": "once"}}), true, None),
        (json!({"action": "accept", "content": {"answer": "no"}}), false, Some("the user said no")),
        // No clear yes.
        (json!({"action": "accept"}), false, Some("the user said no")),
        (
            json!({"action": "accept", "content": {"answer": "yes, please"}}),
            false,
            Some("the user said no"),
        ),
        (json!({"action": "decline"}), false, Some("the user said no")),
    ] {
        let (home, server, file) = touching();
        let mut client = Client::begin(&home, &json!({"elicitation": {}}));
        let id = client.request("tools/call", &ask_of("go"));
        let question = client.question();
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("touch touched"), "{message}");
        let answers = &question["params"]["requestedSchema"]["properties"]["answer"]["enum"];
        assert_eq!(answers, &json!(["once", "always", "no"]));
        assert!(!file.exists());
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}));
        let answer = client.answer(id);
        assert_eq!(text_of(&answer["result"]), "Done.", "{answer}");
        assert_eq!(file.exists(), runs, "{said}: {}", crate::last_message(&server));
        if let Some(heard) = heard {
            assert!(
                crate::last_message(&server).contains(heard),
                "{}",
                crate::last_message(&server)
            );
        }
        client.end();
    }
}

#[test]
fn what_nobody_can_be_asked_is_refused_with_one_sentence() {
    let (home, server, file) = touching();
    let mut client = Client::begin(&home, &json!({"elicitation": {"url": {}}}));
    let result = client.call("ask", &json!({"message": "go"}));
    assert_eq!(text_of(&result), "Done.");
    assert!(!file.exists());
    let heard = crate::last_message(&server);
    assert!(heard.contains("cannot show a question to its user"), "{heard}");
    client.end();
}

#[test]
fn a_question_without_a_session_is_answered_by_repeating_the_call_also_after_a_kill() {
    let abilities = json!({"elicitation": {}});
    for is_killed in [false, true] {
        let (home, _server, file) = touching();
        let mut client = Client::start(&home);
        let asked =
            client.ask("tools/call", &stateless(&abilities, ask_of("go")))["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let (id, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(request["method"], "elicitation/create");
        assert!(request["params"]["message"].as_str().unwrap().contains("touch "));
        if is_killed {
            client.kill();
            client = Client::start(&home);
        }
        assert!(!file.exists());
        // State that names no turn is refused.
        let mut forged = ask_of("go");
        forged["requestState"] = json!(format!("{}x", asked["requestState"].as_str().unwrap()));
        forged["inputResponses"] =
            json!({id.as_str(): {"action": "accept", "content": {"answer": "once"}}});
        let refused = client.ask("tools/call", &stateless(&abilities, forged.clone()));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        forged["requestState"] = asked["requestState"].clone();
        let answer = client.ask("tools/call", &stateless(&abilities, forged));
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(text_of(&answer["result"]), "Done.");
        assert!(file.exists());
        client.end();
    }
}

#[test]
fn a_task_is_followed_by_another_process() {
    let gate = Gate::closed();
    let reply = Reply::anthropic().text("The answer.").step().hold_after(0, &gate);
    let again = Reply::anthropic().text("The answer.");
    let server = ModelServer::spawn_blocking_thread(Script::new().then(reply).then_repeat(again));
    let home = home_with(&server);
    let mut client = Client::begin(&home, &json!({}));
    let mut params = ask_of("Think hard.");
    params["task"] = json!({"ttl": 60_000});
    let task = client.ask("tools/call", &params)["result"]["task"].clone();
    assert_eq!(task["status"], "working", "{task}");
    let id = task["taskId"].clone();
    let named = json!({"taskId": id});
    assert_eq!(client.ask("tasks/get", &named)["result"]["status"], "working");
    client.kill();
    gate.open();
    let mut client = Client::begin(&home, &json!({}));
    let answer = client.ask("tasks/result", &named);
    let result = &answer["result"];
    assert_eq!(text_of(result), "The answer.", "{answer}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id);
    assert_eq!(client.ask("tasks/get", &named)["result"]["status"], "completed");
    // The other revision finds it too, with its result.
    let abilities = json!({"extensions": {TASKS: {}}});
    let found = client.ask("tasks/get", &stateless(&abilities, json!({"taskId": id})));
    assert_eq!(text_of(&found["result"]["result"]), "The answer.", "{found}");
    let without = client.ask("tasks/get", &stateless(&json!({}), json!({"taskId": id})));
    assert_eq!(without["error"]["code"], -32021, "{without}");
    client.end();
}

#[test]
fn a_long_call_becomes_a_task_and_is_stopped() {
    let gate = Gate::closed();
    let reply = Reply::anthropic().text("Too late.").step().hold_after(0, &gate);
    let server = ModelServer::spawn_blocking_thread(Script::new().then(reply));
    let home = home_with(&server);
    let mut client = Client::start(&home);
    let abilities = json!({"extensions": {TASKS: {}}});
    let task = client.ask("tools/call", &stateless(&abilities, ask_of("Think hard.")));
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    let named = json!({"taskId": task["result"]["taskId"]});
    for _ in 0..2 {
        let stopped = client.ask("tasks/cancel", &stateless(&abilities, named.clone()));
        assert_eq!(stopped["result"]["resultType"], "complete", "{stopped}");
        assert!(stopped["result"].get("taskId").is_none(), "{stopped}");
    }
    let found = client.ask("tasks/get", &stateless(&abilities, named));
    assert_eq!(found["result"]["status"], "cancelled", "{found}");
    gate.open();
    client.end();
}

#[test]
fn progress_is_shown_and_a_cancelled_call_ends_its_turn() {
    let gate = Gate::closed();
    let server = ModelServer::spawn_blocking_thread(
        Script::new()
            .then(Reply::anthropic().tool_call("call_1", "bash", json!({"command": "true"})))
            .then(Reply::anthropic().text("Too late.").step().hold_after(0, &gate))
            .then(Reply::anthropic().text("Hello.")),
    );
    let home = home_with(&server);
    let mut client = Client::begin(&home, &json!({}));
    let mut params = ask_of("go");
    params["_meta"] = json!({"progressToken": "p1"});
    let id = client.request("tools/call", &params);
    let shown = client.child.wait_for_stdout_line("notifications/progress");
    assert!(shown.contains("\"progressToken\":\"p1\"") && shown.contains("uses bash"), "{shown}");
    server.wait_for_requests_blocking(2);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    server.wait_for_closed_connections_blocking(1);
    gate.open();
    let next = client.call("ask", &json!({"message": "hi"}));
    assert_eq!(text_of(&next), "Hello.");
    assert!(
        !client.child.wait_for_stdout("Hello.").contains(&format!("\"id\":{id},\"")),
        "it was answered"
    );
    client.end();
}

#[test]
fn each_bad_request_gets_one_message() {
    let server = ModelServer::spawn_blocking_thread(Script::new());
    let home = home_with(&server);
    let mut client = Client::start(&home);
    let early = client.ask("tools/list", &json!({}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    client.end();
    let mut client = Client::begin(&home, &json!({}));
    for (method, params, code, part) in [
        ("nope", json!({}), -32601, "no method `nope`"),
        ("tools/call", json!({}), -32602, "`name` is missing"),
        ("tools/call", json!({"name": "send", "arguments": {}}), -32602, "no tool `send`"),
        ("tools/call", json!({"name": "ask", "arguments": 5}), -32602, "not an object"),
        ("tools/list", json!({"cursor": "x"}), -32602, "one page"),
        ("tasks/get", json!({}), -32602, "`taskId` is missing"),
        ("tasks/get", json!({"taskId": "x"}), -32602, "no task `x`"),
        ("tasks/get", json!({"taskId": "1.main#x"}), -32602, "no such turn"),
        ("tasks/result", json!({"taskId": "1.agent:main:main#x"}), -32602, "no such turn"),
        ("tasks/cancel", json!({"taskId": "1.x"}), -32602, "no such turn"),
        ("initialize", json!({}), -32602, "`protocolVersion` is missing"),
    ] {
        let answer = client.ask(method, &params);
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    for (tool, arguments, part) in [
        ("ask", json!({}), "missing field `message`"),
        ("ask", json!({"message": " "}), "`message` is empty"),
        ("ask", json!({"message": "x", "sesion": "y"}), "unknown field `sesion`"),
        ("session_read", json!({"session": "nowhere"}), "there is no session `nowhere`"),
        ("memory_search", json!({"query": ""}), "quer"),
    ] {
        let result = client.call(tool, &arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text_of(&result).contains(part), "{result}");
    }
    client.end();
    assert_eq!(server.requests().len(), 0);
    // Nothing but messages is on standard output, even if the config has a mistake.
    fs::write(home.config_path(), "{ agents: 5 }").unwrap();
    let output = RunningChild::run(&mut myclaw(&home, &["mcp", "serve"]));
    output.assert_code(3);
    assert_eq!(output.stdout(), "");
}

/// A turn that fails says why, and does not fail the next one.
#[test]
fn a_turn_without_a_reply_is_an_error_with_its_reason() {
    let server = ModelServer::spawn_blocking_thread(
        Script::new()
            .then(
                Reply::anthropic().fails_with("invalid_request_error", "the model is out of order"),
            )
            .then(Reply::anthropic().text("Hello.")),
    );
    let home = TempHome::new();
    home.write_config(&TempHome::config_for(server.url(), WireFormat::AnthropicMessages));
    let mut client = Client::begin(&home, &json!({}));
    let result = client.call("ask", &json!({"message": "hi", "session": "talk"}));
    assert_eq!(result["isError"], true, "{result}");
    assert!(text_of(&result).contains("out of order"), "{result}");
    let result = client.call("ask", &json!({"message": "hi", "session": "talk"}));
    assert_eq!(text_of(&result), "Hello.");
    client.end();
}

/// What a server asks its client in the middle of a call is asked through the approver of the front-end: here in the program
/// that asked the agent.
#[test]
fn the_question_of_a_server_reaches_the_user_and_the_answer_the_server() {
    let form = json!({
        "mode": "form", "message": "Delete 3 files?",
        "requestedSchema": {
            "type": "object", "required": ["sure"],
            "properties": {"sure": {"type": "boolean"}, "note": {"type": "string", "default": "none"}},
        },
    });
    let page = json!({"mode": "url", "message": "Pay first", "url": "https://pay.example.com/x?y=1", "elicitationId": "1"});
    let (yes, no) =
        (json!({"action": "accept", "content": {"answer": "once"}}), json!({"action": "decline"}));
    // Sandboxed sessions have no tools of MCP servers.
    let go = json!({"name": "ask", "arguments": {"message": "go", "session": "main"}});
    for mode in ["sessions", "stateless"] {
        for (question, shown, said, heard) in [
            (
                &form,
                "a yes sends sure",
                &yes,
                &["action: accept", "'sure': True", "'note': 'none'"][..],
            ),
            (&form, "Delete 3 files?", &no, &["action: decline", "and the user said no"]),
            (&page, "https://pay.example.com/x?y=1", &yes, &["action: accept", "content: None"]),
        ] {
            let server = calls(&[("faults__ask", json!({"text": question.to_string()}))]);
            let (home, _) = home_of(&server, mode, |_| {});
            approve(&home);
            let mut client = Client::begin(&home, &json!({"elicitation": {}}));
            let id = client.request("tools/call", &go);
            let asked = client.question();
            let message = asked["params"]["message"].as_str().expect("a text");
            assert!(message.contains("the MCP server faults asks you"), "{mode}: {message}");
            assert!(message.contains(shown), "{mode}: {message}");
            client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
            assert_eq!(text_of(&client.answer(id)["result"]), "Done.");
            let read = crate::last_message(&server);
            for words in heard {
                assert!(read.contains(words), "{mode} {words}: {read}");
            }
            client.end();
        }
    }
}
