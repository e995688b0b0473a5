//! The protocol in both directions, byte for byte, and with the real runner.

use myclaw_testkit::{ModelServer, Reply, Script};

use super::*;

#[test]
fn a_job_and_its_answer_are_these_bytes() {
    let bench = Bench::with_groups(
        r#"printf '%s' "$job" > "$w/group/job-$(ls "$w/group" | wc -l)"
say 'one <internal>not for the chat</internal>'; say 'two'; over"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello <b> & \"you\"");
    let out = bench.wait_for_out(2);
    assert_eq!(out[0]["id"].as_str().unwrap().len(), 36);
    let shown: Vec<Value> = out
        .into_iter()
        .map(|mut part| {
            part.as_object_mut().unwrap().remove("id");
            part
        })
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            {"chat": "fam@g.us", "kind": "message", "text": "one"},
            {"chat": "fam@g.us", "kind": "message", "text": "two"},
        ])
    );
    bench.send("m2", "fam@g.us", "And now?");
    bench.wait_for_out(4);
    let job = |name: &str| fs::read_to_string(bench.host("groups/family").join(name)).unwrap();
    assert_eq!(
        job("job-0"),
        "{\"prompt\":\"<messages>\\n<message sender=\\\"Ann\\\" time=\\\"2026-01-01T00:00:00.000Z\\\">Hello &lt;b&gt; &amp; \
         &quot;you&quot;</message>\\n</messages>\",\"groupFolder\":\"family\",\"chatJid\":\"fam@g.us\",\"isMain\":false,\
         \"assistantName\":\"Andy\",\"secrets\":{}}"
    );
    let second: Value = serde_json::from_str(&job("job-1")).unwrap();
    assert_eq!(second["sessionId"], "s1");
    stop(host);
}

#[test]
fn secrets_are_on_standard_input_and_nowhere_else() {
    let key = "sk-or-v1-0123456789abcdef";
    let bench = Bench::with_groups(
        r#"printf '%s' "$job" > "$w/group/job"; tr '\0' '\n' < /proc/$$/environ > "$w/group/environment"
tr '\0' ' ' < /proc/$$/cmdline > "$w/group/command"; echo "$job" >&2; exit 3"#,
    );
    let runner = bench.path("fake-runner");
    let mut command = bench.command(&["host", "--backend", "process", "--retry-base", "1"]);
    command.arg("--runner").arg(&runner).env("OPENROUTER_API_KEY", key);
    let host = RunningChild::spawn(&mut command);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    let read = |name: &str| fs::read_to_string(bench.host("groups/family").join(name)).unwrap();
    assert!(read("job").contains(key));
    assert!(!read("environment").contains(key) && !read("command").contains(key));
    drop(stop(host));
}

#[test]
fn a_real_runner_answers_keeps_its_session_and_takes_further_messages() {
    let bench = Bench::with_groups("");
    let server = ModelServer::spawn_blocking_thread(
        Script::from([Reply::openai().text("First."), Reply::openai().text("Second.")])
            .then_repeat(Reply::openai().text("Third.")),
    );
    let start = |idle: &str| {
        let mut command = bench.command(&["host", "--backend", "process", "--name", "Andy"]);
        command.args(["--idle-limit", idle, "--grace", "5s"]);
        command
            .env("OPENROUTER_API_KEY", "k")
            .env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
        RunningChild::spawn(&mut command)
    };
    let host = start("10m");
    bench.send("m1", "fam@g.us", "One");
    assert_eq!(bench.texts(1), ["First."]);
    bench.send("m2", "fam@g.us", "Two");
    assert_eq!(bench.texts(2), ["First.", "Second."]);
    let requests = server.requests();
    let last = requests[1].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(last.contains(">Two</message>") && !last.contains(">One<"), "{last}");
    assert_eq!(files(&bench.host("logs/family"), "log").len(), 1, "one container took both");
    stop(host);
    let host = start("1s");
    bench.send("m3", "fam@g.us", "Three");
    assert_eq!(bench.texts(3)[2], "Third.");
    assert_eq!(server.requests()[2].messages().len(), 6, "the session went on");
    wait_until("the idle runner is told to end", || {
        let logs = files(&bench.host("logs/family"), "log");
        logs.last().is_some_and(|log| fs::read_to_string(log).unwrap().contains("ended: Done"))
    });
    stop(host);
    assert_eq!(bench.out().len(), 3);
}
