//! What a client chooses for a session: its model, its thinking level and its place in the list. Its plan, and what it has
//! changed.

use super::socket::{Socket, block_on};
use super::*;

/// The model and whether it was to think, of the newest request.
fn newest(bench: &Bench) -> (String, bool) {
    let requests = bench.model.requests();
    let request = requests.last().unwrap();
    let body: Value = serde_json::from_str(&request.body_text()).unwrap();
    (model_of(request), !body["thinking"].is_null())
}

fn say(gateway: &Gateway, session: &str, text: &str) {
    let id = gateway.client.send(session, text, text).unwrap();
    assert_eq!(gateway.client.outcome(&id).unwrap()["state"], "answered");
}

#[test]
fn a_chosen_model_is_kept_by_restarts_and_forks() {
    let bench = Bench::new(echoing());
    bench.configure(|config| {
        config["models"] = json!({"favorites": ["anthropic/claude-opus-4-5"]});
    });
    let gateway = bench.start();
    let usual = "anthropic/claude-sonnet-4-20250514";
    // Before anything was said in the session.
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let first = socket.ask("1", "model", json!({"session": "trip"})).await;
        assert_eq!(first["result"]["model"], usual, "{first}");
        assert_eq!(first["result"]["models"], json!([usual, "anthropic/claude-opus-4-5"]));
        assert_eq!(first["result"]["thinking"]["level"], "high");
        let mut other = Socket::open(&gateway.client).await;
        other.ask("w", "watch", json!({"session": "trip"})).await;
        let choice =
            json!({"session": "trip", "model": "anthropic/claude-opus-4-5", "thinking": "off"});
        let chosen = socket.ask("2", "model", choice).await;
        assert_eq!(chosen["result"]["model"], "anthropic/claude-opus-4-5", "{chosen}");
        assert_eq!(chosen["result"]["thinking"]["level"], "off");
        let event = other.until(|frame| frame["event"]["type"] == "model_chosen").await;
        assert_eq!(event["event"]["choices"], chosen["result"]);
        // What cannot be used changes nothing.
        for bad in [json!({"model": "nowhere/nothing"}), json!({"thinking": "a lot"})] {
            let mut params = bad.clone();
            params["session"] = json!("trip");
            let refused = socket.ask("3", "model", params).await;
            assert_eq!(refused["ok"], false, "{bad}: {refused}");
        }
        let refused = socket.ask("4", "model", json!({"thinking": "low"})).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("session"), "{refused}");
        let now = socket.ask("5", "model", json!({"session": "trip"})).await;
        assert_eq!(now["result"], chosen["result"]);
    });
    say(&gateway, "trip", "<m1>");
    assert_eq!(newest(&bench), ("claude-opus-4-5".to_owned(), false));
    say(&gateway, "main", "<m2>");
    assert_eq!(newest(&bench), ("claude-sonnet-4-20250514".to_owned(), true));
    gateway.kill();
    let gateway = bench.start();
    say(&gateway, "trip", "<m3>");
    assert_eq!(newest(&bench), ("claude-opus-4-5".to_owned(), false));
    let (status, _) =
        gateway.client.post("/api/sessions/trip/fork", &json!({"newSession": "trip-2"})).unwrap();
    assert_eq!(status, 200);
    say(&gateway, "trip-2", "<m4>");
    assert_eq!(newest(&bench).0, "claude-opus-4-5");
    block_on(async {
        let mut socket = Socket::open(&gateway.client).await;
        let back = socket.ask("1", "model", json!({"session": "trip-2", "model": ""})).await;
        assert_eq!(back["result"]["model"], usual, "{back}");
        assert_eq!(back["result"]["thinking"]["level"], "off");
    });
    say(&gateway, "trip-2", "<m5>");
    assert_eq!(newest(&bench).0, "claude-sonnet-4-20250514");
    say(&gateway, "trip", "<m6>");
    assert_eq!(newest(&bench).0, "claude-opus-4-5");
    gateway.stop();
}

#[test]
fn a_plan_and_changes_are_told_without_keys() {
    let secret = "sk-ant-a-key-of-the-config-0123456789";
    let bench = Bench::new(shared(move |request, number| {
        let reply = Reply::anthropic();
        let steps = json!({"steps": [{"text": "dig", "status": "in_progress"}]});
        match number {
            0 => reply.tool_call("one", "update_plan", steps).step(),
            1 => {
                let content = format!("the key is {secret}\n");
                let arguments = json!({"path": "notes.md", "content": content});
                reply.tool_call("two", "write", arguments).step()
            }
            _ => echo(request).step(),
        }
    }));
    bench.configure(|config| {
        config["provider"]["authProfiles"] = json!([{"id": "one", "apiKey": secret}]);
    });
    let gateway = bench.start();
    let ask = |method: &str| {
        block_on(async {
            let mut socket = Socket::open(&gateway.client).await;
            socket.ask("1", method, json!({"session": "garden"})).await["result"].clone()
        })
    };
    assert_eq!(ask("plan"), json!({"plan": null}));
    assert_eq!(ask("changes"), json!({"files": []}));
    say(&gateway, "garden", "<m1>");
    let steps = json!([{"text": "dig", "status": "in_progress"}]);
    assert_eq!(ask("plan"), json!({"plan": {"steps": steps}}));
    let changes = ask("changes");
    let file = &changes["files"][0];
    assert_eq!(file["path"], "notes.md", "{changes}");
    let diff = file["diff"].as_str().unwrap();
    assert!(diff.contains("+the key is ") && !diff.contains(secret), "{diff}");
    gateway.stop();
}

#[test]
fn pinned_sessions_come_first_and_archived_ones_are_apart() {
    let bench = Bench::new(echoing());
    let gateway = bench.start();
    for session in ["one", "two", "three", "four"] {
        say(&gateway, session, &format!("<m1> of {session}"));
    }
    let names = |query: &str| -> Vec<String> {
        let listed = gateway.client.get(&format!("/api/sessions{query}")).unwrap().1;
        let sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["name"].as_str().unwrap().to_owned()).collect()
    };
    let mark = |params: Value| {
        block_on(async {
            let mut socket = Socket::open(&gateway.client).await;
            socket.ask("1", "mark", params).await
        })
    };
    let marked = mark(json!({"session": "one", "pinned": true}));
    assert_eq!(marked["result"]["labels"], json!(["pinned"]), "{marked}");
    mark(json!({"session": "three", "archived": true}));
    assert_eq!(names(""), ["one", "four", "two"]);
    assert_eq!(names("?archived=true"), ["three"]);
    // A pinned session is found also where it is not among the newest.
    assert_eq!(names("?limit=1"), ["one", "four"]);
    assert_eq!(names("?search=of"), ["four", "three", "two", "one"]);
    let (status, _) =
        gateway.client.post("/api/sessions/one/title", &json!({"title": "First"})).unwrap();
    assert_eq!(status, 200);
    let both = mark(json!({"session": "one", "archived": true}));
    assert_eq!(both["result"]["labels"], json!(["pinned", "archived"]));
    assert_eq!(names("?archived=true"), ["one", "three"]);
    let none = mark(json!({"session": "one", "pinned": false, "archived": false}));
    assert_eq!(none["result"]["labels"], json!([]));
    assert_eq!(mark(json!({"session": "none", "pinned": true}))["error"]["class"], "not_found");
    let missing = mark(json!({"pinned": true}));
    assert!(missing["error"]["message"].as_str().unwrap().contains("needs `session`"), "{missing}");
    gateway.stop();
}
