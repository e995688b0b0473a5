//! One person on several channels.

use super::programs::{Receiver, post, with_programs_and};
use super::*;

/// The session of [`ANN`] on all her channels.
const ANNS: &str = "agent:main:channel:person:account:default:peer:direct:ann";

fn linked(bench: &Bench, receiver: &Receiver, change: impl FnOnce(&mut Value)) {
    with_programs_and(bench, receiver, |config| {
        config["channels"]["identityLinks"] = json!({"ann": ["telegram:42", "webhook:Ann@Home"]});
        change(config);
    });
}

/// A message over the webhook, from a person of that channel.
fn write(gateway: &Gateway, sender: &str, text: &str) {
    let body = json!({"id": text, "text": text, "chat": sender, "sender": {"id": sender}});
    assert_eq!(post(&gateway.client, &body).unwrap().0, 202);
}

#[test]
fn a_person_has_one_session_and_each_reply_goes_where_its_message_came_from() {
    let bench = Bench::new(echoing());
    let receiver = Receiver::start();
    linked(&bench, &receiver, |_| {});
    let gateway = bench.start();
    bench.bot.write(ANN, "my cat is called Tom <m1>");
    bench.bot.wait_for_text("m1");
    write(&gateway, "ann@home", "what is it called? <m2>");
    assert_eq!(receiver.wait_for("m2").1["chat"], "ann@home");
    let asked = bench.asked();
    assert!(asked.contains("called Tom") && asked.contains("what is it called?"), "{asked}");
    // A restart and another message by the first channel.
    gateway.kill();
    let gateway = bench.start();
    bench.bot.write(ANN, "and now? <m3>");
    bench.bot.wait_for_text("m3");
    let asked = bench.asked();
    assert!(asked.contains("called Tom") && asked.contains("what is it called?"), "{asked}");
    // Others have sessions of their own.
    write(&gateway, "bob", "who am I? <m4>");
    receiver.wait_for("m4");
    assert!(!bench.asked().contains("called Tom"), "{}", bench.asked());
    bench.bot.deliver(7, &json!({"id": 7, "type": "private"}), &json!({"text": "and I? <m5>"}));
    bench.bot.wait_for_text("m5");
    assert!(!bench.asked().contains("called Tom"), "{}", bench.asked());
    let sent = bench.bot.sent();
    let to = |words: &str| {
        let of: Vec<&Value> = sent
            .iter()
            .filter(|message| message.text().contains(words))
            .map(|message| &message.params["chat_id"])
            .collect();
        of.into_iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        (to("m1"), to("m2"), to("m3"), to("m4")),
        (vec![json!(ANN)], vec![], vec![json!(ANN)], vec![])
    );
    // A kill may come before the gateway has stored that an answer was sent, which then comes again under its id.
    let mut answers: Vec<String> = receiver.got().into_iter().map(|(id, _)| id).collect();
    answers.dedup();
    assert_eq!(answers.len(), 2, "{answers:?}");
    let (status, sessions) = gateway.client.get("/api/sessions").unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        sessions.to_string().matches(&format!("\"key\":\"{ANNS}\"")).count(),
        1,
        "{sessions}"
    );
    gateway.stop();
}

#[test]
fn the_rules_for_any_of_the_ids_hold() {
    let bench = Bench::new(echoing());
    let receiver = Receiver::start();
    linked(&bench, &receiver, |config| {
        config["tools"] = json!({
            "byChannel": {"webhook": {"deny": ["write"]}},
            "bySender": {"webhook:ann@home": {"deny": ["edit"]}},
        });
    });
    let gateway = bench.start();
    let offered = || {
        let request = bench.model.last_request();
        let tools = request.json()["tools"].as_array().cloned().unwrap_or_default();
        let names = tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    bench.bot.write(ANN, "<m1>");
    bench.bot.wait_for_text("m1");
    let names = offered();
    assert!(names.contains(&"read".to_owned()), "{names:?}");
    assert!(!names.contains(&"write".to_owned()), "{names:?}");
    for session in [ANNS.to_owned(), format!("{ANNS}:new:2")] {
        let explained = bench.run(&["policy", "explain", "edit", "--session", &session]).stdout();
        assert!(explained.contains("webhook:ann@home"), "{explained}");
    }
    // The rules of a channel do not hold for others.
    bench.bot.write(7, "<m2>");
    bench.bot.wait_for_text("m2");
    assert!(offered().contains(&"write".to_owned()));
    gateway.stop();
}
