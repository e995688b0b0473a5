//! Chats that a group of the host answers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use myclaw_testkit::{Random, number_from};

use super::*;

/// A runner that repeats what it was asked, and then waits for its end unless there is a file `once`.
const ECHO: &str = r#"#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" = --workspace ] && w=$2; shift; done
job=$(cat); echo "$job" >> "$w/group/jobs"
block() { printf -- '---NANOCLAW_OUTPUT_START---\n%s\n---NANOCLAW_OUTPUT_END---\n' "$1"; }
while [ -e "$w/group/hold" ]; do sleep 0.01; done
said=$(grep -o '\[m[0-9]*\]' <<< "$job" | tr -d '\n')
block "{\"status\":\"success\",\"result\":\"re: $said\",\"newSessionId\":\"s\"}"
block '{"status":"success","result":null,"newSessionId":"s"}'
[ -e "$w/group/once" ] && exit 0
while [ ! -e "$w/ipc/input/_close" ]; do sleep 0.01; done
"#;

/// A bench whose config binds the chat of [`ANN`] to the group `family`.
fn bound() -> Bench {
    bound_with(|_| ())
}

/// The same with further changes of the config.
fn bound_with(change: impl FnOnce(&mut Value)) -> Bench {
    let bench = Bench::new(echoing());
    let runner = bench.home.path().join("echo-runner");
    fs::write(&runner, ECHO).unwrap();
    fs::set_permissions(&runner, fs::Permissions::from_mode(0o755)).unwrap();
    let options = json!([
        "--backend=process",
        format!("--runner={}", runner.display()),
        "--grace=1s",
        "--retry-base=10"
    ]);
    bench.configure(|config| {
        config["channels"]["telegram"]["allowFrom"] = json!([ANN, ANN + 1]);
        let rule = json!({"channel": "telegram", "peer": ANN});
        config["host"] =
            json!({"options": options, "bindings": [{"folder": "family", "match": rule}]});
        change(config);
    });
    bench
}

fn add(bench: &Bench) {
    bench.run(&["groups", "add", "ann", "--folder", "family"]).assert_code(0);
}

fn family(bench: &Bench, path: &str) -> PathBuf {
    let output = bench.run(&["groups", "show", "family", "--json"]);
    let shown: Value = serde_json::from_str(&output.stdout()).unwrap();
    PathBuf::from(shown["directories"]["files"].as_str().unwrap()).join(path)
}

#[test]
fn a_bound_chat_is_answered_by_its_container_and_others_by_agents() {
    let bench = bound();
    add(&bench);
    let shown = bench.run(&["groups", "show", "family"]).stdout();
    assert!(shown.contains("telegram, person 42"), "{shown}");
    let gateway = bench.start();
    let chat = json!({"id": ANN, "type": "private"});
    bench.bot.write(ANN, "[m1]");
    assert_eq!(bench.bot.wait_for_text("[m1]").text(), "re: [m1]");
    assert!(bench.model.requests().is_empty(), "an agent was asked");
    bench.bot.write(ANN + 1, "<m2>");
    let other = bench.bot.wait_for_text("m2");
    assert_eq!(other.params["chat_id"], json!(ANN + 1));
    assert_eq!(bench.model.requests().len(), 1);
    let text = bench.bot.keep_file(b"line one");
    let document = json!({"file_id": text, "file_name": "../notes.txt", "file_size": 8});
    bench.bot.deliver(ANN, &chat, &json!({"document": document, "caption": "[m3]"}));
    gateway.channels(|_| {
        fs::read_dir(family(&bench, "attachments")).is_ok_and(|files| files.count() == 1)
    });
    gateway.stop();
    let kept = fs::read_dir(family(&bench, "attachments")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_to_string(kept.path()).unwrap(), "line one");
    assert!(kept.file_name().to_str().unwrap().ends_with("notes.txt"), "{kept:?}");
}

#[test]
fn a_voice_note_to_a_bound_chat_is_transcribed_and_answered_with_speech_and_text() {
    let bench = bound_with(|config| {
        config["transcription"] = json!({"command": "tail -c +37 \"$MYCLAW_AUDIO_FILE\""});
        config["speech"] = json!({"command": "printf 'OggS%024dOpusHead' 0; cat"});
    });
    add(&bench);
    fs::create_dir_all(family(&bench, "")).unwrap();
    fs::write(family(&bench, "once"), "").unwrap();
    let gateway = bench.start();
    let note = [b"OggS".as_slice(), &[0; 24], b"OpusHead[m1]"].concat();
    let file = bench.bot.keep_file(&note);
    let voice = json!({"file_id": file, "duration": 2, "mime_type": "audio/ogg", "file_size": 40});
    let chat = json!({"id": ANN, "type": "private"});
    bench.bot.deliver(ANN, &chat, &json!({"voice": voice}));
    assert_eq!(bench.bot.wait_for_text("[m1]").text(), "re: [m1]");
    let sent = bench.bot.wait_for("the speech", |sent| (sent.len() == 2).then(|| sent.to_vec()));
    let form = sent[1].params["multipart"].as_str().unwrap();
    assert!(form.contains("name=\"voice\"") && form.contains("OpusHeadre: [m1]"), "{form}");
    // A written message gets a written answer.
    bench.bot.write(ANN, "[m2]");
    bench.bot.wait_for_text("[m2]");
    gateway.stop();
    assert_eq!(bench.bot.sent().len(), 3);
    let jobs = fs::read_to_string(family(&bench, "jobs")).unwrap();
    assert!(jobs.contains("[Voice: [m1]]"), "{jobs}");
}

#[test]
fn a_group_that_writes_is_shown_as_typing_and_the_answer_takes_the_place_of_its_preview() {
    // The end of the answer waits for the preview.
    let gate = Gate::closed();
    let reply = Reply::openai().text("one two three four five six seven eight").in_deltas(8);
    let bench = Bench::new(Script::repeat(reply.step().hold_after(900, &gate)));
    bench.configure(|config| {
        config["channels"]["telegram"]["preview"] = json!(true);
        let rule = json!({"channel": "telegram", "peer": ANN});
        let bindings = json!([{"folder": "family", "match": rule}]);
        config["host"] = json!({"options": ["--backend=process"], "bindings": bindings});
    });
    let model = format!(
        "OPENROUTER_API_KEY=sk-0123456789\nOPENROUTER_BASE_URL={}/v1\nMODEL_NAME=m\n",
        bench.model.url()
    );
    fs::write(bench.home.config_path().with_file_name(".env"), model).unwrap();
    add(&bench);
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    let preview = bench.bot.wait_for_text(" …");
    let calls = bench.bot.calls();
    let typing = calls.iter().find(|(method, _)| method == "sendChatAction").unwrap();
    assert_eq!(typing.1["chat_id"], json!(ANN));
    assert!(preview.text().starts_with("one two"), "{}", preview.text());
    gate.open();
    let answer = bench.bot.wait_for("the answer", |sent| {
        sent.iter().find(|message| message.text().ends_with("eight")).cloned()
    });
    assert!(answer.edits >= 1);
    assert_eq!(bench.bot.sent().len(), 1, "the answer is not in the place of the preview");
    gateway.stop();
}

#[test]
fn what_a_killed_group_was_writing_is_replaced_by_its_notice() {
    let bench = bound_with(|config| config["channels"]["telegram"]["preview"] = json!(true));
    let halting = ECHO.replace(
        "while [ -e \"$w/group/hold\" ]",
        "block '{\"status\":\"partial\",\"result\":\"half of it <internal>secret\"}'\nwhile [ -e \"$w/group/hold\" ]",
    );
    fs::write(bench.home.path().join("echo-runner"), halting).unwrap();
    add(&bench);
    fs::create_dir_all(family(&bench, "")).unwrap();
    fs::write(family(&bench, "hold"), "").unwrap();
    let gateway = bench.start();
    bench.bot.write(ANN, "[m1]");
    assert_eq!(bench.bot.wait_for_text("half of it").text(), "half of it …");
    bench.bot.write(ANN, "/stop");
    bench.bot.wait_for_text("The answer was stopped.");
    bench.bot.wait_for_text("Stopped.");
    gateway.stop();
    let sent: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    assert_eq!(sent, ["The answer was stopped.", "Stopped."]);
}

#[test]
fn commands_stop_a_group_begin_a_session_and_say_what_it_does() {
    let bench = bound();
    add(&bench);
    fs::create_dir_all(family(&bench, "")).unwrap();
    let gateway = bench.start();
    let ask = |text: &str, words: &str| {
        bench.bot.write(ANN, text);
        bench.bot.wait_for_text(words)
    };
    ask("/help", "/new – begins a new session");
    ask("/stop", "Nothing runs.");
    ask(
        "/status",
        "group family, which waits, messages without an answer: 0, no session, your id 42",
    );
    fs::write(family(&bench, "once"), "").unwrap();
    ask("[m1]", "re: [m1]");
    fs::remove_file(family(&bench, "once")).unwrap();
    ask("[m2]", "re: [m2]");
    // The runner that waits has the old session, so another one gets the next message.
    ask("/new", "The next message begins a new session.");
    fs::write(family(&bench, "hold"), "").unwrap();
    bench.bot.write(ANN, "[m3]");
    until("the runner has the message", || jobs(&bench).len() == 3);
    ask("/status", "works, messages without an answer: 1, no session");
    ask("/stop", "Stopped.");
    bench.bot.wait_for_text("The answer was stopped.");
    bench.bot.write(ANN, "[m4]");
    until("the runner has the message", || jobs(&bench).len() == 4);
    // What goes on ends in its session, which no later message has.
    bench.bot.write(ANN, "/new");
    bench.bot.wait_for("the second answer", |sent| {
        (sent.iter().filter(|it| it.text().contains("new session.")).count() == 2).then_some(())
    });
    fs::remove_file(family(&bench, "hold")).unwrap();
    bench.bot.wait_for_text("re: [m4]");
    ask("[m5]", "re: [m5]");
    gateway.stop();
    let sessions: Vec<Value> = jobs(&bench).iter().map(|job| job["sessionId"].clone()).collect();
    assert_eq!(json!(sessions), json!([null, "s", null, null, null]));
    assert!(!bench.bot.sent().iter().any(|sent| sent.text().contains("[m3]")));
}

/// The jobs that runners of the group were given.
fn jobs(bench: &Bench) -> Vec<Value> {
    let text = fs::read_to_string(family(bench, "jobs")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_message_is_answered_once_when_the_gateway_is_killed() {
    let bench = bound();
    add(&bench);
    fs::create_dir_all(family(&bench, "")).unwrap();
    fs::write(family(&bench, "hold"), "").unwrap();
    let gateway = bench.start();
    bench.bot.write(ANN, "[m1]");
    until("the runner has the message", || family(&bench, "jobs").exists());
    until("the confirmation of the update", || bench.bot.waiting() == 0);
    gateway.kill();
    fs::remove_file(family(&bench, "hold")).unwrap();
    let gateway = bench.start();
    assert_eq!(bench.bot.wait_for_text("[m1]").text(), "re: [m1]");
    gateway.kill();
    let gateway = bench.start();
    bench.bot.write(ANN, "[m2]");
    bench.bot.wait_for_text("[m2]");
    gateway.stop();
    let mut sent: Vec<String> =
        bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    // The kill may have come before the outcome of the sending was stored.
    sent.retain(|text| !text.contains("may be missing here"));
    assert_eq!(sent, ["re: [m1]", "re: [m2]"]);
}

#[test]
fn no_message_is_lost_or_answered_twice_when_the_gateway_is_killed_at_random() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(8);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let bench = bound();
    add(&bench);
    fs::create_dir_all(family(&bench, "")).unwrap();
    fs::write(family(&bench, "once"), "").unwrap();
    let mut gateway = bench.start();
    let mut sent = 0;
    for _ in 0..kills {
        for _ in 0..=random.below(2) {
            bench.bot.write(ANN, &format!("[m{sent}]"));
            sent += 1;
        }
        random.pause(Duration::from_millis(900));
        gateway.kill();
        gateway = bench.start();
    }
    let last = format!("[m{}]", 1_000_000);
    bench.bot.write(ANN, &last);
    bench.bot.wait_for_text(&last);
    let texts: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    let state = gateway.channels(|_| true);
    gateway.stop();
    let answers =
        |number: u64| texts.iter().filter(|text| text.contains(&format!("[m{number}]"))).count();
    let missing: Vec<u64> = (0..sent).filter(|number| answers(*number) == 0).collect();
    let notices = texts.iter().filter(|text| text.contains("interrupted")).count();
    let unknown = state["undelivered"].as_array().unwrap().len();
    assert!((0..sent).all(|number| answers(number) <= 1), "seed {seed}: {texts:#?}");
    // Each is reported, or its part may have been delivered when the gateway was killed, which the owner is shown.
    let is_reported = missing.is_empty() || notices + unknown > 0;
    assert!(is_reported, "seed {seed}: {missing:?} of {texts:#?}, {state:#}");
}

#[test]
fn a_binding_to_an_unknown_group_is_said_and_everything_else_works() {
    let bench = bound();
    let gateway = bench.start();
    gateway.child.wait_for_stderr("host.bindings names the group family, which does not exist");
    bench.bot.write(ANN, "[m1]");
    bench.bot.wait_for_text("cannot be answered at the moment");
    assert!(gateway.dropped(1)[0].contains("`myclaw groups add CHAT --folder family` adds it"));
    bench.bot.write(ANN + 1, "<m2>");
    bench.bot.wait_for_text("m2");
    add(&bench);
    bench.bot.write(ANN, "[m3]");
    bench.bot.wait_for_text("re: [m3]");
    gateway.stop();
}

#[test]
fn a_host_that_cannot_run_is_said_and_everything_else_works() {
    let bench = bound();
    bench.configure(|config| {
        config["channels"]["telegram"]["allowFrom"] = json!([ANN, ANN + 1]);
        let rule = json!({"channel": "telegram", "peer": ANN});
        let bindings = json!([{"folder": "family", "match": rule}]);
        config["host"] = json!({"options": ["--backend=nonsense"], "bindings": bindings});
    });
    let gateway = bench.start();
    gateway.child.wait_for_stderr("host.options of the config: invalid value 'nonsense'");
    bench.bot.write(ANN, "[m1]");
    bench.bot.wait_for_text("cannot be answered at the moment");
    bench.bot.write(ANN + 1, "<m2>");
    bench.bot.wait_for_text("m2");
    gateway.stop();
}

#[test]
fn bindings_that_name_no_chat_are_findings() {
    let bench = bound();
    bench.configure(|config| {
        let rule = json!({"channel": "telegram"});
        let one = json!({"folder": "family", "match": rule});
        config["host"] = json!({"bindings": [one, one]});
    });
    let output = bench.run(&["config", "check"]);
    output.assert_code(3);
    let said = output.stderr() + &output.stdout();
    assert!(
        said.contains("and this names none") && said.contains("add a group for each chat"),
        "{said}"
    );
}
