//! What models have used, over HTTP and through the binary.

use super::*;

/// The only row.
fn only_row(answer: &Value) -> (&str, u64, u64, u64) {
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{answer}");
    let number = |name: &str| rows[0][name].as_u64().unwrap();
    (rows[0]["name"].as_str().unwrap(), number("calls"), number("input"), number("output"))
}

impl Bench {
    fn usage(&self, arguments: &[&str]) -> Value {
        let mut whole = vec!["usage", "--json"];
        whole.extend(arguments);
        let done = self.myclaw(&whole);
        done.assert_code(0);
        serde_json::from_str(&done.stdout()).unwrap()
    }
}

#[test]
fn each_call_is_counted_by_model_agent_channel_and_session() {
    let fine = || Reply::anthropic().text("fine").usage(1_000, 50);
    // An empty answer is asked for once more, and costs something.
    let empty = Reply::anthropic().text("").usage(500, 1);
    let bench = Bench::new(Script::new().then(empty).then(fine()).then(fine()));
    // Before the first start there is nothing, and nothing is created.
    assert_eq!(bench.usage(&[])["rows"], json!([]));
    assert!(!bench.home.state_directory().join("gateway").exists());

    let gateway = bench.start();
    for id in ["1", "2"] {
        let message = gateway.client.send("main", id, "hello").unwrap();
        assert_eq!(gateway.client.outcome(&message).unwrap()["state"], "answered");
    }
    let (status, answer) = gateway.client.get("/api/usage").unwrap();
    assert_eq!(status, 200, "{answer}");
    let (model, calls, input, output) = only_row(&answer);
    assert!(model.contains('/'), "{model}");
    assert_eq!((calls, input, output), (3, 2_500, 101));
    assert_eq!(answer["total"]["calls"], 3);
    assert_eq!(answer["buckets"].as_array().unwrap().len(), 1);
    for (group, expected) in [
        ("agent", "main"),
        ("channel", "web"),
        ("session", "agent:main:channel:terminal:account:default:peer:direct:main"),
    ] {
        let path = format!("/api/usage?group={group}&bucket=hour");
        let (_, answer) = gateway.client.get(&path).unwrap();
        let (name, calls, ..) = only_row(&answer);
        assert_eq!(calls, 3);
        assert!(group == "session" || name == expected, "{name}");
        assert!(group != "session" || name.starts_with("agent:main:"), "{name}");
    }
    for path in ["/api/usage?group=planet", "/api/usage?from=yesterday", "/api/usage?from=9&to=1"] {
        let (status, answer) = gateway.client.get(path).unwrap();
        assert_eq!((status, &answer["error"]["class"]), (400, &json!("usage")), "{path}");
    }
    // The command asks the gateway that runs, or else reads the store.
    assert_eq!(only_row(&bench.usage(&[])).1, 3);
    gateway.stop();
    assert_eq!(only_row(&bench.usage(&["--by", "channel"])), ("web", 3, 2_500, 101));
    let shown = bench.myclaw(&["usage", "--since", "30d"]);
    shown.assert_code(0);
    assert!(shown.stdout().starts_with("model"), "{}", shown.stdout());
    let refused = bench.myclaw(&["usage", "--since", "2000d"]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("kept for 400 days"), "{}", refused.stderr());
}

#[test]
fn what_a_job_uses_is_counted_as_schedule() {
    let bench = Bench::new(answering("done"));
    let gateway = bench.start();
    let job = bench.add(&["look", "--every", "1h", "--isolated"]);
    bench.cron(&["run", &job]);
    bench.runs(&job, |runs| runs.iter().any(|run| run["state"]["state"] == "ended"));
    assert_eq!(only_row(&bench.usage(&["--by", "channel"])).0, "schedule");
    gateway.kill();
    // A moment after a call it is on disk.
    assert_eq!(only_row(&bench.usage(&["--by", "channel"])).0, "schedule");
}
