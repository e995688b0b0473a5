//! Questions about tool calls in chats: they are told there in full, the owner answers there, and nobody else can.

use myclaw_testkit::{BotMessage, SlackServer, Terminal, instruction};

use super::irc::{Ngircd, Person};
use super::*;

/// Somebody who may write, and is not the owner.
const BOB: i64 = 43;

/// A gateway whose commands are asked about, and whose model does what it reads.
fn asking(change: impl FnOnce(&mut Value)) -> Bench {
    let bench = Bench::new(Script::obedient());
    bench.configure(|config| {
        config["channels"]["telegram"]["allowFrom"] = json!([ANN, BOB]);
        config["channels"]["telegram"]["groups"] = json!({"*": {"requireMention": false}});
        config["tools"] = json!({
            "ask": ["bash"], "approvals": {"owners": [format!("telegram:{ANN}")]},
        });
        change(config);
    });
    bench
}

fn private(person: i64) -> Value {
    json!({"id": person, "type": "private", "first_name": "Ann"})
}

/// The file that a call with this label makes.
pub(super) fn made(bench: &Bench, label: &str) -> bool {
    bench.home.path().join(label).exists()
}

/// A message that makes the model run a command.
pub(super) fn order(bench: &Bench, label: &str) -> String {
    let command = format!("touch {}", bench.home.path().join(label).display());
    instruction(label, "bash", &json!({"command": command}))
}

/// The newest message with the question about the call with this label, and its code.
fn question(bench: &Bench, label: &str) -> (BotMessage, String) {
    let found = bench.bot.wait_for("a question", |sent| {
        let is_it =
            |message: &&BotMessage| message.text().contains("/approve") && message.edits == 0;
        let mut of_call = sent.iter().rev().filter(is_it);
        of_call.find(|message| message.text().contains(label)).cloned()
    });
    let code = code_of(found.text());
    (found, code)
}

fn until_over(gateway: &Gateway) {
    until("no message is open", || {
        gateway.client.get("/api/status").unwrap().1["openMessages"] == 0
    });
}

/// The words that were said last and contain these.
fn said(bench: &Bench, words: &str) -> BotMessage {
    bench.bot.wait_for_text(words)
}

#[test]
fn the_owner_answers_in_the_chat_by_command_by_words_and_by_button() {
    let bench = asking(|_| {});
    let gateway = bench.start();
    let chat = private(ANN);
    // All of it is told.
    bench.bot.write(ANN, &order(&bench, "one1"));
    let (asked, code) = question(&bench, "one1");
    let home = bench.home.path().display().to_string();
    for words in [
        "<code>bash</code> needs an approval",
        &format!("touch {home}/one1"),
        "<code>directory</code>",
        "not sandboxed",
        "within 300 s",
        "always for <code>exactly this command in",
    ] {
        assert!(asked.text().contains(words), "{words}: {}", asked.text());
    }
    assert!(!made(&bench, "one1"));
    bench.bot.write(ANN, &format!("/approve {}", code.to_uppercase()));
    said(&bench, "Approved: the call is made once.");
    until_over(&gateway);
    assert!(made(&bench, "one1"));
    // The buttons are gone, and the message says how it ended.
    bench.bot.wait_for("the end", |sent| {
        let asked = sent.iter().find(|message| message.id == asked.id)?;
        (asked.buttons().is_empty() && asked.text().contains("Over: the owner approved it once"))
            .then_some(())
    });
    // Words that refer to the question.
    bench.bot.write(ANN, &order(&bench, "two2"));
    let (asked, code) = question(&bench, "two2");
    let answer = |text: &str, id: i64| {
        let on = json!({"message_id": id, "text": "?", "chat": chat, "from": {"id": 12_345, "is_bot": true}});
        bench.bot.deliver(ANN, &chat, &json!({"text": text, "reply_to_message": on}))
    };
    answer("what is that?", asked.id);
    said(&bench, "did not understand it");
    answer("no, not today", asked.id);
    said(&bench, "Denied: the call is not made.");
    until_over(&gateway);
    assert!(bench.asked().contains("the user said no: not today"), "{}", bench.asked());
    // Late, again, and by another name, it changes nothing and says so.
    answer("yes", asked.id);
    said(&bench, &format!("The question <code>{code}</code> was over already: the owner said no"));
    bench.bot.write(ANN, "/approve abcdefgh");
    said(&bench, "There is no question <code>abcdefgh</code>");
    bench.bot.write(ANN, "/approve");
    said(&bench, "Write the code of the question");
    // A button; "always" holds in this chat from then on.
    bench.bot.write(ANN, &order(&bench, "three3"));
    let (asked, code) = question(&bench, "three3");
    let buttons = [format!("/approve {code}"), format!("/always {code}"), format!("/deny {code}")];
    assert_eq!(asked.buttons(), buttons);
    let press = bench.bot.press(ANN, &chat, &asked, "/always");
    said(&bench, "what this covers is not asked about again");
    until_over(&gateway);
    assert!(made(&bench, "three3"));
    until("the press is confirmed", || {
        bench.bot.calls().iter().any(|(method, params)| {
            method == "answerCallbackQuery"
                && params["callback_query_id"] == press
                && params.get("text").is_none()
        })
    });
    let answered = gateway.client.get("/api/approvals").unwrap().1["answered"].clone();
    let by: Vec<&Value> = answered.as_array().unwrap().iter().map(|it| &it["answeredBy"]).collect();
    assert_eq!(by, ["telegram:42", "telegram:42", "telegram:42"], "{answered}");
    assert!(!made(&bench, "two2"));
    gateway.stop();
}

#[test]
fn nobody_but_the_owner_approves_in_a_group_or_alone() {
    let bench = asking(|_| {});
    let gateway = bench.start();
    let chat = group();
    bench.bot.deliver(BOB, &chat, &json!({"text": order(&bench, "gro1")}));
    let (asked, code) = question(&bench, "gro1");
    let drops = |count: usize| gateway.dropped(count);
    let tell = |person: i64, fields: Value| bench.bot.deliver(person, &chat, &fields);
    let on = json!({"message_id": asked.id, "text": "?", "chat": chat, "from": {"id": 12_345, "is_bot": true}});
    // The person who asked, a stranger, an administrator without a name, the owner's words passed on, and an edit.
    for command in ["/approve", "!approve", "/always", "/approve@claw_bot"] {
        tell(BOB, json!({"text": format!("{command} {code}")}));
        said(&bench, "Only the owner may answer questions.");
    }
    drops(4);
    let press = bench.bot.press(BOB, &chat, &asked, "/approve");
    until("he is told", || {
        bench.bot.calls().iter().any(|(_, params)| {
            params["callback_query_id"] == press && params["text"] == "This button is not for you."
        })
    });
    tell(999, json!({"text": format!("/approve {code}")}));
    tell(
        BOB,
        json!({
            "text": format!("/approve {code}"),
            "sender_chat": {"id": chat["id"], "type": "supergroup", "title": "Team"},
        }),
    );
    tell(
        BOB,
        json!({
            "text": format!("/approve {code}"),
            "forward_origin": {"type": "user", "sender_user": {"id": ANN, "first_name": "Ann"}},
        }),
    );
    tell(BOB, json!({"text": "yes", "reply_to_message": on}));
    let id = tell(ANN, json!({"text": "hm"}));
    bench.bot.edit(id, ANN, &chat, &json!({"text": format!("/approve {code}")}));
    // A client may claim that any button was pressed, and a button is no way to talk to the agent.
    bench.bot.press_with(BOB, &chat, asked.id, &format!("/approve {code} once"));
    bench.bot.press_with(BOB, &chat, asked.id, &order(&bench, "gro2"));
    bench.bot.press_with(ANN, &chat, asked.id, "yes");
    // What came before this is over.
    let last = bench.bot.write(BOB, "hello");
    bench.bot.wait_for("an answer", |sent| {
        let answers = |it: &BotMessage| it.params["reply_parameters"]["message_id"] == last;
        sent.iter().any(answers).then_some(())
    });
    let waits = gateway.client.get("/api/approvals").unwrap().1["approvals"].clone();
    assert_eq!(waits.as_array().unwrap().len(), 1, "{waits}");
    assert!(!made(&bench, "gro1") && !made(&bench, "gro2"));
    // The owner may, from his own chat as well.
    bench.bot.write(ANN, &format!("/approve {code}"));
    until("it runs", || made(&bench, "gro1"));
    bench.bot.wait_for("the group is told", |sent| {
        let told = |message: &BotMessage| {
            message.params["chat_id"] == chat["id"]
                && message.text().contains("is over: the owner approved it once")
        };
        sent.iter().any(told).then_some(())
    });
    gateway.stop();
}

#[test]
fn questions_of_strangers_reach_the_chat_of_the_owner_and_only_his_answer_counts() {
    let bench = asking(|config| {
        config["tools"]["approvals"]["sendTo"] = json!(format!("telegram:{ANN}"));
    });
    let gateway = bench.start();
    bench.bot.write(BOB, &order(&bench, "str1"));
    let in_chat = |person: i64| {
        bench.bot.wait_for("the question", |sent| {
            let is_it = |message: &&BotMessage| {
                message.params["chat_id"] == person && message.text().contains("/approve")
            };
            sent.iter().rev().find(is_it).cloned()
        })
    };
    let (of_bob, of_ann) = (in_chat(BOB), in_chat(ANN));
    assert!(of_ann.text().contains("/str1"), "{}", of_ann.text());
    bench.bot.press(BOB, &private(BOB), &of_bob, "/approve");
    gateway.dropped(1);
    assert!(!made(&bench, "str1"));
    bench.bot.press(ANN, &private(ANN), &of_ann, "/approve");
    until("it runs", || made(&bench, "str1"));
    until_over(&gateway);
    bench.bot.wait_for("no buttons are left", |sent| {
        sent.iter().all(|message| message.buttons().is_empty()).then_some(())
    });
    // His own are asked in his chat alone.
    bench.bot.write(ANN, &order(&bench, "own1"));
    let (_, code) = question(&bench, "own1");
    bench.bot.write(ANN, &format!("/deny {code} no"));
    until_over(&gateway);
    let asked = bench.bot.sent().into_iter().filter(|it| it.text().contains("own1"));
    assert_eq!(asked.count(), 1);
    gateway.stop();
}

#[test]
fn without_an_owner_a_chat_is_told_and_nobody_there_can_answer() {
    let bench = asking(|config| {
        config["tools"]["approvals"] = json!({"timeoutSeconds": 2});
    });
    let gateway = bench.start();
    bench.bot.write(ANN, &order(&bench, "non1"));
    let (asked, code) = question(&bench, "non1");
    assert!(asked.text().contains("Nobody can answer it here"), "{}", asked.text());
    assert!(asked.buttons().is_empty());
    bench.bot.write(ANN, &format!("/approve {code}"));
    said(&bench, "Only the owner may answer questions.");
    said(&bench, "is over: nobody answered within 2 s, so it counts as no. Nothing was done.");
    until_over(&gateway);
    assert!(bench.asked().contains("nobody answered within 2 s"), "{}", bench.asked());
    assert!(!made(&bench, "non1"));
    gateway.stop();
}

#[test]
fn a_stop_and_a_killed_process_end_a_question_as_refused() {
    let bench = asking(|_| {});
    let gateway = bench.start();
    bench.bot.write(ANN, &order(&bench, "sto1"));
    let (_, first) = question(&bench, "sto1");
    bench.bot.write(ANN, "/stop");
    said(&bench, "is over: the work was stopped, so it counts as no.");
    bench.bot.write(ANN, &format!("/approve {first}"));
    said(
        &bench,
        &format!("The question <code>{first}</code> was over already: the work was stopped"),
    );
    until_over(&gateway);
    let mut gateway = gateway;
    let mut code = String::new();
    for (label, is_killed) in [("kil1", true), ("kil2", false)] {
        bench.bot.write(ANN, &order(&bench, label));
        code = question(&bench, label).1;
        if is_killed {
            gateway.kill()
        } else {
            gateway.stop()
        }
        gateway = bench.start();
        said(
            &bench,
            &format!(
                "The question <code>{code}</code> about <code>bash</code> is over: the gateway was restarted"
            ),
        );
        until_over(&gateway);
        let words = "restarted while the question waited";
        assert!(bench.asked().contains(words), "{}", bench.asked());
        bench.bot.write(ANN, &format!("/approve {code}"));
        said(
            &bench,
            &format!(
                "The question <code>{code}</code> was over already: the gateway was restarted"
            ),
        );
    }
    // The next question is another one, which the old code does not answer.
    bench.bot.write(ANN, &order(&bench, "kil3"));
    let (asked, next) = question(&bench, "kil3");
    assert_ne!(next, code);
    bench.bot.press_with(ANN, &private(ANN), asked.id, &format!("/approve {code}"));
    bench.bot.write(ANN, &format!("/deny {next}"));
    until_over(&gateway);
    for label in ["sto1", "kil1", "kil2", "kil3"] {
        assert!(!made(&bench, label), "{label}");
    }
    gateway.stop();
}

#[test]
fn a_long_question_is_approved_only_when_all_of_it_was_shown_and_hides_nothing() {
    let bench = asking(|_| {});
    let gateway = bench.start();
    let path = bench.home.path().join("lon1");
    let lines: String = (0..900).map(|number| format!("# line {number} ```\u{202e}\n")).collect();
    let command = format!("{lines}/approve x\ntouch {}", path.display());
    bench.bot.write(ANN, &instruction("lon1", "bash", &json!({"command": command})));
    let page = |number: usize| {
        bench.bot.wait_for("a page", |sent| {
            let words = format!("This is page {number} of ");
            sent.iter().find(|message| message.text().contains(&words)).cloned()
        })
    };
    let first = page(1);
    let code = first.buttons()[0].strip_prefix("/question ").unwrap().to_owned();
    bench.bot.write(ANN, &format!("/approve {code}"));
    said(&bench, "Not all of this question was shown yet");
    bench.bot.write(BOB, &format!("/question {code}"));
    said(&bench, "Only the owner may answer questions.");
    let mut shown = first;
    for number in 2.. {
        bench.bot.press(ANN, &private(ANN), &shown, "/question");
        let next = bench.bot.wait_for("the next page", |sent| {
            let words = [format!("This is page {number} of "), "/approve ".to_owned()];
            let newer = sent.iter().filter(|message| message.id > shown.id);
            let mut found = newer.filter(|it| words.iter().any(|words| it.text().contains(words)));
            found.find(|it| !it.buttons().is_empty()).cloned()
        });
        shown = next;
        if shown.buttons()[0].starts_with("/approve") {
            break;
        }
    }
    let all: String = bench.bot.sent().iter().map(|message| message.text().to_owned()).collect();
    for number in 0..900 {
        let line = format!("\u{2502} # line {number} ``\\u{{60}}\\u{{202e}}");
        assert!(all.contains(&line), "{line}");
    }
    assert!(!all.contains('\u{202e}') && all.contains("\u{2502} /approve x"));
    assert!(!path.exists());
    bench.bot.press(ANN, &private(ANN), &shown, "/approve");
    until("it runs", || path.exists());
    gateway.stop();
}

#[test]
fn a_question_of_a_sub_agent_is_told_in_the_chat_of_its_parent() {
    let bench = asking(|_| {});
    let gateway = bench.start();
    let task = order(&bench, "sub1");
    bench.bot.write(ANN, &instruction("spawn", "sessions_spawn", &json!({"task": task})));
    let (asked, code) = question(&bench, "sub1");
    assert_eq!(asked.params["chat_id"], ANN);
    bench.bot.write(ANN, &format!("/approve {code}"));
    until("it runs", || made(&bench, "sub1"));
    gateway.stop();
}

/// What counts is the answer of the owner to the message of the question.
#[test]
fn a_plan_is_changed_by_an_answer_in_the_chat() {
    let bench = asking(|config| config["tools"]["ask"] = json!([]));
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    said(&bench, "nothing to do");
    until_over(&gateway);
    let sessions = gateway.client.get("/api/sessions").unwrap().1;
    let is_of_chat = |one: &&Value| one["key"].as_str().unwrap().contains("telegram");
    let session = sessions["sessions"].as_array().unwrap().iter().find(is_of_chat).unwrap();
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(["attach", "--session", session["key"].as_str().unwrap()]);
    let mut terminal = Terminal::spawn(&command);
    terminal.expect("You: ");
    terminal.send_line("/plan");
    terminal.expect("mode plan: ");
    let steps = json!({"steps": [{"text": "Look"}, {"text": "Change"}]});
    let plan = instruction("plan1", "update_plan", &steps);
    bench.bot.write(ANN, &format!("{plan}\n{}", order(&bench, "change1")));
    let asked = bench.bot.wait_for("a question", |sent| {
        sent.iter().find(|message| message.text().contains("update_plan")).cloned()
    });
    let answer = |text: &str| {
        let on = json!({"message_id": asked.id, "text": "?", "chat": private(ANN), "from": {"id": 12_345, "is_bot": true}});
        bench.bot.deliver(ANN, &private(ANN), &json!({"text": text, "reply_to_message": on}));
    };
    answer("!Read it; Test it");
    until_over(&gateway);
    let sent = bench.asked();
    assert!(sent.contains("The user changed the plan:\\n[ ] Read it\\n[ ] Test it"), "{sent}");
    gateway.stop();
}

/// Makes a gateway ask about commands, whose questions this person answers.
pub(super) fn ask_owner(bench: &Bench, owner: &str) {
    let path = bench.home.config_path();
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    config["tools"] = json!({"ask": ["bash"], "approvals": {"owners": [owner]}});
    bench.home.write_config(&config);
}

/// The code of a question.
fn code_of(text: &str) -> String {
    let rest = text.split_once("/approve ").unwrap().1;
    rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap().to_owned()
}

fn commands(code: &str) -> [String; 3] {
    ["approve", "always", "deny"].map(|word| format!("/{word} {code}"))
}

#[test]
fn buttons_of_slack_count_for_the_person_who_presses_them() {
    let desk = super::slack::Desk::new(Script::obedient());
    let eve = super::slack::EVE;
    ask_owner(&desk.bench, &format!("slack:{eve}"));
    let gateway = desk.start();
    let server: &SlackServer = &desk.server;
    let to_me = |label: &str| format!("<@UBOT> {}", order(&desk.bench, label));
    let root = desk.say(&json!({"text": to_me("but1")}));
    let asked = server.wait_for_text("but1");
    let code = code_of(asked.text());
    assert_eq!(asked.buttons(), commands(&code));
    // Somebody else, a button that stands for something else, and other things that people do in Slack.
    server.press("UBEN", &asked, "/approve");
    until("Ben is told", || server.whispers().len() == 1);
    let told = ("C1".to_owned(), "UBEN".to_owned(), "This button is not for you.".to_owned());
    assert_eq!(server.whispers(), [told]);
    server.press_with("UBEN", &asked, &format!("/approve {code} once"));
    server.press_with(eve, &asked, &order(&desk.bench, "but2"));
    server.press_with(eve, &asked, "yes");
    gateway.dropped(4);
    for payload in [
        json!({"type": "view_submission", "user": {"id": eve}}),
        json!({"type": "block_actions", "user": {"id": eve}, "actions": []}),
        json!({"type": "block_actions", "actions": [{"value": format!("/approve {code}"), "action_ts": "1.000001"}]}),
        json!(null),
    ] {
        server.interact(payload);
    }
    until("all of it is acknowledged", || server.waiting() == 0);
    let waits = gateway.client.get("/api/approvals").unwrap().1["approvals"].clone();
    assert_eq!(waits.as_array().unwrap().len(), 1, "{waits}");
    server.press(eve, &asked, "/approve");
    until("it runs", || made(&desk.bench, "but1"));
    server.wait_for("the end", |sent| {
        let asked = sent.iter().find(|message| message.ts == asked.ts)?;
        let is_over = asked.text().contains("Over: the owner approved it once");
        (asked.buttons().is_empty() && is_over).then_some(())
    });
    // A copy of the message that is still on somebody's screen.
    server.press(eve, &asked, "/deny");
    server.wait_for_text("was over already: the owner approved it once");
    // In a thread and alone, where "always" holds from then on.
    desk.say(&json!({"text": to_me("but3"), "thread_ts": root}));
    let asked = server.wait_for_text("but3");
    assert_eq!(asked.params["thread_ts"], root);
    server.press(eve, &asked, "/deny");
    let denied = server.wait_for_text("Denied: the call is not made.");
    assert_eq!(denied.params["thread_ts"], root);
    server.write(eve, &order(&desk.bench, "but4"));
    server.press(eve, &server.wait_for_text("but4"), "/always");
    until("it runs", || made(&desk.bench, "but4"));
    assert!(!made(&desk.bench, "but2") && !made(&desk.bench, "but3"));
    let said = desk.bench.asked();
    assert!(!said.contains("[no text]") && !said.contains("/always"), "{said}");
    desk.end(gateway);
}

#[test]
fn buttons_of_discord_count_for_the_person_who_presses_them() {
    use super::discord::{Desk, KIM, ROOM, to_me};
    let desk = Desk::new(Script::obedient());
    ask_owner(&desk.bench, &format!("discord:{KIM}"));
    let gateway = desk.start();
    let server = &desk.server;
    desk.say(ROOM, &to_me(&order(&desk.bench, "but1")));
    let asked = server.wait_for_text("/approve");
    let code = code_of(asked.text());
    assert_eq!(asked.buttons(), commands(&code));
    let answer = |press: &str| {
        until("an answer", || !server.answers_to(press).is_empty());
        server.answers_to(press)
    };
    let refusal =
        json!({"type": 4, "data": {"content": "This button is not for you.", "flags": 64}});
    let press = server.press("666", &asked, "/approve");
    assert_eq!(answer(&press), std::slice::from_ref(&refusal));
    for (person, command) in [
        ("666", format!("/always {code}")),
        (KIM, order(&desk.bench, "but2").chars().take(100).collect()),
        (KIM, "yes".to_owned()),
    ] {
        let press = server.press_with(person, &asked, &command);
        assert_eq!(answer(&press), std::slice::from_ref(&refusal), "{command}");
    }
    // Commands of the app, menus and forms, and what cannot be read.
    for event in [
        json!({"id": "1", "token": "x", "type": 2, "data": {"name": "approve"}, "user": {"id": KIM}}),
        json!({"id": "2", "token": "x", "type": 3, "data": {"component_type": 3, "custom_id": format!("/approve {code}")}, "user": {"id": KIM}, "channel_id": "542", "message": {"id": "1"}}),
        json!({"id": "3", "token": "x", "type": 3, "data": {"component_type": 2, "custom_id": format!("/approve {code}")}}),
        json!({"id": 4, "type": "no number"}),
    ] {
        server.happen("INTERACTION_CREATE", &event);
    }
    // The four presses, and the one that cannot be read.
    gateway.dropped(5);
    let waits = gateway.client.get("/api/approvals").unwrap().1["approvals"].clone();
    assert_eq!(waits.as_array().unwrap().len(), 1, "{waits}");
    let press = server.press(KIM, &asked, "/approve");
    assert_eq!(answer(&press), [json!({"type": 6})]);
    until("it runs", || made(&desk.bench, "but1"));
    server.wait_for("the end", |sent| {
        let asked = sent.iter().find(|message| message.id == asked.id)?;
        let is_over = asked.text().contains("Over: the owner approved it once");
        (asked.buttons().is_empty() && is_over).then_some(())
    });
    server.press(KIM, &asked, "/deny");
    server.wait_for_text("was over already: the owner approved it once");
    // Alone, where "always" holds from then on, and after a broken connection.
    server.write(KIM, &order(&desk.bench, "but3"));
    let asked = server.wait_for_text("but3");
    let (begun, resumed, _) = server.connections();
    server.break_socket(None);
    let press = server.press(KIM, &asked, "/always");
    server.wait_for_connection(begun + resumed);
    assert_eq!(answer(&press), [json!({"type": 6})]);
    until("it runs", || made(&desk.bench, "but3"));
    assert!(!made(&desk.bench, "but2"));
    desk.end(gateway);
}

#[test]
fn slack_takes_commands_and_answers_in_the_thread_of_the_question() {
    let desk = super::slack::Desk::new(Script::obedient());
    let eve = super::slack::EVE;
    ask_owner(&desk.bench, &format!("slack:{eve}"));
    let gateway = desk.start();
    let server: &SlackServer = &desk.server;
    server.write(eve, &order(&desk.bench, "sla1"));
    let asked = server.wait_for_text("/approve");
    let code = code_of(asked.text());
    server.write(eve, &format!("!approve {code}"));
    server.wait_for_text("Approved: the call is made once.");
    until("it runs", || made(&desk.bench, "sla1"));
    server.write(eve, &order(&desk.bench, "sla2"));
    let asked = server.wait_for_text("sla2");
    server.deliver(&json!({
        "type": "message", "channel": format!("D{eve}"), "channel_type": "im", "user": eve, "text": "no, later",
        "thread_ts": asked.ts, "parent_user_id": "UBOT",
    }));
    server.wait_for_text("Denied: the call is not made.");
    until("the model is told", || desk.bench.asked().contains("the user said no: later"));
    assert!(!made(&desk.bench, "sla2"));
    desk.end(gateway);
}

#[test]
fn irc_takes_the_commands_of_an_account_and_of_nobody_else() {
    let Some(server) = Ngircd::start() else { return };
    let bench = asking(|_| {});
    server.configure(&bench, |_| {});
    for (key, value) in [("tools.ask", "[\"bash\"]"), ("tools.approvals.owners", "[\"irc:ann\"]")] {
        bench.run(&["config", "set", key, value]).assert_code(0);
    }
    let mut ann = Person::join(&server, "ann");
    let gateway = bench.start();
    ann.wait_for(":claw!");
    gateway.channels(|state| state["channels"][0]["state"] == "working");
    ann.send(&format!("PRIVMSG claw :{}", order(&bench, "irc1")));
    let asked = ann.wait_for("/approve ");
    let code = asked.split_once("/approve ").unwrap().1[..8].to_owned();
    // A nickname is not the account of that name.
    ann.send(&format!("PRIVMSG claw :!approve {code}"));
    ann.wait_for("Only the owner may answer questions.");
    assert!(!made(&bench, "irc1"));
    gateway.stop();
}
