//! What one person told in a direct chat is not found elsewhere: not by search, not in the prompt, in no other chat of two
//! channels, and not by the owner's sessions, unless the owner shares memory.

use myclaw_testkit::{DiscordServer, RecordedRequest, Step};

use super::discord::{KIM, ROOM};
use super::*;

/// The newest word of the form `<m1>`, without its brackets.
fn mark(request: &RecordedRequest) -> String {
    let text = json!(request.messages()).to_string();
    let (_, rest) = text.rsplit_once("<m").unwrap();
    format!("m{}", rest.split_once('>').unwrap().0)
}

/// `tell` remembers something, `ask` searches for it and says whether it was found.
fn answer(request: &RecordedRequest, number: usize) -> Step {
    let (messages, id) = (request.messages(), format!("call_{number}"));
    let last = json!(messages.last()).to_string();
    let reply = Reply::anthropic();
    let reply = if last.contains("tool_result") {
        let body = json!(request.json()).to_string();
        reply.text(format!("{} found: {}", mark(request), body.contains("peanuts")))
    } else if last.contains("tell") {
        // Told by the person, so it is in the chat's log too.
        reply.tool_call(id, "memory_write", json!({"fact": "Ann is allergic to peanuts."}))
    } else {
        reply.tool_call(id, "memory_search", json!({"query": "is somebody allergic"}))
    };
    reply.step()
}

fn private(person: i64) -> Value {
    json!({"id": person, "type": "private", "first_name": "Ann"})
}

/// A gateway with both channels.
fn start(bench: &Bench, discord: &DiscordServer, shares: bool) -> Gateway {
    bench.configure(|config| {
        config["channels"]["telegram"]["groups"] = json!({"-1005": {"requireMention": false}});
        let mut other = discord.config();
        other["groups"] = json!({ROOM: {"requireMention": false}});
        config["channels"]["discord"] = other;
        config["memory"]["share"] = json!(shares);
    });
    let gateway = bench.start();
    gateway.channels(|state| {
        let all = state["channels"].as_array().unwrap();
        all.len() == 2 && all.iter().all(|channel| channel["state"] == "working")
    });
    gateway
}

#[test]
fn what_is_told_in_a_direct_chat_is_found_there_alone_unless_memory_is_shared() {
    let (bench, discord) = (Bench::new(Script::answer_with(answer)), DiscordServer::begin());
    let gateway = start(&bench, &discord, false);
    let said = |text: &str| bench.bot.wait_for_text(text).text().to_owned();
    bench.bot.deliver(ANN, &private(ANN), &json!({"text": "tell about my peanuts <m1>"}));
    said("m1 found");
    bench.bot.deliver(ANN, &private(ANN), &json!({"text": "ask <m2>"}));
    assert!(said("m2 found").contains("true"));
    // The same person in a group, and another channel: a room, and a direct chat.
    bench.bot.deliver(ANN, &group(), &json!({"text": "ask <m3>"}));
    assert!(said("m3 found").contains("false"));
    for (chat, fields, text) in
        [(ROOM, json!({"guild_id": "1"}), "ask <m4>"), ("200", json!({}), "ask <m5>")]
    {
        let mut message = fields;
        message["content"] = json!(text);
        discord.deliver(KIM, chat, &message);
        let found = format!("{} found", &text[5..7]);
        assert!(discord.wait_for_text(&found).text().contains("false"), "{text}");
    }
    // The owner's sessions do not know it; the owner can look.
    let owner = bench.run(&["run", "-q", "ask <m6>"]);
    assert!(owner.stdout().contains("m6 found: false"), "{}", owner.stdout());
    let search = |options: &[&str]| {
        bench.run(&[&["memory", "search", "allergic", "peanuts"], options].concat()).stdout()
    };
    assert!(!search(&[]).contains("peanuts"), "{}", search(&[]));
    assert!(search(&["--everybody"]).contains("peanuts"), "{}", search(&["--everybody"]));
    assert!(!bench.run(&["memory", "list"]).stdout().contains("peanuts"));
    // Not even by its id.
    let workspaces = std::fs::read_dir(bench.home.state_directory().join("workspaces")).unwrap();
    let facts: String = workspaces
        .filter_map(|one| std::fs::read_to_string(one.unwrap().path().join("memory/facts.md")).ok())
        .collect();
    let (_, rest) = facts.split_once("peanuts. <!-- ").expect("the fact");
    let id = rest.split(';').next().unwrap();
    for verb in ["why", "show", "forget"] {
        let refused = bench.run(&["memory", verb, id]);
        refused.assert_code(2);
        assert!(!refused.stderr().contains("peanuts"), "{}", refused.stderr());
    }
    gateway.stop();
    // Shared, it is known everywhere from then on.
    let gateway = start(&bench, &discord, true);
    bench.bot.deliver(ANN, &private(ANN), &json!({"text": "tell again <m7>"}));
    said("m7 found");
    bench.bot.deliver(ANN, &group(), &json!({"text": "ask <m8>"}));
    assert!(said("m8 found").contains("true"));
    assert!(bench.run(&["memory", "list"]).stdout().contains("peanuts"));
    gateway.stop();
}
