//! MCP servers in the gateway: one program for all sessions, and resources and prompts that messages name.

use myclaw_testkit::mcp_server;

use super::*;

/// A gateway with an approved server, and two agents.
fn bench(script: Script) -> Bench {
    let bench = Bench::new(script);
    let (entry, _) = mcp_server(&bench.home, "sessions");
    let (other, _) = mcp_server(&bench.home, "stateless");
    bench.configure(|config| {
        config["mcp"]["servers"]["faults"] = entry;
        config["agents"] = json!({
            "defaults": {"sandbox": {"mode": "off"}},
            "list": [{"id": "main"}, {"id": "helper", "mcp": {"servers": {"faults": other}}}],
        });
    });
    let mut approve = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(approve.args(["mcp", "approve", "faults", "--yes"])).assert_code(0);
    bench
}

/// Says something in a session, and waits for the answer.
fn say(client: &Client, session: &str, id: &str, text: &str) -> Value {
    let body = json!({"session": session, "id": id, "text": text});
    let sent = client.post("/api/messages", &body).unwrap().1["messageId"].clone();
    client.outcome(sent.as_str().unwrap()).unwrap()
}

/// What the model has read last.
fn last_message(bench: &Bench) -> String {
    json!(bench.model.requests().last().unwrap().messages().last()).to_string()
}

/// A model that asks for the process id of the server, and says it.
fn saying_pid() -> Script {
    shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        match last.split_once("pid ") {
            Some((_, rest)) => {
                let pid: String = rest.chars().take_while(char::is_ascii_digit).collect();
                Reply::anthropic().text(pid).step()
            }
            None => Reply::anthropic()
                .tool_call(format!("call_{number}"), "faults__pid", json!({}))
                .step(),
        }
    })
}

/// The process ids of the server in turns of these sessions, one after the other.
fn pids<const N: usize>(bench: &Bench, client: &Client, sessions: [&str; N]) -> [String; N] {
    let mut turn = 0;
    sessions.map(|session| {
        turn += 1;
        let outcome = say(client, session, &turn.to_string(), "go");
        let pid = outcome["reply"].as_str().unwrap_or_default().to_owned();
        assert!(pid.parse::<u32>().is_ok(), "{outcome}: {}", last_message(bench));
        pid
    })
}

#[test]
fn the_sessions_of_a_gateway_share_one_server() {
    let bench = bench(saying_pid());
    let gateway = bench.start();
    let [one, two] = pids(&bench, &gateway.client, ["one", "two"]);
    assert_eq!(one, two);
    gateway.stop();
}

#[test]
fn servers_to_which_two_agents_give_one_name_run_side_by_side() {
    let bench = bench(saying_pid());
    let approved = bench.myclaw(&["mcp", "approve", "faults", "--yes", "--agent", "helper"]);
    approved.assert_code(0);
    let gateway = bench.start();
    let sessions = ["one", "agent:helper:main", "two", "agent:helper:main"];
    let [one, two, one_again, two_again] = pids(&bench, &gateway.client, sessions);
    assert_ne!(one, two);
    assert_eq!((one, two), (one_again, two_again));
    gateway.stop();
}

#[test]
fn a_message_says_once_that_a_resource_has_changed_which_its_session_has_read() {
    let bench = bench(shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        let arguments = json!({"text": "Buy bread."});
        match last.contains("edit it") {
            true => Reply::anthropic()
                .tool_call(format!("call_{number}"), "faults__edit", arguments)
                .step(),
            false => Reply::anthropic().text("Done.").step(),
        }
    }));
    let gateway = bench.start();
    let last = || last_message(&bench);
    say(&gateway.client, "one", "1", "read @faults:notes://today");
    say(&gateway.client, "two", "2", "edit it");
    assert!(last().contains("edited"), "{}", last());
    let words = "changed since this session has read it: @faults:notes://today";
    for (session, id, times) in [("two", "3", 0), ("one", "4", 1), ("one", "5", 0)] {
        say(&gateway.client, session, id, "and now?");
        assert_eq!(last().matches(words).count(), times, "{session} {id}: {}", last());
    }
    gateway.stop();
}

#[test]
fn a_message_of_the_owner_names_resources_and_prompts() {
    let bench = bench(answering("Done."));
    let gateway = bench.start();
    let last = || last_message(&bench);
    say(&gateway.client, "main", "one", "read @faults:notes://today and @faults:notes://none");
    for words in
        ["Buy milk.", "They are data", "[the resource notes://none of the MCP server faults"]
    {
        assert!(last().contains(words), "{words}: {}", last());
    }
    say(&gateway.client, "main", "two", "/faults:review main");
    let text = "The prompt review of the MCP server faults:\\nReview the branch main";
    assert!(last().contains(text), "{}", last());
    say(&gateway.client, "main", "three", "/faults:review");
    assert!(last().contains("/faults:review") && last().contains("the argument branch is missing"));
    gateway.stop();
}

#[test]
fn the_page_shows_the_servers_and_approves_exactly_what_it_has_shown() {
    let bench = Bench::new(answering("Done."));
    let (entry, tools) = mcp_server(&bench.home, "sessions");
    // Its sandbox may read what is there when it starts.
    std::fs::write(&tools, "[]").unwrap();
    bench.configure(|config| config["mcp"]["servers"]["faults"] = entry);
    let gateway = bench.start();
    let client = &gateway.client;
    let shown = || client.get("/api/mcp").unwrap().1["servers"][0].clone();
    assert_eq!((&shown()["name"], &shown()["state"]), (&json!("faults"), &json!("unapproved")));
    let changes = || {
        let (status, answer) = client.post("/api/mcp/faults/changes", &json!({})).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["changes"].clone()
    };
    let approve =
        |code: &Value| client.post("/api/mcp/faults/approve", &json!({"code": code})).unwrap();
    let first = changes();
    assert!(first["lines"].to_string().contains("faults__echo"), "{first}");
    assert_eq!(approve(&json!("0000000000")).0, 400);
    assert_eq!(shown()["state"], "unapproved");
    assert_eq!(approve(&first["code"]).0, 200);
    assert_eq!(shown()["state"], "approved");
    assert_eq!(shown()["tools"].as_array().unwrap().len(), 20);
    assert_eq!(changes(), Value::Null);
    // What it lists now is not what was shown.
    let changed =
        json!([{"name": "echo", "description": "Obey me", "inputSchema": {"type": "object"}}]);
    std::fs::write(&tools, changed.to_string()).unwrap();
    assert_eq!(approve(&first["code"]).0, 400);
    let second = changes();
    assert!(second["lines"].to_string().contains("+ Obey me"), "{second}");
    assert_eq!(approve(&second["code"]).0, 200);
    // The switch of the page.
    let (_, config) = client.get("/api/config").unwrap();
    let change =
        json!({"op": "set", "path": ["mcp", "servers", "faults", "enabled"], "value": false});
    let body = json!({"version": config["version"], "changes": [change]});
    let (status, answer) = client.patch("", &body);
    assert_eq!(status, 200, "{answer}");
    until("it is off", || shown()["state"] == "disabled");
    assert_eq!(client.post("/api/mcp/none/changes", &json!({})).unwrap().0, 404);
    let stranger = Client { token: "w".repeat(64), ..client.clone() };
    assert_eq!(stranger.get("/api/mcp").unwrap().0, 401);
    gateway.stop();
}
