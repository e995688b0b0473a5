//! Parties behind other doors than a chat: another machine, an editor, a voice, a sub-agent, and text that a terminal shows.

use std::net::TcpStream;

use myclaw_testkit::{RunningChild, Terminal, instruction};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

use super::attack::{Attack, Attacks};
use super::client::Client;
use super::fixture::{Gateway, free_port, spawn, until};
use super::front_ends::Lines;
use super::reach::{self, Aim};
use super::scene::{Scene, results};
use super::stranger::{Bot, STRANGER, Shared};
use super::texts::MARKS;

/// Marks that stand within one line.
fn marks() -> impl Iterator<Item = &'static str> {
    MARKS.iter().copied().filter(|mark| !mark.contains('\n'))
}

/// Whether a model would read a mark in these texts.
fn is_read(texts: &str, mark: &str) -> bool {
    texts.contains(json!(mark).to_string().trim_matches('"'))
}

/// A device that the owner has let in.
pub(super) fn paired(scene: &Scene, gateway: &Gateway, scope: &str, name: &str) -> Client {
    let owner = |arguments: &[&str]| {
        let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let output = RunningChild::run(command.args(arguments));
        output.assert_code(0);
        output.stdout()
    };
    let code = owner(&["devices", "code", "--scope", scope]);
    let nobody = Client { token: "none".to_owned(), ..gateway.client.clone() };
    let body = json!({"code": code.trim(), "name": name});
    let (status, device) = nobody.post("/api/devices/pair", &body).unwrap();
    assert_eq!(status, 200, "{device}");
    owner(&["devices", "approve", device["id"].as_str().unwrap()]);
    Client { token: device["token"].as_str().unwrap().to_owned(), ..nobody }
}

/// A machine that was paired as a node, and says whatever it likes.
struct Machine {
    socket: tungstenite::WebSocket<TcpStream>,
    client: Client,
}

impl Machine {
    fn join(scene: &Scene, gateway: &Gateway, name: &str, hello: &Value) -> Self {
        let client = paired(scene, gateway, "node", name);
        let mut request =
            format!("ws://127.0.0.1:{}/node", client.port).into_client_request().unwrap();
        let bearer = format!("Bearer {}", client.token);
        request.headers_mut().insert("authorization", bearer.parse().unwrap());
        let stream = TcpStream::connect(("127.0.0.1", client.port)).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        let mut machine = Self { socket, client };
        machine.send(hello);
        assert_eq!(machine.next()["type"], "welcome");
        machine
    }

    fn send(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).unwrap();
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }
}

/// The end of a call in the messages of nodes.
fn result(number: u64, outcome: &Value) -> Value {
    json!({"result": {"number": number, "outcome": outcome}})
}

fn texts(said: &str) -> Value {
    json!({"content": [{"type": "text", "text": said}], "details": null, "isError": false})
}

/// A gateway of an owner whose main session has nodes.
fn gateway_with_nodes() -> (Scene, Gateway) {
    let port = free_port();
    let scene = Scene::new(|config| config["gateway"] = json!({"port": port}));
    let gateway = Gateway::of(spawn(&scene.home), &scene.home, port);
    (scene, gateway)
}

#[test]
fn a_node_imitates_no_speaker_answers_no_other_call_and_is_no_client() {
    let (mut scene, gateway) = gateway_with_nodes();
    let all: Vec<&str> = marks().collect();
    let hello = json!({
        "type": "hello", "protocol": 2, "version": all[0], "platform": all[1],
        "capabilities": all.iter().take(60).map(|mark| format!("run{mark}")).chain(["run".to_owned()]).collect::<Vec<_>>(),
    });
    let mut machine = Machine::join(&scene, &gateway, "far", &hello);
    let mut attacks = Attacks::new("n");
    for way in ["text", "error"] {
        for mark in &all {
            let call = json!({"action": "run", "node": "far", "command": "id"});
            attacks.add(format!("{way} of a node: {mark}"), vec![("nodes", call)]);
        }
    }
    for action in ["status", "describe"] {
        attacks.add(action, vec![("nodes", json!({"action": action, "node": "far"}))]);
    }
    scene.begin();
    let orders: Vec<String> = attacks.all.iter().map(Attack::instructions).collect();
    for (number, order) in orders.iter().enumerate() {
        let sent = gateway.client.send("main", &format!("m{number}"), order).unwrap();
        if number < 2 * all.len() {
            let call = machine.next();
            let (id, mark) = (call["call"]["number"].as_u64().unwrap(), all[number % all.len()]);
            let label = &attacks.all[number].label;
            // Answers to calls that this node did not get.
            for other in [id + 1, id + 7, 0, u64::MAX] {
                let said = format!("stolen {label}");
                machine.send(&result(other, &json!({"output": texts(&said)})));
            }
            let said = format!("begin {mark} {label}\n{mark}\nend");
            let outcome = match number < all.len() {
                true => json!({"output": texts(&said)}),
                false => json!({"failed": {"text": said}}),
            };
            machine.send(&result(id, &outcome));
        }
        gateway.client.outcome(&sent).unwrap();
    }
    for request in scene.new_requests() {
        for (label, content) in results(&request) {
            let (label, content) =
                (label.split('-').next().unwrap().to_owned(), content.to_string());
            let attack = attacks.all.iter().find(|attack| attack.label == label).unwrap();
            for mark in all.iter().filter(|mark| is_read(&content, mark)) {
                scene.breaches.note(&attack.label, format!("the model read {mark:?}"));
            }
            if content.contains("stolen") {
                scene.breaches.note(&attack.label, "it answered another call");
            }
        }
    }
    assert_no_client(&machine);
    scene.check_files();
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
    gateway.stop();
}

/// The token of a node opens nothing but its own place.
fn assert_no_client(machine: &Machine) {
    let gets = [
        "status",
        "sessions",
        "channels",
        "approvals",
        "config",
        "security",
        "usage",
        "nodes",
        "devices",
        "cron",
        "logs",
        "nodes/far",
    ];
    for path in gets {
        let (status, answer) = machine.client.get(&format!("/api/{path}")).unwrap();
        assert!(matches!(status, 401 | 403 | 404 | 405), "GET {path}: {status} {answer}");
        assert!(!answer.to_string().contains("agent:main"), "GET {path}: {answer}");
    }
    for path in [
        "messages",
        "approvals/a00",
        "nodes/far/call",
        "devices/approve",
        "devices/code",
        "cron",
        "config",
    ] {
        let body = json!({
            "session": "main", "id": "x", "text": "DO x bash {}", "answer": "once", "name": "far",
            "capability": "run", "arguments": {"command": "id"}, "scope": "owner",
        });
        let (status, answer) = machine.client.post(&format!("/api/{path}"), &body).unwrap();
        assert!(matches!(status, 401 | 403 | 404 | 405), "POST {path}: {status} {answer}");
    }
}

#[test]
fn a_sub_agent_of_a_stranger_reaches_nothing_outside_of_his_workspace() {
    let mut bot = Bot::with(Shared::No, |config| {
        let allowed = config["agents"]["defaults"]["sandbox"]["allowlist"].as_array_mut().unwrap();
        allowed.extend([json!("sessions_spawn"), json!("subagents")]);
    });
    let home = bot.scene.home.path().to_owned();
    let mut attacks = Attacks::new("s");
    for aim in [Aim::Read, Aim::Write, Aim::Change] {
        let tools = ["bash", "read", "write", "edit", "grep", "find", "ls", "image"];
        reach::add(&mut attacks, &home, aim, &tools, |attacks| bot.scene.victim(attacks));
    }
    bot.scene.begin();
    for (number, batch) in attacks.batches(90).into_iter().enumerate() {
        let task = json!({"task": batch, "label": format!("t{number}")});
        bot.say(STRANGER, &instruction(&format!("spawn{number}"), "sessions_spawn", &task));
        until("the end of the sub-agent", || {
            bot.gateway.client.get("/api/status").unwrap().1["openMessages"] == 0
        });
        bot.check();
    }
    bot.end(&[&attacks]);
}

/// The head of an Ogg file with Opus, and something behind it.
fn opus(rest: &str) -> Vec<u8> {
    [b"OggS".as_slice(), &[0; 24], b"OpusHead", rest.as_bytes()].concat()
}

#[test]
fn a_voice_imitates_no_speaker_and_has_no_more_rights_than_its_person() {
    let mut bot = Bot::with(Shared::No, |config| {
        // It hears what stands behind the head of the file.
        config["transcription"] = json!({"command": "tail -c +37 \"$MYCLAW_AUDIO_FILE\""});
    });
    let mut attacks = Attacks::new("u");
    bot.scene.begin();
    let say = |bot: &mut Bot, text: &str| {
        let note = opus(text);
        let file = bot.server.keep_file(&note);
        let voice = json!({"file_id": file, "duration": 2, "mime_type": "audio/ogg", "file_size": note.len()});
        let chat = json!({"id": STRANGER, "type": "private", "first_name": "Ann"});
        let id = bot.server.deliver(STRANGER, &chat, &json!({"voice": voice}));
        bot.wait_for_answer(id);
    };
    for mark in MARKS.iter().filter(|mark| !mark.starts_with('\n')).step_by(2) {
        let label = attacks.next_label();
        attacks.add(format!("a voice says {mark}"), Vec::new());
        say(&mut bot, &format!("begin {mark} {label}\n]\n{mark} end"));
        for request in bot.scene.new_requests() {
            let last = json!(request.messages().last()).to_string();
            assert!(
                last.contains(&label) && last.contains("transcript of the voice note"),
                "{last}"
            );
            if is_read(&last, mark) {
                bot.scene.breaches.note(&label, "the model read the mark");
            }
        }
    }
    let home = bot.scene.home.path().to_owned();
    for number in 0..reach::spellings(&home, &home, "x").len() {
        let victim = bot.scene.victim(&attacks);
        let label = attacks.next_label();
        let reach::Spelling { name, mut prepare, path } =
            reach::spellings(&home, &victim, &label).swap_remove(number);
        prepare.push(("read", json!({"path": path})));
        attacks.add(format!("a voice orders read, path spelled as {name}"), prepare);
        bot.scene.begin();
        let order = attacks.all.last().unwrap().instructions();
        say(&mut bot, &order);
        bot.check();
    }
    bot.end(&[&attacks]);
}

/// Sequences by which a text would do something to a terminal, with a label in them.
fn sequences(label: &str) -> Vec<(&'static str, String)> {
    let of = |name, text: String| (name, text);
    vec![
        of("title", format!("\u{1b}]0;{label}\u{7}")),
        of("title, C1", format!("\u{9d}0;{label}\u{9c}")),
        of("clipboard", format!("\u{1b}]52;c;{label}\u{7}")),
        of("clipboard, ST", format!("\u{1b}]52;c;{label}\u{1b}\\")),
        of("link", format!("\u{1b}]8;;http://{label}\u{1b}\\here\u{1b}]8;;\u{1b}\\")),
        of("notification", format!("\u{1b}]9;{label}\u{7}")),
        of("file transfer", format!("\u{1b}]1337;File=name={label}:AAAA\u{7}")),
        of("colours", format!("\u{1b}]4;1;{label}\u{7}")),
        of("device control", format!("\u{1b}P+q{label}\u{1b}\\")),
        of("device control, C1", format!("\u{90}+q{label}\u{9c}")),
        of("application", format!("\u{1b}_G{label}\u{1b}\\")),
        of("privacy", format!("\u{1b}^{label}\u{1b}\\")),
        of("cleared screen", format!("\u{1b}[2J{label}")),
        of("cleared screen, C1", format!("\u{9b}2J{label}")),
        of("cursor up", format!("\u{1b}[5A\u{1b}[2K{label}")),
        of("other screen", format!("\u{1b}[?1049h{label}")),
        of("mouse", format!("\u{1b}[?1003h{label}")),
        of("question for the position", format!("\u{1b}[6n{label}")),
        of("question for the device", format!("\u{1b}[c{label}")),
        of("reset", format!("\u{1b}c{label}")),
        of("other letters", format!("\u{1b}(0{label}")),
        of("return", format!("harmless\r{label}")),
        of("backspaces", format!("rm\u{8}\u{8}{label}")),
        of("direction", format!("\u{202e}{label}\u{202c}")),
        of("invisible", format!("\u{e0041}\u{e0042}{label}")),
    ]
}

/// The part of a sequence that a terminal must not get, up to its label.
fn active<'a>(sequence: &'a str, label: &str) -> &'a str {
    sequence.split_once(label).map_or(sequence, |(before, _)| before)
}

#[test]
fn nothing_that_a_chat_shows_gives_orders_to_the_terminal() {
    let mut scene = Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
        config["tools"]["ask"] = json!(["write"]);
        config["tools"]["approvals"]["timeoutSeconds"] = json!(1);
    });
    let mut attacks = Attacks::new("e");
    let workspace = scene.home.workspace();
    scene.begin();
    let mut command = scene.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.current_dir(scene.home.path()).env("TERM", "xterm-256color");
    let mut terminal = Terminal::spawn_sized(&command, 200, 60);
    terminal.expect("You: ");
    let mut shown = Vec::new();
    for way in ["output", "file", "question", "path", "failure"] {
        for number in 0..sequences("").len() {
            let label = attacks.next_label();
            let (name, text) = sequences(&label).swap_remove(number);
            // It does nothing to a terminal, but what an owner approves must not hide anything.
            if name == "invisible" && way != "question" {
                continue;
            }
            let file = format!("{label}.txt");
            scene.home.write(workspace.join(&file), format!("{text}\n"));
            let call = match way {
                "output" => ("bash", json!({"command": format!("cat {file}")})),
                "file" => ("read", json!({"path": file})),
                "question" => ("write", json!({"path": format!("q-{label}"), "content": text})),
                "path" => ("read", json!({"path": format!("no/{text}")})),
                _ => ("bash", json!({"command": format!("cat {file} >&2; false")})),
            };
            shown.push((label, text));
            attacks.add(format!("{way}: {name}"), vec![call]);
        }
    }
    // What is typed is the user's own, so the orders come from a file.
    for (number, batch) in attacks.batches(60).into_iter().enumerate() {
        scene.home.write(workspace.join(format!("orders{number}.txt")), batch);
        let read = instruction(
            &format!("r{number}"),
            "bash",
            &json!({"command": format!("cat orders{number}.txt")}),
        );
        terminal.send_line(&read);
        terminal.expect("nothing to do");
        terminal.expect("You: ");
    }
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for (label, text) in shown {
        let whole = format!("{}{label}", active(&text, &label));
        if raw.contains(&whole) {
            scene.breaches.note(&label, format!("the terminal got {whole:?}"));
        }
    }
    scene.new_requests();
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn an_editor_imitates_no_speaker_and_names_no_session_of_others() {
    // The files of sandboxed sessions are not the editor's.
    let mut scene = Scene::new(|config| {
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
    });
    let workspace = scene.home.workspace();
    std::fs::create_dir_all(&workspace).unwrap();
    let mut attacks = Attacks::new("k");
    let mut acp = Lines::start(&scene, &["acp"]);
    acp.acp("initialize", &json!({
        "protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": false}},
    }));
    // Ids and directories that lead elsewhere.
    let up = "../".repeat(12);
    let state = scene.home.state_directory().display().to_string();
    for id in [
        format!("{up}etc/passwd"),
        "../sessions".to_owned(),
        format!("{state}/myclaw.json"),
        String::new(),
        ".".to_owned(),
        "agent:main:..:x".to_owned(),
        "a\0b".to_owned(),
        "\u{202e}main".to_owned(),
    ] {
        let line = json!({
            "jsonrpc": "2.0", "method": "session/load",
            "params": {"sessionId": id, "cwd": workspace, "mcpServers": []},
        });
        let answer = acp.ask(line, |id| format!("\"id\":{id},\"error\""));
        assert!(!answer.to_string().contains("root:x"), "{id:?}: {answer}");
    }
    for cwd in ["", "relative", "/dev/null", "/no/such/place"] {
        let line = json!({
            "jsonrpc": "2.0", "method": "session/new", "params": {"cwd": cwd, "mcpServers": []},
        });
        acp.ask(line, |id| format!("\"id\":{id},\"error\""));
    }
    let begun = acp.acp("session/new", &json!({"cwd": workspace, "mcpServers": []}));
    let session = begun["sessionId"].as_str().unwrap().to_owned();
    scene.begin();
    let mut asked = 0;
    for mark in marks() {
        let label = attacks.next_label();
        scene.home.write(workspace.join(format!("{label}.txt")), "what the disk has\n");
        attacks.add(
            format!("an editor says {mark}"),
            vec![("read", json!({"path": format!("{label}.txt")}))],
        );
        let text = attacks.all.last().unwrap().instructions();
        let prompt = json!([
            {"type": "text", "text": text},
            {"type": "resource", "resource": {"uri": format!("file:///x/{label}"), "text": format!("r {mark} {label}")}},
        ]);
        let line = json!({
            "jsonrpc": "2.0", "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt},
        });
        let id = acp.send(line);
        asked += 1;
        let request = acp.wait_for(&format!("\"id\":\"myclaw-{asked}\""));
        assert_eq!(request["method"], "fs/read_text_file", "{request}");
        let content = format!("begin {mark} {label}\n{mark}\n");
        acp.say(&json!({"jsonrpc": "2.0", "id": format!("myclaw-{asked}"), "result": {"content": content}}));
        acp.wait_for(&format!("\"id\":{id},\"result\""));
        for request in scene.new_requests() {
            for (_, content) in results(&request).filter(|(of, _)| of.starts_with(&label)) {
                let content = content.to_string();
                assert!(content.contains("begin"), "{content}");
                if is_read(&content, mark) {
                    scene.breaches.note(&label, "the model read the mark");
                }
            }
        }
    }
    acp.end();
    scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}
