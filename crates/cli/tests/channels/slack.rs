//! Slack, against a strict server.

use std::thread;

use myclaw_testkit::{Random, SlackFault, SlackMessage, SlackServer, number_from};

use super::chaos::answered_once;
use super::*;

/// A person who may write.
pub(super) const EVE: &str = "UEVE";
/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 8;
/// Longest life of a process.
const LONGEST_LIFE: Duration = Duration::from_millis(1_200);

pub(super) type Desk = super::Desk<SlackServer>;

impl Vendor for SlackServer {
    const CHANNEL: &'static str = "slack";

    fn begin() -> Self {
        Self::start()
    }

    fn config(&self) -> Value {
        json!({
            "appToken": self.app_token(), "botToken": self.bot_token(), "baseUrl": self.url(),
            "allowFrom": [EVE], "groups": {"C1": {}},
        })
    }
}

impl Desk {
    /// Somebody writes in the channel `C1`.
    pub(super) fn say(&self, fields: &Value) -> String {
        let mut event = json!({
            "type": "message", "channel": "C1", "channel_type": "channel", "user": EVE,
        });
        for (key, value) in fields.as_object().unwrap() {
            event[key] = value.clone();
        }
        self.server.deliver(&event)
    }

    fn calls_of(&self, method: &str) -> Vec<Value> {
        let calls = self.server.calls().into_iter().filter(|(name, _)| name == method);
        calls.map(|(_, params)| params).collect()
    }

    /// Waits until every event is acknowledged, and stops.
    pub(super) fn end(self, gateway: Gateway) {
        let end = Instant::now() + PATIENCE;
        while self.server.waiting() > 0 {
            assert!(Instant::now() < end, "events are not acknowledged");
            thread::sleep(Duration::from_millis(10));
        }
        gateway.stop();
        assert_eq!(self.server.mistakes(), [""; 0]);
    }
}

/// How often each text was sent.
fn count(sent: &[SlackMessage], words: &str) -> usize {
    let words = words.replace('<', "&lt;").replace('>', "&gt;");
    sent.iter().filter(|message| message.text().contains(&words)).count()
}

#[test]
fn a_message_is_answered_in_its_chat_and_acknowledged_afterwards() {
    let desk = Desk::new(answering("**bold** & <!channel> [x](https://x.y)"));
    let gateway = desk.start();
    desk.server.write(EVE, "hello <@UBEN> &amp; &lt;all&gt;");
    let answer = desk.server.wait_for_text("bold");
    assert_eq!(answer.text(), "*bold* &amp; &lt;!channel&gt; <https://x.y|x>");
    assert_eq!(answer.params["channel"], "DUEVE");
    assert_eq!(
        (&answer.params["parse"], &answer.params["unfurl_links"]),
        (&json!("none"), &json!("false"))
    );
    assert!(desk.bench.asked().contains("hello @Name of UBEN & <all>"), "{}", desk.bench.asked());
    // Nobody who is not known gets an answer.
    desk.server.write("UMALLORY", "hello");
    desk.server.wait_for_text("myclaw pairing approve");
    assert_eq!(desk.bench.model.requests().len(), 1);
    desk.end(gateway);
}

#[test]
fn channels_follow_the_mention_rule_and_threads_are_chats_of_their_own() {
    let desk = Desk::new(echoing());
    let gateway = desk.start();
    desk.say(&json!({"text": "not for the bot"}));
    desk.say(&json!({"text": "by a program <@UBOT>", "bot_id": "B2"}));
    desk.say(&json!({"text": "joined", "subtype": "channel_join"}));
    assert_eq!(gateway.dropped(3).len(), 3);
    // A mention comes as two events of one message.
    let ts = desk.say(&json!({"text": "<@UBOT> &lt;m1&gt;"}));
    desk.say(&json!({"type": "app_mention", "channel_type": null, "text": "<@UBOT> &lt;m1&gt;", "ts": ts}));
    let answer = desk.server.wait_for_text("m1");
    assert_eq!(
        (&answer.params["channel"], &answer.params["thread_ts"]),
        (&json!("C1"), &Value::Null)
    );
    let root = answer.ts;
    desk.say(&json!({"text": "&lt;m2&gt;", "thread_ts": root, "parent_user_id": "UBOT"}));
    let reply = desk.server.wait_for_text("m2");
    assert_eq!(reply.params["thread_ts"], root);
    assert!(!desk.bench.asked().contains("m1"), "the thread is no session of its own");
    let status = &desk.calls_of("assistant.threads.setStatus")[0];
    assert_eq!((&status["channel_id"], &status["thread_ts"]), (&json!("C1"), &json!(root)));
    desk.server.deliver(&json!({
        "type": "message", "channel": "C2", "channel_type": "channel", "user": EVE, "text": "<@UBOT> hi",
    }));
    assert!(gateway.dropped(4).contains(&"the group is not in channels.slack.groups".to_owned()));
    assert_eq!(desk.server.sent().len(), 2);
    desk.end(gateway);
}

#[test]
fn long_answers_arrive_whole_with_their_code_blocks() {
    let code = "let x = 1 < 2; // a line of code\n".repeat(300);
    let desk = Desk::new(answering(&format!("begin\n\n```rust\n{code}```\n\nend")));
    desk.configure(|slack| slack["preview"] = json!(false));
    let gateway = desk.start();
    desk.server.write(EVE, "hello");
    let parts = desk.server.wait_for("the last part", |sent| {
        sent.last().is_some_and(|last| last.text().ends_with("end")).then(|| sent.to_vec())
    });
    let all: String = parts.iter().map(SlackMessage::text).collect();
    assert_eq!(all.matches("let x = 1 &lt; 2;").count(), 300);
    assert!(parts.len() >= 3 && parts[1].text().starts_with("```\nlet"), "{}", parts[1].text());
    desk.end(gateway);
}

#[test]
fn a_preview_grows_and_the_answer_takes_its_place() {
    let reply = Reply::anthropic().text("one two three four five six seven eight").in_deltas(8);
    let step = reply.step().event_by_event().pause(Duration::from_millis(700));
    let desk = Desk::new(Script::repeat(step));
    let gateway = desk.start();
    desk.server.write(EVE, "hello");
    desk.server.wait_for_text(" …");
    let answer = desk.server.wait_for("the answer", |sent| {
        sent.iter().find(|message| message.text().ends_with("eight")).cloned()
    });
    assert!(answer.edits >= 1);
    assert_eq!(desk.server.sent().len(), 1, "the answer is not in the place of the preview");
    desk.end(gateway);
}

#[test]
fn what_may_have_been_delivered_is_looked_for_and_sent_once() {
    let desk = Desk::new(answering("fine\nMEDIA: report.txt"));
    desk.configure(|slack| slack["preview"] = json!(false));
    desk.bench.write_for_chats("report.txt", "all is well");
    let gateway = desk.start();
    // Delivered, and nobody says so; then not delivered, and nobody says so.
    for fault in [SlackFault::Silence, SlackFault::Break] {
        desk.server.fail_next("chat.postMessage", fault.clone());
        desk.server.fail_next("files.completeUploadExternal", fault);
    }
    // The parts of a chat keep their order, so the third turn shows that nothing of the others comes again.
    for turn in 1..=3 {
        desk.say(&json!({"text": format!("<@UBOT> {turn}")}));
        desk.server.wait_for("both parts", |sent| {
            (count(sent, "fine") == turn && sent.len() == 2 * turn).then_some(())
        });
    }
    assert_eq!(desk.calls_of("conversations.history").len(), 4);
    assert_eq!(desk.server.sent().len(), 6);
    desk.end(gateway);
}

#[test]
fn a_server_that_is_busy_or_down_delays_and_loses_nothing() {
    let desk = Desk::new(echoing());
    desk.server.set_down(true);
    let gateway = desk.bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    desk.server.set_down(false);
    desk.server.fail_next("chat.postMessage", SlackFault::TooMany(1));
    desk.server.fail_next("chat.postMessage", SlackFault::Refuse("internal_error"));
    desk.server.write(EVE, "&lt;m1&gt;");
    desk.server.wait_for_text("m1");
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    // A scope that is missing is the owner's to add: the answer waits.
    desk.server.lose_scope("users:read");
    desk.server.write(EVE, "&lt;m2&gt;");
    desk.server.wait_for_text("m2");
    assert_eq!(count(&desk.server.sent(), "<m1>"), 1);
    desk.end(gateway);
}

#[test]
fn sockets_are_replaced_without_loss_or_doubling() {
    let desk = Desk::new(echoing());
    desk.configure(|slack| slack["preview"] = json!(false));
    let gateway = desk.start();
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    for round in 0..4 {
        let before = desk.server.greetings();
        desk.server.write(EVE, &format!("&lt;m{}&gt;", round * 2));
        match round {
            0 => desk.server.refresh("warning"),
            1 => desk.server.refresh("refresh_requested"),
            2 => desk.server.break_sockets(),
            _ => desk.server.send_frames(&[
                "no JSON", "[]", "{}", "{\"type\":7}", "{\"type\":\"hello\",\"x\":[[[[[[]]]]]]}",
                "{\"type\":\"events_api\",\"payload\":{\"event\":{\"type\":\"message\"}}}",
                "{\"type\":\"events_api\",\"envelope_id\":\"x\",\"payload\":{\"event\":{\"files\":7}}}",
                "{\"type\":\"slash_commands\",\"envelope_id\":\"y\",\"payload\":{}}",
            ]),
        }
        let end = Instant::now() + PATIENCE;
        while round < 3 && desk.server.greetings() == before {
            assert!(Instant::now() < end, "no other socket was opened");
            thread::sleep(Duration::from_millis(10));
        }
        desk.server.write(EVE, &format!("&lt;m{}&gt;", round * 2 + 1));
    }
    let all = |sent: &[SlackMessage]| {
        (0..8).all(|number| count(sent, &format!("<m{number}>")) > 0).then(|| sent.to_vec())
    };
    let sent = desk.server.wait_for("all answers", all);
    for number in 0..8 {
        assert_eq!(count(&sent, &format!("<m{number}>")), 1, "{sent:#?}");
    }
    desk.end(gateway);
}

#[test]
fn a_wrong_token_is_one_clear_message_and_everything_else_works() {
    for (key, token, words) in [
        ("botToken", "xoxb-wrong", "OAuth & Permissions"),
        ("appToken", "xapp-wrong", "Basic Information"),
    ] {
        let desk = Desk::new(answering("fine"));
        desk.configure(|slack| slack[key] = json!(token));
        let probed = desk.bench.run(&["channels", "probe"]);
        probed.assert_code(1);
        assert!(
            probed.stdout().contains(words) && !probed.stdout().contains(token),
            "{}",
            probed.stdout()
        );
        let gateway = desk.bench.start();
        let state = gateway.channels(|state| state["channels"][0]["state"] == "stopped");
        assert!(state["channels"][0]["reason"].as_str().unwrap().contains(words), "{state}");
        let id = gateway.client.send("main", "one", "hello").unwrap();
        assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "fine");
        gateway.stop();
        desk.configure(|_| {});
        let probed = desk.bench.run(&["channels", "probe", "slack"]);
        probed.assert_code(0);
        assert!(probed.stdout().contains("@claw (UBOT) in Team"), "{}", probed.stdout());
    }
}

#[test]
fn files_go_both_ways_and_the_token_stays_with_slack() {
    let desk = Desk::new(answering("Here.\nMEDIA: report.txt"));
    desk.configure(|slack| slack["mediaMaxMb"] = json!(1));
    desk.bench.write_for_chats("report.txt", "all is well");
    let gateway = desk.start();
    let note = desk.server.keep_file("note.txt", b"line one\nline two");
    let mut big = desk.server.keep_file("big.bin", b"x");
    big["size"] = json!(2 * 1024 * 1024);
    // A trap: the token must not go there.
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut elsewhere = desk.server.keep_file("trap.txt", b"x");
    elsewhere["url_private"] = json!(format!("http://{}/x", trap.local_addr().unwrap()));
    desk.server.deliver(&json!({
        "type": "message", "subtype": "file_share", "channel": "DUEVE", "channel_type": "im", "user": EVE,
        "text": "look", "files": [note, big, elsewhere],
    }));
    let sent = desk.server.wait_for("the file", |sent| {
        sent.iter().find(|message| !message.files.is_empty()).cloned()
    });
    let asked = desk.bench.asked();
    assert!(asked.contains("> line one\\n> line two"), "{asked}");
    assert!(asked.contains("big.bin") && asked.contains("at most 1048576"), "{asked}");
    assert!(asked.contains("at another server than baseUrl"), "{asked}");
    assert_eq!(
        (&sent.files[0].0["name"], sent.files[0].1.as_slice()),
        (&json!("report.txt"), &b"all is well"[..])
    );
    trap.set_nonblocking(true).unwrap();
    assert!(trap.accept().is_err(), "the token went to another server");
    desk.end(gateway);
}

#[test]
fn an_edited_message_is_a_new_one_and_the_session_acts_in_its_chat() {
    let desk = Desk::new(message::calling(&[
        r#"{"action": "react", "emoji": "👍"}"#,
        r#"{"action": "send", "text": "first **words**"}"#,
        r#"{"action": "edit", "messageId": "{first}", "text": "better words"}"#,
        r#"{"action": "unsend", "messageId": "{first}"}"#,
    ]));
    let gateway = desk.start();
    let ts = desk.server.write(EVE, "hello");
    desk.server.wait_for_text("done");
    let reaction = &desk.calls_of("reactions.add")[0];
    assert_eq!((&reaction["timestamp"], &reaction["name"]), (&json!(ts), &json!("thumbsup")));
    assert_eq!(desk.calls_of("chat.update")[0]["text"], "better words");
    assert_eq!((desk.calls_of("chat.delete").len(), desk.server.sent().len()), (1, 1));
    let changed = |text: &str, edited: Value| {
        desk.server.deliver(&json!({
            "type": "message", "subtype": "message_changed", "channel": "DUEVE", "channel_type": "im", "hidden": true,
            "message": {"type": "message", "user": EVE, "text": text, "ts": ts, "edited": edited},
            "previous_message": {"type": "message", "user": EVE, "text": "hello", "ts": ts},
        }));
    };
    // A preview of a link, and an edit.
    changed("hello", Value::Null);
    changed("hello again", json!({"user": EVE, "ts": "2.000000"}));
    desk.server.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    assert!(
        desk.bench
            .asked()
            .contains("[The person edited an earlier message. It says now:]\\nhello again")
    );
    changed("hello again", json!({"user": EVE, "ts": "3.000000"}));
    until("the drop of the edit", || {
        gateway.dropped(1).last().is_some_and(|reason| reason == "the edit changes nothing")
    });
    assert_eq!(desk.server.sent().len(), 2);
    desk.end(gateway);
}

#[test]
fn messages_in_are_answers_out_whatever_is_killed() {
    let kills = number_from("MYCLAW_SLACK_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let desk = Desk::new(echoing());
    desk.configure(|slack| slack["dmPolicy"] = json!("open"));
    let mut gateway = desk.bench.start();
    let mut number = 0;
    for kill in 0..kills {
        for _ in 0..3 {
            // Each person has a chat, whose answers have a rate.
            desk.server.write(&format!("U{number}"), &format!("&lt;m{number}&gt;"));
            number += 1;
        }
        if kill % 2 == 0 {
            desk.server.fail_next("chat.postMessage", SlackFault::Silence);
        }
        thread::sleep(Duration::from_micros(random.below(LONGEST_LIFE.as_micros() as u64)));
        gateway.kill();
        gateway = desk.bench.start();
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    answered_once(seed, number, |words| count(&desk.server.sent(), words));
    desk.end(gateway);
}

#[test]
fn files_are_loaded_once_and_for_those_who_may_write_only() {
    let desk = Desk::new(answering("seen"));
    let gateway = desk.start();
    // Slack is asked for the file before it is downloaded.
    let mut note = desk.server.keep_file("note.txt", b"a note");
    note["file_access"] = json!("check_file_info");
    let event = |person: &str| {
        json!({
            "type": "message", "subtype": "file_share", "channel": format!("D{person}"), "channel_type": "im",
            "user": person, "text": "look", "files": [note],
        })
    };
    desk.server.deliver(&event("UMALLORY"));
    desk.server.wait_for_text("myclaw pairing approve");
    assert_eq!(desk.calls_of("files.info"), [json!(null); 0]);
    let ts = desk.server.deliver(&event(EVE));
    desk.server.wait_for_text("seen");
    assert!(desk.bench.asked().contains("a note"), "{}", desk.bench.asked());
    // The same message comes again.
    let mut again = event(EVE);
    again["ts"] = json!(ts);
    desk.server.deliver(&again);
    let end = Instant::now() + PATIENCE;
    while desk.server.waiting() > 0 {
        assert!(Instant::now() < end, "it is not acknowledged");
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(desk.calls_of("files.info").len(), 1);
    desk.end(gateway);
}

#[cfg(target_os = "linux")]
#[test]
fn a_message_that_cannot_be_stored_is_not_acknowledged() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let desk = Desk::new(echoing());
    // The system's signal would end the process; without it, a write fails as on a full disk.
    let mut command = desk.bench.home.command("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" gateway", env!("CARGO_BIN_EXE_myclaw")]);
    let gateway = Gateway::of(RunningChild::spawn(&mut command), &desk.bench.home, desk.bench.port);
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    let process = Pid::from_raw(gateway.child.id() as i32);
    let limit = |bytes: Option<u64>| {
        prlimit(process, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    limit(Some(0));
    desk.server.write(EVE, "&lt;m1&gt;");
    until("another delivery", || desk.server.attempts() >= 2);
    assert!(desk.server.sent().is_empty());
    limit(None);
    desk.server.wait_for_text("m1");
    let sent = desk.server.clone();
    desk.end(gateway);
    assert_eq!(count(&sent.sent(), "<m1>"), 1);
}

#[test]
fn the_first_set_up_tries_both_tokens() {
    let desk = Desk::new(echoing());
    let (url, server) = (desk.server.url(), &desk.server);
    let options = ["--channel-url", url.as_str()];
    let with = |bot, app| [("SLACK_BOT_TOKEN", bot), ("SLACK_APP_TOKEN", app)];
    let (wrong, right) =
        (with(server.bot_token(), "xapp-wrong"), with(server.bot_token(), server.app_token()));
    desk.bench.sets_up(
        "slack",
        (Told { options: &options, variables: &wrong }, "Basic Information"),
        (Told { options: &options, variables: &right }, "@claw (UBOT) in Team"),
    );
}
