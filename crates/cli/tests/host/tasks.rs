//! Work by the clock.

use super::*;

/// A runner that plans a task when a person writes, and shows what it is given when the schedule does.
fn planning(request: &str) -> String {
    format!(
        r#"if [[ $job == *isScheduledTask* ]]; then
  echo "$job" >> "$w/group/tasks"; say 'task done'; over
else
  {request}
  say planned; over
fi"#
    )
}

fn task(kind: &str, value: &str, context: &str) -> String {
    format!(
        "send tasks 1-a '{{\"type\":\"schedule_task\",\"prompt\":\"Water the plants\",\"schedule_type\":\"{kind}\",\
         \"schedule_value\":\"{value}\",\"context_mode\":\"{context}\",\"targetJid\":\"fam@g.us\"}}'"
    )
}

fn snapshot(bench: &Bench, folder: &str) -> Value {
    let path = bench.host(&format!("data/ipc/{folder}/current_tasks.json"));
    fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

#[test]
fn a_task_that_is_due_runs_once_and_is_over() {
    let plan = task("once", "2020-01-01T00:00:00", "group");
    let bench = Bench::with_groups(&planning(&format!("[[ $job == *Plan* ]] && {plan}")));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Plan it");
    let mut texts = bench.texts(2);
    texts.sort();
    assert_eq!(texts, ["planned", "task done"]);
    wait_until("it is over", || snapshot(&bench, "family") == json!([]));
    let job = fs::read_to_string(bench.host("groups/family/tasks")).unwrap();
    let job: Value = serde_json::from_str(&job).unwrap();
    assert_eq!(
        (&job["prompt"], &job["isScheduledTask"], &job["sessionId"]),
        (&json!("Water the plants"), &json!(true), &json!("s1"))
    );
    stop(host);
    let host = bench.start(&[]);
    bench.send("m2", "owner", "Hello");
    bench.wait_for_out(3);
    stop(host);
    assert_eq!(bench.lines("groups/family/tasks"), 1);
}

#[test]
fn an_interval_goes_on_until_the_task_is_cancelled_and_keeps_no_session() {
    let bench = Bench::with_groups(&planning(&format!(
        r#"if [[ $job == *Stop* ]]; then
  send tasks 2-b '{{"type":"cancel_task","taskId":"family.1-a"}}'
else
  {}
fi"#,
        task("interval", "1000", "isolated")
    )));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Plan it");
    wait_until("it has run twice", || bench.lines("groups/family/tasks") >= 2);
    let shown = snapshot(&bench, "main");
    assert_eq!(shown[0]["id"], "family.1-a", "the main group sees all tasks: {shown}");
    assert_eq!(shown[0]["last_result"], "task done");
    let jobs = fs::read_to_string(bench.host("groups/family/tasks")).unwrap();
    assert!(!jobs.contains("sessionId"), "{jobs}");
    bench.send("m2", "fam@g.us", "Stop");
    wait_until("it is cancelled", || snapshot(&bench, "family") == json!([]));
    stop(host);
}

#[test]
fn a_task_that_becomes_due_ends_an_idle_runner() {
    let bench = Bench::with_groups(&format!(
        "{}\n[[ $job == *isScheduledTask* ]] || await_close",
        planning(&task("interval", "2000", "isolated"))
    ));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Plan it");
    // Without that it would run half an hour later.
    wait_until("it has run", || bench.lines("groups/family/tasks") >= 1);
    stop(host);
}

#[test]
fn a_task_that_is_due_goes_before_messages() {
    let bench = Bench::with_groups(&format!(
        r#"if [[ $job == *'"groupFolder":"main"'* ]]; then
  {}
  await "$w/group/go"; say planned; over
elif [[ $job == *isScheduledTask* ]]; then
  echo task >> "$w/group/order"; say watered; over
else
  echo message >> "$w/group/order"; say hello; over
fi"#,
        task("once", "2020-01-01T00:00:00", "group")
    ));
    let host = bench.start(&["--containers", "1"]);
    bench.send("m1", "owner", "Plan it for the family");
    wait_until("it is planned", || snapshot(&bench, "main")[0]["status"] == "active");
    bench.send("m2", "fam@g.us", "Hello");
    wait_until("it is stored", || files(&bench.host("channel/in"), "json").is_empty());
    // Until now the only container was another group's.
    fs::write(bench.host("groups/main/go"), "").unwrap();
    bench.wait_for_out(3);
    stop(host);
    let order = fs::read_to_string(bench.host("groups/family/order")).unwrap();
    assert_eq!(order, "task\nmessage\n");
}

#[test]
fn a_group_cannot_change_the_tasks_of_another_one() {
    let bench = Bench::with_groups(&planning(
        r#"if [[ $job == *'"groupFolder":"main"'* ]]; then
  send tasks 1-a '{"type":"schedule_task","prompt":"x","schedule_type":"cron","schedule_value":"0 9 * * *"}'
elif [[ $job == *Resume* ]]; then
  send tasks 3-c '{"type":"resume_task","taskId":"main.1-a"}'
else
  send tasks 2-b '{"type":"pause_task","taskId":"main.1-a"}'
fi"#,
    ));
    let host = bench.start(&[]);
    bench.send("m1", "owner", "Plan it");
    wait_until("it is planned", || snapshot(&bench, "main")[0]["status"] == "active");
    bench.send("m2", "fam@g.us", "Pause it");
    host.wait_for_stderr("has no task \"main.1-a\"");
    assert_eq!(snapshot(&bench, "main")[0]["status"], "active");
    assert_eq!(snapshot(&bench, "family"), json!([]));
    bench.put_request("main", "9-z", r#"{"type":"pause_task","taskId":"main.1-a"}"#);
    wait_until("it is paused", || snapshot(&bench, "main")[0]["status"] == "paused");
    stop(host);
}

#[test]
fn a_task_that_fails_is_reported() {
    let bench = Bench::with_groups(&format!(
        "if [[ $job == *isScheduledTask* ]]; then echo broken >&2; exit 1; fi\n{}\nsay planned; over",
        task("once", "2020-01-01T00:00:00", "group")
    ));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Plan it");
    let out = bench.wait_for_out(2);
    let notice = out.iter().find(|part| part["kind"] == "notice").unwrap();
    assert_eq!(notice["text"], "A scheduled task failed: exit code 1: broken");
    stop(host);
    assert_eq!(bench.out().len(), 2);
}

impl Bench {
    /// Puts a request as the runner of a group does.
    fn put_request(&self, folder: &str, name: &str, request: &str) {
        let directory = self.host(&format!("data/ipc/{folder}/tasks"));
        let temporary = directory.join(format!("{name}.tmp"));
        fs::write(&temporary, request).unwrap();
        fs::rename(&temporary, directory.join(format!("{name}.json"))).unwrap();
    }
}

#[test]
fn a_task_gets_the_reply_to_its_question_and_nothing_else() {
    let question =
        r#"{"type":"message","chatJid":"fam@g.us","text":"Which plants?","isQuestion":true}"#;
    let plan = task("once", "2020-01-01T00:00:00", "group");
    let bench = Bench::with_groups(&format!(
        r#"if [[ $job == *isScheduledTask* ]]; then
  await "$w/group/go"; send messages 2-q '{question}'
  while :; do f=$(ls "$w/ipc/input"/*.json 2>/dev/null) && break; sleep 0.01; done
  reply=$(grep -o 'The [a-z]* plants' "$f"); rm "$f"; say "watered: $reply"
  block "{{\"status\":\"success\",\"result\":null,\"newSessionId\":\"s1\",\"inputs\":[\"$(basename "$f")\"]}}"; await_close
else
  {plan}
  say "$(grep -o 'Plan it\|Before' <<< "$job")"; over
fi"#
    ));
    let host = bench.start(&[]);
    bench.send("m1", "fam@g.us", "Plan it");
    assert_eq!(bench.texts(1), ["Plan it"]);
    wait_until("the task runs", || files(&bench.host("logs/family"), "log").len() == 2);
    bench.send("m2", "fam@g.us", "Before the question");
    wait_until("the message is in the store", || {
        files(&bench.host("channel/in"), "json").is_empty()
    });
    fs::write(bench.host("groups/family/go"), "").unwrap();
    assert_eq!(bench.texts(2)[1], "Which plants?");
    bench.send("m3", "fam@g.us", "The green plants");
    assert_eq!(bench.texts(3)[2], "watered: The green plants");
    assert_eq!(bench.texts(4)[3], "Before");
    stop(host);
    assert_eq!(bench.out().len(), 4);
}
