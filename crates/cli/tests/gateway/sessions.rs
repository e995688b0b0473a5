//! The stored sessions over HTTP: list, search, fork, title, export, deletion.

use super::*;

#[test]
fn sessions_are_listed_searched_forked_renamed_exported_and_deleted() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    for (session, text) in [("one", "<m1> tomatoes"), ("two", "<m2> potatoes")] {
        let id = client.send(session, session, text).unwrap();
        client.outcome(&id).unwrap();
    }
    let names = |path: &str| -> Vec<String> {
        let (status, listed) = client.get(path).unwrap();
        assert_eq!(status, 200, "{listed}");
        let sessions = listed["sessions"].as_array().unwrap();
        sessions.iter().map(|session| session["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/api/sessions"), ["two", "one"]);
    assert_eq!(names("/api/sessions?search=TOMATO"), ["one"]);
    assert_eq!(names("/api/sessions?search=nothing-like-it"), [""; 0]);
    assert_eq!(names("/api/sessions?limit=1"), ["two"]);

    let post = |path: &str, body: Value| client.post(path, &body).unwrap();
    assert_eq!(post("/api/sessions/one/fork", json!({"newSession": "three"})).0, 200);
    assert_eq!(post("/api/sessions/one/fork", json!({"newSession": "three"})).0, 409);
    assert_eq!(post("/api/sessions/none/fork", json!({"newSession": "four"})).0, 404);
    let history = client.get("/api/sessions/three/history").unwrap().1;
    let said = history["messages"].as_array().unwrap().iter().map(|row| row["content"].as_str());
    assert_eq!(said.collect::<Vec<_>>(), [Some("<m1> tomatoes"), Some("re: <m1>")]);
    assert_eq!(post("/api/sessions/three/title", json!({"title": "The garden"})).0, 200);
    assert_eq!(post("/api/sessions/three/title", json!({"title": "two\nlines"})).0, 400);
    assert_eq!(names("/api/sessions?search=garden"), ["three"]);
    // One without a title is called by what was said, and a fork by its name.
    let titles = |session: usize| {
        let listed = client.get("/api/sessions").unwrap().1;
        let found = &listed["sessions"][session];
        json!([found["name"], found["title"], found["automaticTitle"]])
    };
    assert_eq!(titles(1), json!(["two", null, "<m2> potatoes"]));
    assert_eq!(titles(0), json!(["three", "The garden", null]));
    assert_eq!(post("/api/sessions/three/title", json!({"title": ""})).0, 200);
    assert_eq!(titles(0), json!(["three", null, null]));
    assert_eq!(post("/api/sessions/three/title", json!({"title": "The garden"})).0, 200);

    for (format, holds) in
        [("jsonl", r#""role":"user""#), ("markdown", "# Session The garden"), ("html", "<html")]
    {
        let path = format!("/api/sessions/three/export?format={format}");
        let (status, body) = client.raw(&format!("{}\r\n", client.head("GET", &path))).unwrap();
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(holds) && body.contains("tomatoes"), "{format}: {body}");
    }
    assert_eq!(client.get("/api/sessions/three/export?format=pdf").unwrap().0, 400);
    assert_eq!(client.get("/api/sessions/none/export").unwrap().0, 404);

    let delete = |session: &str| {
        let head = client.head("DELETE", &format!("/api/sessions/{session}"));
        client.raw(&format!("{head}\r\n")).unwrap().0
    };
    assert_eq!(delete("three"), 200);
    assert_eq!(delete("three"), 404);
    assert_eq!(names("/api/sessions"), ["two", "one"]);
    // What is deleted begins anew.
    assert_eq!(delete("one"), 200);
    let id = client.send("one", "again", "<m3>").unwrap();
    assert_eq!(client.outcome(&id).unwrap()["reply"], "re: <m3>");
    assert_eq!(bench.said("one"), ["<m3>", "re: <m3>"]);
    gateway.stop();
}

#[test]
fn a_session_that_works_is_not_deleted() {
    let bench = Bench::new(echoing_after(&Gate::closed()));
    let gateway = bench.start();
    let client = &gateway.client;
    client.send("main", "one", "<m1>").unwrap();
    bench.model.wait_for_requests_blocking(1);
    let (status, listed) = client.get("/api/sessions").unwrap();
    assert_eq!((status, &listed["sessions"][0]["busy"]), (200, &json!(true)), "{listed}");
    let head = client.head("DELETE", "/api/sessions/main");
    let (status, answer) = client.raw(&format!("{head}\r\n")).unwrap();
    assert_eq!(status, 409, "{answer}");
    gateway.kill();
}

#[test]
fn pictures_come_with_a_message_and_what_is_no_picture_is_refused() {
    let bench = Bench::new(answering("seen"));
    let gateway = bench.start();
    let client = &gateway.client;
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC";
    let with = |data: &str, count: usize| {
        let picture = json!({"mediaType": "image/png", "data": data});
        json!({"id": data.get(..9), "text": "what is it?", "attachments": vec![picture; count]})
    };
    for (data, count, says) in
        [("bm8gcGljdHVyZQ==", 1, "PNG"), ("%%", 1, "base64"), (png, 9, "at most 8")]
    {
        let (status, answer) = client.post("/api/messages", &with(data, count)).unwrap();
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{says}: {answer}");
    }
    let (status, sent) = client.post("/api/messages", &with(png, 1)).unwrap();
    assert_eq!(status, 202, "{sent}");
    assert_eq!(client.outcome(sent["messageId"].as_str().unwrap()).unwrap()["reply"], "seen");
    gateway.stop();
    let asked = bench.model.requests()[0].body_text();
    assert!(asked.contains("image/png") && asked.contains("what is it?"), "{asked}");
}

#[test]
fn metrics_count_what_happens() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    let id = client.send("main", "one", "<m1>").unwrap();
    client.outcome(&id).unwrap();
    // What was stored is counted a moment later.
    super::subagents::settle(client);
    let (status, text) = client.raw(&format!("{}\r\n", client.head("GET", "/metrics"))).unwrap();
    assert_eq!(status, 200, "{text}");
    for line in [
        "myclaw_messages_accepted_total 1",
        r#"myclaw_messages_ended_total{outcome="answered"} 1"#,
        r#"myclaw_model_calls_total{model="anthropic/claude-sonnet-4-20250514"} 1"#,
        "# TYPE myclaw_model_tokens_total counter",
        "# TYPE myclaw_deliveries_total counter",
        r#"myclaw_turn_seconds_bucket{le="+Inf"} 1"#,
        "myclaw_turn_seconds_count 1",
        "myclaw_parts_waiting 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    // Every line is a comment or a sample with a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, number) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("myclaw_") && number.parse::<f64>().is_ok(), "{line}");
    }
    let stranger = Client { token: "w".repeat(64), ..client.clone() };
    assert_eq!(stranger.get("/metrics").unwrap().0, 401);
    gateway.stop();
}

#[test]
fn a_fork_may_begin_before_a_message_and_branches_know_each_other() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    let client = &gateway.client;
    for text in ["<m1> tomatoes", "<m2> potatoes"] {
        let id = client.send("garden", text, text).unwrap();
        client.outcome(&id).unwrap();
    }
    let rows = |session: &str| {
        let path = format!("/api/sessions/{session}/history");
        client.get(&path).unwrap().1["messages"].as_array().unwrap().clone()
    };
    let fork = |body: Value| client.post("/api/sessions/garden/fork", &body).unwrap();
    let said = rows("garden");
    let [first, answer, second, _] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(fork(json!({"newSession": "later", "before": second["id"]})).0, 200);
    assert_eq!(rows("later"), said[..2]);
    // Nothing comes before the first message.
    assert_eq!(fork(json!({"newSession": "anew", "before": first["id"]})).0, 200);
    assert_eq!(rows("anew"), [json!(null); 0]);
    let (status, refused) =
        fork(json!({"newSession": "x", "before": first["id"], "at": first["id"]}));
    assert_eq!(status, 400, "{refused}");
    assert_eq!(fork(json!({"newSession": "x", "before": "no-such-message"})).0, 404);
    assert_eq!(fork(json!({"newSession": "anew", "before": first["id"]})).0, 409);
    let id = client.send("anew", "3", "<m3> beans").unwrap();
    client.outcome(&id).unwrap();
    let id = client.send("other", "4", "<m4> of no branch").unwrap();
    client.outcome(&id).unwrap();

    let branches = |session: &str| {
        let path = format!("/api/sessions/{session}/branches");
        let (status, answer) = client.get(&path).unwrap();
        assert_eq!(status, 200, "{answer}");
        let found = answer["branches"].as_array().unwrap().iter();
        found.map(|one| json!([one["name"], one["at"]])).collect::<Vec<_>>()
    };
    let all = [json!(["garden", null]), json!(["later", answer["id"]]), json!(["anew", null])];
    for session in ["garden", "later", "anew"] {
        assert_eq!(branches(session), all, "{session}");
    }
    assert_eq!(branches("other"), [json!(["other", null])]);
    // The branches of a session that is gone are still there.
    let head = client.head("DELETE", "/api/sessions/garden");
    assert_eq!(client.raw(&format!("{head}\r\n")).unwrap().0, 200);
    assert_eq!(branches("anew"), all[1..]);
    gateway.stop();
}
