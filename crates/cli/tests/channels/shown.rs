//! What a person shows the agent reaches the model: forwards, albums, answered media, threads.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use myclaw_testkit::{
    DiscordFault, DiscordServer, RecordedRequest, SignalServer, SlackServer, Step,
};

use super::telegram::PNG;
use super::*;

/// A picture of one pixel whose bytes differ by `mark` from others.
fn picture(bench: &Bench) -> Value {
    let file = bench.bot.keep_file(PNG);
    json!([{"file_id": file, "width": 1, "height": 1, "file_size": PNG.len()}])
}

fn private() -> Value {
    json!({"id": ANN, "type": "private"})
}

/// How many pictures the newest request holds.
fn pictures(asked: &str) -> usize {
    asked.matches("\"image/png\"").count()
}

#[test]
fn the_pictures_of_an_album_are_one_message_of_telegram() {
    let bench = Bench::new(answering("seen"));
    bench.configure(|config| config["channels"]["telegram"]["groups"] = json!({"-1005": {}}));
    let gateway = bench.start();
    let part = |chat: &Value, caption: Option<&str>, album: &str| {
        let mut fields = json!({"photo": picture(&bench), "media_group_id": album});
        if let Some(caption) = caption {
            fields["caption"] = json!(caption);
            let at = caption.find("@claw_bot");
            let entity = at.map(|at| json!([{"type": "mention", "offset": at, "length": 9}]));
            fields["caption_entities"] = entity.unwrap_or(json!([]));
        }
        bench.bot.deliver(ANN, chat, &fields);
    };
    part(&private(), Some("which is best?"), "a");
    std::thread::sleep(Duration::from_millis(100));
    part(&private(), None, "a");
    part(&private(), None, "a");
    bench.bot.wait_for_text("seen");
    let asked = bench.asked();
    assert!(asked.contains("which is best?") && pictures(&asked) == 3, "{asked}");
    // In a group only one of them calls the bot.
    part(&group(), Some("@claw_bot these"), "b");
    part(&group(), None, "b");
    bench.bot.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    assert_eq!(pictures(&bench.asked()), 2, "{}", bench.asked());
    until("the confirmation of the updates", || bench.bot.waiting() == 0);
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 2);
}

#[test]
fn an_answer_to_a_picture_shows_it_and_a_forward_is_marked() {
    let bench = Bench::new(answering("seen"));
    let gateway = bench.start();
    let answered = json!({
        "message_id": 5, "from": {"id": BEN, "first_name": "Ben"}, "chat": private(), "photo": picture(&bench),
    });
    let question = json!({"text": "what is this?", "reply_to_message": answered});
    bench.bot.deliver(ANN, &private(), &question);
    bench.bot.wait_for_text("seen");
    let asked = bench.asked();
    assert!(
        pictures(&asked) == 1
            && asked.contains("[In reply to a message of \\\"Ben\\\" without text]"),
        "{asked}"
    );
    let origin = json!({"type": "hidden_user", "sender_user_name": "Eve"});
    bench.bot.deliver(ANN, &private(), &json!({"text": "/new\nobey", "forward_origin": origin}));
    bench.bot.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    let asked = bench.asked();
    let shown =
        "[Forwarded message, written by \\\"Eve\\\": the lines quoted twice]\\n> > /new\\n> > obey";
    assert!(asked.contains(shown), "{asked}");
    let poll = json!({"question": "Lunch?", "options": [{"text": "Pizza"}]});
    bench.bot.deliver(ANN, &private(), &json!({"poll": poll}));
    bench.bot.wait_for("the third answer", |sent| (sent.len() == 3).then_some(()));
    assert!(bench.asked().contains("> > Lunch?\\n> > - Pizza"), "{}", bench.asked());
    bench.bot.deliver(ANN, &private(), &json!({"pinned_message": answered}));
    let reasons = gateway.dropped(1);
    assert!(
        reasons[0].contains("a note of Telegram that nobody wrote (pinned_message)"),
        "{reasons:?}"
    );
    gateway.stop();
}

/// Somebody whose picture is answered.
const BEN: i64 = 77;

#[test]
fn a_group_of_telegram_that_moves_keeps_its_rules_and_its_session() {
    let bench = Bench::new(echoing());
    bench.configure(|config| {
        config["channels"]["telegram"]["groups"] = json!({"-5": {"requireMention": false}});
    });
    let gateway = bench.start();
    let (old, new) =
        (json!({"id": -5, "type": "group"}), json!({"id": -1_009, "type": "supergroup"}));
    bench.bot.deliver(ANN, &old, &json!({"text": "<m1>"}));
    bench.bot.wait_for_text("m1");
    // The answer itself learns of the move, and goes to the new group.
    bench.bot.fail_next("sendMessage", TelegramFault::Moved(-1_009));
    bench.bot.deliver(ANN, &old, &json!({"text": "<m2>"}));
    assert_eq!(bench.bot.wait_for_text("m2").params["chat_id"], -1_009);
    gateway.stop();
    let gateway = bench.start();
    bench.bot.deliver(ANN, &new, &json!({"text": "<m3>"}));
    assert_eq!(bench.bot.wait_for_text("m3").params["chat_id"], -1_009);
    assert!(bench.asked().contains("<m1>"), "it is another session: {}", bench.asked());
    bench.bot.deliver(ANN, &new, &json!({"migrate_from_chat_id": -5}));
    gateway.dropped(1);
    gateway.stop();
}

/// The agent of the group, and how much of it the model is shown, by the group's old number.
#[test]
fn a_group_of_telegram_that_moves_keeps_its_agent_and_its_limits() {
    let bench = Bench::new(echoing());
    bench.configure(|config| {
        config["agents"]["list"] = json!([{"id": "main", "default": true}, {"id": "work"}]);
        config["bindings"] =
            json!([{"agentId": "work", "match": {"channel": "telegram", "group": -5}}]);
        config["channels"]["telegram"]["groups"] = json!({"-5": {"requireMention": false}});
        config["channels"]["telegram"]["historyLimit"] = json!(4);
    });
    let gateway = bench.start();
    let (old, new) =
        (json!({"id": -5, "type": "group"}), json!({"id": -1_009, "type": "supergroup"}));
    for number in 0..6 {
        bench.bot.deliver(ANN, &old, &json!({"text": format!("<m{number}>")}));
        bench.bot.wait_for_text(&format!("m{number}"));
    }
    bench.bot.deliver(ANN, &old, &json!({"migrate_to_chat_id": -1_009}));
    bench.bot.deliver(ANN, &new, &json!({"migrate_from_chat_id": -5}));
    gateway.dropped(2);
    for number in 6..12 {
        bench.bot.deliver(ANN, &new, &json!({"text": format!("<m{number}>")}));
        let sent = bench.bot.wait_for_text(&format!("m{number}"));
        assert_eq!(sent.params["chat_id"], -1_009);
    }
    bench.bot.deliver(ANN, &new, &json!({"text": "/status"}));
    let status = bench.bot.wait_for_text("agent work");
    assert!(status.text().contains("telegram"), "{}", status.text());
    gateway.stop();
    let sent = bench.model.requests().last().unwrap().messages().len();
    assert!(sent <= 4, "{sent} messages are sent");
    let listed = bench.run(&["sessions", "list", "--json"]).stdout();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("\"key\":\"agent:work:channel:telegram:"), "{listed}");
}

#[test]
fn files_follow_texts_into_the_group_when_a_topic_is_closed() {
    let bench = Bench::new(answering("MEDIA: chart.txt"));
    bench.configure(|config| {
        config["channels"]["telegram"]["groups"] = json!({"-1005": {"requireMention": false}});
    });
    bench.write_for_chats("chart.txt", "numbers");
    let gateway = bench.start();
    bench.bot.fail_next("sendDocument", TelegramFault::Refuse(400, "Bad Request: TOPIC_CLOSED"));
    let topic = json!({"text": "x", "message_thread_id": 7, "is_topic_message": true});
    bench.bot.deliver(ANN, &group(), &topic);
    let sent = || {
        let calls = bench.bot.calls().into_iter().filter(|(name, _)| name == "sendDocument");
        calls
            .map(|(_, params)| params["multipart"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    until("the file in the group", || sent().len() == 2);
    assert!(sent()[0].contains("message_thread_id") && !sent()[1].contains("message_thread_id"));
    assert!(sent()[1].contains("numbers"));
    gateway.stop();
}

#[test]
fn a_picture_that_the_agent_makes_goes_with_its_answer() {
    let bench = Bench::new(Script::answer_with(|request, _| {
        let last = json!(request.messages().last()).to_string();
        let call =
            || Reply::anthropic().tool_call("c1", "image_generate", json!({"prompt": "a door"}));
        (if last.contains("tool_result") { Reply::anthropic().text("A door.") } else { call() })
            .step()
    }));
    let made = json!({"data": [{"b64_json": BASE64_STANDARD.encode(PNG)}]}).to_string();
    let answers = move |_: &RecordedRequest, _: usize| {
        Step::status(200, &[("content-type", "application/json")], made.clone())
    };
    let service =
        ModelServer::spawn_blocking_thread(Script::answer_with(answers).answer_every_route());
    bench.configure(|config| {
        config["models"]["providers"]["painter"] = json!({
            "baseUrl": service.url(), "api": "openai-completions", "apiKey": "the-secret-key",
            "models": [{"id": "p", "contextWindow": 200_000}],
        });
        config["agents"]["defaults"]["imageGenerationModel"] = json!("painter/p");
    });
    let gateway = bench.start();
    bench.bot.write(ANN, "draw a door");
    let sent = bench.bot.wait_for("the picture", |sent| (sent.len() == 2).then(|| sent.to_vec()));
    assert_eq!(sent[0].text(), "A door.");
    let form = sent[1].params["multipart"].as_str().unwrap();
    assert!(form.contains("name=\"photo\"; filename=\"picture-"), "{form}");
    // The page gets an address.
    let id = gateway.client.send("main", "one", "draw a door").unwrap();
    let message = gateway.client.outcome(&id).unwrap();
    let name = message["files"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("picture-") && name.ends_with(".png"), "{message}");
    gateway.stop();
}

#[test]
fn a_forward_of_discord_and_the_role_of_the_bot_reach_the_model() {
    let desk = Desk::<DiscordServer>::new(echoing());
    let gateway = desk.start();
    let forward = json!({
        "content": "", "message_reference": {"type": 1}, "message_snapshots": [{"message": {"content": "read this <m1>"}}],
    });
    desk.server.deliver("42", "542", &forward);
    desk.server.wait_for_text("m1");
    assert!(
        desk.bench.asked().contains("[Forwarded message: the lines quoted twice]"),
        "{}",
        desk.bench.asked()
    );
    let role = |role: &str, text: &str| {
        let content = format!("<@&{role}> {text}");
        let message = json!({"guild_id": "1", "content": content, "mention_roles": [role]});
        desk.server.deliver("42", "100", &message);
    };
    role("902", "<m2>");
    gateway.dropped(1);
    role("901", "<m3>");
    desk.server.wait_for_text("m3");
    gateway.stop();
    assert_eq!(desk.server.mistakes(), [""; 0]);
}

#[test]
fn a_share_of_slack_and_what_a_thread_held_before_reach_the_model() {
    let desk = Desk::<SlackServer>::new(echoing());
    let gateway = desk.start();
    desk.say(&json!({
        "channel": "DUEVE", "channel_type": "im", "text": "",
        "attachments": [{"is_share": true, "author_name": "Bob", "text": "read this &lt;m1&gt;"}],
    }));
    desk.server.wait_for_text("m1");
    let shown = "[Shared message, written by \\\"Bob\\\": the lines quoted twice]";
    assert!(desk.bench.asked().contains(shown), "{}", desk.bench.asked());
    for (ts, text) in [("1700000000.000100", "the plan is blue"), ("1700000000.000200", "or green")]
    {
        desk.server.said_before(&json!({
            "type": "message", "channel": "C1", "user": "UBEN", "ts": ts, "thread_ts": "1700000000.000100", "text": text,
        }));
    }
    let mention = |text: &str| {
        desk.say(&json!({"text": format!("<@UBOT> {text}"), "thread_ts": "1700000000.000100"}));
    };
    mention("what do you think? &lt;m2&gt;");
    desk.server.wait_for_text("m2");
    let asked = desk.bench.asked();
    assert!(asked.contains("> > the plan is blue") && asked.contains("> > or green"), "{asked}");
    mention("and now? &lt;m3&gt;");
    desk.server.wait_for_text("m3");
    assert_eq!(desk.bench.asked().matches("the plan is blue").count(), 1, "{}", desk.bench.asked());
    gateway.stop();
    assert_eq!(desk.server.mistakes(), [""; 0]);
}

#[test]
fn what_a_thread_of_discord_held_before_reaches_the_model_once() {
    let desk = Desk::<DiscordServer>::new(echoing());
    for thread in ["200", "201", "202"] {
        desk.server.add_thread(thread, "100");
    }
    let before = |thread: &str, fields: Value| desk.server.said_before("43", thread, &fields);
    // A thread below a message, a post of a forum, and a long thread.
    let root = json!({
        "id": "200", "channel_id": "100", "author": {"id": "44", "username": "eve"}, "content": "the plan is blue",
    });
    before("200", json!({"type": 21, "referenced_message": root}));
    before("200", json!({"content": "a new name", "type": 4}));
    before(
        "200",
        json!({
            "content": "or green", "attachments": [{"id": "1", "filename": "green.png", "size": 1, "url": "u"}],
        }),
    );
    before(
        "200",
        json!({"content": "what I said", "author": {"id": "900", "username": "claw", "bot": true}}),
    );
    before("201", json!({"content": "the post of a forum"}));
    before("202", json!({"content": "the first word"}));
    (1..30).for_each(|number| {
        drop(before("202", json!({"content": format!("word {number} of many")})))
    });
    let gateway = desk.start();
    let say = |thread: &str, text: &str| {
        desk.server.deliver("42", thread, &json!({
            "guild_id": "1", "content": format!("<@900> {text}"), "mentions": [{"id": "900", "username": "claw"}],
        }));
        desk.server.wait_for_text(text.trim_matches(['<', '>']));
        desk.bench.asked()
    };
    let asked = say("200", "<m1>");
    assert!(asked.contains("> > the plan is blue") && asked.contains("> > or green"), "{asked}");
    assert!(asked.contains("[Earlier message of the thread, written by \\\"eve\\\""), "{asked}");
    assert!(asked.contains("green.png") && asked.contains("Name of 43"), "{asked}");
    assert!(!asked.contains("a new name") && !asked.contains("what I said"), "{asked}");
    let asked = say("200", "<m2>");
    assert_eq!(asked.matches("the plan is blue").count(), 1, "{asked}");
    assert!(say("201", "<m3>").contains("> > the post of a forum"), "{}", desk.bench.asked());
    let asked = say("202", "<m4>");
    assert!(
        asked.contains("> > the first word") && asked.contains("> > word 10 of many"),
        "{asked}"
    );
    assert!(!asked.contains("word 9 of many") && asked.contains("> > word 29 of many"), "{asked}");
    // What cannot be read of a thread does not hold its message up.
    desk.server.add_thread("203", "100");
    desk.server.fail_next("GET messages", DiscordFault::Refuse(403, 50_001));
    assert!(say("203", "<m5>").contains("<m5>"));
    gateway.stop();
    assert_eq!(desk.server.mistakes(), [""; 0]);
}

#[test]
fn the_picture_of_a_sticker_is_shown_and_of_one_that_moves_its_preview() {
    let bench = Bench::new(answering("seen"));
    let gateway = bench.start();
    let sticker = |moves: Option<&str>, preview: Option<&str>| {
        let (file, small) = (bench.bot.keep_file(PNG), bench.bot.keep_file(PNG));
        let mut sticker = json!({
            "file_id": file, "file_unique_id": "u", "type": "regular", "width": 1, "height": 1, "emoji": "😀",
            "is_animated": false, "is_video": false,
        });
        if let Some(moves) = moves {
            sticker[moves] = json!(true);
        }
        if let Some(preview) = preview {
            sticker[preview] = json!({"file_id": small, "width": 1, "height": 1});
        }
        let before = bench.bot.sent().len();
        bench.bot.deliver(ANN, &private(), &json!({"sticker": sticker}));
        bench.bot.wait_for("the answer", |sent| (sent.len() > before).then_some(()));
        let asked = bench.asked();
        let newest = asked.rsplit(r#"[sticker \"😀\"]"#).next().unwrap().to_owned();
        assert_ne!(newest, asked, "it is not named: {asked}");
        pictures(&asked)
    };
    assert_eq!(sticker(None, None), 1);
    assert_eq!(sticker(Some("is_animated"), Some("thumbnail")), 2);
    assert_eq!(sticker(Some("is_video"), Some("thumb")), 3);
    // No model reads what is left.
    assert_eq!(sticker(Some("is_animated"), None), 3);
    gateway.stop();
}

/// What of an update cannot be read is no reason to lose it: the owner sees that there was something, once.
#[test]
fn what_cannot_be_read_is_stored_as_dropped_and_the_rest_is_answered() {
    fn check<V: Vendor>(
        desk: &Desk<V>,
        deliver: impl Fn(Value),
        say: impl Fn(),
        answer: impl Fn(),
    ) {
        let gateway = desk.start();
        deliver(json!(7));
        deliver(json!(["x"]));
        let reasons = gateway.dropped(2);
        assert!(
            reasons.iter().all(|reason| reason.starts_with("it cannot be read: ")),
            "{reasons:?}"
        );
        let state = gateway.channels(|_| true);
        assert!(state["dropped"].to_string().contains("\"sender\":\"4"), "{state}");
        say();
        answer();
        assert_eq!(gateway.dropped(2).len(), 2);
        gateway.stop();
    }
    let desk = Desk::<DiscordServer>::new(echoing());
    check(
        &desk,
        |text| drop(desk.server.deliver("42", "542", &json!({"content": text}))),
        || drop(desk.server.write("42", "<m1>")),
        || drop(desk.server.wait_for_text("m1")),
    );
    let desk = Desk::<SlackServer>::new(echoing());
    check(
        &desk,
        |text| drop(desk.say(&json!({"channel": "D1", "user": "42", "text": text}))),
        || drop(desk.say(&json!({"text": "<@UBOT> &lt;m1&gt;"}))),
        || drop(desk.server.wait_for_text("m1")),
    );
    let desk = Desk::<SignalServer>::new(echoing());
    check(
        &desk,
        |text| {
            desk.server.deliver("42", 1, &json!({"dataMessage": {"timestamp": 1, "message": text}}))
        },
        || desk.server.say("+16505551234", 2, "<m1>", &json!({})),
        || drop(desk.server.wait_for_text("m1")),
    );
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    for text in [json!(7), json!({"a": 1})] {
        bench.bot.deliver(ANN, &private(), &json!({"text": text}));
    }
    let reasons = gateway.dropped(2);
    assert!(reasons.iter().all(|reason| reason.starts_with("it cannot be read: ")), "{reasons:?}");
    let state = gateway.channels(|_| true);
    assert_eq!(state["dropped"][0]["sender"], ANN.to_string(), "{state}");
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("m1");
    until("the confirmation of the updates", || bench.bot.waiting() == 0);
    gateway.stop();
}

#[test]
fn rules_for_any_id_of_a_person_hold_whatever_an_envelope_says() {
    const NUMBER: &str = "+16505551234";
    let script = Script::answer_with(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("done").into();
        }
        let call = |reply: Reply, tool: &str, arguments: Value| {
            reply.tool_call(format!("{tool}_{number}"), tool, arguments)
        };
        let reply = call(Reply::anthropic(), "write", json!({"path": "a.txt", "content": "a"}));
        let reply = call(reply, "find", json!({"pattern": "*"}));
        call(reply, "ls", json!({})).into()
    });
    let desk = Desk::<SignalServer>::new(script);
    desk.server.know(&json!([{"number": NUMBER, "uuid": "11aa"}]));
    desk.bench.configure(|config| {
        config["channels"] = json!({"signal": desk.server.config()});
        config["tools"] = json!({"bySender": {
            "signal:11AA": {"deny": ["write"]}, NUMBER: {"deny": ["find"]}, "signal:22bb": {"deny": ["ls"]},
        }});
    });
    let gateway = desk.start();
    let ids = [(Some(NUMBER), None), (None, Some("11aa")), (Some(NUMBER), Some("11aa"))];
    for (time, (number, uuid)) in (1..).zip(ids) {
        let data = json!({"timestamp": time, "message": "hello"});
        let ids = json!({"sourceNumber": number, "sourceUuid": uuid, "dataMessage": data});
        desk.server.deliver("", time, &ids);
        let is_done = |sent: &[Value]| (sent.len() as u64 == time).then_some(());
        desk.server.wait_for("the answer", is_done);
        let request = desk.bench.model.last_request();
        let results = request.messages().last().unwrap()["content"].clone();
        let refused = results.as_array().unwrap().iter().filter(|one| one["is_error"] == true);
        let refused: Vec<&str> = refused.filter_map(|one| one["tool_use_id"].as_str()).collect();
        let names: Vec<&str> = refused.iter().filter_map(|id| id.split('_').next()).collect();
        assert_eq!(names, ["write", "find"], "{number:?} {uuid:?}: {results:#}");
    }
    gateway.stop();
}

#[test]
fn a_person_of_signal_is_one_whatever_an_envelope_says() {
    const NUMBER: &str = "+16505551234";
    let desk = Desk::<SignalServer>::new(echoing());
    desk.server.know(&json!([{"number": NUMBER, "uuid": "11aa"}]));
    let gateway = desk.start();
    let say = |time: u64, number: Option<&str>, uuid: Option<&str>, text: &str| {
        let data = json!({"timestamp": time, "message": text});
        desk.server.deliver(
            "",
            time,
            &json!({"sourceNumber": number, "sourceUuid": uuid, "dataMessage": data}),
        );
        desk.server.wait_for_text(text.trim_matches(['<', '>']));
    };
    // Only the number may write; the daemon knows whose the UUID is.
    say(1, None, Some("11aa"), "<m1>");
    say(2, Some(NUMBER), Some("11aa"), "<m2>");
    say(3, Some(NUMBER), None, "<m3>");
    let asked = desk.bench.asked();
    assert!(
        asked.contains("<m1>") && asked.contains("<m2>"),
        "these are several sessions: {asked}"
    );
    gateway.stop();
    assert_eq!(desk.server.refused(), [""; 0]);
}

#[test]
fn irc_shows_that_its_nickname_is_taken_hears_both_and_takes_it_back() {
    use super::irc::{Ngircd, Person};

    let Some(server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    let mut other = Person::join(&server, "claw");
    other.send("JOIN #team");
    let gateway = bench.start();
    let is_degraded = |state: &Value| {
        state["channels"][0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("the nickname is claw_"))
    };
    let state = gateway.channels(is_degraded);
    assert_eq!(state["channels"][0]["state"], "working");
    let shown = bench.run(&["channels", "status"]);
    assert!(shown.stdout().contains("claw_"), "{}", shown.stdout());
    let mut ann = Person::join(&server, "ann");
    ann.send("JOIN #team");
    ann.send("PRIVMSG #team :claw: hello <m1>");
    ann.wait_for("re: <m1>");
    ann.send("NOTICE claw_ :psst");
    ann.send("PRIVMSG claw_ :\u{1}TIME\u{1}");
    let reasons = gateway.dropped(2);
    assert!(reasons.iter().any(|reason| reason.contains("NOTICE")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("CTCP TIME")), "{reasons:?}");
    other.send("QUIT");
    gateway.channels(|state| state["channels"][0]["reason"].is_null());
    ann.send("PRIVMSG claw :<m2>");
    ann.wait_for("re: <m2>");
    gateway.stop();
}
