//! Two tenants of one database: the same names for everything, and nothing crosses.

use std::collections::BTreeSet;

use myclaw_testkit::{TelegramServer, mcp_server};

use super::audit::Audit;
use super::web_socket::{Socket, block_on};
use super::*;

/// What only one tenant knows. It is in no name.
const SECRET: &str = "annas-secret-7f3b";
/// What seals the keys of both.
const SEAL: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
/// The keys of sessions that both have.
const SESSIONS: [&str; 3] = ["main", "agent:main:main", "s1"];
/// Fields whose values name something that belongs to a tenant.
const NAMING: [&str; 10] =
    ["id", "name", "code", "holder", "messageId", "session", "key", "url", "part", "sessionKey"];
/// Tools that ask the owner or the network, and nothing that is kept.
const ELSEWHERE: [&str; 4] = ["ask_user", "browser", "web_fetch", "web_search"];
/// Routes whose answers are full of names that belong to nobody.
const GENERAL: [&str; 5] =
    ["/api/config", "/api/channels/kinds", "/api/scopes", "/api/skills", "/api/setup"];
/// Longest wait for a turn that calls a tool.
const TURN_SECONDS: u32 = 20;

/// A tenant with a machine of its own.
struct Side {
    machine: Machine,
    model: ModelServer,
    bot: TelegramServer,
    client: Client,
}

impl Side {
    fn new(tenant: &'static str, url: &str) -> Self {
        let model = ModelServer::spawn_blocking_thread(Script::answer_with(|request, number| {
            let last = json!(request.messages().last()).to_string();
            match request.ordered_call().filter(|_| !last.contains("tool_result")) {
                Some((tool, arguments)) => {
                    Reply::anthropic().tool_call(format!("call_{number}"), tool, arguments).step()
                }
                None => echo(request).step(),
            }
        }));
        let (machine, bot) = (Machine::new("one", url, &model), TelegramServer::start());
        let token = format!("{tenant}-{}", "t".repeat(40));
        machine.configure("one", &model, |config| {
            config["gateway"]["tenant"] = json!(tenant);
            config["gateway"]["token"] = json!(token);
            config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
            config["channels"] =
                json!({"telegram": {"botToken": bot.token(), "baseUrl": bot.url()}});
            config["mcp"]["servers"]["faults"] = mcp_server(&machine.home, "sessions").0;
        });
        let client = Client { port: machine.port, token };
        Self { machine, model, bot, client }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.machine.command(arguments);
        command.env("MYCLAW_STORE_KEY", SEAL);
        command
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        RunningChild::run(&mut self.command(arguments))
    }

    fn start(&self) -> Gateway {
        let child = RunningChild::spawn(&mut self.command(&["gateway"]));
        child.wait_for_stderr("listening on http://127.0.0.1:");
        Gateway { child, client: self.client.clone() }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.client.post(path, body).unwrap();
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// Says something in a session, and waits for the answer.
    fn say(&self, session: &str, text: &str) -> Value {
        let id = self.client.send(session, &format!("id-{}", fresh()), text).unwrap();
        self.client.state_within(&id, TURN_SECONDS).unwrap()
    }

    /// Has the agent call a tool.
    fn order(&self, tool: &str, arguments: &Value) {
        let outcome = self.say("main", &format!("call {tool} {arguments}"));
        if outcome["state"] == "open" {
            self.post("/api/sessions/main/abort", &json!({}));
        }
    }

    /// Makes something of each kind that a tenant can have.
    fn fill(&self, secret: &str) {
        for session in SESSIONS {
            assert_eq!(self.say(session, &format!("{secret} <m1>"))["reply"], "re: <m1>");
        }
        let command = format!("seq -f '{secret} %.0f' 20000");
        self.order("bash", &json!({"command": command}));
        self.order("sessions_spawn", &json!({"task": secret}));
        self.order("update_plan", &json!({"steps": [{"text": secret, "status": "pending"}]}));
        let job = json!({"schedule": {"when": "every 2 hours"}, "message": secret});
        self.post("/api/cron", &json!({"action": "add", "job": job}));
        self.post("/api/memory", &json!({"text": format!("The word is {secret}.")}));
        self.post("/api/sessions/s1/title", &json!({"title": secret}));
        self.post("/v1/responses", &json!({"model": "myclaw", "input": secret}));
        let code = self.post("/api/devices/code", &json!({"scope": "read-only"}))["code"].clone();
        let device =
            self.post("/api/devices/pair", &json!({"code": code, "name": format!("of {secret}")}));
        self.post("/api/devices/approve", &json!({"name": device["id"]}));
        let changes = self.post("/api/mcp/faults/changes", &json!({}))["changes"].clone();
        self.post("/api/mcp/faults/approve", &json!({"code": changes["code"]}));
        self.bot.write(7, secret);
        let pairings = || self.client.get("/api/pairing").unwrap().1.to_string();
        until("a stranger waits for an approval", || pairings().contains("telegram"));
        let mut add = self.command(&["auth", "add", "anthropic"]);
        let mut child = RunningChild::spawn_piped(&mut add);
        child.send(&format!("sk-ant-{secret}-0123456789-0123456789\n"));
        child.close_stdin();
        child.wait(PATIENCE).assert_code(0);
    }

    /// Sends a request; gives status and answer.
    fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
        let client = Client { token: token.to_owned(), ..self.client.clone() };
        let (head, body) = (client.head(method, path), body.to_string());
        let (kind, length) = ("Content-Type: application/json", body.len());
        let request = match method {
            "GET" => format!("{head}\r\n"),
            _ => format!("{head}{kind}\r\nContent-Length: {length}\r\n\r\n{body}"),
        };
        client.raw(&request).unwrap_or_else(|error| (0, error.to_string()))
    }

    /// The routes and the methods of the WebSocket, as the program lists them.
    fn scopes(&self) -> (Vec<Route>, Vec<String>) {
        let scopes = self.client.get("/api/scopes").unwrap().1;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let route = |route: &Value| Route {
            method: text(&route["method"]),
            path: text(&route["path"]),
            is_open: route["needs"] == "nothing",
        };
        let routes: Vec<Route> = scopes["routes"].as_array().unwrap().iter().map(route).collect();
        let methods = scopes["methods"].as_array().unwrap();
        let methods: Vec<String> = methods.iter().map(|method| text(&method["method"])).collect();
        assert!(routes.len() > 60 && methods.len() > 15, "{scopes}");
        (routes, methods)
    }

    /// Asks each of these routes about each of these names. Gives the requests whose answers have the secret.
    fn walk(&self, names: &BTreeSet<String>, is_asked: impl Fn(&Route) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        let routes = self.scopes().0.into_iter().filter(is_asked);
        // What deletes comes last.
        let (last, first): (Vec<Route>, Vec<Route>) =
            routes.partition(|route| route.method == "DELETE");
        for route in first.into_iter().chain(last) {
            for name in names {
                for path in route.paths(name) {
                    let body = body(&route, name);
                    let (status, answer) =
                        self.ask(&self.client.token, &route.method, &path, &body);
                    if answer.contains(SECRET) {
                        found.push(format!("{} {path}: {status}", route.method));
                    }
                }
                if !route.is_about(name) {
                    break;
                }
            }
        }
        found
    }

    /// The same with the methods of the WebSocket.
    fn walk_methods(&self, names: &BTreeSet<String>) -> Vec<String> {
        let (_, methods) = self.scopes();
        let mut found = Vec::new();
        for method in methods {
            for name in names {
                let answer = block_on(async {
                    let mut socket = Socket::open(&self.client).await;
                    let params = params(&method, name);
                    socket.ask("1", &method, params).await
                });
                if answer.to_string().contains(SECRET) {
                    found.push(format!("{method} {name}"));
                }
            }
        }
        found
    }

    /// Has the agent call each tool that it has, with each of its choices, about some of these names.
    fn walk_tools(&self, names: &BTreeSet<String>) -> usize {
        self.say("main", "which tools? <m1>");
        let request = self.model.requests().pop().unwrap();
        let tools = request.json()["tools"].as_array().unwrap().clone();
        let mut names = names.iter().cycle();
        for tool in &tools {
            let tool_name = tool["name"].as_str().unwrap();
            // The tools of an MCP server are one way, and some of this one wait until their time limit.
            let is_another = tool_name.strip_prefix("faults__").is_some_and(|tool| tool != "echo");
            if is_another || ELSEWHERE.contains(&tool_name) {
                continue;
            }
            for arguments in arguments(&tool["input_schema"], &mut names) {
                self.order(tool_name, &arguments);
            }
        }
        tools.len()
    }
}

/// A route of the gateway.
struct Route {
    method: String,
    path: String,
    /// Nobody needs a token for it.
    is_open: bool,
}

impl Route {
    /// Whether a request to it says this name.
    fn is_about(&self, name: &str) -> bool {
        self.paths(name).concat().contains(&coded(name))
            || body(self, name).to_string().contains(&json!(name).to_string())
    }

    /// Its paths about this name.
    fn paths(&self, name: &str) -> Vec<String> {
        let coded = coded(name);
        let Some((before, rest)) = self.path.split_once('{') else {
            return vec![self.path.clone()];
        };
        let (parameter, after) = rest.split_once('}').unwrap();
        assert!(!after.contains('{'), "{}", self.path);
        let values: Vec<&str> = match (parameter, self.path.as_str()) {
            ("change", "/api/devices/{change}") => vec!["approve", "deny", "revoke", "rotate"],
            ("change", "/api/pairing/{change}") => vec!["approve", "deny"],
            ("change", "/api/push/{change}") => vec!["test", "remove"],
            ("change", "/api/running/{change}") => vec!["stop", "answer"],
            ("change", "/api/channels/{change}") => vec!["test"],
            ("change", other) => panic!("name the changes of {other}"),
            ("tool", _) => {
                vec!["cron", "message", "sessions_list", "sessions_history", "sessions_send"]
            }
            ("server", _) => vec!["faults"],
            _ => vec![&coded],
        };
        values.iter().map(|value| format!("{before}{value}{after}")).collect()
    }
}

/// A name as a part of a path.
fn coded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// What a request about this name says.
fn body(route: &Route, name: &str) -> Value {
    let number = fresh();
    match (route.method.as_str(), route.path.as_str()) {
        ("GET" | "DELETE", _) => Value::Null,
        (_, "/api/messages") => json!({"session": "main", "text": "hello <m1>", "id": name}),
        (_, "/api/sessions/{session}/fork") => json!({"newSession": format!("fork-{number}")}),
        (_, "/api/sessions/{session}/title") => json!({"title": "mine"}),
        (_, "/api/approvals/{id}") => json!({"answer": "once"}),
        (_, "/api/channels/{change}") => json!({"version": "0", "channel": "telegram"}),
        (_, "/api/pairing/{change}" | "/api/devices/{change}") => json!({"name": name}),
        (_, "/api/devices/code") => json!({"scope": "read-only"}),
        (_, "/api/devices/pair") => json!({"code": name}),
        (_, "/api/devices/sign-in") => json!({"secret": name}),
        (_, "/api/nodes/{node}/call") => json!({"command": "system.info", "arguments": {}}),
        (_, "/api/push") => json!({"endpoint": name, "p256dh": name, "auth": name}),
        (_, "/api/push/{change}") => json!({"id": name}),
        (_, "/api/running/{change}") => json!({"session": name, "answer": "no"}),
        (_, "/api/speech/speak") => json!({"text": "hello"}),
        ("PUT", "/api/config") => json!({"version": "0", "text": "{}"}),
        (_, "/api/config") => json!({"version": "0", "changes": []}),
        (_, "/api/setup/model") => json!({"version": "0", "provider": "anthropic"}),
        (_, "/api/mcp/{server}/approve") => json!({"code": name}),
        (_, "/api/cluster/drain") => json!({"node": format!("{name}-{number}")}),
        (_, "/api/memory") => json!({"text": "A fact of my own."}),
        (_, "/api/memory/{fact}") => json!({"text": "A fact."}),
        (_, "/api/prompts/{name}") => json!({"prompt": {"text": "Say it."}, "before": null}),
        (_, "/api/cron") => json!({"action": "remove", "id": name}),
        (_, "/api/tools/{tool}") => {
            let arguments = json!({"sessionKey": name, "action": "list", "message": "hello"});
            json!({"session": "agent:main:main", "call": name, "turn": name, "arguments": arguments})
        }
        (_, "/v1/chat/completions") => {
            let messages = json!([{"role": "user", "content": "hello <m1>"}]);
            json!({"model": "myclaw", "messages": messages, "user": name})
        }
        (_, "/v1/responses") => {
            json!({"model": "myclaw", "input": "hello <m1>", "previous_response_id": name})
        }
        (_, "/mcp") => json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}),
        (
            _,
            "/api/sessions/{session}/abort"
            | "/api/devices/link"
            | "/api/speech/listen"
            | "/api/files/{part}/view"
            | "/api/workspace/file"
            | "/api/workspace/view"
            | "/api/mcp/{server}/changes"
            | "/v1/responses/{id}/cancel",
        ) => json!({}),
        (method, path) => panic!("say what a request to {method} {path} has in its body"),
    }
}

/// What a request of the WebSocket says.
fn params(method: &str, name: &str) -> Value {
    let session = if SESSIONS.contains(&name) { name } else { "main" };
    let text = if method == "command" { "/usage" } else { "hello <m1>" };
    json!({
        "session": session, "id": name, "text": text, "at": name, "before": name, "answer": "once",
        "newSession": format!("fork-{}", fresh()), "title": "mine", "stream": name, "after": 0,
    })
}

/// The arguments of calls of a tool with this schema: one for each choice that it offers.
fn arguments<'n>(schema: &Value, names: &mut impl Iterator<Item = &'n String>) -> Vec<Value> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let choices = properties.iter().find_map(|(key, property)| {
        let choices = property["enum"].as_array()?.clone();
        Some((key.clone(), choices))
    });
    let mut base = serde_json::Map::new();
    for (key, property) in &properties {
        let value = match property["type"].as_str() {
            _ if property["enum"].is_array() => property["enum"][0].clone(),
            Some("string") if key.to_lowercase().contains("session") => json!("agent:main:main"),
            Some("string") => json!(names.next().unwrap()),
            Some("integer" | "number") => json!(1),
            _ => continue,
        };
        base.insert(key.clone(), value);
    }
    let Some((key, choices)) = choices else { return vec![json!(base)] };
    // The gateway stays.
    let choices = choices.into_iter().filter(|choice| choice != "restart");
    let with = |choice| {
        base.insert(key.clone(), choice);
        json!(base)
    };
    choices.map(with).collect()
}

/// What names something in an answer.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str().filter(|_| NAMING.contains(&key.as_str())) {
                    Some(name) if !name.is_empty() && !name.contains(SECRET) => {
                        names.insert(name.to_owned());
                    }
                    _ => names_in(value, names),
                }
            }
        }
        _ => {}
    }
}

/// The rows of all tables of a schema, by table.
pub(super) fn tables(audit: &Audit, schema: &str) -> Vec<(String, String)> {
    let sql = "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1";
    let tables = audit.texts(sql, &[&schema]);
    let rows = |table: String| {
        let sql = format!(
            "SELECT coalesce(string_agg(one::text, '; ' ORDER BY one::text), '') FROM {schema}.{table} AS one"
        );
        let rows = audit.texts(&sql, &[]).concat();
        (table, rows)
    };
    tables.into_iter().map(rows).collect()
}

/// The tables that have this word. Bytes are shown as hexadecimal digits.
pub(super) fn with<'t>(tables: &'t [(String, String)], word: &str) -> Vec<&'t str> {
    let digits: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let has = |rows: &str| rows.contains(word) || rows.contains(&digits);
    tables.iter().filter(|(_, rows)| has(rows)).map(|(table, _)| table.as_str()).collect()
}

#[test]
fn nothing_crosses_between_two_tenants() {
    let Some((_server, url)) = database() else { return };
    let [anna, bob] = ["anna", "bob"].map(|tenant| Side::new(tenant, &url));
    for side in [&anna, &bob] {
        side.run(&["store", "migrate"]).assert_code(0);
    }
    let gateways = [anna.start(), bob.start()];
    anna.fill(SECRET);
    let audit = Audit::without_triggers(&url);
    let keys = |tenant: &str| {
        let sql = format!("SELECT key FROM myclaw_{tenant}.record WHERE kind = 'keys'");
        audit.texts(&sql, &[]).len()
    };
    assert_eq!([keys("anna"), keys("bob")], [1, 0]);
    // One has begun to use models, the other has not.
    assert_eq!(bob.client.get("/api/usage").unwrap().1["rows"], json!([]));
    assert_eq!(bob.client.get("/api/mcp").unwrap().1["servers"][0]["state"], "unapproved");
    bob.fill("nothing");
    let mut names: BTreeSet<String> = SESSIONS.iter().map(|name| (*name).to_owned()).collect();
    for route in anna.scopes().0.iter().filter(|route| route.method == "GET") {
        if !route.path.contains('{') && !GENERAL.contains(&route.path.as_str()) {
            let (_, answer) = anna.ask(&anna.client.token, "GET", &route.path, &Value::Null);
            names_in(&serde_json::from_str(&answer).unwrap_or_default(), &mut names);
        }
    }
    let [of_anna, of_bob] = gateways;
    // The same questions find it where it belongs.
    let at_home = anna.walk(&names, |route| route.method == "GET");
    for path in ["/history", "/export", "/api/cron", "/api/memory", "/api/devices"] {
        assert!(at_home.iter().any(|found| found.contains(path)), "{path}: {at_home:?}");
    }
    of_anna.stop();
    let before = tables(&audit, "myclaw_anna");
    for table in ["entry", "record", "session", "blob_part"] {
        assert!(with(&before, SECRET).contains(&table), "{table}: {:?}", with(&before, SECRET));
    }
    assert!(bob.walk_tools(&names) > 20);
    let found = [bob.walk(&names, |_| true), bob.walk_methods(&names)].concat();
    assert_eq!(found, [] as [String; 0]);
    // Nothing lets the token of the other one in.
    for route in bob.scopes().0.iter().filter(|route| !route.is_open) {
        let path = &route.paths("main")[0];
        let (status, _) = bob.ask(&anna.client.token, &route.method, path, &json!({}));
        // Too many of them have to wait.
        assert!(matches!(status, 401 | 429), "{} {path}: {status}", route.method);
    }
    let greeting = block_on(async {
        let mut socket = Socket::silent(&bob.client, &[]).await.unwrap();
        socket.send(&json!({"type": "auth", "token": anna.client.token, "protocol": 1})).await;
        socket.next().await
    });
    assert_ne!(greeting["type"], "hello", "{greeting}");
    of_bob.stop();
    assert_eq!(with(&tables(&audit, "myclaw_bob"), SECRET), [] as [&str; 0]);
    let after = tables(&audit, "myclaw_anna");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    let log = bob.machine.home.state_directory().join("logs/myclaw.log");
    assert!(!std::fs::read_to_string(log).unwrap().contains(SECRET));
    let requests = bob.model.requests();
    assert!(requests.iter().all(|request| !request.json().to_string().contains(SECRET)));
}

#[test]
fn a_tenant_is_created_on_purpose_and_has_nodes_of_its_own() {
    let Some((_server, url)) = database() else { return };
    let [anna, bob] = ["anna", "bob"].map(|tenant| Side::new(tenant, &url));
    let refused = |side: &Side, arguments: &[&str], code: i32| {
        let output = side.run(arguments);
        output.assert_code(code);
        output.stderr()
    };
    let said = refused(&anna, &["gateway"], 1);
    assert!(said.contains("has no tenant anna (there is none)"), "{said}");
    assert!(said.contains("create it with `myclaw store migrate`"), "{said}");
    anna.run(&["store", "migrate"]).assert_code(0);
    let said = refused(&bob, &["store", "check"], 1);
    assert!(said.contains("has no tenant bob (there is anna); correct gateway.tenant"), "{said}");
    bob.run(&["store", "migrate"]).assert_code(0);
    let checked = bob.run(&["store", "check"]).stdout();
    assert!(checked.contains("(tenant bob)"), "{checked}");
    let gateways = [anna.start(), bob.start()];
    let state = nodes::status(&bob.machine);
    assert_eq!(state["tenants"], json!(["anna", "bob"]));
    assert_eq!((&state["tenant"], state["nodes"].as_array().unwrap().len()), (&json!("bob"), 1));
    bob.run(&["cluster", "drain", "one"]).assert_code(0);
    let [of_anna, of_bob] = gateways;
    of_bob.child.wait(PATIENCE).assert_code(0);
    assert_eq!(anna.say("main", "hello <m1>")["reply"], "re: <m1>");
    of_anna.stop();
    let directory = anna.machine.home.path().join("copy");
    anna.run(&["store", "export", directory.to_str().unwrap()]).assert_code(0);
    let carl = Side::new("carl", &url);
    let imported = carl.run(&["store", "import", directory.to_str().unwrap()]);
    imported.assert_code(0);
    assert!(imported.stderr().contains("1 sessions"), "{}", imported.stderr());
    assert!(carl.run(&["sessions", "list"]).stdout().contains("hello <m1>"));
    assert!(!bob.run(&["sessions", "list"]).stdout().contains("hello <m1>"));
    bob.machine.configure("one", &bob.model, |config| {
        config["gateway"].as_object_mut().unwrap().remove("store");
        config["gateway"]["tenant"] = json!("bob");
    });
    let said = refused(&bob, &["gateway"], 3);
    assert!(said.contains("gateway.tenant is bob, and no database is named"), "{said}");
    bob.machine.configure("one", &bob.model, |config| {
        config["gateway"]["tenant"] = json!("Bob's");
    });
    let said = refused(&bob, &["store", "check"], 3);
    assert!(said.contains("gateway.tenant: expected 1 to 40 lower-case letters"), "{said}");
}
