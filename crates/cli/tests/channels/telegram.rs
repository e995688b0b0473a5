//! Telegram.

use myclaw_testkit::TelegramFault;

use super::*;

#[test]
fn a_message_is_answered_in_its_chat_and_confirmed_afterwards() {
    let bench = Bench::new(answering("**bold** & <plain>"));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    let answer = bench.bot.wait_for_text("bold");
    assert_eq!(answer.text(), "<b>bold</b> &amp; &lt;plain&gt;");
    assert_eq!(
        (&answer.params["chat_id"], &answer.params["parse_mode"]),
        (&json!(ANN), &json!("HTML"))
    );
    assert!(bench.bot.calls().iter().any(|(method, _)| method == "sendChatAction"), "no typing");
    bench.bot.write(ANN, "/status");
    bench.bot.wait_for_text("agent main");
    let end = Instant::now() + PATIENCE;
    while bench.bot.waiting() > 0 {
        assert!(Instant::now() < end, "the updates are not confirmed");
        std::thread::sleep(Duration::from_millis(10));
    }
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
    let reply = Reply::anthropic().text("one two three four five six seven eight").in_deltas(8);
    let step = reply.step().event_by_event().pause(Duration::from_millis(500));
    let bench = Bench::new(Script::repeat(step));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text(" …");
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

#[test]
fn what_may_have_been_delivered_is_reported_or_marked() {
    for (choice, texts) in
        [("report", vec!["fine"]), ("again", vec!["fine", "(possible repeat) fine"])]
    {
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
        } else {
            bench.bot.wait_for_text("possible repeat");
        }
        gateway.stop();
        let sent: Vec<String> =
            bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
        assert_eq!(sent, texts, "{choice}");
    }
}

#[test]
fn a_server_that_is_busy_or_down_delays_and_loses_nothing() {
    let bench = Bench::new(echoing());
    bench.bot.set_down(true);
    let gateway = bench.start();
    gateway.channels(|state| state["channels"][0]["state"] == "waiting");
    bench.bot.set_down(false);
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

/// A picture of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, 0x49, 0x44, 0x41, 0x54,
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0xc9, 0xfe, 0x92, 0xef, 0, 0, 0, 0, 0x49,
    0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
