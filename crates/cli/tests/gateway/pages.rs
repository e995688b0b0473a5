//! What the pages of the browser are made of, over HTTP: agents, skills, the log.

use super::*;

#[test]
fn agents_and_skills_are_described() {
    let bench = Bench::new(answering("fine"));
    bench.configure(|config| {
        config["agents"] = json!({"list": [
            {"id": "main", "default": true, "sandbox": {"mode": "all"}},
            {
                "id": "gardener", "name": "The gardener", "tools": {"profile": "minimal"},
                "model": {"primary": "anthropic/test-model", "fallbacks": ["anthropic/other"]},
                "identity": {"emoji": "🌱", "theme": "patient"},
                "subagents": {"allowAgents": ["main"], "maxSpawnDepth": 2},
                "heartbeat": {"every": "30m"},
            },
        ]});
        config["bindings"] = json!([
            {"agentId": "Gardener", "match": {"channel": "telegram", "peer": 42}},
            {"agentId": "main", "match": {"channel": "email"}},
        ]);
    });
    let skill = bench.home.state_directory().join("skills/plant/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    std::fs::write(&skill, "---\nname: plant\ndescription: How to plant.\n---\nDig.\n").unwrap();
    let gateway = bench.start();
    let message = gateway.client.send("agent:gardener:main", "1", "hello").unwrap();
    assert_eq!(gateway.client.outcome(&message).unwrap()["state"], "answered");
    let (status, answer) = gateway.client.get("/api/agents").unwrap();
    assert_eq!(status, 200, "{answer}");
    let [gardener, main] = answer["agents"].as_array().unwrap().as_slice() else {
        panic!("{answer}");
    };
    assert_eq!((&gardener["id"], &main["id"]), (&json!("gardener"), &json!("main")));
    assert_eq!(
        (&gardener["name"], &gardener["profile"]),
        (&json!("The gardener"), &json!("minimal"))
    );
    for (key, expected) in [
        ("fallbacks", json!(["anthropic/other"])),
        ("identity", json!({"name": "The gardener", "emoji": "🌱", "theme": "patient"})),
        (
            "subagents",
            json!({"mayStart": ["main"], "model": null, "maxDepth": 2, "maxChildren": 5}),
        ),
        ("bindings", json!([{"channel": "telegram", "peer": 42}])),
        ("heartbeatSeconds", json!(1_800)),
        ("skills", json!(1)),
        ("usableSkills", json!(1)),
        ("sandboxLevel", json!("landlock")),
        ("sandboxNetwork", json!("none")),
    ] {
        assert_eq!(gardener[key], expected, "{key}");
    }
    assert_eq!(main["subagents"]["mayStart"], json!([]));
    assert_eq!((&gardener["sessions"], &main["sessions"]), (&json!(1), &json!(0)));
    assert_eq!((&main["sandbox"], &main["isDefault"]), (&json!("all"), &json!(true)));
    assert!(main["tools"].as_array().unwrap().len() > gardener["tools"].as_array().unwrap().len());
    let (status, answer) = gateway.client.get("/api/skills?agent=gardener").unwrap();
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["agent"], "gardener");
    assert_eq!(answer["skills"][0]["name"], "plant");
    assert_eq!(answer["skills"][0]["usable"], true);
    let (status, answer) = gateway.client.get("/api/skills?agent=nobody").unwrap();
    assert_eq!(status, 400, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("gardener"), "{answer}");
    gateway.stop();
}

#[test]
fn the_log_is_read_from_its_end_and_followed() {
    let bench = Bench::new(answering("fine"));
    bench.configure(|config| config["logging"] = json!({"file": true}));
    let log = bench.home.state_directory().join("logs/myclaw.log");
    let gateway = bench.start();
    let read = |query: &str| {
        let (status, answer) = gateway.client.get(&format!("/api/logs?{query}")).unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    };
    let texts = |answer: &Value| -> Vec<String> {
        let lines = answer["lines"].as_array().unwrap();
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    // A file of its own, so that nothing else writes into it.
    std::fs::remove_file(&log).unwrap();
    let line = |second: usize, level: &str, text: &str| {
        format!("2026-11-22T14:20:{second:02}.000000Z {level:>5} {text}\n")
    };
    let mut text = line(1, "INFO", "one") + &line(2, "WARN", "two") + &line(3, "DEBUG", "three");
    text.push_str("2026-11-22T14:20:04.000000Z  INFO half");
    std::fs::write(&log, &text).unwrap();
    let first = read("level=info");
    assert_eq!(texts(&first), ["one", "two"]);
    assert_eq!((&first["enabled"], &first["gap"]), (&json!(true), &json!(false)));
    assert_eq!(texts(&read("level=warn")), ["two"]);
    assert_eq!(texts(&read("limit=1")), ["three"]);
    // What was half written comes whole, and nothing twice.
    text.push_str(" and whole\n");
    text.push_str(&line(5, "ERROR", "five"));
    std::fs::write(&log, &text).unwrap();
    let after = |answer: &Value| answer["next"].as_str().unwrap().replace('@', "%40");
    let second = read(&format!("level=info&after={}", after(&first)));
    assert_eq!(texts(&second), ["half and whole", "five"]);
    assert_eq!(second["gap"], false);
    assert_eq!(texts(&read(&format!("after={}", after(&second)))), [""; 0]);
    // Another file of the same name, and one that grew by more than is read at once.
    std::fs::write(&log, line(9, "INFO", "new file")).unwrap();
    let third = read(&format!("after={}", after(&second)));
    assert_eq!((texts(&third), &third["gap"]), (vec!["new file".to_owned()], &json!(true)));
    let many: String = (0..20_000).map(|_| line(10, "INFO", &"x".repeat(60))).collect();
    std::fs::write(&log, line(9, "INFO", "new file") + &many + &line(11, "INFO", "last")).unwrap();
    let fourth = read(&format!("after={}", after(&third)));
    assert_eq!(fourth["gap"], true);
    assert_eq!(texts(&fourth).len(), 300);
    assert_eq!(texts(&fourth).last().unwrap(), "last");
    let (status, answer) = gateway.client.get("/api/logs?level=loud").unwrap();
    assert_eq!((status, &answer["error"]["class"]), (400, &json!("usage")));
    gateway.stop();
}

#[test]
fn what_is_open_is_for_the_owner_alone() {
    let bench = Bench::new(answering("fine"));
    bench.configure(|config| {
        config["agents"]["defaults"]["sandbox"]["mode"] = json!("off");
        config["tools"] = json!({"exec": {"ask": "always"}});
    });
    let gateway = bench.start();
    let (status, answer) = gateway.client.get("/api/security").unwrap();
    assert_eq!(status, 200, "{answer}");
    let found = answer["findings"].as_array().unwrap();
    let off = found.iter().find(|finding| finding["check"] == "sandbox-off").unwrap();
    assert_eq!(
        (&off["severity"], &off["fix"]),
        (&json!("medium"), &json!("myclaw config set agents.defaults.sandbox.mode non-main"))
    );
    let stranger = Client { token: "w".repeat(64), ..gateway.client };
    assert_eq!(stranger.get("/api/security").unwrap().0, 401);
    gateway.stop();
}

#[test]
fn what_is_remembered_is_seen_searched_corrected_and_forgotten() {
    let bench = Bench::new(answering("The boiler is repaired on Friday."));
    bench.configure(|config| {
        config["agents"]["list"] = json!([{"id": "main", "default": true}, {"id": "gardener"}]);
    });
    let gateway = bench.start();
    let client = &gateway.client;
    let asked = |method: &str, path: &str, body: &Value| {
        let (head, body) = (client.head(method, path), body.to_string());
        let request = format!(
            "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, answer) = client.raw(&request).unwrap();
        (status, serde_json::from_str::<Value>(&answer).unwrap())
    };
    let facts = || client.get("/api/memory").unwrap().1["facts"].clone();
    assert_eq!(facts(), json!([]));
    let (status, answer) =
        client.post("/api/memory", &json!({"text": "Allergic to nuts."})).unwrap();
    assert_eq!(status, 200, "{answer}");
    let path = format!("/api/memory/{}", answer["fact"]["id"].as_str().unwrap());
    assert_eq!(facts()[0]["text"], "Allergic to nuts.");
    // The agents do not share their notes.
    let (_, other) = client.get("/api/memory?agent=gardener").unwrap();
    assert_eq!((&other["agent"], &other["facts"]), (&json!("gardener"), &json!([])));

    let (status, answer) = asked("PUT", &path, &json!({"text": "Allergic to peanuts."}));
    assert_eq!(
        (status, &answer["fact"]["text"]),
        (200, &json!("Allergic to peanuts.")),
        "{answer}"
    );
    let (status, answer) = client.get("/api/memory/search?query=peanuts").unwrap();
    assert_eq!(status, 200, "{answer}");
    assert!(answer["passages"][0]["text"].as_str().unwrap().contains("peanuts"), "{answer}");
    let (status, answer) = client.get(&path).unwrap();
    assert_eq!((status, &answer["fact"]["person"]), (200, &json!("owner")), "{answer}");

    let (status, answer) = asked("DELETE", &path, &json!({}));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(facts(), json!([]));
    let file = bench.home.workspace().join("memory/facts.md");
    assert!(!std::fs::read_to_string(file).unwrap().contains("peanuts"));

    for (method, path, body, status) in [
        ("GET", path.as_str(), Value::Null, 400),
        ("DELETE", "/api/memory/none", Value::Null, 400),
        ("POST", "/api/memory", json!({"text": " "}), 400),
        ("GET", "/api/memory?agent=nobody", Value::Null, 400),
        ("GET", "/api/memory/search?query=", Value::Null, 400),
    ] {
        let (got, answer) = asked(method, path, &body);
        assert_eq!(got, status, "{method} {path}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty(), "{answer}");
    }
    let stranger = Client { token: "w".repeat(64), ..client.clone() };
    assert_eq!(stranger.get("/api/memory").unwrap().0, 401);
    gateway.stop();
}

#[test]
fn attach_shows_corrects_and_forgets_what_is_remembered() {
    let bench = Bench::new(answering("fine"));
    let gateway = bench.start();
    let mut terminal = bench.attach(&[]);
    let mut ask = |line: &str, answer: &str| {
        terminal.send_line(line);
        terminal.expect(answer);
        terminal.expect("You: ");
        terminal.text()
    };
    ask("/memory", "nothing is remembered yet");
    let screen = ask("/memory add I like tea", "remembered (");
    let (_, rest) = screen.rsplit_once("remembered (").unwrap();
    let id = rest.split_once(')').unwrap().0.to_owned();
    ask("/memory why nobody", "there is no fact `nobody`");
    ask(&format!("/memory edit {id} I like coffee"), "before: I like tea");
    ask(&format!("/memory why {id}"), "I like coffee");
    ask("/memory search coffee", "memory/facts.md");
    ask(&format!("/memory forget {id}"), "forgot: I like coffee");
    ask("/memory", "nothing is remembered yet");
    ask("/memory what", "/memory lists the facts");
    let facts = bench.myclaw(&["memory", "list"]).stdout();
    assert!(facts.contains("nothing is remembered yet"), "{facts}");
    gateway.stop();
}
