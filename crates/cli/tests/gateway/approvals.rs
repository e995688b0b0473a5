//! Questions about tool calls that need an approval, over HTTP and the WebSocket.

use super::socket::{Socket, block_on};
use super::*;

/// The model writes a file, and then says what came of it.
fn writing() -> Script {
    shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            let word = if last.contains("is_error\":true") { "refused" } else { "written" };
            return Reply::anthropic().text(word).step();
        }
        let arguments = json!({"path": "notes.md", "content": "hello\n"});
        Reply::anthropic().tool_call(format!("call_{number}"), "write", arguments).step()
    })
}

fn bench() -> Bench {
    let bench = Bench::new(writing());
    bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
    bench
}

fn notes(bench: &Bench) -> Option<String> {
    std::fs::read_to_string(bench.home.workspace().join("notes.md")).ok()
}

/// The open question, as soon as there is one.
pub(super) fn question(client: &Client) -> Value {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let (status, answer) = client.get("/api/approvals").unwrap();
        assert_eq!(status, 200, "{answer}");
        if let Some(question) = answer["approvals"].get(0) {
            return question.clone();
        }
        assert!(std::time::Instant::now() < until, "no question came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_question_is_answered_over_http_and_only_its_own_call_runs() {
    let bench = bench();
    let gateway = bench.start();
    let client = &gateway.client;
    // Nothing in a request approves by itself.
    let body = json!({
        "session": "main", "id": "one", "text": "write", "approve": true, "approved": "always", "elevated": true,
        "scopes": ["operator.admin", "operator.approvals"],
    });
    let id = client.post("/api/messages", &body).unwrap().1["messageId"].clone();
    let asked = question(client);
    assert_eq!(asked["toolName"], "write");
    let fact = |label: &str| {
        let mut facts = asked["shown"].as_array().unwrap().iter();
        facts.find(|fact| fact["label"] == label).unwrap()["text"].as_str().unwrap().to_owned()
    };
    assert!(fact("change").contains("+hello"), "{asked}");
    assert!(fact("path").ends_with("/notes.md"), "{asked}");
    assert_eq!(fact("confinement"), "not sandboxed");
    assert!(asked["expiresAt"].as_u64() > asked["askedAt"].as_u64(), "{asked}");
    assert_eq!(notes(&bench), None);
    // Another id answers nothing.
    let wrong = client.post("/api/approvals/a00", &json!({"answer": "once"})).unwrap();
    assert_eq!((wrong.0, &wrong.1["error"]["class"]), (404, &json!("not_found")));
    let path = format!("/api/approvals/{}", asked["id"].as_str().unwrap());
    assert_eq!(client.post(&path, &json!({"answer": "yes"})).unwrap().0, 400);
    let stranger = Client { token: "w".repeat(64), ..client.clone() };
    assert_eq!(stranger.post(&path, &json!({"answer": "once"})).unwrap().0, 401);
    assert_eq!(notes(&bench), None);
    assert_eq!(client.post(&path, &json!({"answer": "once"})).unwrap().0, 200);
    let outcome = client.outcome(id.as_str().unwrap()).unwrap();
    assert_eq!(outcome["reply"], "written", "{outcome}");
    assert_eq!(notes(&bench).as_deref(), Some("hello\n"));
    // Who answered is kept.
    let answered = client.get("/api/approvals").unwrap().1["answered"][0].clone();
    assert_eq!(
        [&answered["id"], &answered["answeredBy"], &answered["answer"]],
        [&asked["id"], &json!("owner"), &json!("once")]
    );
    // An answer counts once, and does not answer the next question.
    assert_eq!(client.post(&path, &json!({"answer": "once"})).unwrap().0, 404);
    let next = client.send("main", "two", "write again").unwrap();
    let other = question(client);
    assert_ne!(other["id"], asked["id"]);
    assert_eq!(client.post(&path, &json!({"answer": "once"})).unwrap().0, 404);
    let path = format!("/api/approvals/{}", other["id"].as_str().unwrap());
    assert_eq!(client.post(&path, &json!({"answer": "no"})).unwrap().0, 200);
    assert_eq!(client.outcome(&next).unwrap()["reply"], "refused");
    gateway.stop();
}

#[test]
fn a_watcher_is_asked_and_always_is_remembered() {
    let bench = bench();
    let gateway = bench.start();
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        socket.ask("w", "watch", json!({"session": "main"})).await;
        socket.ask("one", "send", json!({"session": "main", "text": "write"})).await;
        let asked = socket.until(|frame| frame["event"]["type"] == "approval").await;
        // A client that watches later gets the question as well.
        let mut other = Socket::open(&gateway.client).await;
        let watched = other.ask("w", "watch", json!({"session": "main"})).await;
        assert_eq!(watched["result"]["approvals"][0]["id"], asked["event"]["id"]);
        assert_eq!(watched["result"]["live"]["step"]["isComplete"], true, "{watched}");
        let answer = json!({"id": asked["event"]["id"], "answer": "always"});
        assert_eq!(other.ask("a", "approve", answer).await["ok"], true);
        let closed = socket.until(|frame| frame["event"]["type"] == "approval_closed").await;
        assert_eq!(closed["event"]["answer"], "always");
        socket.until(|frame| frame["event"]["type"] == "reply").await;
        // The same again asks nobody.
        socket.ask("two", "send", json!({"session": "main", "text": "write"})).await;
        let next = |frame: &Value| {
            frame["event"]["type"] == "approval" || frame["event"]["type"] == "reply"
        };
        assert_eq!(socket.until(next).await["event"]["type"], "reply");
    });
    gateway.stop();
}

#[test]
fn always_covers_the_scope_that_the_answer_names_and_a_no_says_why() {
    let path = |request: &RecordedRequest| marks(request).last().unwrap()[1..3].to_owned();
    let bench = Bench::new(shared(move |request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            let text =
                if last.contains("the user said no: too early") { "refused" } else { "written" };
            return Reply::anthropic().text(text).step();
        }
        let arguments = json!({"path": format!("d/{}", path(request)), "content": "x"});
        Reply::anthropic().tool_call(format!("call_{number}"), "write", arguments).step()
    }));
    bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
    std::fs::create_dir_all(bench.home.workspace().join("d")).unwrap();
    let gateway = bench.start();
    let client = &gateway.client;
    let answer = |message: &str, answer: &Value| {
        let id = client.send("main", &answer.to_string(), message).unwrap();
        let asked = question(client);
        let kinds: Vec<&Value> =
            asked["always"].as_array().unwrap().iter().map(|scope| &scope["kind"]).collect();
        assert_eq!(kinds, ["path", "directory"], "{asked}");
        let path = format!("/api/approvals/{}", asked["id"].as_str().unwrap());
        // What is not offered answers nothing.
        let other = client.post(&path, &json!({"answer": "always", "scope": "call"})).unwrap();
        assert_eq!(other.0, 400, "{}", other.1);
        assert_eq!(client.post(&path, answer).unwrap().0, 200);
        client.outcome(&id).unwrap()["reply"].clone()
    };
    assert_eq!(answer("<m1>", &json!({"answer": "no", "reason": "too early"})), "refused");
    assert_eq!(answer("<m1>", &json!({"answer": "always"})), "written");
    assert_eq!(answer("<m2>", &json!({"answer": "always", "scope": "directory"})), "written");
    // The directory covers a file that nobody was asked about.
    let id = client.send("main", "third", "<m3>").unwrap();
    assert_eq!(client.outcome(&id).unwrap()["reply"], "written");
    gateway.stop();
}

#[test]
fn what_changes_while_the_question_waits_is_asked_again_with_the_difference() {
    let bench = Bench::new(shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        if last.contains("tool_result") {
            return Reply::anthropic().text("over").step();
        }
        let arguments = json!({"command": "sh t.sh"});
        Reply::anthropic().tool_call(format!("call_{number}"), "bash", arguments).step()
    }));
    bench.configure(|config| config["tools"] = json!({"exec": {"ask": "always"}}));
    bench.home.write_in_workspace("t.sh", "echo one > ran\n");
    let gateway = bench.start();
    let client = &gateway.client;
    let id = client.send("main", "one", "go").unwrap();
    let first = question(client);
    assert!(first.get("changes").is_none(), "{first}");
    bench.home.write_in_workspace("t.sh", "echo \u{202e}evil > ran\n");
    let post = |question: &Value, answer: &str| {
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        assert_eq!(client.post(&path, &json!({"answer": answer})).unwrap().0, 200);
    };
    post(&first, "once");
    let until = std::time::Instant::now() + PATIENCE;
    let second = loop {
        let second = question(client);
        if second["id"] != first["id"] {
            break second;
        }
        assert!(std::time::Instant::now() < until, "{second}");
    };
    let change = second["changes"][0]["text"].as_str().unwrap();
    assert_eq!(change, "-echo one > ran\n+echo \\u{202e}evil > ran\n");
    post(&second, "no");
    assert_eq!(client.outcome(&id).unwrap()["reply"], "over");
    assert!(!bench.home.workspace().join("ran").exists());
    gateway.stop();
}

#[test]
fn no_and_no_answer_both_mean_no() {
    let bench = bench();
    bench.configure(|config| {
        config["tools"] = json!({"ask": ["write"], "approvals": {"timeoutSeconds": 1}});
    });
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "write").unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "refused");
    assert_eq!(
        gateway.client.get("/api/approvals").unwrap().1,
        json!({"approvals": [], "answered": []})
    );
    gateway.stop();
    bench.configure(|config| config["tools"] = json!({"ask": ["write"]}));
    let gateway = bench.start();
    let id = gateway.client.send("main", "two", "write").unwrap();
    let path = format!("/api/approvals/{}", question(&gateway.client)["id"].as_str().unwrap());
    assert_eq!(gateway.client.post(&path, &json!({"answer": "no"})).unwrap().0, 200);
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "refused");
    assert_eq!(notes(&bench), None);
    gateway.stop();
}

#[test]
fn a_question_survives_a_killed_process_with_its_id() {
    let bench = bench();
    let gateway = bench.start();
    let id = gateway.client.send("main", "one", "write").unwrap();
    let before = question(&gateway.client);
    gateway.kill();
    let gateway = bench.start();
    let after = question(&gateway.client);
    assert_eq!(after["id"], before["id"]);
    let path = format!("/api/approvals/{}", after["id"].as_str().unwrap());
    assert_eq!(gateway.client.post(&path, &json!({"answer": "once"})).unwrap().0, 200);
    assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "written");
    gateway.stop();
    assert_eq!(bench.model.requests().len(), 2, "model calls");
}

/// 32 hexadecimal digits: the version of a config file.
fn version_in(text: &str) -> Option<&str> {
    text.split(|c: char| !c.is_ascii_hexdigit()).find(|digits| digits.len() == 32)
}

/// The model reads the config, changes it, and says what came of it.
fn changing() -> Script {
    shared(|request, number| {
        let last = json!(request.messages().last()).to_string();
        let arguments = match (last.contains("tool_result"), version_in(&last)) {
            (false, _) => json!({"action": "config"}),
            (true, Some(version)) if !last.contains("changed") => json!({
                "action": "change", "version": version,
                "changes": [
                    {"op": "set", "path": "tools.exec.security", "value": "full"},
                    {"op": "set", "path": "tools.web.search.apiKey", "value": "sk-new-secret-of-the-change"},
                ],
            }),
            (true, _) => return Reply::anthropic().text(format!("came back: {last}")).step(),
        };
        Reply::anthropic().tool_call(format!("call_{number}"), "gateway", arguments).step()
    })
}

#[test]
fn a_change_of_the_config_is_always_asked_about_with_the_difference() {
    let bench = Bench::new(changing());
    bench.configure(|config| {
        config["tools"] = json!({"exec": {"security": "allowlist", "allowlist": ["ls"]}});
    });
    let before = std::fs::read(bench.home.config_path()).unwrap();
    let gateway = bench.start();
    let client = &gateway.client;
    for (number, answer) in ["no", "once"].into_iter().enumerate() {
        let id = client.send("main", &format!("m{number}"), "change it").unwrap();
        let asked = question(client);
        assert_eq!(asked["toolName"], "gateway");
        let mut facts = asked["shown"].as_array().unwrap().iter();
        let change = facts.find(|fact| fact["label"] == "change").unwrap();
        let shown = change["text"].as_str().unwrap();
        assert!(shown.contains("-") && shown.contains("\"full\""), "{shown}");
        assert!(shown.contains("set tools.exec.security"), "{shown}");
        assert!(!shown.contains("sk-new-secret"), "{shown}");
        // Nothing happens before the answer.
        assert_eq!(std::fs::read(bench.home.config_path()).unwrap(), before);
        let path = format!("/api/approvals/{}", asked["id"].as_str().unwrap());
        assert_eq!(client.post(&path, &json!({"answer": answer})).unwrap().0, 200);
        let reply = client.outcome(&id).unwrap()["reply"].to_string();
        let now = std::fs::read_to_string(bench.home.config_path()).unwrap();
        assert_eq!(now.contains("\"full\""), answer == "once", "{reply}");
    }
    // The model never saw the key of the config.
    let key = bench.model.requests().last().unwrap().header("x-api-key").unwrap().to_owned();
    for request in bench.model.requests() {
        assert!(!request.body_text().contains(&key));
    }
    gateway.stop();
    // Without anybody who could be asked there is no change, and an editor of files finds none either.
    bench.configure(|config| {
        config["tools"] = json!({"exec": {"security": "allowlist", "allowlist": ["ls"]}});
    });
}
