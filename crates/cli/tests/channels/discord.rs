//! Discord, against a strict server.

use std::thread;

use myclaw_testkit::{DiscordFault, DiscordMessage, DiscordServer, Random, number_from};

use super::chaos::answered_once;
use super::*;

/// A person who may write.
pub(super) const KIM: &str = "42";
/// A channel of a server.
pub(super) const ROOM: &str = "100";
/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 8;
/// Longest life of a process.
const LONGEST_LIFE: Duration = Duration::from_millis(1_200);

pub(super) type Desk = super::Desk<DiscordServer>;

impl Vendor for DiscordServer {
    const CHANNEL: &'static str = "discord";

    fn begin() -> Self {
        Self::start()
    }

    fn config(&self) -> Value {
        json!({
            "botToken": self.token(), "baseUrl": self.url(), "allowFrom": [KIM],
            "groups": {ROOM: {}}, "preview": false,
        })
    }
}

impl Desk {
    /// Somebody writes in the channel of the server.
    pub(super) fn say(&self, channel: &str, fields: &Value) -> String {
        let mut message = json!({"guild_id": "1", "member": {"nick": "Kimmy"}});
        for (key, value) in fields.as_object().unwrap() {
            message[key] = value.clone();
        }
        self.server.deliver(KIM, channel, &message)
    }

    fn calls_of(&self, route: &str) -> Vec<Value> {
        let calls = self.server.calls().into_iter().filter(|(name, _)| name == route);
        calls.map(|(_, body)| body).collect()
    }

    pub(super) fn end(self, gateway: Gateway) {
        gateway.stop();
        assert_eq!(self.server.mistakes(), [""; 0]);
    }
}

/// How often a text was sent.
fn count(sent: &[DiscordMessage], words: &str) -> usize {
    sent.iter().filter(|message| message.text().contains(words)).count()
}

/// That the message is addressed to the bot.
pub(super) fn to_me(text: &str) -> Value {
    json!({"content": format!("<@900> {text}"), "mentions": [{"id": "900", "username": "claw", "bot": true}]})
}

#[test]
fn a_message_is_answered_in_its_chat_and_calls_nobody() {
    let gate = Gate::closed();
    let text = "**bold** @everyone <@1>\n\n| a | b |\n|---|---|\n| 1 | 2 |";
    let reply = Reply::anthropic().text(text).step().hold_after(0, &gate);
    let desk = Desk::new(Script::repeat(reply));
    let gateway = desk.start();
    let id = desk.server.write(KIM, "hello <@7>");
    // An answer that comes at once needs no sign that one is coming.
    until("the sign of typing", || !desk.calls_of("POST typing").is_empty());
    gate.open();
    let answer = desk.server.wait_for_text("bold");
    assert_eq!(answer.text(), "**bold** @everyone <@1>\n\n```\na | b\n--|--\n1 | 2\n```");
    assert_eq!(answer.channel, "542");
    assert_eq!(answer.body["allowed_mentions"], json!({"parse": [], "replied_user": false}));
    assert_eq!(answer.body["message_reference"]["message_id"], id);
    assert_eq!(desk.calls_of("POST typing").len(), 1);
    desk.server.write("666", "hello");
    desk.server.wait_for_text("myclaw pairing approve");
    assert_eq!(desk.bench.model.requests().len(), 1);
    desk.end(gateway);
}

#[test]
fn channels_follow_the_mention_rule_and_threads_the_rules_of_their_channel() {
    let desk = Desk::new(echoing());
    desk.server.add_thread("200", ROOM);
    desk.server.add_thread("300", "101");
    let gateway = desk.start();
    desk.say(ROOM, &json!({"content": "not for the bot"}));
    desk.say(ROOM, &json!({"content": "joined", "type": 7}));
    assert_eq!(gateway.dropped(2).len(), 2);
    desk.say(ROOM, &to_me("<m1>"));
    assert_eq!(desk.server.wait_for_text("m1").channel, ROOM);
    desk.say("200", &to_me("<m2>"));
    assert_eq!(desk.server.wait_for_text("m2").channel, "200");
    assert!(!desk.bench.asked().contains("m1"), "the thread is no session of its own");
    desk.say("300", &to_me("<m3>"));
    assert!(gateway.dropped(3).contains(&"the group is not in channels.discord.groups".to_owned()));
    // A reply to the bot needs no name.
    let mut reply = json!({"content": "<m4>", "type": 19});
    reply["referenced_message"] =
        json!({"id": "1", "author": {"id": "900"}, "content": "what I said"});
    desk.say(ROOM, &reply);
    desk.server.wait_for_text("m4");
    assert!(desk.bench.asked().contains("what I said"), "{}", desk.bench.asked());
    desk.end(gateway);
}

#[test]
fn long_answers_arrive_whole_with_their_code_blocks() {
    let code = "let x = 1; // a line of code\n".repeat(200);
    let desk = Desk::new(answering(&format!("begin\n\n```rust\n{code}```\n\nend")));
    let gateway = desk.start();
    desk.server.write(KIM, "hello");
    let parts = desk.server.wait_for("the last part", |sent| {
        sent.last().is_some_and(|last| last.text().ends_with("end")).then(|| sent.to_vec())
    });
    let all: String = parts.iter().map(DiscordMessage::text).collect();
    assert_eq!(all.matches("let x = 1;").count(), 200);
    assert!(parts.len() >= 3 && parts[1].text().starts_with("```rust\n"), "{}", parts[1].text());
    desk.end(gateway);
}

#[test]
fn a_preview_grows_and_the_answer_takes_its_place() {
    let reply = Reply::anthropic().text("one two three four five six seven eight").in_deltas(8);
    let step = reply.step().event_by_event().pause(Duration::from_millis(700));
    let desk = Desk::new(Script::repeat(step));
    desk.configure(|discord| discord["preview"] = json!(true));
    let gateway = desk.start();
    desk.server.write(KIM, "hello");
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
    desk.bench.write_for_chats("report.txt", "all is well");
    desk.server.forget_nonces();
    let gateway = desk.start();
    // Delivered, and nobody says so; then not delivered, and nobody says so.
    for fault in [DiscordFault::Silence, DiscordFault::Break] {
        desk.server.fail_next("POST messages", fault);
    }
    for turn in 1..=2 {
        desk.say(ROOM, &to_me(&turn.to_string()));
        desk.server.wait_for("both parts", |sent| {
            (count(sent, "fine") == turn && sent.len() == 2 * turn).then_some(())
        });
    }
    assert!(desk.calls_of("GET messages").len() >= 2);
    let files: Vec<_> = desk.server.sent().into_iter().filter_map(|sent| sent.file).collect();
    assert_eq!(files, vec![("report.txt".to_owned(), b"all is well".to_vec()); 2]);
    desk.end(gateway);
}

#[test]
fn a_server_that_is_busy_or_down_delays_and_loses_nothing() {
    let desk = Desk::new(echoing());
    desk.server.set_down(true);
    let gateway = desk.bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    desk.server.set_down(false);
    desk.server.wait_for_connection(0);
    for fault in [
        DiscordFault::TooMany(0.3, false),
        DiscordFault::TooMany(0.3, true),
        DiscordFault::Refuse(503, 0),
    ] {
        desk.server.fail_next("POST messages", fault);
    }
    desk.server.write(KIM, "<m1>");
    desk.server.wait_for_text("m1");
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    assert_eq!(count(&desk.server.sent(), "<m1>"), 1);
    desk.end(gateway);
}

#[test]
fn a_session_is_resumed_without_loss_or_doubling() {
    let desk = Desk::new(echoing());
    desk.server.set_heartbeat(300);
    let gateway = desk.start();
    for round in 0..5 {
        let (identified, resumed, _) = desk.server.connections();
        desk.server.write(KIM, &format!("<m{}>", round * 2));
        match round {
            0 => desk.server.ask_to_reconnect(),
            1 => desk.server.break_socket(None),
            2 => desk.server.break_socket(Some(4000)),
            // It is there, and answers nothing.
            3 => desk.server.set_deaf(true),
            _ => desk.server.send_frames(&[
                "no JSON",
                "[]",
                "{}",
                "{\"op\":-1}",
                "{\"op\":0,\"t\":7}",
                "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"d\":{\"id\":7}}",
                "{\"op\":99,\"d\":[[[[]]]]}",
            ]),
        }
        if round < 4 {
            desk.server.wait_for_connection(identified + resumed);
            desk.server.set_deaf(false);
        }
        desk.server.write(KIM, &format!("<m{}>", round * 2 + 1));
    }
    let all = |sent: &[DiscordMessage]| {
        (0..10).all(|number| count(sent, &format!("<m{number}>")) > 0).then(|| sent.to_vec())
    };
    let sent = desk.server.wait_for("all answers", all);
    for number in 0..10 {
        assert_eq!(count(&sent, &format!("<m{number}>")), 1, "{sent:#?}");
    }
    let (identified, resumed, heartbeats) = desk.server.connections();
    assert!(
        identified == 1 && resumed >= 4 && heartbeats > 0,
        "{identified} {resumed} {heartbeats}"
    );
    // A session that has ended is followed by another one.
    desk.server.end_session();
    desk.server.wait_for_connection(identified + resumed);
    desk.server.write(KIM, "<m10>");
    desk.server.wait_for_text("<m10>");
    desk.end(gateway);
}

#[test]
fn a_wrong_token_or_intent_is_one_clear_message_and_everything_else_works() {
    for (code, words) in [(None, "page Bot"), (Some(4014), "Message Content Intent")] {
        let desk = Desk::new(answering("fine"));
        match code {
            Some(code) => desk.server.refuse_sessions(Some(code)),
            None => desk.configure(|discord| discord["botToken"] = json!("wrong.token")),
        }
        let probed = desk.bench.run(&["channels", "probe"]);
        if code.is_none() {
            probed.assert_code(1);
            assert!(
                probed.stdout().contains(words) && !probed.stdout().contains("wrong.token"),
                "{}",
                probed.stdout()
            );
        }
        let gateway = desk.bench.start();
        let state = gateway.channels(|state| state["channels"][0]["state"] == "stopped");
        assert!(state["channels"][0]["reason"].as_str().unwrap().contains(words), "{state}");
        let id = gateway.client.send("main", "one", "hello").unwrap();
        assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "fine");
        gateway.stop();
    }
}

#[test]
fn files_come_in_from_discord_only() {
    let desk = Desk::new(answering("seen"));
    desk.configure(|discord| discord["mediaMaxMb"] = json!(1));
    let gateway = desk.start();
    let note = desk.server.keep_file("note.txt", b"line one\nline two");
    let mut big = desk.server.keep_file("big.bin", b"x");
    big["size"] = json!(2 * 1024 * 1024);
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut elsewhere = desk.server.keep_file("trap.txt", b"x");
    elsewhere["url"] = json!(format!("http://{}/x", trap.local_addr().unwrap()));
    let message = json!({"content": "look", "attachments": [note, big, elsewhere]});
    desk.server.deliver(KIM, "542", &message);
    desk.server.wait_for_text("seen");
    let asked = desk.bench.asked();
    assert!(asked.contains("> line one\\n> line two"), "{asked}");
    assert!(asked.contains("big.bin") && asked.contains("at most 1048576"), "{asked}");
    assert!(asked.contains("at another server than Discord's"), "{asked}");
    trap.set_nonblocking(true).unwrap();
    assert!(trap.accept().is_err(), "another server was asked");
    desk.end(gateway);
}

#[test]
fn an_edited_message_is_a_new_one_and_the_session_acts_in_its_chat() {
    let desk = Desk::new(message::calling(&[
        r#"{"action": "react", "emoji": "👍"}"#,
        r#"{"action": "send", "text": "first **words**"}"#,
        r#"{"action": "edit", "messageId": "{first}", "text": "better words"}"#,
        r#"{"action": "poll", "question": "Where?", "options": ["here", "there"], "several": true}"#,
        r#"{"action": "unsend", "messageId": "{first}"}"#,
    ]));
    let gateway = desk.start();
    let id = desk.server.write(KIM, "hello");
    desk.server.wait_for_text("done");
    assert_eq!(desk.calls_of("PUT reaction").len(), 1);
    assert_eq!(desk.calls_of("PATCH message")[0]["content"], "better words");
    assert_eq!(desk.calls_of("DELETE message").len(), 1);
    let sent = desk.server.sent();
    assert_eq!((sent.len(), &sent[0].body["poll"]["allow_multiselect"]), (2, &json!(true)));
    // A preview of a link, and an edit.
    desk.server.edit(&id, KIM, "542", &json!({"content": "hello"}));
    let edit =
        json!({"content": "hello again", "edited_timestamp": "2026-01-01T00:00:01.000000+00:00"});
    desk.server.edit(&id, KIM, "542", &edit);
    desk.server.wait_for("the second answer", |sent| (sent.len() == 3).then_some(()));
    assert!(
        desk.bench
            .asked()
            .contains("[The person edited an earlier message. It says now:]\\nhello again")
    );
    // A reaction, or another preview: the text is that of the edit before.
    let again =
        json!({"content": "hello again", "edited_timestamp": "2026-01-01T00:00:02.000000+00:00"});
    desk.server.edit(&id, KIM, "542", &again);
    until("the drop of the edit", || {
        gateway.dropped(1).last().is_some_and(|reason| reason == "the edit changes nothing")
    });
    assert_eq!(desk.server.sent().len(), 3);
    desk.end(gateway);
}

#[test]
fn messages_in_are_answers_out_whatever_is_killed() {
    let kills = number_from("MYCLAW_DISCORD_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let desk = Desk::new(echoing());
    desk.configure(|discord| discord["dmPolicy"] = json!("open"));
    desk.server.forget_nonces();
    let mut gateway = desk.start();
    let mut number = 0;
    for kill in 0..kills {
        for _ in 0..3 {
            desk.server.write(&(1_000 + number).to_string(), &format!("<m{number}>"));
            number += 1;
        }
        if kill % 2 == 0 {
            desk.server.fail_next("POST messages", DiscordFault::Silence);
        }
        thread::sleep(Duration::from_micros(random.below(LONGEST_LIFE.as_micros() as u64)));
        gateway.kill();
        // This one waits in the session until the next process resumes it.
        desk.server.write(&(1_000 + number).to_string(), &format!("<m{number}>"));
        number += 1;
        gateway = desk.start();
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    answered_once(seed, number, |words| count(&desk.server.sent(), words));
    desk.end(gateway);
}

#[test]
fn the_first_set_up_tries_the_token() {
    let desk = Desk::new(echoing());
    let url = desk.server.url();
    let options = ["--channel-url", url.as_str()];
    let right = [("DISCORD_BOT_TOKEN", desk.server.token())];
    desk.bench.sets_up(
        "discord",
        (Told { options: &options, variables: &[("DISCORD_BOT_TOKEN", "wrong")] }, "page Bot"),
        (Told { options: &options, variables: &right }, "claw (900) at http://127.0.0.1"),
    );
}
