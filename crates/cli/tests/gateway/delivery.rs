//! Messages and their answers.

use std::io::Write as _;

use myclaw_session::{Inbox, QueuedMessage, SessionKey, SessionStore};
use serde_json::json;

use super::failures::failures;
use super::socket::{Socket, block_on};
use super::*;

#[test]
fn a_message_is_answered_and_the_same_id_is_the_same_message() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    let id = client.send("main", "one", "hello <m1>").unwrap();
    let outcome = client.outcome(&id).unwrap();
    assert_eq!(outcome["state"], "answered");
    assert_eq!(outcome["reply"], "re: <m1>");
    assert_eq!(outcome["session"], "agent:main:channel:cli:account:default:peer:direct:main");

    assert_eq!(client.send("main", "one", "hello <m1>").unwrap(), id);
    assert_eq!(client.outcome(&id).unwrap(), outcome);
    let other = client.post("/api/messages", &json!({"session": "else", "id": "one", "text": "x"}));
    assert_eq!(other.unwrap().0, 409);
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 1, "model calls");
    assert_eq!(bench.said("main"), ["hello <m1>", "re: <m1>"]);
}

#[test]
fn messages_that_a_turn_takes_together_have_one_answer() {
    // The first call waits until the other messages are there.
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    bench.configure(|config| {
        config["messages"] = json!({"queue": {"mode": "collect", "debounceMs": 50}})
    });
    let gateway = bench.start();
    let client = &gateway.client;
    let first = client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    let others = ["<m2>", "<m3>"].map(|text| client.send("main", text, text).unwrap());
    // They are acknowledged before the session has them.
    let store = SessionStore::new(bench.home.sessions_directory());
    let inbox = store.inbox(&SessionKey::for_cli("main", "main"));
    until("the arrival of both", || inbox.pending().unwrap().len() == others.len());
    gate.open();
    assert_eq!(client.outcome(&first).unwrap()["reply"], "re: <m1>");
    for other in &others {
        assert_eq!(client.outcome(other).unwrap()["reply"], "re: <m2> <m3>");
    }
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 2, "model calls");
}

#[test]
fn a_failed_run_is_reported_once_and_the_session_goes_on() {
    let refusal = Step::status(
        400,
        &[],
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
    );
    let bench =
        Bench::new(Script::new().then(refusal).then_repeat(Reply::anthropic().text("fine")));
    let gateway = bench.start();
    let client = &gateway.client;
    let failed = client.send("main", "one", "first").unwrap();
    let report = client.outcome(&failed).unwrap();
    assert_eq!(report["state"], "reported");
    assert!(report["message"].as_str().unwrap().contains("no"), "{report}");
    let next = client.send("main", "two", "second").unwrap();
    assert_eq!(client.outcome(&next).unwrap()["reply"], "fine");
    assert_eq!(client.outcome(&failed).unwrap(), report);
    gateway.stop();
}

#[test]
fn a_model_that_is_away_breaks_off_or_fails_is_asked_again_until_it_answers() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for failure in [
        Step::status(503, &[], ""),
        Step::status(500, &[], r#"{"error":{"message":"out of memory"}}"#),
        Step::status(529, &[], overloaded),
        Reply::anthropic().text("one two three four five six").in_deltas(6).step().cut_after(600),
        Reply::anthropic().text("one two three four five six").in_deltas(6).step().reset_after(600),
        Step::raw("").then_close(),
        Step::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"content").then_close(),
        Step::status(429, &[], r#"{"error":{"message":"slow down"}}"#),
        Reply::anthropic().text("late").step().hold_after(0, &Gate::closed()),
    ] {
        let script = (0..5).fold(Script::new(), |script, _| script.then(failure.clone()));
        let bench = Bench::new(script.then_repeat(Reply::anthropic().text("fine")));
        bench.configure(|config| {
            config["agent"] = json!({"maxRetries": 1});
            config["models"]["timeouts"] = json!({"firstEventSeconds": 1});
        });
        let gateway = bench.start();
        let id = gateway.client.send("main", "one", "hello").unwrap();
        let answer = gateway.client.outcome(&id).unwrap();
        assert_eq!((&answer["state"], &answer["reply"]), (&json!("answered"), &json!("fine")));
        gateway.stop();
        // What was shown of an answer that was cut off is no answer.
        assert_eq!(bench.said("main"), ["hello", "fine"]);
    }
}

#[test]
fn a_wait_for_a_model_is_stopped_by_the_person_or_forbidden_by_the_owner() {
    let bench = Bench::new(Script::repeat(Step::status(503, &[], "")));
    let gateway = bench.start();
    let client = &gateway.client;
    let id = client.send("main", "one", "hello").unwrap();
    bench.model.wait_for_requests_blocking(1);
    until("a stop", || {
        client.post("/api/sessions/main/abort", &json!({})).unwrap();
        client.get(&format!("/api/messages/{id}")).unwrap().1["state"] != "open"
    });
    let report = client.outcome(&id).unwrap();
    assert_eq!((&report["state"], &report["class"]), (&json!("reported"), &json!("aborted")));
    gateway.stop();
    bench.configure(|config| config["agent"] = json!({"maxRetries": 0}));
    let gateway = bench.start();
    let id = gateway.client.send("main", "two", "hello").unwrap();
    let report = gateway.client.outcome(&id).unwrap();
    assert_eq!(report["state"], "reported");
    let message = report["message"].as_str().unwrap();
    let of_owner = ["127.0.0.1", "http", "--model", "503"];
    assert!(!of_owner.iter().any(|word| message.contains(word)), "{message}");
    gateway.stop();
}

#[test]
fn what_is_reported_of_a_failure_speaks_to_whom_it_concerns() {
    for failure in failures() {
        let bench = Bench::new(failure.script());
        bench.configure(|config| failure.configure(config));
        let gateway = bench.start();
        let client = &gateway.client;
        let events = block_on(async {
            let mut socket = Socket::open(client).await;
            socket.ask("w", "watch", json!({"session": "main"})).await;
            let sent = json!({"session": "main", "text": "hello"});
            socket
                .send(&json!({"type": "request", "id": "one", "method": "send", "params": sent}))
                .await;
            let mut events = String::new();
            loop {
                let event = socket.next().await;
                events.push_str(&event.to_string());
                if event["event"]["outcome"]["state"] == "reported" {
                    return events;
                }
            }
        });
        failure.assert_is_for_others(&events);
        let id = client.send("main", "two", "hello again").unwrap();
        let report = client.outcome(&id).unwrap();
        let said = (&report["state"], &report["class"]);
        assert_eq!(said, (&json!("reported"), &json!(failure.class)), "{}", failure.name);
        let message = report["message"].as_str().unwrap();
        // What nobody has a sentence for is shown.
        let (name, is_unknown) = (failure.name, failure.class == "unknown");
        let is_said = message == failure.chat || is_unknown && message.contains(failure.owner);
        assert!(is_said, "{name}: {message}");
        let (_, history) = client.get("/api/sessions/main/history").unwrap();
        failure.assert_is_for_others(&format!("{report}{history}"));
        gateway.stop();
    }
    // An unknown failure is shown without the address.
    let page = "<html><head><title>Welcome</title></head></html>";
    let bench = Bench::new(Script::repeat(Step::status(404, &[], page)));
    bench.configure(|config| config["agent"] = json!({"maxRetries": 0}));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "hello").unwrap();
    let report = gateway.client.outcome(&id).unwrap();
    let message = report["message"].as_str().unwrap();
    assert!(
        message.contains("answered 404 with a web page") && !message.contains("127.0.0.1"),
        "{message}"
    );
    gateway.stop();
}

#[test]
fn a_session_that_cannot_run_reports_its_messages() {
    let bench = Bench::new(answering("never"));
    // A model without a key.
    bench.configure(|config| {
        *config = json!({
            "gateway": config["gateway"],
            "agents": {"defaults": {"model": "openai/gpt-4o"}},
        });
    });
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "hello").unwrap();
    let report = gateway.client.outcome(&id).unwrap();
    assert_eq!((&report["state"], &report["class"]), (&json!("reported"), &json!("config")));
    gateway.stop();
}

#[test]
fn an_aborted_turn_is_reported_and_is_not_continued() {
    let bench = Bench::new(
        Script::new()
            .then(Reply::anthropic().text("never").step().hold_after(0, &Gate::closed()))
            .then_repeat(Reply::anthropic().text("later")),
    );
    let gateway = bench.start();
    let client = &gateway.client;
    let id = client.send("main", "one", "first").unwrap();
    bench.model.wait_for_requests_blocking(1);
    let aborted = client.post("/api/sessions/main/abort", &json!({})).unwrap();
    assert_eq!(aborted, (200, json!({"aborted": true})));
    let report = client.outcome(&id).unwrap();
    assert_eq!((&report["state"], &report["class"]), (&json!("reported"), &json!("aborted")));
    let idle = client.post("/api/sessions/main/abort", &json!({})).unwrap();
    assert_eq!(idle, (200, json!({"aborted": false})));
    let next = client.send("main", "two", "second").unwrap();
    assert_eq!(client.outcome(&next).unwrap()["reply"], "later");
    gateway.stop();
}

#[test]
fn a_dropped_message_is_reported() {
    let gate = Gate::closed();
    let bench = Bench::new(echoing_after(&gate));
    bench.configure(|config| {
        config["messages"] = json!({"queue": {"mode": "followup", "cap": 1, "drop": "old"}});
    });
    let gateway = bench.start();
    let client = &gateway.client;
    let first = client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    let dropped = client.send("main", "two", "<m2>").unwrap();
    let kept = client.send("main", "three", "<m3>").unwrap();
    let report = client.outcome(&dropped).unwrap();
    assert_eq!((&report["state"], &report["class"]), (&json!("reported"), &json!("queue_full")));
    gate.open();
    assert_eq!(client.outcome(&first).unwrap()["reply"], "re: <m1>");
    assert_eq!(client.outcome(&kept).unwrap()["reply"], "re: <m3>");
    gateway.stop();
    assert!(!bench.said("main").iter().any(|text| text.contains("<m2>")));
}

/// Where a crash may leave what is kept of a dropped message.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Remains {
    Wait,
    AreTaken,
}

#[test]
fn a_message_that_was_dropped_just_before_a_kill_is_reported_and_not_answered() {
    for place in [Remains::Wait, Remains::AreTaken] {
        let gate = Gate::closed();
        let bench = Bench::new(echoing_after(&gate));
        bench.configure(|config| {
            config["messages"] =
                json!({"queue": {"mode": "followup", "cap": 1, "drop": "summarize"}})
        });
        let gateway = bench.start();
        let first = gateway.client.send("main", "one", "<m1>").unwrap();
        bench.model.wait_for_requests_blocking(1);
        let second = gateway.client.send("main", "two", "<m2>").unwrap();
        let store = SessionStore::new(bench.home.sessions_directory());
        let inbox = store.inbox(&SessionKey::for_cli("main", "main"));
        until("the arrival of the second", || inbox.pending().unwrap().len() == 1);
        gateway.kill();
        // As if a third message had dropped the second, and the kill had come before the outcome was stored.
        let waiting = inbox.pending().unwrap().remove(0);
        let remains = QueuedMessage::remains_of(&waiting, waiting.content.clone());
        let mut open = inbox.hold().unwrap().unwrap();
        match place {
            Remains::Wait => open.change(&[remains], &[waiting.id]).unwrap(),
            Remains::AreTaken => {
                open.change(&[], &[waiting.id]).unwrap();
                let log = bench.home.transcript_path("main");
                let mut row = TempHome::read_lines(&log).pop().unwrap();
                row["id"] = json!("told");
                row["meta"]["queuedIds"] = json!([remains.id]);
                row["content"] = json!("[An earlier message was dropped. It began so: <m2>]");
                let mut log = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
                writeln!(log, "{row}").unwrap();
            }
        }
        drop(open);
        gate.open();
        let gateway = bench.start();
        let outcome = gateway.client.outcome(&second).unwrap();
        assert_eq!(
            (&outcome["state"], &outcome["class"]),
            (&json!("reported"), &json!("queue_full"))
        );
        assert_eq!(gateway.client.outcome(&first).unwrap()["state"], "answered", "{place:?}");
        let last = gateway.client.send("main", "three", "<m3>").unwrap();
        assert_eq!(gateway.client.outcome(&last).unwrap()["state"], "answered", "{place:?}");
        gateway.stop();
        let said = bench.said("main").join("\n");
        assert_eq!(said.matches("began so:").count(), 1, "{place:?}: {said}");
        assert!(!said.lines().any(|line| line == "<m2>"), "{place:?}: {said}");
    }
}

#[test]
fn the_next_process_goes_on_with_an_interrupted_turn() {
    let bench = Bench::new(echoing_after(&Gate::closed()));
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    gateway.kill();
    let gateway = bench.start();
    // Nobody had to ask for it.
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "re: <m1>");
    gateway.stop();
    assert_eq!(bench.said("main"), ["<m1>", "re: <m1>"]);
}

#[test]
fn what_cannot_be_a_message_is_refused_before_it_is_stored() {
    let bench = Bench::new(answering("never"));
    let gateway = bench.start();
    let client = &gateway.client;
    let large = "x".repeat(300 * 1024);
    for (body, says) in [
        (json!({"text": " "}), "empty"),
        (json!({"text": large}), "at most 262144"),
        (json!({"text": "x", "id": ""}), "UUID"),
        (json!({"text": "x", "session": "a:b"}), "no agent `a`"),
        (json!({"text": "x", "session": "agent:nobody:main"}), "nobody"),
        (json!({"words": "x"}), "the body cannot be used: missing field `text`"),
    ] {
        let (status, answer) = client.post("/api/messages", &body).unwrap();
        assert!((400..500).contains(&status), "{status} {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{says}: {answer}");
    }
    let untyped = client.head("POST", "/api/messages");
    let (status, answer) = client.raw(&format!("{untyped}Content-Length: 2\r\n\r\n{{}}")).unwrap();
    assert!(
        status == 400 && answer.contains("the header `Content-Type: application/json`"),
        "{answer}"
    );
    let (status, _) = client.get("/api/messages/m0123").unwrap();
    assert_eq!(status, 404);
    for path in [
        "/api/sessions/main/history?limit=all",
        "/api/messages/m0123?wait=long",
        "/api/sessions?limit=-1",
        "/api/usage?group=colour",
        "/api/logs?limit=x",
    ] {
        let (status, answer) = client.get(path).unwrap();
        assert_eq!((status, &answer["error"]["class"]), (400, &json!("usage")), "{path}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the parameters of the address cannot be used: "), "{message}");
    }
    assert_eq!(client.get("/api/status").unwrap().1["openMessages"], 0);
    gateway.stop();
}

#[test]
fn any_file_can_come_with_a_message() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let client = &gateway.client;
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    // JVBERi0xLjcK is "%PDF-1.7\n", and YSxiCg== "a,b\n".
    let attachments = json!([
        {"mediaType": "application/pdf", "name": "../x/plan.pdf", "data": "JVBERi0xLjcK"},
        {"mediaType": "text/csv", "name": "data.csv", "data": "YSxiCg=="},
        {"mediaType": "image/png", "name": "named.png", "data": pixel},
        {"mediaType": "image/png", "data": pixel},
    ]);
    let body = json!({"text": "", "attachments": attachments});
    let (status, sent) = client.post("/api/messages", &body).unwrap();
    assert_eq!(status, 202, "{sent}");
    let path = format!("/api/messages/{}?wait=60", sent["messageId"].as_str().unwrap());
    assert_eq!(client.get(&path).unwrap().1["reply"], "fine");
    block_on(async {
        let mut socket = Socket::open(client).await;
        let file = json!([{"name": "notes.md", "data": "YSxiCg=="}]);
        let params = json!({"session": "main", "text": "read it", "attachments": file});
        let answer = socket.ask("s", "send", params).await;
        assert_eq!(answer["ok"], true, "{answer}");
    });
    until("the second answer", || bench.model.requests().len() == 2);
    // A short text is in the message, and others are where the message says, as those of channels.
    let saved = std::fs::read_dir(bench.home.workspace().join("attachments")).unwrap();
    let saved: Vec<_> = saved.map(|file| file.unwrap().path()).collect();
    assert_eq!(saved.len(), 1, "{saved:?}");
    assert_eq!(std::fs::read_to_string(&saved[0]).unwrap(), "%PDF-1.7\n");
    let name = saved[0].file_name().unwrap().to_str().unwrap();
    let last = bench.model.requests().pop().unwrap();
    let shown = json!(last.messages()).to_string();
    for part in [&format!("is attachments/{name}]"), "data.csv", "notes.md", "> a,b"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(shown.matches(r#""type":"image""#).count(), 2, "{shown}");
    for (attachments, words) in [
        (json!([{"name": "a.pdf", "data": "no base64!"}]), "\"a.pdf\" is not base64"),
        (json!(vec![json!({"name": "a", "data": "YQ=="}); 9]), "at most 8 files"),
        (json!([{"data": "YQ=="}]), "attachment 1 cannot be used"),
    ] {
        let body = json!({"text": "x", "attachments": attachments});
        let (status, answer) = client.post("/api/messages", &body).unwrap();
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    gateway.stop();
}
