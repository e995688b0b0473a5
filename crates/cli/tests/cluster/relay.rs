//! What a client of one gateway sees and does of a session that another one works on.

use std::thread;
use std::time::{Duration, Instant};

use myclaw_gateway_client::{GatewayToken, OneTimeTokens};
use myclaw_testkit::{Gate, Signal};

use super::web_socket::{Socket, block_on};
use super::*;

/// Words of a long answer, and the pause between two of them.
const WORDS: usize = 40;
const PAUSE: Duration = Duration::from_millis(100);
/// Long enough that a busy machine does not lose a session, and that it shows when somebody waits for the end of a lease.
const LEASE: Duration = Duration::from_secs(8);

/// A machine that keeps its sessions.
fn machine(name: &str, url: &str, model: &ModelServer) -> Machine {
    Machine::with_lease(name, url, model, LEASE.as_millis().try_into().unwrap())
}

fn answer() -> String {
    (0..WORDS).map(|number| format!("w{number:02} ")).collect::<String>().trim_end().to_owned()
}

/// What clients read when a turn begins anew at another gateway.
const TAKEN_OVER: &str =
    "The gateway that worked on this is gone or stands still. Another one asks the model again.";

/// How many answers are in all logs.
fn answers(machine: &Machine) -> usize {
    let logs = exported(machine);
    let rows = logs.iter().flat_map(|(_, rows)| rows);
    rows.filter(|row| row["role"] == "assistant" && row["content"].to_string().contains(&answer()))
        .count()
}

/// A model whose answers take some seconds, and are always the same.
fn slow_model() -> ModelServer {
    let step = Reply::anthropic().text(answer()).in_deltas(WORDS).step();
    ModelServer::spawn_blocking_thread(Script::repeat(step.event_by_event().pause(PAUSE)))
}

fn three(url: &str, model: &ModelServer) -> ([Machine; 3], [Gateway; 3]) {
    let machines = ["one", "two", "three"].map(|name| machine(name, url, model));
    let gateways = started(&machines);
    (machines, gateways)
}

/// Gateways of which the first one has the sessions `main` and `program`. It keeps them; of a session that nobody has, any
/// gateway may take the first message.
fn started<const N: usize>(machines: &[Machine; N]) -> [Gateway; N] {
    let mut gateways = vec![machines[0].start()];
    take_sessions(&machines[0], &gateways[0]);
    gateways.extend(machines[1..].iter().map(Machine::start));
    linked(&gateways.iter().collect::<Vec<_>>());
    // Where all is slow, leases may have ended meanwhile.
    take_sessions(&machines[0], &gateways[0]);
    gateways.try_into().ok().unwrap()
}

fn take_sessions(machine: &Machine, gateway: &Gateway) {
    let audit = audit::Audit::without_triggers(&machine.url);
    let sql = "SELECT key FROM myclaw.record WHERE kind = 'desk' AND owner LIKE 'one#%' AND key ~ ':(main|program)$'
        AND lease_until > extract(epoch FROM clock_timestamp()) * 1000";
    until("the first gateway has the sessions", || {
        block_on(async {
            let mut socket = Socket::open(&gateway.client).await;
            for session in ["main", "program"] {
                let set = json!({"session": session, "mode": "ask"});
                assert_eq!(socket.ask("m", "mode", set).await["ok"], true);
            }
        });
        audit.texts(sql, &[]).len() == 2
    });
}

/// Returns when each gateway shows what happens at each other one.
fn linked(gateways: &[&Gateway]) {
    for (number, from) in gateways.iter().enumerate() {
        for to in [&gateways[..number], &gateways[number + 1..]].concat() {
            shows(to, from);
        }
    }
}

/// Returns when one gateway shows what happens at another one: here, that a mode is changed of a session which only that one
/// has.
fn shows(to: &Gateway, from: &Gateway) {
    let session = format!("probe-{}", from.client.port);
    block_on(async {
        let (mut from, mut to) = (Socket::open(&from.client).await, Socket::open(&to.client).await);
        to.ask("w", "watch", json!({"session": session})).await;
        for mode in ["plan", "ask"].into_iter().cycle() {
            let set = json!({"session": session, "mode": mode});
            assert_eq!(from.ask("m", "mode", set).await["ok"], true);
            let shown = to.until(|frame| frame["event"]["type"] == "mode_changed");
            if tokio::time::timeout(Duration::from_secs(1), shown).await.is_ok() {
                break;
            }
        }
    });
}

/// What a client shows of a session, by the protocol.
#[derive(Default)]
struct Screen {
    sequence: u64,
    /// The text of the message that arrives.
    text: String,
    /// Those of the messages that are whole.
    whole: Vec<String>,
    runs: usize,
    replies: Vec<String>,
    /// What was said about turns that another gateway began anew.
    taken_over: Vec<String>,
    /// When text last came.
    newest: Option<Instant>,
}

impl Screen {
    async fn watch(socket: &mut Socket, session: &str) -> Self {
        let watched = socket.ask("w", "watch", json!({"session": session})).await;
        assert_eq!(watched["ok"], true, "{watched}");
        let state = &watched["result"];
        let mut screen = Self { sequence: state["sequence"].as_u64().unwrap(), ..Self::default() };
        for (_, block) in state["live"]["step"]["blocks"].as_object().into_iter().flatten() {
            screen.text.push_str(block["text"].as_str().unwrap_or_default());
        }
        screen
    }

    fn heed(&mut self, frame: &Value) {
        assert!(frame.get("closed").is_none(), "{frame}");
        assert_ne!(frame["type"], "gap", "{frame}");
        if frame["type"] != "event" {
            return;
        }
        // No number is left out, and none comes twice.
        let last = frame["sequence"].as_u64().unwrap();
        assert_eq!(frame["from"].as_u64().unwrap_or(last), self.sequence + 1, "{frame}");
        self.sequence = last;
        let event = &frame["event"];
        match event["type"].as_str().unwrap() {
            "run_start" => {
                self.runs += 1;
                self.text.clear();
            }
            "llm_start" => self.text.clear(),
            "llm_stream" if event["event"]["type"] == "text_delta" => {
                self.text.push_str(event["event"]["delta"].as_str().unwrap());
                self.newest = Some(Instant::now());
            }
            "llm_end" => self.whole.push(std::mem::take(&mut self.text)),
            "notice" if event["code"] == "taken_over" => {
                self.taken_over.push(event["message"].as_str().unwrap().to_owned());
            }
            "reply" => self.replies.push(event["text"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }

    async fn until(&mut self, socket: &mut Socket, is: impl Fn(&Self) -> bool) {
        while !is(self) {
            let frame = socket.next().await;
            self.heed(&frame);
        }
    }
}

/// The text of a streamed answer for a program that speaks OpenAI's protocol.
fn streamed(client: &Client, session: &str) -> String {
    let body = json!({"stream": true, "messages": [{"role": "user", "content": "more"}]});
    let header = format!("x-myclaw-session: {session}\r\n");
    let (status, answer) = client.post_with("/v1/chat/completions", &header, &body).unwrap();
    assert_eq!(status, 200, "{answer}");
    let lines = answer.as_str().unwrap().lines();
    let chunks =
        lines.filter_map(|line| line.split_once("data: {").map(|(_, rest)| rest.to_owned()));
    let chunk = |rest: String| serde_json::from_str::<Value>(&format!("{{{rest}")).unwrap();
    chunks
        .map(chunk)
        .map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn clients_of_all_gateways_see_a_turn_to_its_end_although_its_gateway_is_killed() {
    let Some((_server, url)) = database() else { return };
    let model = slow_model();
    let (machines, [first, second, third]) = three(&url, &model);
    let id = first.client.send("program", "a", "begin").unwrap();
    assert_eq!(first.client.outcome(&id).unwrap()["reply"], answer());
    let program = second.client.clone();
    let reading = thread::spawn(move || streamed(&program, "program"));
    block_on(async {
        let (mut near, mut far) =
            (Socket::open(&second.client).await, Socket::open(&third.client).await);
        let mut screen = Screen::watch(&mut near, "main").await;
        first.client.send("main", "b", "say it").unwrap();
        screen.until(&mut near, |screen| screen.text.contains("w03")).await;
        // Who comes in the middle has what was said before.
        let mut other = Screen::watch(&mut far, "main").await;
        assert!(other.text.starts_with("w00 w01 w02 w03"), "{}", other.text);
        other.until(&mut far, |screen| screen.text.contains("w08")).await;
        screen.until(&mut near, |screen| screen.text.contains("w08")).await;
        assert_eq!((screen.runs, other.runs), (1, 0));
        first.kill();
        let killed = Instant::now();
        // What was on its way.
        screen.until(&mut near, |screen| screen.runs == 2).await;
        screen.until(&mut near, |screen| !screen.text.is_empty()).await;
        let gap = killed.elapsed();
        eprintln!("the next delta came {gap:?} after the death of the holder");
        assert!(gap < PATIENCE / 2, "the next delta came after {gap:?}");
        for (screen, socket) in [(&mut screen, &mut near), (&mut other, &mut far)] {
            screen.until(socket, |screen| !screen.replies.is_empty()).await;
            assert_eq!(screen.whole, [answer()]);
            assert_eq!(screen.replies, [answer()]);
            assert_eq!(screen.taken_over, [TAKEN_OVER]);
        }
    });
    assert_eq!(reading.join().unwrap(), answer());
    second.stop();
    third.stop();
    assert_eq!(answers(&machines[1]), 3);
}

#[test]
fn a_gateway_that_wakes_too_late_shows_nothing_of_its_run() {
    let Some((_server, url)) = database() else { return };
    let model = slow_model();
    let machines = ["one", "two"].map(|name| machine(name, &url, &model));
    let [first, second] = started(&machines);
    block_on(async {
        let (mut near, mut far) =
            (Socket::open(&first.client).await, Socket::open(&second.client).await);
        let mut other = Screen::watch(&mut near, "main").await;
        let mut screen = Screen::watch(&mut far, "main").await;
        first.client.send("main", "a", "say it").unwrap();
        screen.until(&mut far, |screen| screen.text.contains("w03")).await;
        first.child.signal(Signal::Pause);
        screen.until(&mut far, |screen| screen.runs == 2 && screen.text.contains("w02")).await;
        first.child.signal(Signal::Continue);
        // The client of the gateway that stood still sees the end too.
        for (screen, socket) in [(&mut screen, &mut far), (&mut other, &mut near)] {
            screen.until(socket, |screen| !screen.replies.is_empty()).await;
            assert_eq!((&screen.whole, &screen.replies), (&vec![answer()], &vec![answer()]));
        }
        assert_eq!(screen.taken_over, [TAKEN_OVER]);
    });
    first.stop();
    second.stop();
    assert_eq!(answers(&machines[1]), 1);
}

#[test]
fn a_gateway_that_stops_hands_a_running_turn_over_at_once() {
    let Some((_server, url)) = database() else { return };
    let gate = Gate::closed();
    let held = gate.clone();
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |_, number| {
        let step = Reply::anthropic().text(answer()).in_deltas(WORDS).step().event_by_event();
        if number == 0 { step.hold_after(1_500, &held) } else { step }
    }));
    let (_machines, [first, second, third]) = three(&url, &model);
    block_on(async {
        let mut socket = Socket::open(&second.client).await;
        let mut screen = Screen::watch(&mut socket, "main").await;
        first.client.send("main", "b", "say it").unwrap();
        screen.until(&mut socket, |screen| screen.text.contains("w00")).await;
        first.child.signal(Signal::Terminate);
        // Events are read meanwhile, so that the time of the next one is known.
        let end = thread::spawn(move || {
            first.child.wait(PATIENCE).assert_code(0);
            Instant::now()
        });
        screen.until(&mut socket, |screen| screen.runs == 2 && !screen.text.is_empty()).await;
        let next = screen.newest.unwrap();
        let gap = next.saturating_duration_since(end.join().unwrap());
        eprintln!("the next delta came {gap:?} after the end of the holder");
        // Nobody waited for the end of a lease.
        assert!(gap < LEASE, "the next delta came after {gap:?}");
        screen.until(&mut socket, |screen| !screen.replies.is_empty()).await;
        assert_eq!((screen.whole, screen.replies), (vec![answer()], vec![answer()]));
    });
    gate.open();
    second.stop();
    third.stop();
}

/// Makes the signs of life of the node `one` too old for the others.
const SIGNS_TOO_LATE: &str = r#"
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE node jsonb := convert_from(NEW.value, 'UTF8'); BEGIN
        NEW.value := convert_to(jsonb_set(node, '{seen}', to_jsonb((node->>'seen')::bigint - 60000))::text, 'UTF8');
        RETURN NEW;
    END $$;
    CREATE TRIGGER late BEFORE UPDATE ON myclaw.record FOR EACH ROW
        WHEN (NEW.kind = 'node' AND convert_from(NEW.value, 'UTF8')::jsonb->>'name' = 'one') EXECUTE FUNCTION late();
"#;

#[test]
fn a_gateway_whose_signs_come_too_late_shows_its_turns() {
    let Some((_server, url)) = database() else { return };
    let model = slow_model();
    let machines = ["one", "two"].map(|name| machine(name, &url, &model));
    let [first, second] = started(&machines);
    audit::Audit::without_triggers(&url).execute(SIGNS_TOO_LATE);
    let silent = || nodes::status(&machines[1])["nodes"][0]["silentMs"].as_u64().unwrap();
    until("the signs are late", || silent() > 30_000);
    // The other one reads them several times in a lease.
    thread::sleep(LEASE);
    block_on(async {
        let mut socket = Socket::open(&second.client).await;
        let mut screen = Screen::watch(&mut socket, "main").await;
        first.client.send("main", "a", "say it").unwrap();
        screen.until(&mut socket, |screen| !screen.replies.is_empty()).await;
        assert_eq!((screen.whole, screen.replies), (vec![answer()], vec![answer()]));
    });
    first.stop();
    second.stop();
}

#[test]
fn clients_read_the_history_when_another_gateway_comes() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let machines = ["one", "two"].map(|name| machine(name, &url, &model));
    let first = machines[0].start();
    let second = block_on(async {
        let mut socket = Socket::open(&first.client).await;
        socket.ask("w", "watch", json!({"session": "main"})).await;
        let second = machines[1].start();
        // It may have worked on the session before it was asked to show it.
        let gap = socket.until(|frame| frame["type"] == "gap").await;
        assert!(gap["session"].as_str().unwrap().ends_with(":main"), "{gap}");
        second
    });
    first.stop();
    second.stop();
}

#[test]
fn a_session_is_controlled_through_any_gateway() {
    let Some((_server, url)) = database() else { return };
    let gate = Gate::closed();
    let held = gate.clone();
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, _| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("<m1>") {
            let arguments = json!({"path": "notes.md", "content": "hello\n"});
            return Reply::anthropic().tool_call("call_1", "write", arguments).step();
        }
        let step = echo(request).step();
        if last.contains("<m3>") { step.hold_after(0, &held) } else { step }
    }));
    let machines = ["one", "two"].map(|name| {
        let machine = machine(name, &url, &model);
        machine.configure(name, &model, |config| config["tools"] = json!({"ask": ["write"]}));
        machine
    });
    let [first, second] = started(&machines);
    block_on(async {
        let mut socket = Socket::open(&second.client).await;
        socket.ask("w", "watch", json!({"session": "main"})).await;
        let id = first.client.send("main", "a", "write <m1>").unwrap();
        let asked = socket.until(|frame| frame["event"]["type"] == "approval").await;
        // Whoever comes now finds the question too, over both protocols.
        let question = asked["event"]["id"].clone();
        let state = socket.ask("w2", "watch", json!({"session": "main"})).await;
        assert_eq!(state["result"]["approvals"][0]["id"], question, "{state}");
        assert_eq!(state["result"]["busy"], true, "{state}");
        let listed = second.client.get("/api/approvals").unwrap().1;
        assert_eq!(listed["approvals"][0]["id"], question, "{listed}");
        let sessions = second.client.get("/api/sessions").unwrap().1;
        assert_eq!(sessions["sessions"][0]["approvals"], 1, "{sessions}");
        assert_eq!(sessions["sessions"][0]["busy"], true, "{sessions}");
        // An answer that it does not offer changes nothing.
        let wrong = json!({"id": question, "answer": "words", "words": "x"});
        assert_eq!(socket.ask("e", "approve", wrong).await["error"]["class"], "usage");
        let once = json!({"id": question, "answer": "once"});
        assert_eq!(socket.ask("y", "approve", once).await["ok"], true);
        let closed = socket.until(|frame| frame["event"]["type"] == "approval_closed").await;
        assert_eq!(closed["event"]["id"], question);
        let outcome = second.client.outcome(&id).unwrap();
        assert_eq!(outcome["state"], "answered", "{outcome}");
        let notes = machines[0].home.workspace().join("notes.md");
        assert_eq!(std::fs::read_to_string(notes).unwrap(), "hello\n");
        // A second answer finds no question, here or there.
        let again = json!({"id": question, "answer": "once"});
        assert_eq!(socket.ask("z", "approve", again).await["error"]["class"], "not_found");

        // A running turn is stopped, and the mode changed, where the session is.
        let id = first.client.send("main", "b", "wait <m3>").unwrap();
        socket.until(|frame| frame["event"]["type"] == "llm_start").await;
        let mode = socket.ask("m", "mode", json!({"session": "main", "mode": "plan"})).await;
        assert_eq!(mode["ok"], true, "{mode}");
        socket.until(|frame| frame["event"]["type"] == "mode_changed").await;
        let busy = socket.ask("d", "delete", json!({"session": "main"})).await;
        assert_eq!(busy["error"]["class"], "in_use", "{busy}");
        let stopped = socket.ask("s", "abort", json!({"session": "main"})).await;
        assert_eq!(stopped["result"]["aborted"], true, "{stopped}");
        assert_eq!(second.client.outcome(&id).unwrap()["class"], "aborted");
        let stopped = socket.ask("s2", "abort", json!({"session": "main"})).await;
        assert_eq!(stopped["result"]["aborted"], false, "{stopped}");
    });
    gate.open();
    first.stop();
    second.stop();
}

/// The files are where the session is, and what undo needs.
#[test]
fn a_command_that_changes_a_session_is_obeyed_where_the_session_is() {
    let Some((_server, url)) = database() else { return };
    let model = ModelServer::spawn_blocking_thread(Script::answer_with(move |request, _| {
        let last = json!(request.messages().last()).to_string();
        let arguments = json!({"path": "notes.md", "content": "hello\n"});
        let is_first = last.contains("<m1>");
        let call = || Reply::anthropic().tool_call("call_1", "write", arguments).step();
        if is_first { call() } else { echo(request).step() }
    }));
    let machines = ["one", "two"].map(|name| machine(name, &url, &model));
    let [first, second] = started(&machines);
    block_on(async {
        let mode = json!({"session": "main", "mode": "auto"});
        assert_eq!(Socket::open(&first.client).await.ask("m", "mode", mode).await["ok"], true);
    });
    let id = first.client.send("main", "a", "write <m1>").unwrap();
    assert_eq!(first.client.outcome(&id).unwrap()["state"], "answered");
    let notes = machines[0].home.workspace().join("notes.md");
    assert!(notes.exists());
    block_on(async {
        let mut socket = Socket::open(&second.client).await;
        let undo = json!({"session": "main", "text": "/undo"});
        let undone = socket.ask("u", "command", undo.clone()).await;
        assert_eq!(undone["ok"], true, "{undone}");
        assert!(!notes.exists(), "{undone}");
        // What cannot be done is said as there.
        let refused = socket.ask("v", "command", undo.clone()).await;
        let there = Socket::open(&first.client).await.ask("v", "command", undo).await;
        assert_eq!(refused["error"]["message"], there["error"]["message"], "{refused}");
        assert_eq!(refused["ok"], false, "{refused}");
    });
    first.stop();
    second.stop();
}

/// Makes the tokens that the gateway of this machine wants to see of the others.
fn tokens_of(machine: &Machine, url: &str) -> OneTimeTokens {
    let sql = "SELECT convert_from(value, 'UTF8') FROM myclaw.record WHERE kind = 'node-secret'";
    let secret = audit::Audit::without_triggers(url).texts(sql, &[]).concat();
    let secret: String = serde_json::from_str(&secret).unwrap();
    let nodes = nodes::status(machine)["nodes"].clone();
    let address = format!("http://127.0.0.1:{}", machine.port);
    let mut own = nodes.as_array().unwrap().iter().filter(|node| node["address"] == address);
    let holder = own.next().unwrap()["holder"].as_str().unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let signed = ring::hmac::sign(&key, holder.as_bytes());
    let key = signed.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    OneTimeTokens::new(GatewayToken::of(key))
}

#[test]
fn the_token_of_a_gateway_opens_nothing_else() {
    let Some((_server, url)) = database() else { return };
    let model = model();
    let (machines, gateways) = three(&url, &model);
    let tokens = tokens_of(&machines[0], &url);
    let bearer = tokens.next().header();
    let token = bearer["Bearer ".len()..].to_owned();
    let of_gateway = |port| Client { port, token: token.clone() };
    // It is for the WebSocket of one gateway, and not for what clients do.
    let (status, refused) = of_gateway(machines[0].port).get("/api/config").unwrap();
    assert_eq!((status, &refused["error"]["class"]), (403, &json!("scope")), "{refused}");
    assert_eq!(of_gateway(machines[1].port).get("/api/config").unwrap().0, 401);
    block_on(async {
        let header = [("Authorization", bearer.as_str())];
        let mut socket = Socket::silent(&of_gateway(machines[0].port), &header).await.unwrap();
        assert_eq!(socket.next().await["type"], "hello");
        assert_eq!(socket.ask("w", "working", json!({})).await["result"], json!([]));
        let send = json!({"session": "main", "id": "x", "text": "hello"});
        assert_eq!(socket.ask("s", "send", send).await["error"]["class"], "usage");
        let again = Socket::silent(&of_gateway(machines[0].port), &header).await;
        assert!(again.is_err(), "whoever has read it on the way has nothing");
        let next = tokens.next().header();
        let next = [("Authorization", next.as_str())];
        let mut socket = Socket::silent(&of_gateway(machines[0].port), &next).await.unwrap();
        assert_eq!(socket.next().await["type"], "hello");
        let other = Socket::silent(&of_gateway(machines[1].port), &header).await;
        assert!(other.is_err(), "another gateway wants another token");
        // A page cannot show it.
        let mut socket = Socket::silent(&of_gateway(machines[0].port), &[]).await.unwrap();
        socket.send(&json!({"type": "auth", "token": token, "protocol": 1})).await;
        assert_eq!(socket.next().await["closed"], "the token is wrong");
    });
    // A client cannot ask for what gateways ask each other.
    block_on(async {
        let mut socket = Socket::open(&gateways[0].client).await;
        for method in ["working", "in_use", "approve_in_chat"] {
            let refused = socket.ask(method, method, json!({"session": "main"})).await;
            assert_eq!(refused["error"]["class"], "usage", "{refused}");
        }
    });
    gateways.into_iter().for_each(Gateway::stop);
}
