//! Telegram.

use std::sync::atomic::{AtomicBool, Ordering};

use myclaw_testkit::{BotMessage, Step, Stop, TelegramFault};

use super::*;

#[test]
fn a_message_is_answered_in_its_chat_and_confirmed_afterwards() {
    let gate = Gate::closed();
    let reply = Reply::anthropic().text("**bold** & <plain>").step();
    let bench = Bench::new(Script::repeat(reply.hold_after(0, &gate)));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    let calls = || bench.bot.calls();
    until("typing", || calls().iter().any(|(method, _)| method == "sendChatAction"));
    gate.open();
    let answer = bench.bot.wait_for_text("bold");
    assert_eq!(answer.text(), "<b>bold</b> &amp; &lt;plain&gt;");
    assert_eq!(
        (&answer.params["chat_id"], &answer.params["parse_mode"]),
        (&json!(ANN), &json!("HTML"))
    );
    bench.bot.write(ANN, "/status");
    bench.bot.wait_for_text("agent main");
    until("the confirmation of the updates", || bench.bot.waiting() == 0);
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 1);
}

#[test]
fn long_answers_arrive_whole_with_their_code_blocks() {
    let code = "let x = 1; // a line of code\n".repeat(400);
    let bench = Bench::new(answering(&format!("begin\n\n```rust\n{code}```\n\nend")));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    let parts = bench.bot.wait_for("the last part", |sent| {
        sent.last().is_some_and(|last| last.text().ends_with("end")).then(|| sent.to_vec())
    });
    let all: String = parts.iter().map(|part| part.text()).collect();
    assert_eq!(all.matches("let x = 1;").count(), 400);
    assert!(parts.len() >= 3 && parts[1].text().starts_with("<pre><code class=\"language-rust\">"));
    gateway.stop();
}

#[test]
fn a_preview_grows_and_the_answer_takes_its_place() {
    // The end of the answer waits for the preview.
    let gate = Gate::closed();
    let reply = Reply::anthropic().text("one two three four five six seven eight").in_deltas(8);
    let bench = Bench::new(Script::repeat(reply.step().hold_after(600, &gate)));
    bench.configure(|config| config["channels"]["telegram"]["preview"] = json!(true));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text(" …");
    gate.open();
    let answer = bench.bot.wait_for("the answer", |sent| {
        sent.iter().find(|message| message.text().ends_with("eight")).cloned()
    });
    assert!(answer.edits >= 1);
    assert_eq!(bench.bot.sent().len(), 1, "the answer is not in the place of the preview");
    gateway.stop();
}

#[test]
fn pictures_and_texts_reach_the_model() {
    let bench = Bench::new(answering("seen"));
    let gateway = bench.start();
    let picture = bench.bot.keep_file(PNG);
    let text = bench.bot.keep_file(b"line one\nline two");
    let chat = json!({"id": ANN, "type": "private"});
    let photo = json!([{"file_id": picture, "width": 1, "height": 1, "file_size": PNG.len()}]);
    bench.bot.deliver(ANN, &chat, &json!({"caption": "look", "photo": photo}));
    bench.bot.wait_for_text("seen");
    let asked = bench.asked();
    assert!(asked.contains("\"image/png\"") && asked.contains("look"), "{asked}");
    let document = json!({"file_id": text, "file_name": "../notes.txt", "file_size": 17});
    bench.bot.deliver(ANN, &chat, &json!({"document": document}));
    bench.bot.wait_for("the second answer", |sent| (sent.len() == 2).then_some(()));
    assert!(bench.asked().contains("> line one\\n> line two"), "{}", bench.asked());
    gateway.stop();
}

/// A channel goes the way of models: through the proxy, unless `NO_PROXY` names its server in one of curl's forms.
#[test]
fn the_exceptions_of_a_proxy_hold_for_channels() {
    let is_asked = |server: &str, exceptions: &str| {
        let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", proxy.local_addr().unwrap());
        let asked = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&asked);
        // Whoever asks is hung up on.
        std::thread::spawn(move || {
            proxy.incoming().for_each(|_| noted.store(true, Ordering::SeqCst));
        });
        let bench = Bench::new(echoing());
        bench.configure(|config| {
            config["channels"]["telegram"]["baseUrl"] = json!(format!("http://{server}"));
        });
        let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(["channels", "probe"]).env("http_proxy", address).env("NO_PROXY", exceptions);
        RunningChild::run(&mut command).assert_code(1);
        asked.load(Ordering::SeqCst)
    };
    for (server, exceptions, expected) in [
        ("bots.invalid", "", true),
        ("bots.invalid", "other.invalid, ots.invalid", true),
        ("bots.invalid", "*.invalid", false),
        ("bots.invalid", ".invalid", false),
        ("a.bots.invalid:81", "x,bots.invalid:81", false),
        ("a.bots.invalid:82", "x,bots.invalid:81", true),
        ("[fd12:3456::9]:9", "fd00::/8", false),
        ("[fd12:3456::9]:9", "fe00::/8 10.0.0.0/8", true),
        ("[fd12:3456::9]:9", "*", false),
    ] {
        assert_eq!(is_asked(server, exceptions), expected, "{server}, {exceptions:?}");
    }
}

/// How much of a long chat is sent: at most as many messages as the config says, from one of the person on.
#[test]
fn as_many_messages_are_sent_as_the_config_says() {
    const LIMIT: usize = 10;
    // One a second, as Telegram wants it.
    const TURNS: usize = 12;
    for (chat, key) in
        [(group(), "historyLimit"), (json!({"id": ANN, "type": "private"}), "dmHistoryLimit")]
    {
        let bench = Bench::new(echoing());
        bench.configure(|config| {
            config["channels"]["telegram"][key] = json!(LIMIT);
            config["channels"]["telegram"]["groups"] = json!({"-1005": {"requireMention": false}});
        });
        let gateway = bench.start();
        for number in 0..TURNS {
            bench.bot.deliver(ANN, &chat, &json!({"text": format!("<m{number}>")}));
            bench.bot.wait_for_text(&format!("m{number}&gt;"));
        }
        gateway.stop();
        let requests = bench.model.requests();
        assert_eq!(requests.len(), TURNS);
        for (number, request) in requests.iter().enumerate() {
            let (sent, all) = (request.messages(), 2 * number + 1);
            let is_right =
                if all <= LIMIT { sent.len() == all } else { (8..=LIMIT).contains(&sent.len()) };
            assert!(is_right, "{key}: {} of {all} are sent", sent.len());
            assert_eq!(sent[0]["role"], "user");
            assert!(json!(sent.last()).to_string().contains(&format!("<m{number}>")), "{number}");
        }
    }
}

#[test]
fn what_may_have_been_delivered_is_reported_or_marked() {
    for choice in ["report", "again"] {
        let bench = Bench::new(answering("fine"));
        bench.configure(|config| config["channels"]["telegram"]["uncertain"] = json!(choice));
        let gateway = bench.start();
        bench.bot.fail_next("sendMessage", TelegramFault::Silence);
        bench.bot.write(ANN, "hello");
        if choice == "report" {
            let state = gateway.channels(|state| state["undelivered"][0].is_object());
            assert_eq!(state["undelivered"][0]["state"]["state"], "uncertain");
            let shown = bench.run(&["channels", "status"]);
            assert!(shown.stdout().contains("uncertain"), "{}", shown.stdout());
            bench.bot.wait_for_text("may be missing here");
        } else {
            bench.bot.wait_for_text("possible repeat");
        }
        gateway.stop();
        let sent: Vec<String> =
            bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
        assert_eq!((sent.len(), sent[0].as_str()), (2, "fine"), "{choice}: {sent:?}");
        let last =
            if choice == "report" { "may be missing here" } else { "(possible repeat) fine" };
        assert!(sent[1].contains(last), "{choice}: {sent:?}");
    }
}

#[test]
fn what_may_be_missing_is_told_once_and_sent_again_when_asked_for() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    // The process ends while the answer is sent: nobody knows whether it was delivered.
    bench.bot.fail_next("sendMessage", TelegramFault::Hang);
    bench.bot.write(ANN, "<m1>");
    let is_sending = |calls: Vec<(String, Value)>| calls.iter().any(|call| call.0 == "sendMessage");
    until("an attempt to send", || is_sending(bench.bot.calls()));
    gateway.kill();
    let gateway = bench.start();
    let notice = bench.bot.wait_for_text("may be missing here");
    assert_eq!(&notice.params["chat_id"], &json!(ANN));
    // What was told is not told again, also if the process ends before it knows that it was.
    gateway.kill();
    let gateway = bench.start();
    bench.bot.write(ANN, "/again");
    bench.bot.wait_for("the answer again", |sent| {
        let answers = sent.iter().filter(|sent| sent.text().contains("m1&gt;"));
        (answers.count() == 2).then_some(())
    });
    gateway.channels(|state| state["undelivered"] == json!([]));
    bench.bot.write(ANN, "!again");
    bench.bot.wait_for_text("Nothing is missing here");
    gateway.stop();
    let sent: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    let count = |text: &str| sent.iter().filter(|sent| sent.contains(text)).count();
    assert_eq!((count("may be missing"), count("m1&gt;")), (1, 2), "{sent:?}");
    assert_eq!(bench.model.requests().len(), 1, "the model was asked again");
}

#[test]
fn the_button_below_the_notice_sends_once_what_may_be_missing_whatever_is_killed() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    bench.bot.fail_next("sendMessage", TelegramFault::Hang);
    bench.bot.write(ANN, "<m1>");
    let sendings = || bench.bot.calls().iter().filter(|call| call.0 == "sendMessage").count();
    until("an attempt to send", || sendings() == 1);
    gateway.kill();
    let gateway = bench.start();
    let notice = bench.bot.wait_for_text("may be missing here");
    assert_eq!(notice.buttons(), ["/again"]);
    // The press is stored, and the process ends before Telegram knows that, and before the answer is sent: the press comes again.
    bench.bot.fail_next("sendMessage", TelegramFault::TooMany(3));
    bench.bot.fail_next("answerCallbackQuery", TelegramFault::Hang);
    let chat = json!({"id": ANN, "type": "private", "first_name": "Ann"});
    let press = bench.bot.press(ANN, &chat, &notice, "/again");
    let confirmations = |press: &str| {
        let calls = bench.bot.calls();
        calls.iter().filter(|(_, params)| params["callback_query_id"] == press).count()
    };
    until("the press is stored", || confirmations(&press) == 1 && sendings() == 3);
    gateway.kill();
    let gateway = bench.start();
    until("the press came again", || confirmations(&press) == 2);
    // The gateway may have been killed before it knew that nothing was sent: then it tells of that too, and is asked once more.
    let answers = |sent: &[BotMessage]| {
        sent.iter().filter(|message| message.text().contains("m1&gt;")).count()
    };
    let newer = bench.bot.wait_for("the answer again, or a notice", |sent| {
        let newer =
            sent.iter().find(|message| message.id > notice.id && message.buttons() == ["/again"]);
        (answers(sent) == 2 || newer.is_some()).then(|| newer.cloned())
    });
    if let Some(newer) = &newer {
        bench.bot.press(ANN, &chat, newer, "/again");
    }
    bench.bot.wait_for("the answer again", |sent| (answers(sent) == 2).then_some(()));
    // The button stays, and does no harm.
    bench.bot.press(ANN, &chat, &notice, "/again");
    bench.bot.wait_for_text("Nothing is missing here");
    gateway.stop();
    let sent: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    let count = |text: &str| sent.iter().filter(|sent| sent.contains(text)).count();
    let notices = 1 + usize::from(newer.is_some());
    assert_eq!((count("may be missing"), count("m1&gt;")), (notices, 2), "{sent:?}");
    assert_eq!(bench.model.requests().len(), 1, "the model was asked again");
}

#[test]
fn a_notice_that_was_interrupted_comes_again_with_the_next_message() {
    let bench = Bench::new(echoing());
    let mut gateway = bench.start();
    let sendings = || bench.bot.calls().iter().filter(|call| call.0 == "sendMessage").count();
    bench.bot.fail_next("sendMessage", TelegramFault::Hang);
    bench.bot.write(ANN, "<m1>");
    // The answer, and then the notice.
    for sent in 1..=2 {
        until("an attempt to send", || sendings() == sent);
        bench.bot.fail_next("sendMessage", TelegramFault::Hang);
        gateway.kill();
        gateway = bench.start();
    }
    // The third hang is for nothing: what may have been told is not told again by itself.
    bench.bot.write(ANN, "<m2>");
    until("the reminder", || sendings() == 3);
    gateway.kill();
    gateway = bench.start();
    bench.bot.wait_for_text("re: &lt;m2&gt;");
    gateway.stop();
    let sent: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    let count = |text: &str| sent.iter().filter(|sent| sent.contains(text)).count();
    assert_eq!((count("may be missing"), count("m1&gt;"), count("m2&gt;")), (2, 1, 1), "{sent:?}");
}

#[test]
fn a_model_server_that_is_away_for_a_moment_costs_no_message() {
    let down = || Step::status(503, &[], "");
    let script = Script::new();
    // A run makes two attempts; the third run that fails says so in the chat.
    let script = (0..7).fold(script, |script, _| script.then(down()));
    let bench = Bench::new(script.then_repeat(Reply::anthropic().text("back")));
    bench.configure(|config| config["agent"] = json!({"maxRetries": 1}));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("back");
    gateway.stop();
    let sent: Vec<String> = bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
    assert_eq!(sent.iter().filter(|sent| sent.contains("keep trying")).count(), 1, "{sent:?}");
    assert_eq!((sent.len(), sent[1].as_str()), (2, "back"), "{sent:?}");
}

#[test]
fn a_server_that_is_busy_or_down_delays_and_loses_nothing() {
    let bench = Bench::new(echoing());
    bench.bot.set_down(true);
    let gateway = bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    gateway.child.wait_for_stderr("telegram default does not work; trying again: ");
    bench.bot.set_down(false);
    gateway.child.wait_for_stderr("telegram default works again");
    bench.bot.fail_next("sendMessage", TelegramFault::TooMany(1));
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("re: &lt;m1&gt;");
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    bench.bot.fail_next(
        "sendMessage",
        TelegramFault::Refuse(400, "Bad Request: can't parse entities: x"),
    );
    bench.bot.write(ANN, "<m2>");
    assert_eq!(bench.bot.wait_for_text("re: <m2>").params.get("parse_mode"), None);
    gateway.stop();
    assert_eq!(bench.bot.sent().len(), 2);
}

#[test]
fn a_wrong_token_is_one_clear_message_and_everything_else_works() {
    let bench = Bench::new(answering("fine"));
    bench.configure(|config| config["channels"]["telegram"]["botToken"] = json!("1:wrong"));
    let probed = bench.run(&["channels", "probe"]);
    probed.assert_code(1);
    assert!(
        probed.stdout().contains("@BotFather") && !probed.stdout().contains("1:wrong"),
        "{}",
        probed.stdout()
    );
    let gateway = bench.start();
    let state = gateway.channels(|state| state["channels"][0]["state"] == "stopped");
    assert!(state["channels"][0]["reason"].as_str().unwrap().contains("@BotFather"), "{state}");
    let id = gateway.client.send("main", "one", "hello").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "fine");
    gateway.stop();
}

#[test]
fn files_of_the_workspace_go_out_and_nothing_else() {
    let said = "Here.\nMEDIA: deep/report.txt\nMEDIA: chart.png\nMEDIA: ../secret\nMEDIA: link\n\
                MEDIA: none.txt\nMEDIA: big.bin";
    let bench = Bench::new(answering(said));
    let inside = strangers::workspace_of(&bench, ANN);
    bench.home.write(inside.join("deep/report.txt"), "all is well");
    bench.home.write(inside.join("chart.png"), "no real picture");
    std::fs::write(inside.join("../secret"), "the secret").unwrap();
    std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
    std::fs::File::create(inside.join("big.bin")).unwrap().set_len(51 * 1024 * 1024).unwrap();
    let gateway = bench.start();
    bench.bot.fail_next("sendDocument", TelegramFault::TooMany(1));
    bench.bot.write(ANN, "hello");
    let sent = bench.bot.wait_for("the files", |sent| (sent.len() == 3).then(|| sent.to_vec()));
    let text = sent[0].text();
    assert!(text.starts_with("Here.\n\n[the file secret was not sent: "), "{text}");
    for name in ["link", "none.txt", "big.bin"] {
        assert!(text.contains(&format!("[the file {name} was not sent: ")), "{text}");
    }
    assert!(text.contains("none.txt was not sent: there is no such file]"), "{text}");
    assert!(!text.contains("os error"), "{text}");
    assert!(!text.contains("MEDIA") && !text.contains(inside.to_str().unwrap()), "{text}");
    let form = |at: usize| sent[at].params["multipart"].as_str().unwrap();
    assert!(
        form(1).contains("name=\"document\"; filename=\"report.txt\"")
            && form(1).contains("all is well")
    );
    assert!(form(2).contains("name=\"photo\"; filename=\"chart.png\""), "{}", form(2));
    assert!(
        bench.model.requests()[0].body_text().contains("MEDIA: path/of/the/file"),
        "the model is not told"
    );
    // The copies are gone once their parts are over.
    let copies = bench.home.state_directory().join("gateway/outgoing");
    until("the removal of the copies", || std::fs::read_dir(&copies).unwrap().count() == 0);
    gateway.stop();
}

#[test]
fn a_session_of_others_sends_files_of_its_own_workspace_only() {
    for (access, is_sent) in [("none", false), ("ro", false), ("rw", true)] {
        let bench = Bench::new(answering("MEDIA: report.txt"));
        bench.configure(|config| {
            let confinement = json!({"workspaceAccess": access});
            config["agents"]["defaults"]["sandbox"]["confinement"] = confinement;
        });
        bench.home.write_in_workspace("report.txt", "all is well");
        let gateway = bench.start();
        bench.bot.write(ANN, "hello");
        let sent = bench.bot.wait_for("an answer", |sent| sent.first().cloned());
        assert_eq!(sent.params["multipart"].is_string(), is_sent, "{access}: {sent:?}");
        assert_eq!(sent.text().contains("was not sent"), !is_sent, "{access}: {sent:?}");
        gateway.stop();
    }
}

#[test]
fn an_edited_message_is_a_new_one_that_says_so() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let chat = json!({"id": ANN, "type": "private"});
    let id = bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("m1");
    // A reaction or a preview of a link: the text is the same.
    bench.bot.edit(id, ANN, &chat, &json!({"text": "<m1>", "edit_date": 1}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": "<m2>", "edit_date": 2}));
    bench.bot.wait_for_text("m2");
    assert!(
        bench.asked().contains("[The person edited an earlier message. It says now:]\\n<m2>"),
        "{}",
        bench.asked()
    );
    bench.bot.edit(9, ANN, &chat, &json!({"text": "<m3>", "edit_date": 3}));
    // The same as the edit before it; then the first text again, and the same as that; then a command, twice.
    bench.bot.edit(id, ANN, &chat, &json!({"text": "<m2>", "edit_date": 4}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": "<m1>", "edit_date": 5}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": "<m1>", "edit_date": 6}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": "/status", "edit_date": 7}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": "/status", "edit_date": 8}));
    let same = "the edit changes nothing";
    assert_eq!(gateway.dropped(5), [same, "the edited message is not known", same, same, same]);
    bench.bot.wait_for("the status", |sent| (sent.len() == 4).then_some(()));
    // In a group an edit can add the name that was missing.
    bench.configure(|config| config["channels"]["telegram"]["groups"] = json!({"-1005": {}}));
    gateway.stop();
    let gateway = bench.start();
    let id = bench.bot.deliver(ANN, &group(), &json!({"text": "<m4>"}));
    let entity = json!([{"type": "mention", "offset": 0, "length": 9}]);
    bench.bot.edit(id, ANN, &group(), &json!({"text": "@claw_bot <m4>", "entities": entity}));
    bench.bot.wait_for_text("m4");
    assert!(!bench.asked().contains("edited"), "{}", bench.asked());
    bench.bot.edit(id, ANN, &group(), &json!({"text": "@claw_bot <m4>", "entities": entity}));
    assert_eq!(gateway.dropped(2).last().unwrap(), same);
    // What the group hears later is the newest version alone.
    let id = bench.bot.deliver(ANN, &group(), &json!({"text": "<aside1>"}));
    bench.bot.edit(id, ANN, &group(), &json!({"text": "<aside2>"}));
    bench.bot.edit(id, ANN, &group(), &json!({"text": "<aside3>"}));
    bench.bot.deliver(ANN, &group(), &json!({"text": "@claw_bot <m5>", "entities": entity}));
    bench.bot.wait_for_text("m5");
    let asked = bench.asked();
    let is_shown = ["<aside1>", "<aside2>", "<aside3>"].map(|text| asked.contains(text));
    assert_eq!(is_shown, [false, false, true], "{asked}");
    gateway.stop();
    assert_eq!(bench.bot.sent().len(), 6);
}

#[test]
fn an_answer_that_is_not_whole_says_so_and_a_missing_one_names_no_model() {
    let gone =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model: gone"}});
    let bench = Bench::new(Script::answer_with(move |request, _| {
        match marks(request).last().map_or("", String::as_str) {
            "<m1>" => Reply::anthropic().text("half of").stop(Stop::Length).step(),
            "<m2>" => Reply::anthropic().text("a part").stop(Stop::Refusal).step(),
            "<m3>" => Reply::anthropic().stop(Stop::EndTurn).step(),
            "<m4>" => Reply::anthropic().stop(Stop::Refusal).step(),
            _ => Step::status(404, &[], gone.to_string()),
        }
    }));
    bench.configure(|config| config["agent"]["maxRetries"] = json!(0));
    let gateway = bench.start();
    for (number, said) in [
        (1, "half of\n\n[This answer is not whole, because it became too long"),
        (2, "a part\n\n[This answer is not whole, because a filter"),
        (3, "The model ended without an answer. Ask again, or in other words."),
        (4, "The model refused to answer, or a filter"),
        (5, "I cannot answer, because something does not work here."),
    ] {
        bench.bot.write(ANN, &format!("<m{number}>"));
        let sent = bench.bot.wait_for(said, |sent| sent.get(number - 1).cloned());
        assert!(sent.text().starts_with(said), "{}", sent.text());
        assert!(!sent.text().contains("test-model"), "{}", sent.text());
    }
    gateway.stop();
}

#[test]
fn a_webhook_takes_what_telegram_signs_and_nothing_else() {
    let bench = Bench::new(echoing());
    let url = format!("http://127.0.0.1:{}/hooks/telegram/default", bench.port);
    bench.configure(|config| config["channels"]["telegram"]["webhookUrl"] = json!(url));
    let gateway = bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    let webhook = bench.bot.webhook().unwrap();
    assert_eq!(webhook["url"], url);
    let secret = webhook["secret_token"].as_str().unwrap();
    assert!(!secret.contains(bench.bot.token()) && secret.len() == 64, "{secret}");
    let post = |secret: &str, body: &str| {
        let head = format!(
            "POST /hooks/telegram/default HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{secret}\r\n{body}",
            body.len()
        );
        gateway.client.raw(&head).unwrap().0
    };
    let update = json!({"update_id": 7, "message": {
        "message_id": 1, "text": "<m1>", "chat": {"id": ANN, "type": "private"}, "from": {"id": ANN},
    }});
    let header = |secret: &str| format!("X-Telegram-Bot-Api-Secret-Token: {secret}\r\n");
    for wrong in [String::new(), header("wrong"), header(&secret[1..])] {
        assert_eq!(post(&wrong, &update.to_string()), 401, "{wrong}");
    }
    // Telegram repeats what it has no answer to.
    for _ in 0..2 {
        assert_eq!(post(&header(secret), &update.to_string()), 200);
    }
    bench.bot.wait_for_text("m1");
    // Refusing it would make Telegram send it again and again.
    assert_eq!(post(&header(secret), "nonsense"), 200);
    // The parts of an album come at the same time, and each is confirmed when all are on disk.
    let part = |id: i64| {
        let photo = json!([{"file_id": bench.bot.keep_file(PNG), "width": 1, "height": 1}]);
        json!({"update_id": id, "message": {
            "message_id": id, "caption": format!("<m{id}>"), "chat": {"id": ANN, "type": "private"},
            "from": {"id": ANN}, "media_group_id": "a", "photo": photo,
        }})
        .to_string()
    };
    let parts = [part(10), part(11), part(12)];
    std::thread::scope(|scope| {
        let posts = parts.iter().map(|part| scope.spawn(|| post(&header(secret), part)));
        for posted in posts.collect::<Vec<_>>() {
            assert_eq!(posted.join().unwrap(), 200);
        }
    });
    bench.bot.wait_for_text("re: &lt;m10&gt; &lt;m11&gt; &lt;m12&gt;");
    // One of them again is known.
    assert_eq!(post(&header(secret), &parts[2]), 200);
    gateway.stop();
    assert_eq!((bench.bot.sent().len(), bench.model.requests().len()), (2, 2));
    assert!(!bench.bot.calls().iter().any(|(method, _)| method == "getUpdates"));
}

/// A picture of one pixel.
pub(super) const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54,
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0xc9, 0xfe, 0x92, 0xef, 0, 0, 0, 0, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

#[test]
fn files_are_loaded_once_and_for_those_who_may_write_only() {
    let bench = Bench::new(answering("seen"));
    let gateway = bench.start();
    let [theirs, mine] = [&b"theirs"[..], b"mine"].map(|bytes| bench.bot.keep_file(bytes));
    let write = |person: i64, file: &str| {
        let chat = json!({"id": person, "type": "private", "first_name": "Somebody"});
        bench.bot.deliver(person, &chat, &json!({"document": {"file_id": file}}));
    };
    write(7, &theirs);
    bench.bot.wait_for_text("myclaw pairing approve");
    write(ANN, &mine);
    bench.bot.wait_for_text("seen");
    assert!(bench.asked().contains("mine"), "{}", bench.asked());
    let asked = bench.bot.calls().into_iter().filter(|(method, _)| method == "getFile");
    let asked: Vec<Value> = asked.map(|(_, params)| params["file_id"].clone()).collect();
    assert_eq!(asked, [json!(mine)]);
    gateway.stop();
}

#[test]
fn all_that_was_not_delivered_is_shown_page_by_page() {
    const MANY: usize = 60;
    let bench = Bench::new(echoing());
    bench.configure(|config| config["channels"]["telegram"]["dmPolicy"] = json!("open"));
    let gateway = bench.start();
    for person in 0..MANY {
        let blocked = TelegramFault::Refuse(403, "Forbidden: bot was blocked by the user");
        bench.bot.fail_next("sendMessage", blocked);
        bench.bot.write(1_000 + person as i64, &format!("<m{person}>"));
    }
    let state = gateway.channels(|state| state["undeliveredCount"] == MANY);
    assert_eq!(state["undelivered"].as_array().unwrap().len(), 50);
    let mut texts = gateway.undelivered();
    texts.sort();
    let mut expected: Vec<String> = (0..MANY).map(|person| format!("re: <m{person}>")).collect();
    expected.sort();
    assert_eq!(texts, expected);
    let shown = |arguments: &[&str]| {
        let shown = bench.run(&[&["channels", "status"], arguments].concat());
        shown.assert_code(0);
        shown.stdout()
    };
    let newest = shown(&[]);
    assert!(newest.contains("10 more; `myclaw channels status --all` shows them"), "{newest}");
    let all = shown(&["--all"]);
    assert_eq!(all.matches("not delivered  telegram").count(), MANY, "{all}");
    let all: Value = serde_json::from_str(&shown(&["--all", "--json"])).unwrap();
    assert_eq!(all["undelivered"].as_array().unwrap().len(), MANY);
    gateway.stop();
}
