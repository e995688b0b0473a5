//! Scheduled jobs and heartbeats, through the binary.

use std::collections::BTreeMap;
use std::time::Instant;

use myclaw_testkit::ChildOutput;

use super::*;

impl Bench {
    /// `myclaw` with these arguments.
    pub(super) fn myclaw(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(arguments))
    }

    /// `myclaw cron` with these arguments, which succeeds; gives its JSON.
    pub(super) fn cron(&self, arguments: &[&str]) -> Value {
        let mut whole = vec!["cron"];
        whole.extend(arguments);
        whole.push("--json");
        let done = self.myclaw(&whole);
        done.assert_code(0);
        serde_json::from_str(&done.stdout()).unwrap()
    }

    /// The id of a new job.
    pub(super) fn add(&self, arguments: &[&str]) -> String {
        let mut whole = vec!["add"];
        whole.extend(arguments);
        self.cron(&whole)["job"]["id"].as_str().unwrap().to_owned()
    }

    /// The occurrences of a job, the oldest first, as soon as `is_enough` says so.
    pub(super) fn runs(&self, job: &str, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let begun = Instant::now();
        loop {
            let mut runs =
                self.cron(&["runs", job, "-n", "50"])["runs"].as_array().unwrap().clone();
            runs.reverse();
            if is_enough(&runs) {
                return runs;
            }
            assert!(begun.elapsed() < PATIENCE, "the runs of {job} stay at {}", json!(runs));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn with_heartbeat(&self, heartbeat: &Value) {
        self.configure(|config| config["agents"] = json!({"defaults": {"heartbeat": heartbeat}}));
    }
}

fn outcome(run: &Value) -> &str {
    run["state"]["outcome"]["outcome"].as_str().unwrap_or_default()
}

fn ended(runs: &[Value]) -> usize {
    runs.iter().filter(|run| run["state"]["state"] == "ended").count()
}

#[test]
fn a_job_runs_at_its_time_in_a_session_of_its_own() {
    let bench = Bench::new(answering("done"));
    let gateway = bench.start();
    let added = bench.cron(&[
        "add",
        "look <m1>",
        "--every",
        "1s",
        "--isolated",
        "--name",
        "Look",
        // A gateway that is late leaves no due time out.
        "--missed",
        "all",
    ]);
    let id = added["job"]["id"].as_str().unwrap();
    let runs = bench.runs(id, |runs| ended(runs) >= 2);
    let session = format!("agent:main:channel:cron:account:default:peer:direct:{id}");
    for run in &runs[..2] {
        assert_eq!(outcome(run), "answered", "{run}");
        assert_eq!(run["state"]["outcome"]["said"], "done");
        assert_eq!(run["state"]["session"], session.as_str());
    }
    let dues: Vec<u64> = runs.iter().map(|run| run["due"].as_u64().unwrap()).collect();
    assert_eq!(dues[1] - dues[0], 1_000, "the second due time comes from the first");
    assert_eq!(bench.cron(&["pause", "Look"])["job"]["next"], Value::Null);
    let listed = bench.myclaw(&["cron", "list"]);
    assert!(
        listed.stdout().contains("paused") && listed.stdout().contains("every 1s"),
        "{}",
        listed.stdout()
    );
    bench.cron(&["run", "Look"]);
    let by_hand =
        |runs: &[Value]| runs.iter().any(|run| run["manual"] == true && outcome(run) == "answered");
    bench.runs(id, by_hand);
    bench.cron(&["remove", id]);
    assert_eq!(bench.cron(&["list"])["jobs"].as_array().unwrap().len(), 1, "the heartbeat stays");
    let request = bench.model.requests().remove(0);
    assert!(
        request.body_text().contains("[Scheduled message \\\"Look\\\"]"),
        "{}",
        request.body_text()
    );
    gateway.stop();
}

#[test]
fn a_reminder_in_the_main_session_goes_to_where_its_owner_wrote_last_and_is_removed() {
    let bench = Bench::new(answering("call Ann"));
    let gateway = bench.start();
    let first = gateway.client.send("main", "one", "hello").unwrap();
    gateway.client.outcome(&first).unwrap();
    let id = bench.add(&["Remind me", "--at", "1s", "--keep"]);
    let run = bench.runs(&id, |runs| ended(runs) == 1).remove(0);
    assert_eq!(outcome(&run), "answered", "{run}");
    assert_eq!(bench.said("main").len(), 4);
    let listed = bench.myclaw(&["cron", "list"]);
    let shown = listed.stdout();
    let kept = shown.lines().find(|line| line.contains(&id)).unwrap();
    assert!(kept.contains(" over ") && !kept.contains("paused"), "{kept}");
    let removed = bench.add(&["Remind me", "--at", "1s"]);
    until("the removal", || !bench.cron(&["list"]).to_string().contains(&removed));
    gateway.stop();
    let database =
        std::fs::read(bench.home.state_directory().join("gateway/store.sqlite")).unwrap();
    assert!(!database.is_empty());
}

#[test]
fn without_a_gateway_the_commands_use_its_store() {
    let bench = Bench::new(answering("done"));
    let added = bench.myclaw(&["cron", "add", "look", "--every", "1h"]);
    added.assert_code(0);
    assert!(
        added.stderr().contains("no gateway runs, so nothing becomes due"),
        "{}",
        added.stderr()
    );
    let id = bench.cron(&["list"])["jobs"][0]["id"].as_str().unwrap().to_owned();
    bench.cron(&["run", &id]);
    // The next gateway runs it.
    let gateway = bench.start();
    let run = bench.runs(&id, |runs| ended(runs) == 1).remove(0);
    assert_eq!((outcome(&run), run["manual"].as_bool()), ("answered", Some(true)), "{run}");
    gateway.stop();
}

#[test]
fn a_job_is_planned_as_people_say_it_and_the_answer_says_what_was_understood() {
    let bench = Bench::new(answering("done"));
    let said = |arguments: &[&str]| {
        let done = bench.myclaw(&[&["cron"], arguments, &["--tz", "Europe/Berlin"]].concat());
        done.assert_code(0);
        done.stdout()
    };
    let added = said(&["add", "water", "--when", "every weekday at 8"]);
    assert!(added.contains("at the times of `0 8 * * 1-5`, next on "), "{added}");
    assert!(added.contains(" 08:00:00 (Europe/Berlin)"), "{added}");
    let once = said(&["add", "call", "--at", "tomorrow evening"]);
    assert!(once.contains("once, ") && once.contains(" 18:00:00 (Europe/Berlin)"), "{once}");
    let changed = said(&["edit", "water", "--when", "on the first Monday of the month at 10"]);
    assert!(changed.contains("`0 10 * * 1#1`, next on Monday "), "{changed}");
    // The same through a gateway, and by the tool's form.
    let gateway = bench.start();
    let job = json!({"schedule": {"when": "every 2 hours", "tz": "Asia/Tokyo"}, "message": "look"});
    let (status, answer) =
        gateway.client.post("/api/cron", &json!({"action": "add", "job": job})).unwrap();
    assert_eq!(status, 200, "{answer}");
    let understood = answer["understood"].as_str().unwrap();
    assert!(
        understood.starts_with("every 2h, next on ") && understood.ends_with("(Asia/Tokyo)"),
        "{understood}"
    );
    gateway.stop();
}

#[test]
fn what_cannot_be_used_has_one_message_each() {
    let bench = Bench::new(answering("never"));
    bench.configure(|config| config["cron"] = json!({"maxJobs": 2}));
    let refused = |arguments: &[&str], says: &str| {
        let mut whole = vec!["cron"];
        whole.extend(arguments);
        let done = bench.myclaw(&whole);
        done.assert_code(2);
        assert!(done.stderr().contains(says), "{arguments:?}: {}", done.stderr());
        assert_eq!(done.stderr().matches("myclaw:").count(), 1, "{}", done.stderr());
    };
    refused(&["add", "x", "--cron", "61 * * * *"], "numbers from 0 to 59");
    refused(&["add", "x", "--cron", "0 0 31 2 *"], "never matches");
    refused(&["add", "x", "--cron", "0 9 * * *", "--tz", "Mars/Base"], "no time zone `Mars/Base`");
    refused(&["add", "x", "--every", "0m"], "from 1 second");
    refused(&["add", "x", "--every", "often"], "is not a duration");
    refused(&["add", "x", "--at", "2020-01-01T00:00"], "is in the past");
    refused(&["add", "x", "--at", "every day"], "is not a time");
    refused(&["add", "x", "--when", "soon"], "`soon` is no time that is understood");
    refused(&["add", "x", "--when", "today at midnight"], "is in the past");
    refused(&["add", "x", "--cron", "0 9 * * mon#6"], "which one of the month");
    refused(&["add", "x"], "a new job needs a schedule: give --when, --at, --every or --cron");
    refused(&["add", " ", "--every", "1h"], "give the message in quotes");
    refused(&["add", "x", "--every", "1h", "--agent", "nobody"], "nobody");
    for command in ["run", "runs", "pause", "resume", "remove"] {
        refused(&[command, "nothing"], "there is no job nothing");
    }
    refused(&["wake", "hello"], "no gateway runs");
    bench.add(&["x", "--every", "1h", "--name", "same"]);
    bench.add(&["x", "--every", "1h", "--name", "same"]);
    refused(&["add", "x", "--every", "1h"], "cron.maxJobs");
    refused(&["run", "same"], "2 jobs have the name same");
    // The same through a gateway.
    let gateway = bench.start();
    refused(&["add", "x", "--every", "1h"], "cron.maxJobs");
    refused(&["pause", "heartbeat:main"], "set in the config file");
    let (status, answer) = gateway.client.post("/api/cron", &json!({"action": "fly"})).unwrap();
    assert_eq!((status, answer["error"]["class"].as_str()), (400, Some("usage")), "{answer}");
    gateway.stop();
    bench.with_heartbeat(&json!({"every": "often"}));
    let done = bench.myclaw(&["config", "check"]);
    done.assert_code(3);
    assert!(done.stdout().contains("heartbeat") || done.stderr().contains("heartbeat"));
}

#[test]
fn the_main_session_plans_by_itself_and_others_have_no_tool_for_it() {
    let bench = Bench::new(shared(|request, _| {
        let has_result = request.body_text().contains("tool_result");
        let job = json!({"schedule": {"every": "1h"}, "message": "look", "name": "Mine"});
        match request.body_text().contains("\"name\":\"cron\"") && !has_result {
            true => Reply::anthropic()
                .tool_call("call", "cron", json!({"action": "add", "job": job}))
                .step(),
            false => Reply::anthropic().text("fine").step(),
        }
    }));
    let gateway = bench.start();
    for session in ["work", "main"] {
        let id = gateway.client.send(session, session, "plan it").unwrap();
        assert_eq!(gateway.client.outcome(&id).unwrap()["reply"], "fine");
        let jobs = bench.cron(&["list"])["jobs"].to_string();
        assert_eq!(jobs.contains("\"name\":\"Mine\""), session == "main", "{session}: {jobs}");
    }
    gateway.stop();
}

#[test]
fn the_demo_planner_reports_nothing_in_a_heartbeat() {
    let bench = Bench::new(answering("never"));
    bench.configure(|config| {
        let heartbeat = json!({"every": "1s"});
        let agents = json!({"defaults": {"model": "builtin/demo", "heartbeat": heartbeat}});
        *config = json!({"gateway": config["gateway"], "agents": agents});
    });
    bench.home.write_in_workspace("HEARTBEAT.md", "- look\n");
    let gateway = bench.start();
    let run = bench.runs("heartbeat:main", |runs| ended(runs) >= 1).remove(0);
    assert_eq!(outcome(&run), "quiet", "{run}");
    gateway.stop();
}

#[test]
fn a_heartbeat_with_nothing_to_report_is_never_delivered() {
    let bench = Bench::new(
        Script::new()
            .then(Reply::anthropic().text("hello"))
            .then(Reply::anthropic().text("HEARTBEAT_OK"))
            .then_repeat(Reply::anthropic().text("The disk is full.")),
    );
    bench
        .with_heartbeat(&json!({"every": "1s", "activeHours": {"start": "00:00", "end": "24:00"}}));
    bench.home.write_in_workspace("HEARTBEAT.md", "# Tasks\n\n");
    let file = bench.home.workspace().join("HEARTBEAT.md");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let gateway = bench.start();
    // Without the file, then with one that names nothing.
    let skipped = bench.runs("heartbeat:main", |runs| ended(runs) >= 1);
    assert!(json!(skipped).to_string().contains("no HEARTBEAT.md"), "{skipped:?}");
    std::fs::write(&file, text).unwrap();
    let skipped = bench.runs("heartbeat:main", |runs| ended(runs) >= 3);
    assert!(
        skipped.iter().all(|run| outcome(run) == "skipped" || outcome(run).is_empty()),
        "{skipped:?}"
    );
    assert_eq!(bench.model.requests().len(), 0, "a heartbeat without a task asked the model");
    let first = gateway.client.send("main", "one", "hi").unwrap();
    gateway.client.outcome(&first).unwrap();
    let updated = || bench.myclaw(&["sessions", "list", "--json"]).stdout();
    let field = |text: &str| {
        let line = text.lines().find(|line| line.contains("peer:direct:main")).unwrap();
        let line: Value = serde_json::from_str(line).unwrap();
        line["updatedAt"].as_u64().expect("a time")
    };
    let before = field(&updated());
    bench.home.write_in_workspace("HEARTBEAT.md", "- look at the disk\n");
    let all =
        bench.runs("heartbeat:main", |runs| runs.iter().any(|run| outcome(run) == "answered"));
    assert!(all.iter().any(|run| outcome(run) == "quiet"), "{all:?}");
    assert_eq!(field(&updated()), before, "a heartbeat counts as activity");
    let shown = bench.myclaw(&["doctor"]).stdout();
    assert!(shown.contains("up to 86400 turns a day in a session of its own"), "{shown}");
    gateway.stop();
    let parts = parts(&bench);
    assert!(parts.contains("The disk is full."), "{parts}");
    assert!(!parts.contains("HEARTBEAT_OK"), "{parts}");
    let request = &bench.model.requests()[1];
    // A session of its own, with few tools, which does not see what was said elsewhere, nor earlier heartbeats.
    let later = bench.model.requests()[2].body_text();
    assert!(!later.contains("hello") && later.matches("Read HEARTBEAT.md").count() == 1, "{later}");
    let tools = request.json()["tools"].as_array().unwrap().len();
    let of_main = bench.model.requests()[0].json()["tools"].as_array().unwrap().len();
    assert!(tools < of_main, "{tools} tools, {of_main} in the main session");
    assert!(request.body_text().contains("Read HEARTBEAT.md if it exists (workspace context)."));
}

/// All that is in the log of the store about parts that go out.
fn parts(bench: &Bench) -> String {
    let directory = bench.home.state_directory().join("gateway");
    let mut text = String::new();
    for file in ["store.sqlite", "store.sqlite-wal"] {
        let bytes = std::fs::read(directory.join(file)).unwrap_or_default();
        for line in String::from_utf8_lossy(&bytes).split("{\"route\"") {
            // Parts have a kind of author; messages have the text of their sender.
            if line.contains("\"answers\"") {
                text.push_str(line.split("\"state\"").next().unwrap_or_default());
            }
        }
    }
    text
}

/// The outcomes of the occurrences that have ended, by job and due time.
type Outcomes = BTreeMap<(String, u64), String>;

/// Adds the outcomes of these jobs. A job keeps its newest 50 occurrences, so they are read now and then.
fn note(bench: &Bench, jobs: &[String], seen: &mut Outcomes) {
    for job in jobs {
        for run in bench.cron(&["runs", job, "-n", "50"])["runs"].as_array().unwrap() {
            if run["state"]["state"] == "ended" {
                let key = (job.clone(), run["due"].as_u64().unwrap());
                let now = run["state"]["outcome"].to_string();
                let before = seen.insert(key.clone(), now.clone());
                assert!(before.is_none_or(|before| before == now), "an outcome of {key:?} changed");
            }
        }
    }
}

/// That the session of a job has a message of the user with `mark` for each due time that was not left out, and not two.
/// Gives the due times.
fn asked_once_each(bench: &Bench, (job, mark): (&str, &str), seen: &Outcomes) -> Vec<u64> {
    let runs: Vec<(u64, &String)> = seen
        .iter()
        .filter(|((id, _), _)| id == job)
        .map(|((_, due), outcome)| (*due, outcome))
        .collect();
    let answered = runs.iter().filter(|(_, outcome)| outcome.contains("answered")).count();
    let failed: Vec<_> = runs.iter().filter(|(_, outcome)| outcome.contains("failed")).collect();
    let rows =
        rows_of(bench, &format!("agent:main:channel:cron:account:default:peer:direct:{job}"));
    let asked = rows.iter().filter(|row| {
        row["role"] == "user" && row["content"].as_str().unwrap_or_default().contains(mark)
    });
    assert_eq!(asked.count(), answered + failed.len(), "messages of {mark}; {failed:?}");
    assert!(answered > 0, "{mark} was never answered");
    eprintln!("{mark}: {} due times, {answered} answered, {} failed", runs.len(), failed.len());
    runs.into_iter().map(|(due, _)| due).collect()
}

#[test]
fn each_due_time_runs_exactly_once_however_often_the_gateway_is_killed() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(40).min(400);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let bench = Bench::new(shared(|_, number| {
        let pause = Duration::from_millis((number as u64 * 7) % 40);
        Reply::anthropic().text("HEARTBEAT_OK").step().delay(pause)
    }));
    bench.with_heartbeat(&json!({"every": "2s"}));
    bench.home.write_in_workspace("HEARTBEAT.md", "- look\n");
    let kinds = [("<m1>", "all"), ("<m2>", "skip"), ("<m3>", "once")];
    let jobs = kinds.map(|(mark, missed)| {
        bench.add(&[mark, "--every", "1s", "--isolated", "--missed", missed])
    });
    let mut gateway = bench.start();
    let mut seen = Outcomes::new();
    for kill in 0..kills {
        std::thread::sleep(Duration::from_micros(random.below(600_000)));
        gateway.kill();
        gateway = bench.start();
        if kill % 10 == 9 {
            note(&bench, &jobs, &mut seen);
        }
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    for job in &jobs {
        bench.cron(&["pause", job]);
    }
    // A claim of a killed process ends after some seconds.
    until("the end of all runs", || bench.cron(&["status"])["running"] == 0);
    note(&bench, &jobs, &mut seen);
    gateway.stop();
    for (job, (mark, missed)) in jobs.iter().zip(kinds) {
        let dues = asked_once_each(&bench, (job, mark), &seen);
        if missed == "all" {
            for pair in dues.windows(2) {
                assert_eq!(pair[1] - pair[0], 1_000, "seed {seed}: a due time is missing");
            }
        }
    }
    assert!(!parts(&bench).contains("Message(\"HEARTBEAT_OK"), "a heartbeat was delivered");
}

/// The rows of the session with this key.
fn rows_of(bench: &Bench, key: &str) -> Vec<Value> {
    let files = bench.home.transcripts();
    let mut rows = Vec::new();
    for file in files {
        let lines = TempHome::read_lines(&file);
        if lines.iter().any(|line| line.to_string().contains(&format!("\"{key}\""))) {
            rows.extend(lines);
        }
    }
    rows
}

/// What a gateway says while it starts.
fn said_at_start(bench: &Bench) -> String {
    let gateway = bench.start();
    let child = &gateway.child;
    child.wait_for_stderr("HEARTBEAT.md");
    child.signal(Signal::Terminate);
    let done = gateway.child.wait(PATIENCE);
    done.assert_code(0);
    done.stderr()
}

#[test]
fn the_start_says_what_is_planned_and_what_it_may_cost() {
    let bench = Bench::new(answering("done"));
    let said = said_at_start(&bench);
    assert!(
        said.contains("the heartbeat costs nothing until HEARTBEAT.md in the workspace says"),
        "{said}"
    );
    assert!(!said.contains("planned"), "{said}");
    let once =
        bench.add(&["look <m1>", "--name", "Look", "--at", "2099-01-02T03:04", "--tz", "UTC"]);
    let said = said_at_start(&bench);
    assert!(said.contains("planned: \"Look\", once, Friday 2099-01-02 03:04:00 ("), "{said}");
    let unknown =
        "what planned work costs a day is not known: none has called a model in the last week";
    assert!(said.contains(unknown), "{said}");
    assert!(said.contains("in the next day no planned work begins"), "{said}");
    bench.add(&["look <m2>", "--name", "Sooner", "--at", "2098-01-02T03:04", "--tz", "UTC"]);
    bench.home.write_in_workspace("HEARTBEAT.md", "- look\n");
    let gateway = bench.start();
    bench.cron(&["run", &once]);
    bench.runs(&once, |runs| ended(runs) == 1);
    gateway.stop();
    let said = said_at_start(&bench);
    assert!(
        said.contains("planned: 2 jobs, the next is \"Sooner\", once, Thursday 2098-01-02"),
        "{said}"
    );
    assert!(said.contains("the agent main has a HEARTBEAT.md: up to 48 turns a day"), "{said}");
    // 48 turns of $5 are more than a day may cost; the jobs are not due in it.
    let most =
        "in the next day planned work begins 48 turns, for about $25.00 at most (limits.dayCost)";
    assert!(said.contains(most), "{said}");
    assert!(said.contains("planned work cost $"), "{said}");
    assert!(said.contains(" a day last week"), "{said}");
    bench.configure(|config| config["cron"] = json!({"enabled": false}));
    let gateway = bench.start();
    gateway.child.wait_for_stderr("nothing is planned: cron.enabled is false");
    gateway.stop();
}
