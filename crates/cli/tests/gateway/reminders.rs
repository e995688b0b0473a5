//! The tools of the gateway in sessions that other programs run, and reminders that appear in them.

use myclaw_testkit::{ChildOutput, Terminal};

use super::attach::expect_answer;
use super::subagents::offered;
use super::*;

/// Tools that the gateway carries out.
const TOOLS: [&str; 5] = ["cron", "sessions_list", "sessions_history", "sessions_send", "message"];

/// The message that makes the model call `cron` with a job that is due soon.
fn remind(text: &str) -> String {
    let job = json!({"name": "Ring", "schedule": {"at": "1s"}, "message": text});
    format!("call cron {}", json!({"action": "add", "job": job}))
}

impl Bench {
    /// `myclaw run` in a session; gives what it printed.
    fn ask(&self, session: &str, options: &[&str], message: &str) -> ChildOutput {
        let mut whole = vec!["run", "--session", session];
        whole.extend(options);
        whole.push(message);
        self.myclaw(&whole)
    }

    /// The last result of a tool in a session.
    fn last_result(&self, session: &str) -> String {
        let rows = self.rows(session);
        let result = rows.iter().rev().find(|row| row["role"] == "tool").expect("a result");
        result["content"].as_str().unwrap_or_default().to_owned()
    }

    /// A program of the owner with its standard input open.
    fn program(&self, arguments: &[&str]) -> RunningChild {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::spawn_piped(command.args(arguments))
    }

    /// How many messages about due jobs a session has taken.
    fn reminded(&self, session: &str) -> usize {
        let rows = self.rows(session);
        let is_one = |row: &&Value| {
            row["role"] == "user" && row["content"].to_string().contains("[Scheduled message")
        };
        rows.iter().filter(is_one).count()
    }

    fn offered_last(&self) -> Vec<String> {
        offered(&self.model.last_request())
    }
}

#[test]
fn a_terminal_has_the_tools_of_the_gateway_while_one_runs() {
    let bench = Bench::obedient();
    bench.ask("work", &[], "hello <m1>").assert_code(0);
    let alone = bench.model.last_request();
    assert!(!TOOLS.iter().any(|tool| offered(&alone).contains(&(*tool).to_owned())), "{alone:?}");
    assert!(alone.body_text().contains("need `myclaw gateway`, which the user starts"));
    let gateway = bench.start();
    bench.ask("work", &[], "call cron {\"action\": \"list\"}").assert_code(0);
    let request = bench.model.last_request();
    assert!(TOOLS.iter().all(|tool| offered(&request).contains(&(*tool).to_owned())));
    assert!(!request.body_text().contains("which the user starts"), "the note is gone");
    assert!(bench.last_result("work").contains("\"jobs\""), "{}", bench.last_result("work"));
    // As in a session of the gateway, another one than the main session sees only itself.
    bench.ask("main", &[], "hello <m2>").assert_code(0);
    bench.ask("main", &[], "call sessions_list {}").assert_code(0);
    let listed = bench.last_result("main");
    assert!(listed.contains("direct:work") && listed.contains("\"isYourself\": true"), "{listed}");
    bench.ask("work", &[], "call sessions_history {\"session\": \"main\"}").assert_code(0);
    let refused = bench.last_result("work");
    assert!(refused.contains("there is no session main that you may use"), "{refused}");
    bench.ask("main", &[], "call sessions_send {\"session\": \"work\", \"message\": \"<m3>?\"}");
    let reply = bench.last_result("main");
    assert!(reply.contains("\"reply\": \"re: <m3>\""), "{reply}");
    let say = "call message {\"action\": \"send\", \"text\": \"hi\"}";
    bench.ask("work", &[], say).assert_code(0);
    let nowhere = bench.last_result("work");
    assert!(
        nowhere.contains("nobody has written to the main session from a chat yet"),
        "{nowhere}"
    );
    bench.ask("work", &[], "call cron {\"action\": \"add\", \"job\": {\"message\": \"x\"}}");
    let incomplete = bench.last_result("work");
    assert!(incomplete.contains("a new job needs a schedule"), "{incomplete}");
    gateway.stop();
    bench.ask("work", &[], "hello <m4>").assert_code(0);
    assert!(!bench.offered_last().contains(&"cron".to_owned()), "{:?}", bench.offered_last());
}

#[test]
fn modes_and_rules_hold_for_the_tools_of_the_gateway() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    bench.ask("work", &["--mode", "read-only"], "call sessions_list {}").assert_code(0);
    assert!(bench.last_result("work").contains("\"sessions\""), "{}", bench.last_result("work"));
    bench.ask("work", &["--mode", "read-only"], &remind("ring")).assert_code(0);
    assert!(bench.last_result("work").contains("read-only"), "{}", bench.last_result("work"));
    bench.ask("work", &["--mode", "auto", "--deny-tool", "cron"], &remind("ring")).assert_code(0);
    assert!(!bench.offered_last().contains(&"cron".to_owned()));
    assert_eq!(bench.cron(&["list"])["jobs"].as_array().unwrap().len(), 1, "the heartbeat");
    gateway.stop();
}

#[test]
fn an_open_chat_says_that_its_gateway_has_stopped() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let mut chat = bench.program(&["chat", "--session", "work"]);
    chat.send("call cron {\"action\": \"list\"}\n");
    chat.wait_for_stdout("called");
    gateway.stop();
    chat.send("call cron {\"action\": \"list\"}\nbye <m1>\n");
    chat.wait_for_stdout("re: <m1>");
    chat.close_stdin();
    chat.wait(PATIENCE).assert_code(0);
    let result = bench.last_result("work");
    let said = "the gateway does not run any more, so nothing was done; the user starts it with `myclaw gateway`";
    assert!(result.contains(said), "{result}");
    assert!(bench.offered_last().contains(&"cron".to_owned()), "the list of tools stays the same");
}

#[test]
fn a_reminder_appears_in_the_open_chat_where_it_was_asked_for() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let mut command = command;
    let mut chat = Terminal::spawn(command.args(["chat", "--session", "work"]));
    chat.expect("You: ");
    chat.send_line(&remind("ring <m7>"));
    expect_answer(&mut chat, &["re: <m7>"]);
    let planned = bench.last_result("work");
    assert!(
        planned.contains("\"appears\": \"in this session: at once where it is open"),
        "{planned}"
    );
    chat.send_line("bye <m8>");
    expect_answer(&mut chat, &["re: <m8>"]);
    chat.send_line("/quit");
    assert!(chat.wait().success(), "{}", chat.text());
    assert_eq!(bench.reminded("work"), 1, "{:?}", bench.said("work"));
    assert!(!bench.home.transcript_path("main").exists(), "it is in no other session");
    gateway.stop();
}

#[test]
fn a_reminder_waits_for_the_next_opening_of_a_closed_session() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    bench.ask("work", &[], &remind("ring <m7>")).assert_code(0);
    until("the reminder", || bench.cron(&["list"])["jobs"].as_array().unwrap().len() == 1);
    assert_eq!(bench.reminded("work"), 0);
    gateway.stop();
    let open = |arguments: &[&str], last: &str| {
        let mut chat = bench.program(arguments);
        if arguments[0] == "chat" {
            chat.send(&format!("{last}\n"));
        }
        chat.wait_for_stdout("re: <m");
        chat.close_stdin();
        chat.wait(PATIENCE).assert_code(0).stdout()
    };
    let first = open(&["rpc", "--session", "work"], "");
    assert!(first.contains("re: <m7>"), "{first}");
    let second = open(&["chat", "--session", "work"], "<m8>");
    assert!(second.contains("re: <m8>") && !second.contains("<m7>"), "{second}");
    assert_eq!(bench.reminded("work"), 1, "{:?}", bench.said("work"));
}

#[test]
fn a_reminder_of_a_deleted_session_is_reported() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let job = json!({"schedule": {"at": "1h"}, "message": "ring", "deleteAfterRun": false});
    let order = format!("call cron {}", json!({"action": "add", "job": job}));
    bench.ask("work", &[], &order).assert_code(0);
    let planned: Value = serde_json::from_str(&bench.last_result("work")).unwrap();
    bench.myclaw(&["sessions", "delete", "work", "--yes"]).assert_code(0);
    let id = planned["job"]["id"].as_str().unwrap();
    bench.cron(&["run", id]);
    let runs = bench.runs(id, |runs| runs.iter().any(|run| run["state"]["state"] == "ended"));
    let outcome = &runs[0]["state"]["outcome"];
    assert_eq!(outcome["outcome"], "failed", "{runs:?}");
    assert!(outcome["message"].as_str().unwrap().starts_with("there is no session "), "{runs:?}");
    assert!(!bench.home.transcript_path("work").exists());
    gateway.stop();
}

#[test]
fn each_due_time_reminds_once_however_the_gateway_ends() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let job = json!({"schedule": {"every": "2s"}, "message": "ring", "missed": "all"});
    let order = format!("call cron {}", json!({"action": "add", "job": job}));
    bench.ask("work", &[], &order).assert_code(0);
    let planned: Value = serde_json::from_str(&bench.last_result("work")).unwrap();
    let id = planned["job"]["id"].as_str().unwrap();
    let mut random = Random::new(number_from("MYCLAW_KILL_SEED").unwrap_or(28));
    let mut gateway = gateway;
    for _ in 0..5 {
        random.pause(Duration::from_millis(1_500));
        gateway.kill();
        gateway = bench.start();
    }
    let is_ended = |run: &Value| run["state"]["state"] == "ended";
    // On a busy machine no gateway may have lived long enough.
    bench.runs(id, |runs| runs.iter().any(is_ended));
    bench.cron(&["pause", id]);
    let runs = bench.runs(id, |runs| !runs.is_empty() && runs.iter().all(is_ended));
    gateway.stop();
    let mut chat = bench.program(&["rpc", "--session", "work"]);
    until("the reminders", || bench.reminded("work") >= runs.len());
    chat.close_stdin();
    chat.wait(PATIENCE).assert_code(0);
    // A pause at the moment at which a reminder is put into the session may take its run off the list. Each due time has an id
    // of its own, so a second reminder for one would show here.
    let mut ids: Vec<String> = Vec::new();
    for row in bench.rows("work") {
        let taken = row["meta"]["queuedIds"].as_array().into_iter().flatten();
        ids.extend(taken.filter_map(Value::as_str).map(str::to_owned));
    }
    let reminded = ids.iter().filter(|id| id.starts_with("remind")).count();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), reminded, "{ids:?}");
    assert_eq!(bench.reminded("work"), reminded);
    assert!(reminded == runs.len() || reminded == runs.len() + 1, "{reminded}: {runs:?}");
}

#[test]
fn programs_and_editors_have_the_tools_too() {
    let bench = Bench::obedient();
    let gateway = bench.start();
    let list = "call cron {\"action\": \"list\"}";
    let mut rpc = bench.program(&["rpc", "--session", "work"]);
    rpc.send(&format!("{}\n", json!({"type": "prompt", "message": list})));
    rpc.wait_for_stdout("\"called\"");
    assert!(bench.last_result("work").contains("\"jobs\""), "{}", bench.last_result("work"));
    // A turn begins by itself.
    rpc.send(&format!("{}\n", json!({"type": "prompt", "message": remind("ring <m7>")})));
    rpc.wait_for_stdout("re: <m7>");
    rpc.close_stdin();
    rpc.wait(PATIENCE).assert_code(0);
    assert_eq!(bench.reminded("work"), 1);
    let mut acp = bench.program(&["acp"]);
    let mut ask = |id: u8, method: &str, params: Value, answer: &str| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        acp.send(&format!("{request}\n"));
        acp.wait_for_stdout_line(answer)
    };
    ask(1, "initialize", json!({"protocolVersion": 1}), "agentCapabilities");
    std::fs::create_dir_all(bench.home.workspace()).unwrap();
    let place = json!({"cwd": bench.home.workspace(), "mcpServers": []});
    let opened: Value = serde_json::from_str(&ask(2, "session/new", place, "sessionId")).unwrap();
    let session = &opened["result"]["sessionId"];
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": list}]});
    ask(3, "session/prompt", prompt, "end_turn");
    assert!(super::subagents::news(&bench.model.last_request()).contains("jobs"));
    acp.close_stdin();
    acp.wait(PATIENCE).assert_code(0);
    gateway.stop();
}

#[test]
fn a_terminal_writes_to_the_chat_from_which_its_owner_wrote_last() {
    let bench = Bench::obedient();
    let bot = TelegramServer::start();
    bench.unconfined(|config| {
        config["channels"] = json!({
            "dmScope": "main",
            "telegram": {"botToken": bot.token(), "baseUrl": bot.url(), "allowFrom": [42]},
        });
    });
    let gateway = bench.start();
    bot.write(42, "hello <m1>");
    bot.wait_for_text("m1");
    let say = "call message {\"action\": \"send\", \"text\": \"The build is green.\"}";
    bench.ask("work", &["--mode", "read-only"], say).assert_code(0);
    assert!(bench.last_result("work").contains("read-only"), "{}", bench.last_result("work"));
    // The session keeps its mode.
    bench.ask("work", &["--mode", "auto"], say).assert_code(0);
    bot.wait_for_text("The build is green.");
    assert!(
        bench.last_result("work").contains("\"status\": \"sent\""),
        "{}",
        bench.last_result("work")
    );
    assert_eq!(bot.sent().iter().filter(|it| it.text().contains("green")).count(), 1);
    let elsewhere = json!({"action": "send", "text": "hi", "to": "main"});
    bench.ask("work", &[], &format!("call message {elsewhere}")).assert_code(0);
    let refused = bench.last_result("work");
    assert!(refused.contains("there is no session main that you may use"), "{refused}");
    gateway.stop();
}

#[test]
fn a_reminder_appears_where_it_was_asked_for_over_attach_and_once_after_a_kill() {
    let bench = Bench::obedient();
    bench.configure(|config| config["agents"]["defaults"]["sandbox"] = json!({"mode": "off"}));
    let gateway = bench.start();
    for (session, mark) in [("main", "<m7>"), ("second", "<m9>")] {
        let mut terminal = bench.attach(&["--session", session]);
        terminal.send_line(&remind(&format!("ring {mark}")));
        expect_answer(&mut terminal, &[&format!("re: {mark}")]);
        assert_eq!(bench.reminded(session), 1, "{:?}", bench.said(session));
        terminal.send_line("/quit");
        assert!(terminal.wait().success(), "{}", terminal.text());
    }
    // One that is due while no gateway runs appears when one does.
    let mut terminal = bench.attach(&["--session", "second"]);
    terminal.send_line(&remind("ring <m11>").replace("1s", "3s"));
    terminal.expect("called");
    gateway.kill();
    std::thread::sleep(Duration::from_secs(3));
    let gateway = bench.start();
    expect_answer(&mut terminal, &["re: <m11>"]);
    terminal.send_line("/quit");
    terminal.wait();
    assert_eq!(bench.reminded("second"), 2, "{:?}", bench.said("second"));
    gateway.stop();
}

#[test]
fn a_sandboxed_chat_of_the_owner_says_what_plans_reminders() {
    const NOTE: &str = "This chat is sandboxed and plans no reminders";
    let bench = Bench::new(session_tools::obedient());
    let ask = |client: &Client, session: &str| {
        let id = format!("{session} {}", bench.model.requests().len());
        client.outcome(&client.send(session, &id, "remind me in 20 minutes").unwrap()).unwrap();
        let has_note = bench.model.last_request().body_text().contains(NOTE);
        (has_note, bench.offered_last().contains(&"cron".to_owned()))
    };
    let gateway = bench.start();
    assert_eq!(ask(&gateway.client, "side"), (true, false));
    assert_eq!(ask(&gateway.client, "main"), (false, true));
    gateway.stop();
    // The lists of the config are its owner's.
    bench.configure(|config| {
        let lists = json!({"allowlist": ["read", "cron"], "denylist": []});
        config["agents"] = json!({"defaults": {"sandbox": lists}});
    });
    let gateway = bench.start();
    assert_eq!(ask(&gateway.client, "side"), (false, true));
    gateway.stop();
}
