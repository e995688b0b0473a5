//! Runners that misbehave.

use myclaw_testkit::{ModelServer, Reply, Script, wait_until_gone};

use super::*;

/// The notice after a message to a runner that never answers, with the number of its runs.
fn given_up(runner: &str, options: &[&str]) -> (String, usize) {
    let bench = Bench::with_groups(&format!("echo run >> \"$w/group/runs\"\n{runner}"));
    let host = bench.start(options);
    bench.send("m1", "fam@g.us", "Hello");
    let out = bench.wait_for_out(1);
    stop(host);
    assert_eq!(bench.out().len(), 1, "{:?}", bench.out());
    assert_eq!((&out[0]["kind"], &out[0]["about"]), (&json!("notice"), &json!(["m1"])), "{out:?}");
    (out[0]["text"].as_str().unwrap().to_owned(), bench.lines("groups/family/runs"))
}

#[test]
fn a_runner_that_fails_is_started_six_times_and_reported_once() {
    let failing = [
        ("echo broken >&2; exit 3", "exit code 3: broken"),
        (
            "block '{\"status\":\"error\",\"result\":null,\"error\":\"401 no key\"}'; exit 1",
            "exit code 1: 401 no key",
        ),
        ("exit 0", "ended without an answer"),
        (
            "printf -- '---NANOCLAW_OUTPUT_START---\n{\"result\":\"lost\"}'",
            "ended without an answer",
        ),
        ("head -c 100000 /dev/urandom; exit 0", "ended without an answer"),
        ("kill -9 $$", "ended by signal 9"),
    ];
    for (runner, reason) in failing {
        let (notice, runs) = given_up(runner, &[]);
        assert!(
            notice.contains(reason) && notice.contains("after 6 attempts"),
            "{runner}: {notice}"
        );
        assert_eq!(runs, 6, "{runner}");
    }
}

#[test]
fn each_retry_waits_twice_as_long_as_the_one_before() {
    let bench = Bench::with_groups("date +%s%3N >> \"$w/group/runs\"; exit 3");
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    stop(host);
    let runs = fs::read_to_string(bench.host("groups/family/runs")).unwrap();
    let begun: Vec<u64> = runs.lines().map(|line| line.parse().unwrap()).collect();
    let pauses: Vec<u64> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let least = [10, 20, 40, 80, 160];
    assert_eq!(pauses.len(), least.len());
    assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");
}

#[test]
fn a_runner_that_hangs_is_stopped() {
    let (notice, runs) = given_up("sleep 1000", &["--idle-limit", "1s", "--hard-limit", "1s"]);
    assert!(notice.contains("said nothing for 3000 ms"), "{notice}");
    assert_eq!(runs, 6);
}

#[test]
fn after_the_notice_the_next_message_begins_anew() {
    let bench = Bench::with_groups(r#"[ -e "$w/group/repaired" ] || exit 1; say fine; over"#);
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.wait_for_out(1);
    fs::write(bench.host("groups/family/repaired"), "").unwrap();
    bench.send("m2", "fam@g.us", "Hello again");
    assert_eq!(bench.texts(2)[1], "fine");
    stop(host);
}

#[test]
fn a_failure_after_a_part_of_the_answer_is_reported_and_not_repeated() {
    let bench = Bench::with_groups(r#"echo run >> "$w/group/runs"; say 'I begin'; exit 1"#);
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    let out = bench.wait_for_out(2);
    stop(host);
    assert_eq!(out[0]["text"], "I begin");
    assert!(out[1]["text"].as_str().unwrap().contains("may be incomplete"), "{out:?}");
    assert_eq!(bench.lines("groups/family/runs"), 1);
}

#[test]
fn markers_may_arrive_byte_by_byte_among_garbage() {
    let bench = Bench::with_groups(
        r#"text=$(say 'split up'; over)
printf 'garbage ---NANOCLAW_OUT\xff\xfe\n'
for ((i = 0; i < ${#text}; i++)); do printf '%s' "${text:i:1}"; [ $((i % 40)) = 0 ] && sleep 0.001; done
printf -- '---NANOCLAW_OUTPUT_START---\nnot JSON\n---NANOCLAW_OUTPUT_END---\n'"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    assert_eq!(bench.texts(1), ["split up"]);
    stop(host);
}

#[test]
fn a_huge_block_is_left_out() {
    let bench = Bench::with_groups(
        r#"printf -- '---NANOCLAW_OUTPUT_START---\n{"result":"'; head -c 11000000 /dev/zero | tr '\0' x
printf '"}\n---NANOCLAW_OUTPUT_END---\n'; head -c 30000000 /dev/zero; say small; over"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    assert_eq!(bench.texts(1), ["small"]);
    stop(host);
}

#[test]
fn a_runner_that_does_not_end_when_it_is_told_to_is_ended() {
    let bench = Bench::with_groups(r#"echo $$ > "$w/group/pid"; say fine; over; exec sleep 1000"#);
    let host = bench.start(&["--idle-limit", "1s"]);
    bench.send("m1", "fam@g.us", "Hello");
    assert_eq!(bench.texts(1), ["fine"]);
    wait_until_gone(pid(&bench));
    stop(host);
    assert_eq!(bench.out().len(), 1);
}

#[test]
fn what_a_runner_leaves_behind_is_ended() {
    let bench = Bench::with_groups(
        r#"setsid sleep 1000 > /dev/null 2>&1 & echo $! > "$w/group/pid"; say fine; over"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    assert_eq!(bench.texts(1), ["fine"]);
    wait_until_gone(pid(&bench));
    stop(host);
}

#[test]
fn a_killed_host_leaves_a_runner_that_the_next_one_ends() {
    let bench = Bench::with_groups(
        r#"[ -e "$w/group/pid" ] && { say fine; over; exit; }
echo $$ > "$w/group/pid.tmp"; mv "$w/group/pid.tmp" "$w/group/pid"; exec sleep 1000"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    wait_until("the runner runs", || bench.host("groups/family/pid").exists());
    host.signal(Signal::Kill);
    drop(host.wait(PATIENCE));
    let host = bench.start(&[]);
    wait_until_gone(pid(&bench));
    assert_eq!(bench.texts(1), ["fine"]);
    stop(host);
}

#[test]
fn no_runner_of_this_program_and_no_command_of_it_outlives_a_killed_host() {
    for backend in ["process", "sandbox"] {
        let bench = Bench::with_groups("");
        // No other process has this among its arguments.
        let mark = format!("1000.{}", std::process::id());
        let command = format!("setsid sleep {mark} & sleep {mark}");
        let call = Reply::openai().tool_call("1", "Bash", json!({"command": command}));
        let server = ModelServer::spawn_blocking_thread(Script::repeat(call));
        let mut host = bench.command(&["host", "--backend", backend]);
        host.env("OPENROUTER_API_KEY", "k")
            .env("OPENROUTER_BASE_URL", format!("{}/v1", server.url()));
        let host = RunningChild::spawn(&mut host);
        bench.send("m1", "fam@g.us", "Hello");
        wait_until("the commands run", || with_argument(&mark) >= 2);
        let home = bench.path("host");
        let home = home.to_str().unwrap();
        assert!(with_argument(home) >= 2, "{backend}: the host and a runner");
        host.signal(Signal::Kill);
        drop(host.wait(PATIENCE));
        wait_until("nothing is left", || with_argument(&mark) + with_argument(home) == 0);
    }
}

/// How many processes have this in their arguments.
fn with_argument(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let arguments = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    arguments.filter(|bytes| String::from_utf8_lossy(bytes).contains(text)).count()
}

fn pid(bench: &Bench) -> u32 {
    fs::read_to_string(bench.host("groups/family/pid")).unwrap().trim().parse().unwrap()
}

#[test]
fn a_run_that_fails_after_a_message_by_file_is_reported_and_not_repeated() {
    let bench = Bench::with_groups(
        r#"echo run >> "$w/group/runs"
send messages 1-a '{"type":"message","chatJid":"fam@g.us","text":"Working on it"}'; exit 1"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    let texts = bench.texts(2);
    stop(host);
    assert_eq!(texts[0], "Working on it");
    assert!(texts[1].contains("may be incomplete"), "{texts:?}");
    assert_eq!((bench.out().len(), bench.lines("groups/family/runs")), (2, 1));
}

#[test]
fn a_runner_that_names_no_files_is_not_asked_twice() {
    let bench = Bench::with_groups(
        r#"if [[ $job == *One* ]]; then
  say first; over; while :; do f=$(ls "$w/ipc/input"/*.json 2>/dev/null) && break; sleep 0.01; done
  rm "$f"; say second; over; touch "$w/group/done"; sleep 1000
else say "m2 again: $(grep -c '>Two<' <<< "$job")"; over; fi"#,
    );
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "One");
    bench.texts(1);
    bench.send("m2", "fam@g.us", "Two");
    bench.texts(2);
    wait_until("the second query is over", || bench.host("groups/family/done").exists());
    stop(host);
    let host = bench.start(&[]);
    bench.send("m3", "fam@g.us", "Three");
    let texts = bench.texts(3);
    stop(host);
    assert_eq!(texts, ["first", "second", "m2 again: 0"]);
}

#[test]
fn the_runner_of_a_group_that_was_removed_meanwhile_is_ended() {
    let bench = Bench::with_groups(r#"echo $$ > "$w/group/pid"; sleep 1000"#);
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    let pid = || fs::read_to_string(bench.host("groups/family/pid")).unwrap_or_default();
    wait_until("the runner has begun", || pid().trim().parse::<u32>().is_ok());
    host.signal(Signal::Kill);
    drop(host.wait(PATIENCE));
    let mut remove = bench.command(&["groups", "remove", "family"]);
    RunningChild::run(&mut remove).assert_code(0);
    let host = bench.start(&[]);
    wait_until_gone(pid().trim().parse().unwrap());
    stop(host);
}

#[test]
fn an_idle_runner_ends_when_its_group_is_removed() {
    let bench = Bench::with_groups("say fine; over; await_close");
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Hello");
    bench.texts(1);
    let mut remove = bench.command(&["groups", "remove", "family"]);
    RunningChild::run(&mut remove).assert_code(0);
    wait_until("the runner is told to end", || {
        let logs = files(&bench.host("logs/family"), "log");
        logs.last().is_some_and(|log| fs::read_to_string(log).unwrap().contains("ended: Done"))
    });
    stop(host);
}
