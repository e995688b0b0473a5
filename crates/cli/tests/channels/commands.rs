//! Commands of chats.

use myclaw_testkit::SlackServer;

use super::irc::{Ngircd, Person};
use super::programs::{Receiver, post, with_programs_and};
use super::telegram::PNG;
use super::*;

/// The first session of [`ANN`].
const ANNS: &str = "agent:main:channel:telegram:account:default:peer:direct:42";

fn asked_for(bench: &Bench, words: &str) -> Vec<String> {
    let texts =
        bench.model.requests().into_iter().map(|request| json!(request.messages()).to_string());
    texts.filter(|text| text.contains(words)).collect()
}

#[test]
fn a_chat_begins_anew_and_what_goes_on_ends_where_it_began() {
    let gate = Gate::closed();
    let held = gate.clone();
    let bench = Bench::new(Script::answer_with(move |request, _| {
        let is_held = marks(request).contains(&"<m2>".to_owned());
        let step = echo(request).step();
        if is_held { step.hold_after(0, &held) } else { step }
    }));
    let gateway = bench.start();
    let begin = |count: usize| {
        bench.bot.write(ANN, "/new");
        bench.bot.wait_for("a new session", |sent| {
            let told = sent.iter().filter(|it| it.text().contains("begins a new session. The old"));
            (told.count() == count).then_some(())
        });
    };
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("re: &lt;m1&gt;");
    bench.bot.write(ANN, "<m2>");
    until("the model is asked", || !asked_for(&bench, "<m2>").is_empty());
    // It runs, and this waits behind it.
    bench.bot.write(ANN, "<m3>");
    let status = || gateway.client.get("/api/status").unwrap().1;
    until("both are open", || status()["openMessages"] == 2);
    begin(1);
    bench.bot.write(ANN, "<m4>");
    bench.bot.wait_for_text("re: &lt;m4&gt;");
    assert_eq!(asked_for(&bench, "<m4>").len(), 1);
    assert!(!asked_for(&bench, "<m4>")[0].contains("<m1>"), "the old session is asked");
    // What the old session has is not lost by a kill, and the new one is not forgotten.
    gateway.kill();
    gate.open();
    let gateway = bench.start();
    bench.bot.wait_for_text("&lt;m3&gt;");
    bench.bot.write(ANN, "<m5>");
    bench.bot.wait_for_text("re: &lt;m5&gt;");
    let last = bench.asked();
    assert!(last.contains("<m4>") && !last.contains("<m3>"), "{last}");
    begin(2);
    bench.bot.write(ANN, "/status");
    let status = bench.bot.wait_for_text("agent main");
    let words = format!("agent main, which waits, session <code>{ANNS}:new:3</code>, your id 42");
    assert_eq!(status.text(), words);
    gateway.stop();
    let listed = bench.run(&["sessions", "list", "--json"]).stdout();
    for key in [format!("\"{ANNS}\""), format!("\"{ANNS}:new:2\"")] {
        assert!(listed.contains(&key), "{listed}");
    }
    for mark in ["m1", "m2", "m3", "m4", "m5"] {
        let mark = format!("&lt;{mark}&gt;");
        let count = bench.bot.sent().iter().filter(|sent| sent.text().contains(&mark)).count();
        assert_eq!(count, 1, "{mark}");
    }
}

#[test]
fn what_a_chat_did_before_it_began_anew_can_be_stopped() {
    let gate = Gate::closed();
    let bench =
        Bench::new(Script::repeat(Reply::anthropic().text("late").step().hold_after(0, &gate)));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    until("the model is asked", || !bench.model.requests().is_empty());
    bench.bot.write(ANN, "/new");
    bench.bot.wait_for_text("begins a new session");
    bench.bot.write(ANN, "/stop");
    bench.bot.wait_for_text("Stopped.");
    until("the message is over", || {
        gateway.client.get("/api/status").unwrap().1["openMessages"] == 0
    });
    bench.bot.write(ANN, "/stop");
    bench.bot.wait_for_text("Nothing runs.");
    gateway.stop();
    assert!(!bench.bot.sent().iter().any(|sent| sent.text().contains("late")));
}

#[test]
fn the_main_session_does_not_begin_anew_from_a_chat() {
    let bench = Bench::new(echoing());
    bench.configure(|config| config["channels"]["dmScope"] = json!("main"));
    let gateway = bench.start();
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("re: &lt;m1&gt;");
    bench.bot.write(ANN, "/new");
    bench.bot.wait_for_text("This chat is in the main session of the agent, which goes on");
    bench.bot.write(ANN, "<m2>");
    bench.bot.wait_for_text("re: &lt;m2&gt;");
    assert!(bench.asked().contains("<m1>"));
    gateway.stop();
}

#[test]
fn a_picture_and_a_program_give_no_command() {
    let bench = Bench::new(answering("seen"));
    let receiver = Receiver::start();
    with_programs_and(&bench, &receiver, |_| {});
    let gateway = bench.start();
    let chat = json!({"id": ANN, "type": "private"});
    let photo = json!([{"file_id": bench.bot.keep_file(PNG), "width": 1, "height": 1, "file_size": PNG.len()}]);
    bench.bot.deliver(ANN, &chat, &json!({"caption": "/new", "photo": photo}));
    bench.bot.wait_for_text("seen");
    assert!(bench.asked().contains("/new"), "{}", bench.asked());
    let body = json!({"id": "1", "text": "!status", "chat": "c", "sender": {"id": "ann"}});
    assert_eq!(post(&gateway.client, &body).unwrap().0, 202);
    receiver.wait_for("seen");
    assert!(bench.asked().contains("!status"), "{}", bench.asked());
    gateway.stop();
}

#[test]
fn slack_has_the_commands_for_people_who_may_write() {
    let desk = super::slack::Desk::new(echoing());
    let gateway = desk.start();
    let server: &SlackServer = &desk.server;
    let say = |text: &str| desk.say(&json!({"text": text}));
    // In a channel only what is for the agent counts.
    say("!new");
    assert_eq!(gateway.dropped(1).len(), 1);
    say("<@UBOT> &lt;m1&gt;");
    server.wait_for_text("re: &lt;m1&gt;");
    say("<@UBOT> !new");
    server.wait_for_text("begins a new session");
    say("<@UBOT> &lt;m2&gt;");
    server.wait_for_text("re: &lt;m2&gt;");
    assert!(!desk.bench.asked().contains("<m1>"), "{}", desk.bench.asked());
    // More than a command is a message.
    say("<@UBOT> !status of &lt;m3&gt;");
    server.wait_for_text("re: &lt;m3&gt;");
    assert!(desk.bench.asked().contains("!status of"), "{}", desk.bench.asked());
    server.write("UMALLORY", "!status");
    server.wait_for_text("myclaw pairing approve");
    server.write(super::slack::EVE, "!help");
    server.wait_for_text("/new – begins a new session; the old one is kept");
    assert!(!server.sent().iter().any(|sent| sent.text().contains("agent main")));
    assert_eq!(desk.bench.model.requests().len(), 3);
    desk.end(gateway);
}

#[test]
fn irc_has_the_commands_also_behind_the_name_of_the_agent() {
    let Some(server) = Ngircd::start() else { return };
    let bench = Bench::new(echoing());
    server.configure(&bench, |_| {});
    bench.run(&["config", "set", "messages.responsePrefix", "(bot)"]).assert_code(0);
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.wait_for(":claw!");
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    ann.send("PRIVMSG #team :bob: !status");
    ann.send("PRIVMSG #team :!status");
    ann.send("PRIVMSG #team :Claw: !status");
    let told = ann.wait_for("agent main, which waits");
    assert!(told.contains(" PRIVMSG #team :"), "{told}");
    ann.send("PRIVMSG claw :<m1>");
    ann.wait_for(":(bot) re: <m1>");
    ann.send("PRIVMSG claw :!new");
    ann.wait_for("begins a new session");
    ann.send("PRIVMSG claw :<m2>");
    ann.wait_for("re: <m2>");
    assert!(!bench.asked().contains("<m1>"), "{}", bench.asked());
    gateway.stop();
    assert_eq!(ann.seen.iter().filter(|line| line.contains("agent main")).count(), 1);
}
