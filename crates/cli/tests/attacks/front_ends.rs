//! The same boundaries behind other front-ends: the chat, `rpc` and `acp`; and what they show of a session.

use std::time::Duration;

use myclaw_testkit::{RunningChild, instruction};
use serde_json::{Value, json};

use super::attack::{Attack, Attacks};
use super::fixture::{Gateway, free_port, spawn};
use super::outsiders::paired;
use super::reach::{Aim, bash};
use super::sandboxed::{TOOLS, try_to_reach_with};
use super::scene::Scene;

/// How long a program may take to leave.
const LEAVING: Duration = Duration::from_secs(60);

/// A program that is spoken to in lines of JSON.
pub(super) struct Lines {
    child: RunningChild,
    next: u64,
}

impl Lines {
    pub(super) fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.current_dir(scene.home.path()).args(arguments);
        Self { child: RunningChild::spawn_piped(&mut command), next: 0 }
    }

    /// Sends a line with an id of its own, and waits for the line that begins with what `answer` makes of that id.
    pub(super) fn ask(&mut self, line: Value, answer: impl Fn(u64) -> String) -> Value {
        let id = self.send(line);
        self.wait_for(&answer(id))
    }

    /// Sends a line with an id of its own, which it gives.
    pub(super) fn send(&mut self, mut line: Value) -> u64 {
        self.next += 1;
        line["id"] = json!(self.next);
        self.say(&line);
        self.next
    }

    /// Sends a line.
    pub(super) fn say(&mut self, line: &Value) {
        self.child.send(&format!("{line}\n"));
    }

    pub(super) fn wait_for(&self, text: &str) -> Value {
        loop {
            let output = self.child.wait_for_stdout(text);
            let at = output.find(text).unwrap();
            let begin = output[..at].rfind('\n').map_or(0, |end| end + 1);
            if let Some((line, _)) = output[begin..].split_once('\n') {
                return serde_json::from_str(line).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn rpc(&mut self, line: Value) -> Value {
        self.ask(line, |id| format!("{{\"type\":\"response\",\"id\":{id},"))
    }

    pub(super) fn acp(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let answer = self.ask(line, |id| format!("\"id\":{id},\"result\""));
        answer["result"].clone()
    }

    /// Closes its input; gives all that it has said.
    pub(super) fn end(mut self) -> String {
        self.child.close_stdin();
        self.child.wait(LEAVING).stdout()
    }
}

fn scene() -> Scene {
    Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["allowlist"] = json!(TOOLS);
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("all");
    })
}

fn held(scene: &Scene, attacks: &Attacks) {
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn a_sandboxed_chat_reaches_nothing() {
    let mut scene = scene();
    let attacks = try_to_reach_with(&mut scene, &[Aim::Read, Aim::Write], |scene, batch| {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.current_dir(scene.home.path()).arg("chat");
        // A line of the chat ends at its newline, unless a backslash stands before it.
        let text = format!("{}\n", batch.trim_end().replace('\n', " \\\n"));
        RunningChild::run_with_input(&mut command, text).assert_code(0);
    });
    held(&scene, &attacks);
}

#[test]
fn a_sandboxed_session_of_rpc_reaches_nothing() {
    let mut scene = scene();
    let mut rpc: Option<Lines> = None;
    let mut turns = 0;
    let attacks = try_to_reach_with(&mut scene, &[Aim::Read, Aim::Change], |scene, batch| {
        let rpc = rpc.get_or_insert_with(|| Lines::start(scene, &["rpc"]));
        rpc.rpc(json!({"type": "prompt", "message": batch}));
        turns += 1;
        let end = "\"type\":\"run_end\"";
        while rpc.child.wait_for_stdout(end).matches(end).count() < turns {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    held(&scene, &attacks);
    rpc.unwrap().end();
}

#[test]
fn a_sandboxed_session_of_acp_reaches_nothing() {
    let mut scene = scene();
    let mut acp: Option<(Lines, String)> = None;
    let attacks = try_to_reach_with(&mut scene, &[Aim::Write, Aim::Change], |scene, batch| {
        let (acp, session) = acp.get_or_insert_with(|| open_acp(scene));
        let prompt = json!([{"type": "text", "text": batch}]);
        acp.acp("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    });
    held(&scene, &attacks);
    acp.unwrap().0.end();
}

fn open_acp(scene: &Scene) -> (Lines, String) {
    let mut acp = introduced(scene);
    std::fs::create_dir_all(scene.home.workspace()).unwrap();
    let begun = acp.acp("session/new", &json!({"cwd": scene.home.workspace(), "mcpServers": []}));
    let session = begun["sessionId"].as_str().unwrap().to_owned();
    (acp, session)
}

fn introduced(scene: &Scene) -> Lines {
    let mut acp = Lines::start(scene, &["acp"]);
    acp.acp("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
    acp
}

/// Keys that the program does not know, so that the results of tools keep them.
fn keys() -> [String; 4] {
    [
        format!("sk-ant-api03-{}", "Ab3".repeat(30)),
        format!("ghp_{}", "Ab3".repeat(12)),
        format!("xoxb-{}-{}", "1".repeat(12), "Ab3".repeat(8)),
        format!("123456789:{}", "Ab3d5".repeat(7)),
    ]
}

#[test]
fn what_a_front_end_shows_of_a_session_holds_no_key() {
    let scene = scene();
    let (mut acp, session) = open_acp(&scene);
    let own = format!("glpat-{}", "Ab3".repeat(8));
    let mut said = format!("Mine is {own}.");
    for (number, key) in keys().iter().enumerate() {
        scene
            .home
            .write(scene.home.workspace().join(format!("{number}.txt")), format!("key={key}\n"));
        let read = json!({"path": format!("{number}.txt")});
        said = format!("{said}\n{}", instruction(&format!("w-{number}"), "read", &read));
    }
    let prompt = json!([{"type": "text", "text": said}]);
    acp.acp("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    acp.end();
    let show = |arguments: &[&str]| {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let shown = RunningChild::run(command.args(["sessions", "show", &session]).args(arguments));
        shown.assert_code(0).stdout()
    };
    let mut acp = introduced(&scene);
    let load = json!({"sessionId": session, "cwd": scene.home.workspace(), "mcpServers": []});
    acp.acp("session/load", &load);
    let mut rpc = Lines::start(&scene, &["rpc", "--session", &session]);
    let messages = rpc.rpc(json!({"type": "get_messages"})).to_string();
    rpc.end();
    for (way, shown) in [
        ("show", show(&[])),
        ("show --all", show(&["--all"])),
        ("show --json", show(&["--json"])),
        ("show --last", show(&["--last", "20"])),
        ("acp", acp.end()),
        ("rpc", messages),
    ] {
        for key in keys() {
            assert!(!shown.contains(&key), "{way} shows {key}: {shown}");
        }
        assert!(shown.contains("key=[redacted]"), "{way}: {shown}");
        assert!(shown.contains(&own), "{way} keeps the words of the owner: {shown}");
    }
}

#[test]
fn what_a_device_delivers_reaches_nothing_of_the_owner() {
    let port = free_port();
    let mut scene = Scene::new(|config| config["gateway"] = json!({"port": port}));
    let workspace = scene.home.workspace();
    let plan = scene.secret("a file of the owner's workspace");
    scene.home.write(workspace.join("plan.md"), format!("# line one\n{plan}\n"));
    scene.home.write(workspace.join("AGENTS.md"), "Be kind.\n");
    scene.watch(workspace.clone());
    let gateway = Gateway::of(spawn(&scene.home), &scene.home, port);
    let device = paired(&scene, &gateway, "webhook", "builds");
    let mut attacks = Attacks::new("h");
    for directory in [".".to_owned(), workspace.display().to_string()] {
        attacks.add("read", vec![("read", json!({"path": format!("{directory}/plan.md")}))]);
        attacks.add("cat", vec![bash(format!("cat {directory}/plan.md"))]);
        let path = format!("{directory}/{}.txt", attacks.next_label());
        attacks.add("write", vec![("write", json!({"path": path, "content": "x"}))]);
        attacks.add("plant", vec![bash(format!("echo h003 >{directory}/AGENTS.md"))]);
    }
    let fact = json!({"fact": format!("{} is how it is done", attacks.next_label())});
    attacks.add("remember", vec![("memory_write", fact)]);
    scene.begin();
    let text = attacks.batches(100).concat();
    let (status, answer) = device.post("/api/messages", &json!({"text": text})).unwrap();
    assert_eq!(status, 202, "{answer}");
    let outcome = gateway.client.outcome(answer["messageId"].as_str().unwrap()).unwrap();
    assert_eq!(outcome["state"], "answered", "{outcome}");
    scene.check(|_| true);
    let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::run(command.args(["run", "hello"])).assert_code(0);
    for request in scene.new_requests() {
        for attack in attacks.all.iter().filter(|it| request.body_text().contains(&it.label)) {
            scene.breaches.note(&attack.label, "it is in the owner's prompt");
        }
    }
    gateway.stop();
    held(&scene, &attacks);
}
