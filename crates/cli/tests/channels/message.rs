//! The tool `message`: what a session says and does in chats besides its answers.

use myclaw_testkit::TelegramFault;

use super::*;

/// A model that makes each of these calls of `message` in a turn of its own messages, and then answers `done`.
pub(super) fn calling(calls: &'static [&'static str]) -> Script {
    calling_tool("message", calls)
}

/// The same with another tool.
pub(super) fn calling_tool(tool: &'static str, calls: &'static [&'static str]) -> Script {
    Script::answer_with(move |request, _| {
        let messages = request.messages();
        let text = |message: &Value| message.to_string();
        let since = messages.iter().rposition(|message| {
            message["role"] == "user" && !text(message).contains("tool_result")
        });
        let made = messages[since.unwrap_or(0)..]
            .iter()
            .filter(|message| message["role"] == "assistant")
            .count();
        let Some(call) = calls.get(made) else { return Reply::anthropic().text("done").step() };
        // The ids that earlier calls have returned.
        let said = json!(messages).to_string();
        let ids: Vec<&str> = said
            .split("messageIds")
            .skip(1)
            .filter_map(|rest| {
                rest.split("\\\"").find(|word| word.starts_with('o') && word.len() == 33)
            })
            .collect();
        let call = call.replace("{first}", ids.first().unwrap_or(&"none"));
        let call = call.replace("{last}", ids.last().unwrap_or(&"none"));
        let arguments: Value = serde_json::from_str(&call).unwrap();
        Reply::anthropic().tool_call(format!("call_{made}"), tool, arguments).step()
    })
}

impl Bench {
    /// The results of the tool in the newest request.
    pub(super) fn results(&self) -> Vec<Value> {
        let requests = self.model.requests();
        let messages = requests.last().unwrap().messages();
        let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        blocks
            .filter(|block| block["type"] == "tool_result")
            .map(|block| match &block["content"] {
                Value::String(text) => json!(text),
                content => content[0]["text"].clone(),
            })
            .map(|text| {
                let text = text.as_str().unwrap().to_owned();
                serde_json::from_str(&text).unwrap_or(json!(text))
            })
            .collect()
    }

    fn calls_of(&self, method: &str) -> Vec<Value> {
        let calls = self.bot.calls().into_iter().filter(|(name, _)| name == method);
        calls.map(|(_, params)| params).collect()
    }
}

#[test]
fn a_session_speaks_and_acts_in_its_chat() {
    let bench = Bench::new(calling(&[
        r#"{"action": "react", "emoji": "👍"}"#,
        r#"{"action": "send", "text": "first **words**", "files": ["report.txt"]}"#,
        r#"{"action": "reply", "text": "an answer"}"#,
        r#"{"action": "edit", "messageId": "{first}", "text": "better words"}"#,
        r#"{"action": "poll", "question": "Where?", "options": ["here", "there"], "several": true}"#,
        r#"{"action": "unsend", "messageId": "{first}"}"#,
    ]));
    bench.write_for_chats("report.txt", "all is well");
    let gateway = bench.start();
    let id = bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("done");
    let results = bench.results();
    assert_eq!(results.len(), 6, "{results:#?}");
    assert!(results.iter().all(|result| result["status"] == "sent"), "{results:#?}");
    let reaction = &bench.calls_of("setMessageReaction")[0];
    assert_eq!(reaction["message_id"], id);
    assert_eq!(reaction["reaction"], json!([{"type": "emoji", "emoji": "👍"}]));
    let sent = bench.bot.sent();
    let texts: Vec<&str> = sent.iter().map(|sent| sent.text()).collect();
    // The first message is removed; the file that came with it is a message of its own.
    assert_eq!(texts, ["", "an answer", "", "done"], "{sent:#?}");
    assert!(sent[0].params["multipart"].as_str().unwrap().contains("all is well"));
    assert_eq!(sent[1].params["reply_parameters"]["message_id"], id);
    assert_eq!(sent[2].params["options"], json!([{"text": "here"}, {"text": "there"}]));
    assert_eq!(sent[2].params["allows_multiple_answers"], true);
    let edits = bench.calls_of("editMessageText");
    assert!(edits.iter().any(|edit| edit["text"] == "better words"), "{edits:?}");
    let tool = bench.model.requests()[0].json()["tools"].clone();
    let tool = tool.as_array().unwrap().iter().find(|tool| tool["name"] == "message").unwrap();
    assert!(
        tool["description"]
            .as_str()
            .unwrap()
            .ends_with("can do: telegram: send, files, react, edit, unsend, poll"),
        "{tool}"
    );
    gateway.stop();
}

#[test]
fn what_cannot_be_done_is_said_and_nothing_is_sent() {
    let bench = Bench::new(calling(&[
        r#"{"action": "send"}"#,
        r#"{"action": "send", "text": "x", "files": ["../secret"]}"#,
        r#"{"action": "edit", "messageId": "o0", "text": "x"}"#,
        r#"{"action": "react", "emoji": "not an emoji at all"}"#,
        r#"{"action": "react", "emoji": "🦀"}"#,
        r#"{"action": "poll", "question": "?", "options": ["one"]}"#,
        r#"{"action": "send", "text": "x", "to": "agent:main:channel:telegram:account:default:peer:direct:7"}"#,
        r#"{"action": "send", "text": "x", "to": "https://example.com"}"#,
    ]));
    std::fs::write(bench.home.state_directory().join("secret"), "the secret").unwrap();
    let gateway = bench.start();
    bench.bot.write(ANN, "hello");
    bench.bot.wait_for_text("done");
    let results = bench.results();
    for (at, words) in [
        (0, "there is nothing to send"),
        (1, "the file ../secret was not sent"),
        (2, "you have sent no message"),
        (3, "is one emoji"),
        (4, "REACTION_INVALID"),
        (5, "`options` has 2 to 10"),
        (6, "that you may use"),
        (7, "that you may use"),
    ] {
        assert!(results[at].to_string().contains(words), "{words}: {:#}", results[at]);
    }
    gateway.stop();
    assert_eq!(bench.bot.sent().len(), 1);
}

#[test]
fn another_chat_is_written_to_only_if_the_config_and_its_access_rules_allow_it() {
    for (other_chats, allow_from, outcome) in [
        ("off", json!([ANN, 7]), "tools.message.otherChats"),
        ("main", json!([ANN, 7]), "sent"),
        ("main", json!([ANN]), "may not write any more"),
    ] {
        let bench = Bench::new(Script::answer_with(|request, number| {
            let is_order = request.messages().last().unwrap().to_string().contains("tell Bob");
            let to = "agent:main:channel:telegram:account:default:peer:direct:7";
            let call = json!({"action": "send", "text": "a word for Bob", "to": to});
            match is_order {
                true => {
                    Reply::anthropic().tool_call(format!("call_{number}"), "message", call).step()
                }
                false => Reply::anthropic().text("fine").step(),
            }
        }));
        let config = |allow_from: &Value| {
            bench.configure(|config| {
                config["tools"] = json!({"message": {"otherChats": other_chats}});
                config["channels"]["telegram"]["allowFrom"] = allow_from.clone();
            });
        };
        config(&json!([ANN, 7]));
        let gateway = bench.start();
        bench.bot.write(7, "I am Bob");
        bench.bot.wait_for_text("fine");
        gateway.stop();
        config(&allow_from);
        let gateway = bench.start();
        let id = gateway.client.send("main", "one", "tell Bob").unwrap();
        assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "answered");
        let result = bench.results()[0].to_string();
        assert!(result.contains(outcome), "{other_chats}: {result}");
        gateway.stop();
        let to_bob = bench.bot.sent().iter().filter(|sent| sent.params["chat_id"] == 7).count();
        assert_eq!(to_bob, if outcome == "sent" { 2 } else { 1 }, "{other_chats}");
    }
}

#[test]
fn a_kill_before_or_while_it_is_sent_sends_once_and_the_turn_learns_the_outcome() {
    for (fault, status) in
        [(TelegramFault::TooMany(60), "sent"), (TelegramFault::Hang, "uncertain")]
    {
        let bench = Bench::new(calling(&[r#"{"action": "send", "text": "only once"}"#]));
        bench.configure(|config| config["logging"] = json!({"file": true, "level": "info"}));
        let gateway = bench.start();
        // Refused, it is stored and waits. Without an answer, nobody knows whether it was delivered.
        bench.bot.fail_next("sendMessage", fault);
        bench.bot.write(ANN, "hello");
        let log = bench.home.state_directory().join("logs/myclaw.log");
        let is_there = || match status {
            "sent" => std::fs::read_to_string(&log).unwrap().contains("a reply was not sent"),
            _ => !bench.calls_of("sendMessage").is_empty(),
        };
        until("an attempt to send", is_there);
        gateway.kill();
        let gateway = bench.start();
        bench.bot.wait_for_text("done");
        let results = bench.results();
        assert_eq!(results.len(), 1, "{results:#?}");
        assert_eq!(results[0]["status"], status, "{results:#?}");
        gateway.stop();
        let texts: Vec<String> =
            bench.bot.sent().iter().map(|sent| sent.text().to_owned()).collect();
        assert_eq!(texts, ["only once", "done"], "{status}");
    }
}
