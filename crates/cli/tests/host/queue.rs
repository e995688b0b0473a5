//! Which containers run at a time, and which messages they see.

use super::*;

/// A runner that notes that it runs, waits for a file, and answers.
const COUNTED: &str = r#"mkdir -p "$w/global/running"; touch "$w/global/running/$$"
ls "$w/global/running" | wc -l >> "$w/global/counts"; echo run >> "$w/group/runs"
await "$w/global/go"; say "done"; rm "$w/global/running/$$"; over"#;

#[test]
fn at_most_five_containers_run_and_one_for_each_group() {
    let bench = Bench::new(COUNTED);
    for number in 0..7 {
        bench.add(&format!("chat{number}"), &format!("g{number}"), &["--all"]);
    }
    let host = bench.start(&[]);
    for number in 0..7 {
        bench.send(&format!("a{number}"), &format!("chat{number}"), "Hello");
    }
    wait_until("five run", || bench.lines("groups/global/counts") == 5);
    for number in 0..7 {
        bench.send(&format!("b{number}"), &format!("chat{number}"), "Hello again");
    }
    wait_until("all are taken", || files(&bench.host("channel/in"), "json").is_empty());
    assert_eq!(bench.lines("groups/global/counts"), 5);
    fs::write(bench.host("groups/global/go"), "").unwrap();
    // The second messages are answered by second runs of the first five, or with the first of the others.
    wait_until("all have run", || {
        (0..7).all(|number| bench.lines(&format!("groups/g{number}/runs")) > 0)
    });
    bench.wait_for_out(12);
    stop(host);
    let counts = fs::read_to_string(bench.host("groups/global/counts")).unwrap();
    let most = counts.lines().map(|line| line.trim().parse::<u32>().unwrap()).max();
    assert_eq!(most, Some(5), "{counts}");
}

#[test]
fn only_addressed_messages_are_answered_and_the_others_are_shown() {
    let bench = Bench::new(r#"printf '%s' "$job" > "$w/group/job"; say fine; over"#);
    bench.add("fam@g.us", "family", &[]);
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "nice weather");
    bench.send("m2", "elsewhere", "@Andy help");
    wait_until("both are taken", || files(&bench.host("channel/in"), "json").is_empty());
    assert!(!bench.host("groups/family/job").exists());
    bench.send("m3", "fam@g.us", "@andy, is it?");
    bench.wait_for_out(1);
    let job: Value =
        serde_json::from_slice(&fs::read(bench.host("groups/family/job")).unwrap()).unwrap();
    let prompt = job["prompt"].as_str().unwrap();
    assert!(prompt.contains(">nice weather<") && prompt.contains(">@andy, is it?<"), "{prompt}");
    let output = stop(host);
    assert!(
        output.stderr().contains("m2.json is ignored: its chat has no group"),
        "{}",
        output.stderr()
    );
    assert_eq!(bench.out().len(), 1);
}

#[test]
fn a_runner_that_gets_no_message_is_closed_after_the_idle_limit() {
    let bench = Bench::with_groups("say hello; over; await_close; touch \"$w/group/closed\"");
    let host = bench.start(&["--idle-limit", "1s"]);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("it is closed", || bench.host("groups/family/closed").exists());
    stop(host);
}

#[test]
fn a_message_that_comes_twice_is_answered_once() {
    let bench = Bench::with_groups("say fine; over");
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("it is taken", || files(&bench.host("channel/in"), "json").is_empty());
    bench.send("m2", "fam@g.us", "Hello");
    bench.wait_for_out(2);
    stop(host);
    assert_eq!(bench.out().len(), 2);
}

#[test]
fn messages_that_are_none_are_moved_aside() {
    let bench = Bench::with_groups("say fine; over");
    let host = bench.start(&[]);
    let long = "x".repeat(600);
    for (name, content) in [
        ("broken", "{".to_owned()),
        ("list", "[]".to_owned()),
        ("none", "{}".to_owned()),
        ("number", json!({"chat": 7, "text": "x"}).to_string()),
        ("empty", json!({"chat": "fam@g.us", "text": " "}).to_string()),
        ("long", json!({"chat": "fam@g.us", "text": "x", "id": long}).to_string()),
        ("unknown", json!({"chat": "fam@g.us", "text": "x", "txet": "y"}).to_string()),
    ] {
        bench.put(name, &content);
    }
    wait_until("all are moved", || files(&bench.host("channel/errors"), "json").len() == 7);
    let output = stop(host);
    let errors = output.stderr();
    for words in [
        "the message broken.json of the file channel is moved to errors: it ends before its JSON is complete",
        "list.json of the file channel is moved to errors: it must be an object, and is a list",
        "unknown.json of the file channel is moved to errors: `txet` is not known here; what can be written is `id`, `chat`",
        "number.json of the file channel is moved to errors: `chat` must be a text, and is a number",
        "none.json of the file channel is moved to errors: `chat` is missing",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    assert_eq!(bench.out().len(), 0);
}

#[test]
fn a_second_host_says_who_is_in_its_way() {
    let bench = Bench::with_groups("say fine; over");
    let host = bench.start(&[]);
    let runner = bench.path("fake-runner");
    let runner = runner.to_str().unwrap();
    let mut second = bench.command(&["host", "--backend", "process", "--runner", runner]);
    let output = RunningChild::run(&mut second);
    output.assert_code(1);
    let directory = bench.path("host");
    let words = format!("a host already runs for {} (process {})", directory.display(), host.id());
    assert!(output.stderr().contains(&words), "{}", output.stderr());
    assert!(output.stderr().contains("stop it first, or choose another --directory"));
    stop(host);
}
