//! Forms of MCP servers in chats: asked for field by field, answered by the owner in words, by a command or by a button.

use myclaw_testkit::{BotMessage, Terminal, instruction, mcp_server};

use super::*;

/// Somebody who may write, and is not the owner.
const BOB: i64 = 43;

/// A gateway with an MCP server, whose model does what it reads.
fn asking() -> Bench {
    let bench = Bench::new(Script::obedient());
    let (entry, _) = mcp_server(&bench.home, "sessions");
    bench.configure(|config| {
        config["channels"]["telegram"]["allowFrom"] = json!([ANN, BOB]);
        config["tools"] = json!({"approvals": {"owners": [format!("telegram:{ANN}")]}});
        config["mcp"]["servers"]["faults"] = entry;
    });
    bench.run(&["mcp", "approve", "faults", "--yes"]).assert_code(0);
    bench
}

/// A message that makes the model call the tool that asks.
fn order(label: &str) -> String {
    let question = json!({
        "message": "Where to?",
        "requestedSchema": {
            "type": "object", "required": ["branch", "size"],
            "properties": {
                "branch": {"type": "string", "minLength": 3},
                "size": {"type": "string", "enum": ["small", "large"]},
            },
        },
    });
    instruction(label, "faults__ask", &json!({"text": question.to_string()}))
}

/// The newest question that has these words, and its code.
fn question(bench: &Bench, words: &str) -> (BotMessage, String) {
    let found = bench.bot.wait_for("a question", |sent| {
        let is_it = |message: &&BotMessage| message.text().contains(words) && message.edits == 0;
        sent.iter().rev().find(is_it).cloned()
    });
    let rest = found.text().split_once("Answer the question <code>").unwrap().1;
    let code = rest.split('<').next().unwrap().to_owned();
    (found, code)
}

#[test]
fn the_owner_fills_in_a_form_in_the_chat() {
    let bench = asking();
    let gateway = bench.start();
    let chat = json!({"id": ANN, "type": "private", "first_name": "Ann"});
    bench.bot.write(ANN, &order("one1"));
    let (asked, code) = question(&bench, "waits for your words");
    for words in ["Where to?", "a text, at least 3 characters", "/answer", "/cancel", "/deny"] {
        assert!(asked.text().contains(words), "{words}: {}", asked.text());
    }
    assert!(!asked.text().contains("/approve"), "{}", asked.text());
    // A yes is no answer to it, here and over HTTP, and nobody else answers.
    bench.bot.write(ANN, &format!("/approve {code}"));
    bench.bot.wait_for_text("This question wants an answer in words");
    bench.bot.write(BOB, &format!("/answer {code} theirs"));
    bench.bot.wait_for_text("Only the owner may answer questions.");
    let waiting = gateway.client.get("/api/approvals").unwrap().1["approvals"][0].clone();
    assert_eq!(waiting["wants"], json!({"label": "branch"}), "{waiting}");
    let path = format!("/api/approvals/{}", waiting["id"].as_str().unwrap());
    assert_eq!(gateway.client.post(&path, &json!({"answer": "once"})).unwrap().0, 400);
    // By a command, what does not fit; then by words that refer to the question.
    bench.bot.write(ANN, &format!("/answer {code} ab"));
    let (asked, _) = question(&bench, "your answer does not fit");
    let on = json!({"message_id": asked.id, "text": "?", "chat": chat, "from": {"id": 12_345, "is_bot": true}});
    bench.bot.deliver(ANN, &chat, &json!({"text": "next year", "reply_to_message": on}));
    let (asked, code) = question(&bench, "field 2 of 2");
    let buttons =
        [format!("/answer {code} small"), format!("/answer {code} large"), format!("/deny {code}")];
    assert_eq!(asked.buttons(), buttons);
    bench.bot.press(ANN, &chat, &asked, &buttons[1]);
    // All of it is shown before it is sent.
    let (asked, code) = question(&bench, "a yes sends branch");
    for words in ["next year", "a yes sends size", "large"] {
        assert!(asked.text().contains(words), "{words}: {}", asked.text());
    }
    bench.bot.write(ANN, &format!("/approve {code}"));
    until("the server has the answer", || {
        bench.asked().contains("content: {'branch': 'next year', 'size': 'large'}")
    });
    gateway.stop();
}

#[test]
fn the_owner_fills_in_a_form_where_they_attach() {
    let bench = asking();
    let gateway = bench.start();
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    let mut terminal = Terminal::spawn(command.arg("attach"));
    terminal.expect("You: ");
    terminal.send_line(&order("one1"));
    terminal.expect("Write branch, /decline or /cancel:");
    terminal.send_line("next year");
    terminal.expect("Write size (small, large), /decline or /cancel:");
    terminal.send_line("large");
    // All of it is shown before it is sent.
    terminal.expect("a yes sends size");
    terminal.expect("or (n)o?");
    terminal.send_line("o");
    until("the server has the answer", || {
        bench.asked().contains("content: {'branch': 'next year', 'size': 'large'}")
    });
    gateway.stop();
}

#[test]
fn a_form_is_closed_in_the_chat_and_ends_with_its_gateway() {
    let bench = asking();
    let gateway = bench.start();
    bench.bot.write(ANN, &order("one1"));
    let (_, code) = question(&bench, "waits for your words");
    bench.bot.write(ANN, &format!("/cancel {code}"));
    bench.bot.wait_for_text("Closed without an answer.");
    until("the server has the answer", || bench.asked().contains("action: cancel"));
    bench.bot.write(ANN, &order("two2"));
    // One that is not in the chat yet would be asked again.
    until("the next question is in the chat", || {
        question(&bench, "waits for your words").1 != code
    });
    gateway.kill();
    let gateway = bench.start();
    until("the model learns it", || {
        bench.asked().contains("the program was restarted while the question waited")
    });
    gateway.stop();
}

#[test]
fn a_message_of_the_owner_names_a_resource_and_one_of_somebody_else_does_not() {
    let bench = asking();
    let gateway = bench.start();
    bench.bot.write(BOB, "what is in @faults:notes://today ?");
    until("it is answered", || bench.model.requests().len() == 1);
    assert!(!bench.asked().contains("Buy milk"), "{}", bench.asked());
    bench.bot.write(ANN, "what is in @faults:notes://today ?");
    until("it is answered", || bench.model.requests().len() == 2);
    assert!(bench.asked().contains("Buy milk") && bench.asked().contains("They are data"));
    gateway.stop();
}
