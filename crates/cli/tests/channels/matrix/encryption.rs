//! Encrypted rooms, with people whose client is matrix-nio.
//!
//! `MYCLAW_NIO_PYTHON` names a Python that has `matrix-nio[e2e]`; `scripts/test-matrix-encryption` installs one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use myclaw_testkit::Random;

use super::*;

/// A client of somebody, with keys of its own.
struct Nio {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _home: TempHome,
}

impl Drop for Nio {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Nio {
    fn start(synapse: &Synapse, name: &str) -> Self {
        let home = TempHome::new();
        let script = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/third-party/matrix_client.py");
        let mut child = Command::new(installed("MYCLAW_NIO_PYTHON").unwrap())
            .arg(script)
            .args([&synapse.url(), name, SECRET])
            .arg(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut nio = Self { child, input, output: BufReader::new(output), _home: home };
        nio.answer();
        nio
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, command: Value) -> Value {
        writeln!(self.input, "{command}").unwrap();
        self.answer()
    }

    /// Makes a room with somebody, who joins it.
    fn room(&mut self, other: &Person, encrypted: bool) -> String {
        let room = self.ask(json!({"do": "room", "invite": [other.id], "encrypted": encrypted}));
        let room = room["room"].as_str().unwrap().to_owned();
        self.ask(json!({"do": "members", "room": room, "count": 2}));
        room
    }

    fn say(&mut self, room: &str, text: &str) -> String {
        let said = self.ask(json!({"do": "say", "room": room, "text": text}));
        said["event"].as_str().unwrap().to_owned()
    }

    fn heard(&mut self, room: &str) -> Vec<Value> {
        let heard = self.ask(json!({"do": "heard"}))["heard"].take();
        let mut heard: Vec<Value> = serde_json::from_value(heard).unwrap();
        heard.retain(|entry| entry["room"] == room);
        heard
    }

    fn wait_for(&mut self, room: &str, words: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let heard = self.heard(room);
            let has =
                |entry: &&Value| entry["body"].as_str().is_some_and(|body| body.contains(words));
            if let Some(found) = heard.iter().find(has) {
                return found.clone();
            }
            assert!(Instant::now() < end, "{words} did not come: {heard:#?}");
        }
    }

    fn wait_for_encrypted(&mut self, room: &str, words: &str) -> Value {
        let found = self.wait_for(room, words);
        assert_eq!(found["encrypted"], true, "{found:#?}");
        found
    }
}

fn encrypted(script: Script) -> Option<(Synapse, Bench, Person, Person, Nio)> {
    installed("MYCLAW_NIO_PYTHON")?;
    let synapse = Synapse::start()?;
    let (bench, claw, ann) = set_up(&synapse, script);
    let nio = Nio::start(&synapse, "ann");
    Some((synapse, bench, claw, ann, nio))
}

/// What everybody with an account on the server sees of a room: the kinds of events of a person that say something.
fn kinds(ann: &Person, of: &Person, room: &str) -> Vec<String> {
    let mut events = ann.events(room);
    events.retain(|event| event["sender"] == of.id.as_str() && event.get("state_key").is_none());
    events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn is_all_encrypted(ann: &Person, of: &Person, room: &str) -> bool {
    kinds(ann, of, room).iter().all(|kind| kind == "m.room.encrypted")
}

#[test]
fn an_encrypted_chat_is_answered_also_after_restarts_and_kills_and_on_new_devices() {
    let Some((synapse, bench, claw, ann, mut nio)) = encrypted(echoing()) else { return };
    let probed = bench.run(&["channels", "probe"]);
    assert!(probed.stdout().contains(", with encryption"), "{}", probed.stdout());
    let gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, true);
    nio.say(&room, "<m1>");
    nio.wait_for_encrypted(&room, "re: <m1>");
    gateway.stop();
    // Said while nobody runs, with a key that only waits at the server.
    nio.say(&room, "<m2>");
    let mut gateway = bench.start();
    nio.wait_for_encrypted(&room, "re: <m2>");
    gateway.kill();
    nio.say(&room, "<m3>");
    gateway = bench.start();
    nio.wait_for_encrypted(&room, "re: <m3>");
    // Another device reads what is said from now on, and what it says is read.
    let mut other = Nio::start(&synapse, "ann");
    other.say(&room, "<m4>");
    other.wait_for_encrypted(&room, "re: <m4>");
    nio.wait_for_encrypted(&room, "re: <m4>");
    assert!(is_all_encrypted(&ann, &claw, &room), "{:?}", kinds(&ann, &claw, &room));
    // Clients that ask for it find the device signed by its account.
    let query = json!({"device_keys": {claw.id.as_str(): []}});
    let keys = ann.call("POST", "/keys/query", &query);
    let own = keys["self_signing_keys"][&claw.id]["keys"].as_object().unwrap();
    let devices = keys["device_keys"][&claw.id].as_object().unwrap();
    let device = devices.values().next().unwrap();
    let signatures = device["signatures"][&claw.id].as_object().unwrap();
    assert!(own.keys().all(|key| signatures.contains_key(key)), "{device:#?}");
    gateway.stop();
}

#[test]
fn files_go_both_ways_encrypted_and_a_damaged_one_is_not_read() {
    let answer = Reply::anthropic().text("here\nMEDIA: report.txt");
    let Some((_synapse, bench, claw, ann, mut nio)) = encrypted(Script::repeat(answer)) else {
        return;
    };
    bench.write_for_chats("report.txt", "all is well");
    let gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, true);
    nio.ask(json!({"do": "file", "room": room, "name": "notes.txt", "text": "line one\nline two"}));
    let sent = nio.wait_for_encrypted(&room, "report.txt");
    let read = nio.ask(json!({"do": "read", "content": sent["content"]}));
    assert_eq!(read["text"], "all is well");
    assert!(bench.asked().contains("> line one\\n> line two"), "{}", bench.asked());
    let damaged =
        json!({"do": "file", "room": room, "name": "bad.txt", "text": "secret", "damaged": true});
    nio.ask(damaged);
    let end = Instant::now() + PATIENCE;
    while !bench.asked().contains("is not the one that was sent") {
        assert!(Instant::now() < end, "{}", bench.asked());
        thread::sleep(Duration::from_millis(50));
    }
    gateway.stop();
    assert!(is_all_encrypted(&ann, &claw, &room), "{:?}", kinds(&ann, &claw, &room));
}

#[test]
fn a_room_that_becomes_encrypted_gets_no_more_plain_text() {
    let Some((_synapse, bench, claw, ann, mut nio)) = encrypted(echoing()) else { return };
    let gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, false);
    nio.say(&room, "<m1>");
    assert_eq!(nio.wait_for(&room, "re: <m1>")["encrypted"], false);
    nio.ask(json!({"do": "encrypt", "room": room}));
    nio.say(&room, "<m2>");
    nio.wait_for_encrypted(&room, "re: <m2>");
    // The server could have written this.
    ann.write(&room, "<m3>");
    nio.wait_for_encrypted(&room, "was not encrypted");
    nio.say(&room, "<m4>");
    nio.wait_for_encrypted(&room, "re: <m4>");
    gateway.stop();
    let kinds = kinds(&ann, &claw, &room);
    assert_eq!(kinds.iter().filter(|kind| *kind == "m.room.message").count(), 1, "{kinds:?}");
    assert_eq!(bench.model.requests().len(), 3);
}

#[test]
fn reactions_edits_and_previews_are_encrypted() {
    let calls = super::super::message::calling(&[
        r#"{"action": "react", "emoji": "👍"}"#,
        r#"{"action": "send", "text": "first words"}"#,
        r#"{"action": "edit", "messageId": "{first}", "text": "better words"}"#,
        r#"{"action": "send", "text": "a slip"}"#,
        r#"{"action": "unsend", "messageId": "{last}"}"#,
    ]);
    let Some((synapse, bench, claw, ann, mut nio)) = encrypted(calls) else { return };
    configure(&bench, &synapse, &claw, &ann, |matrix| matrix["preview"] = json!(true));
    let gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, true);
    nio.say(&room, "hello");
    nio.wait_for_encrypted(&room, "done");
    nio.wait_for_encrypted(&room, "* better words");
    let results = bench.results();
    assert!(results.iter().all(|result| result["status"] == "sent"), "{results:#?}");
    gateway.stop();
    let mut kinds = kinds(&ann, &claw, &room);
    kinds.retain(|kind| kind != "m.room.encrypted");
    assert_eq!(kinds, ["m.room.redaction"]);
}

#[test]
fn a_message_without_its_key_is_told_kept_and_answered_when_the_key_comes() {
    let Some((_synapse, bench, claw, _ann, mut nio)) = encrypted(echoing()) else { return };
    let mut gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, true);
    nio.ask(json!({"do": "say", "room": room, "text": "<m1>", "holds": true}));
    nio.wait_for_encrypted(&room, "its key did not reach me");
    nio.ask(json!({"do": "say", "room": room, "text": "<m2>", "holds": true}));
    gateway.kill();
    gateway = bench.start();
    works(&gateway);
    assert_eq!(nio.ask(json!({"do": "release"}))["count"], 1);
    nio.wait_for_encrypted(&room, "re: <m1>");
    nio.wait_for_encrypted(&room, "re: <m2>");
    gateway.stop();
    let heard = nio.heard(&room);
    let count = |words: &str| {
        heard
            .iter()
            .filter(|entry| entry["body"].as_str().unwrap_or_default().contains(words))
            .count()
    };
    assert_eq!((count("<m1>"), count("<m2>"), count("did not reach me")), (1, 1, 1), "{heard:#?}");
}

#[test]
fn another_login_or_lost_keys_are_one_clear_message() {
    let Some((synapse, bench, claw, ann, _nio)) = encrypted(answering("fine")) else { return };
    let gateway = bench.start();
    works(&gateway);
    gateway.stop();
    let login = json!({
        "type": "m.login.password", "password": SECRET,
        "identifier": {"type": "m.id.user", "user": "claw"},
    });
    let token = claw.call("POST", "/login", &login)["access_token"].clone();
    configure(&bench, &synapse, &claw, &ann, |matrix| matrix["accessToken"] = token);
    let stopped = |words: &str| {
        let gateway = bench.start();
        let is_it = |state: &Value| {
            let channel = &state["channels"][0];
            channel["state"] == "stopped" && channel.to_string().contains(words)
        };
        gateway.channels(is_it);
        gateway.stop();
    };
    stopped("put the old token back");
    configure(&bench, &synapse, &claw, &ann, |_| {});
    let keys = bench.home.path().join(".myclaw/gateway/matrix-keys.sqlite");
    std::fs::remove_file(&keys).unwrap();
    stopped("another program published keys");
}

#[test]
fn encrypted_messages_in_are_answers_out_whatever_is_killed() {
    let Some((_synapse, bench, claw, ann, mut nio)) = encrypted(echoing()) else { return };
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let mut gateway = bench.start();
    works(&gateway);
    let room = nio.room(&claw, true);
    let mut sent = 0;
    for _ in 0..kills {
        for _ in 0..3 {
            nio.say(&room, &format!("<m{sent}>"));
            sent += 1;
        }
        thread::sleep(Duration::from_micros(random.below(1_500_000)));
        gateway.kill();
        gateway = bench.start();
    }
    for number in 0..sent {
        nio.wait_for_encrypted(&room, &format!("<m{number}>"));
    }
    gateway.stop();
    let heard = nio.heard(&room);
    assert!(heard.iter().all(|entry| entry.get("unreadable").is_none()), "{heard:#?}");
    for number in 0..sent {
        let words = format!("<m{number}>");
        let has = |entry: &&Value| entry["body"].as_str().is_some_and(|body| body.contains(&words));
        assert_eq!(heard.iter().filter(has).count(), 1, "seed {seed}: {words}");
    }
    // No index of a key was used for two texts.
    let mut starts: Vec<(String, Value)> = Vec::new();
    for event in ann.events(&room) {
        if event["type"] == "m.room.encrypted" && event["sender"] == claw.id.as_str() {
            let text = event["content"]["ciphertext"].as_str().unwrap();
            // The version, the index and its tag stand at the beginning.
            let index = text[..4].to_owned();
            let session = event["content"]["session_id"].clone();
            starts.push((index, session));
        }
    }
    let all = starts.len();
    starts.sort_by_key(|(index, session)| format!("{session}{index}"));
    starts.dedup();
    assert_eq!(all, starts.len(), "seed {seed}: an index was used twice");
    eprintln!("{sent} messages, {kills} kills");
}
