//! Nodes: another machine, here another state directory, that runs what the gateway asks for.

use std::path::PathBuf;

use super::devices::{code, run};
use super::socket::{Socket, block_on};
use super::*;

/// A machine with a home of its own.
struct Machine {
    home: TempHome,
}

impl Machine {
    fn new(config: &Value) -> Self {
        let home = TempHome::new();
        home.write_config(config);
        Self { home }
    }

    fn spawn(&self, args: &[&str]) -> RunningChild {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::spawn(command.arg("node").args(args))
    }

    /// Pairs, is approved, and connects.
    fn join(&self, bench: &Bench) -> RunningChild {
        let url = format!("ws://127.0.0.1:{}", bench.port);
        let code = code(bench, "node");
        let node = self.spawn(&["--url", &url, "--pair", &code, "--name", "far"]);
        node.wait_for_stderr("waits for the owner's approval");
        run(bench, &["nodes", "approve", "far"]);
        node.wait_for_stderr("connected to the gateway");
        node
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.workspace().join(name)
    }
}

/// Has the node do something; gives the status and the answer.
fn call(client: &Client, capability: &str, arguments: &Value) -> (u16, Value) {
    let body = json!({"capability": capability, "arguments": arguments});
    client.post("/api/nodes/far/call", &body).unwrap()
}

/// The texts of an answer, or its failure.
fn said(answer: &(u16, Value)) -> String {
    let texts = answer.1["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
    if answer.0 == 200 { texts.join("") } else { answer.1["error"]["message"].to_string() }
}

/// Whether the first node is connected.
fn is_connected(client: &Client) -> bool {
    client.get("/api/nodes").unwrap().1["nodes"][0]["connected"] == true
}

/// A command that says that it runs, in a process and a child of it, and would run for long.
const LONG: &str = "echo $$ > pid; sleep 600 & echo $! > child; wait";

/// Whether the processes of [`LONG`] are there.
fn runs(machine: &Machine) -> bool {
    let is_there = |name: &str| {
        let id = std::fs::read_to_string(machine.file(name)).unwrap_or_default();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        !id.trim().is_empty() && !stat.is_empty() && !stat.contains(") Z ")
    };
    is_there("pid") || is_there("child")
}

/// Removes what an earlier [`LONG`] left.
fn forget(machine: &Machine) {
    for name in ["pid", "child"] {
        let _ = std::fs::remove_file(machine.file(name));
    }
}

fn until_it_runs(machine: &Machine) {
    until("the command", || {
        std::fs::read_to_string(machine.file("child")).is_ok_and(|id| !id.trim().is_empty())
    });
}

/// Begins [`LONG`] and waits until it runs.
fn begin(machine: &Machine, client: &Client) -> std::thread::JoinHandle<(u16, Value)> {
    forget(machine);
    let client = client.clone();
    let waiting = std::thread::spawn(move || call(&client, "run", &json!({"command": LONG})));
    until_it_runs(machine);
    waiting
}

/// A client that asks for [`LONG`], and closes its connection when it runs.
fn asked_and_gone(machine: &Machine, client: &Client) {
    use std::io::Write as _;

    forget(machine);
    let body = json!({"capability": "run", "arguments": {"command": LONG}}).to_string();
    let head = client.head("POST", "/api/nodes/far/call");
    let length = body.len();
    let request =
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", client.port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    until_it_runs(machine);
}

#[test]
fn a_node_is_paired_approved_used_and_revoked() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    let picture = "printf 'no picture' > \"$(sed 's/.*\"output\":\"\\([^\"]*\\)\".*/\\1/')\"";
    let machine = Machine::new(&json!({
        "node": {
            "location": "52.52,13.41 (home)",
            "commands": {"notify": "cat > note.json", "cameraList": ["echo", "front"], "cameraClip": picture},
        }
    }));
    let node = machine.join(&bench);
    let kept = machine.home.state_directory().join("node/paired.json");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    let described: Value =
        serde_json::from_str(&run(&bench, &["nodes", "describe", "far"])).unwrap();
    assert_eq!(described["connected"], true);
    let mut offered: Vec<&str> =
        described["capabilities"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    offered.sort_unstable();
    assert_eq!(
        offered,
        ["camera_clip", "camera_list", "edit", "location_get", "notify", "read", "run", "write"]
    );

    assert!(said(&call(client, "run", &json!({"command": "echo hello; pwd"}))).contains("hello"));
    let written = call(client, "write", &json!({"path": "notes.md", "content": "far away\n"}));
    assert_eq!(written.0, 200, "{written:?}");
    assert_eq!(std::fs::read_to_string(machine.file("notes.md")).unwrap(), "far away\n");
    assert!(said(&call(client, "read", &json!({"path": "notes.md"}))).contains("far away"));
    assert_eq!(said(&call(client, "location_get", &json!({}))), "52.52,13.41 (home)");
    assert_eq!(said(&call(client, "camera_list", &json!({}))).trim(), "front");
    assert_eq!(call(client, "notify", &json!({"title": "t", "body": "b"})).0, 200);
    let note = std::fs::read_to_string(machine.home.state_directory().join("node/note.json"));
    assert_eq!(
        serde_json::from_str::<Value>(&note.unwrap()).unwrap(),
        json!({"title": "t", "body": "b"})
    );
    let clip = call(client, "camera_clip", &json!({"durationMs": 10}));
    assert_eq!(clip.1["content"][0], json!({"type": "file", "data": "bm8gcGljdHVyZQ=="}));

    // What is not offered is refused, and so is what a call must not contain.
    assert!(
        said(&call(client, "camera_snap", &json!({}))).contains("does not offer `camera_snap`")
    );
    assert!(
        said(&call(client, "bash", &json!({"command": "echo"}))).contains("does not offer `bash`")
    );
    let left = json!({"command": "echo", "background": true});
    assert!(said(&call(client, "run", &left)).contains("cannot leave a command running"));
    // A long answer is cut.
    let long = said(&call(client, "run", &json!({"command": "yes a long line | head -n 200000"})));
    assert!(long.len() < 300 * 1024, "{}", long.len());
    // The node's token is good for the protocol of nodes only.
    let paired: Value = serde_json::from_slice(&std::fs::read(&kept).unwrap()).unwrap();
    let token = paired["token"].as_str().unwrap().to_owned();
    let as_node = Client { token, ..client.clone() };
    assert_eq!(as_node.get("/api/status").unwrap().0, 403);
    assert_eq!(call(&as_node, "run", &json!({"command": "id"})).0, 403);

    // Revoked while a command runs: the command ends at once, and so does the node.
    let waiting = begin(&machine, client);
    run(&bench, &["devices", "revoke", "far"]);
    let answer = waiting.join().unwrap();
    assert!(said(&answer).contains("disconnected before it answered"), "{answer:?}");
    until("the end of the command", || !runs(&machine));
    let ended = node.wait(PATIENCE);
    ended.assert_code(1);
    let printed = ended.stderr();
    assert!(printed.contains("denied or revoked"), "{printed}");
    assert!(said(&call(client, "run", &json!({"command": "id"}))).contains("there is no node"));
    gateway.stop();
}

#[test]
fn calls_end_with_the_node_with_the_gateway_and_with_the_one_who_asked() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let machine = Machine::new(&json!({}));
    let node = machine.join(&bench);
    // The node is killed: one clear failure, and the next start ends what it left.
    let waiting = begin(&machine, &gateway.client);
    node.signal(Signal::Kill);
    node.wait(PATIENCE);
    let answer = waiting.join().unwrap();
    assert!(said(&answer).contains("disconnected before it answered"), "{answer:?}");
    let node = machine.spawn(&[]);
    node.wait_for_stderr("connected to the gateway");
    until("the end of what was left", || !runs(&machine));
    // The one who asked goes away: nobody waits for the command any more.
    asked_and_gone(&machine, &gateway.client);
    until("the end of the command", || !runs(&machine));
    // The gateway is killed: the node ends the command, and comes back by itself.
    let waiting = begin(&machine, &gateway.client);
    gateway.kill();
    drop(waiting.join());
    until("the end of the command", || !runs(&machine));
    let gateway = bench.start();
    until("the connection", || is_connected(&gateway.client));
    assert!(said(&call(&gateway.client, "run", &json!({"command": "echo back"}))).contains("back"));
    node.signal(Signal::Terminate);
    node.wait(PATIENCE).assert_code(0);
    // The gateway learns of the end from the connection, a moment later.
    until("the end of the connection", || !is_connected(&gateway.client));
    let answer = call(&gateway.client, "run", &json!({"command": "id"}));
    assert!(said(&answer).contains("is not connected"), "{answer:?}");
    gateway.stop();
}

#[test]
fn a_node_with_another_protocol_learns_which_machine_to_update() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let machine = Machine::new(&json!({}));
    let node = machine.join(&bench);
    node.signal(Signal::Terminate);
    node.wait(PATIENCE).assert_code(0);
    let kept = machine.home.state_directory().join("node/paired.json");
    let paired: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    let token = paired["token"].as_str().unwrap().to_owned();
    let as_node = Client { token, ..gateway.client };
    block_on(async {
        for (protocol, machine) in [(1, "the node"), (3, "the gateway")] {
            let mut socket = Socket::of_node(&as_node).await;
            let hello = json!({
                "type": "hello", "protocol": protocol, "version": "0.1.0", "platform": "linux", "capabilities": ["run"],
            });
            socket.send(&hello).await;
            let told = socket.next().await;
            let wanted = format!(
                "the gateway speaks protocol 2, the node {protocol}; update MyClaw on the machine of {machine}"
            );
            assert_eq!(told, json!({"closed": wanted}));
        }
        // One that speaks this protocol is let in, and what is no reply ends the connection.
        let mut socket = Socket::of_node(&as_node).await;
        let hello = json!({
            "type": "hello", "protocol": 2, "version": "0.2.0", "platform": "linux", "capabilities": ["run"],
        });
        socket.send(&hello).await;
        assert_eq!(socket.next().await["type"], "welcome");
        socket.send(&json!({"type": "result", "id": 1})).await;
        assert_eq!(socket.next().await, json!({"closed": "the frame is not an answer to a call"}));
    });
    gateway.stop();
}

#[test]
fn the_policies_of_both_machines_hold_and_the_model_cannot_approve() {
    let bench = Bench::new(shared(|request, _| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text(format!("result: {last}")).step();
        }
        let arguments = if last.contains("approve it") {
            json!({"action": "approve", "node": "other"})
        } else {
            json!({"action": "run", "node": "far", "command": ["echo", "it's", "me"]})
        };
        Reply::anthropic().tool_call("call_1", "nodes", arguments).step()
    }));
    let gateway = bench.start();
    let client = &gateway.client;
    let machine = Machine::new(
        &json!({"tools": {"deny": ["write"], "exec": {"security": "allowlist", "allowlist": ["echo"]}}}),
    );
    let node = machine.join(&bench);
    // The node decides what runs on it.
    assert!(said(&call(client, "run", &json!({"command": "echo yes"}))).contains("yes"));
    // Nothing in a call approves it.
    let refused = call(client, "run", &json!({"command": "touch no", "approved": true}));
    assert!(refused.0 == 400 && !machine.file("no").exists(), "{refused:?}");
    assert!(
        said(&call(client, "write", &json!({"path": "no", "content": ""})))
            .contains("does not offer")
    );
    // The model uses the node through its tool.
    let ask = |client: &Client, id: &str, text: &str| {
        let message = client.send("main", id, text).unwrap();
        client.outcome(&message).unwrap()["reply"].to_string()
    };
    let reply = ask(client, "one", "run it");
    assert!(reply.contains("it's me") && reply.contains("not an instruction"), "{reply}");
    // It cannot let a node in: the owner is asked, whatever the config says.
    let other = Machine::new(&json!({}));
    let (url, code) = (format!("ws://127.0.0.1:{}", bench.port), code(&bench, "node"));
    let second = other.spawn(&["--url", &url, "--pair", &code, "--name", "other"]);
    second.wait_for_stderr("waits for the owner's approval");
    let message = client.send("main", "two", "approve it").unwrap();
    until("the question", || client.get("/api/approvals").unwrap().1["approvals"][0].is_object());
    let question = client.get("/api/approvals").unwrap().1["approvals"][0].clone();
    assert!(question["reason"].as_str().unwrap().contains("only the owner"), "{question}");
    let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
    assert_eq!(client.post(&path, &json!({"answer": "no"})).unwrap().0, 200);
    client.outcome(&message).unwrap();
    run(&bench, &["nodes", "reject", "other"]);
    second.wait(PATIENCE).assert_code(1);
    // Where the gateway restricts commands, those of nodes are restricted too.
    gateway.stop();
    bench.configure(|config| config["tools"] = json!({"exec": {"security": "deny"}}));
    let gateway = bench.start();
    until("the connection", || is_connected(&gateway.client));
    let reply = ask(&gateway.client, "three", "run it");
    assert!(reply.contains("nothing may be run on another machine"), "{reply}");
    node.signal(Signal::Terminate);
    node.wait(PATIENCE).assert_code(0);
    gateway.stop();
}

#[test]
fn a_node_recognises_its_gateway_by_the_certificate() {
    if !super::tls::are_installed() {
        return;
    }
    let bench = Bench::new(answering("fine"));
    bench.make_certificate("own");
    bench.make_certificate("other");
    bench.configure_tls("own.pem", "own.key");
    let gateway = bench.start_tls();
    let machine = Machine::new(&json!({}));
    let url = format!("wss://localhost:{}", bench.port);
    let [own, other] = ["own.pem", "other.pem"].map(|name| bench.file(name).display().to_string());
    let pair = |more: &[&str]| {
        let code = code(&bench, "node");
        let arguments = [&["--url", &url, "--pair", &code, "--name", "far"], more].concat();
        machine.spawn(&arguments)
    };
    for more in [&["--ca", &other][..], &[]] {
        let refused = pair(more).wait(PATIENCE);
        refused.assert_code(1);
        assert!(refused.stderr().contains("no encrypted connection"), "{}", refused.stderr());
    }
    // Nothing of the refused attempts is kept, neither here nor there.
    assert!(!machine.home.state_directory().join("node/paired.json").exists());
    let node = pair(&["--ca", &own]);
    node.wait_for_stderr("waits for the owner's approval");
    run(&bench, &["nodes", "approve", "far"]);
    node.wait_for_stderr("connected to the gateway");
    assert!(run(&bench, &["nodes", "describe", "far"]).contains("\"connected\":true"));
    node.signal(Signal::Kill);
    node.wait(PATIENCE);
    // The next process finds the file by itself.
    let node = machine.spawn(&[]);
    node.wait_for_stderr("connected to the gateway");
    gateway.stop();
    node.signal(Signal::Terminate);
    node.wait(PATIENCE).assert_code(0);
}
