//! Half a day of work in one chat, without a break: a bug, a feature that is planned and made by two sub-agents in worktrees, a
//! reminder, and a fact that is remembered, corrected and forgotten.

use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::{Terminal, skip_without};

use super::*;

/// What the owner says of the fact that is forgotten.
const SECRET_PLACE: &str = "the spare key is under the blue pot";

fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity =
        ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
    let mut command = Command::new("git");
    command.args(identity).args(arguments).current_dir(directory);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A project with a bug that its check finds.
fn project(home: &TempHome) -> PathBuf {
    let project = home.path().join("sums");
    std::fs::create_dir_all(&project).unwrap();
    git(&project, &["init", "--quiet"]);
    std::fs::write(project.join("add.sh"), "echo $(($1 - $2))\n").unwrap();
    std::fs::write(project.join("check.sh"), "test \"$(sh add.sh 2 3)\" = 5 && echo passed\n")
        .unwrap();
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    project
}

fn steps(first: &str) -> Value {
    json!({"steps": [
        {"text": "Write the parts side by side", "status": first}, {"text": "Merge them", "status": "pending"},
    ]})
}

/// The id of the newest fact that the model has read of.
fn newest_fact(all: &str) -> String {
    let (_, rest) = all.rsplit_once("remembered (").expect("a fact");
    rest.split_once(')').expect("an id").0.to_owned()
}

/// A model that works as it is told.
fn worker(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    let all = json!(request.messages()).to_string();
    let id = format!("call_{number}");
    let call =
        |tool: &str, arguments: Value| Reply::anthropic().tool_call(&id, tool, arguments).step();
    // In one delta: several may be drawn in parts, between which the status line moves.
    let say = |text: &str| Reply::anthropic().repeated_text(text, 1).step();
    let is_result = last.contains("tool_result");
    if all.contains("[Task ") && !all.contains("fix the bug") {
        let name = if all.contains("the left part") { "left.sh" } else { "right.sh" };
        return match is_result {
            true => say("The part is written."),
            false => call("write", json!({"path": name, "content": format!("echo {name}\n")})),
        };
    }
    match () {
        () if last.contains("fix the bug") => call("read", json!({"path": "add.sh"})),
        () if is_result && last.contains("$1 - $2") => {
            call("edit", json!({"path": "add.sh", "oldText": "$1 - $2", "newText": "$1 + $2"}))
        }
        () if is_result && last.contains("passed") => say("The check passes."),
        () if is_result && all.matches("passed").count() == 0 => {
            call("bash", json!({"command": "sh check.sh"}))
        }
        () if last.contains("plan two parts") => call("update_plan", steps("pending")),
        () if last.contains("has approved the plan") => {
            let task = |part: &str| json!({"task": format!("write {part}"), "worktree": true});
            let reply = Reply::anthropic().tool_call(&id, "sessions_spawn", task("the left part"));
            reply.tool_call(format!("{id}_2"), "sessions_spawn", task("the right part")).step()
        }
        () if is_result && last.contains("The part is written.") => {
            call("update_plan", steps("completed"))
        }
        () if last.contains("remind me") => {
            let job = json!({"schedule": {"at": "1s"}, "message": "stretch"});
            call("cron", json!({"action": "add", "job": job}))
        }
        () if last.contains("[Scheduled message") => say("Time to stretch."),
        () if last.contains("remember that") && !is_result => {
            call("memory_write", json!({"fact": "The meeting is on Monday."}))
        }
        () if last.contains("it is on Tuesday") => call(
            "memory_write",
            json!({"fact": "The meeting is on Tuesday.", "replaces": newest_fact(&all)}),
        ),
        () if last.contains("note that") && !is_result => {
            call("memory_write", json!({"fact": format!("Ann says that {SECRET_PLACE}.")}))
        }
        () => say(if is_result { "Noted and done." } else { "Good." }),
    }
}

/// Says something, and waits for the end of the turn.
fn ask(chat: &mut Terminal, text: &str, answer: &str) {
    chat.send_line(text);
    chat.expect(answer);
    chat.expect_screen(|screen| screen.trim_end().ends_with("You:"));
}

#[test]
fn half_a_day_of_work_in_one_chat() {
    if Command::new("git").arg("--version").output().is_err() {
        skip_without("git is not installed");
        return;
    }
    let bench = Bench::new(shared(worker));
    bench.unconfined(|_| {});
    let gateway = bench.start();
    let project = project(&bench.home);
    let mut command = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(["chat", "--session", "day"]).current_dir(&project);
    let mut chat = Terminal::spawn_sized(&command, 120, 50);
    chat.expect("You: ");
    // A bug.
    ask(&mut chat, "fix the bug", "The check passes.");
    assert!(std::fs::read_to_string(project.join("add.sh")).unwrap().contains("$1 + $2"));
    ask(&mut chat, "/diff", "add.sh");
    git(&project, &["commit", "--quiet", "-am", "second"]);
    // A feature in plan mode, made by two sub-agents in worktrees.
    ask(&mut chat, "/plan", "mode plan: ");
    chat.send_line("plan two parts");
    chat.expect("your answer, and Enter");
    chat.send_line("o");
    chat.expect("mode auto: ");
    chat.expect("Noted and done.");
    chat.expect_screen(|screen| screen.trim_end().ends_with("You:"));
    let mut listing = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
    listing.args(["worktrees", "list", "--json"]).current_dir(&project);
    let listed = RunningChild::run(&mut listing);
    let listed = listed.stdout();
    let rows = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names: Vec<String> =
        rows.filter_map(|row| row["name"].as_str().map(str::to_owned)).collect();
    assert_eq!(names.len(), 2, "{listed}");
    for name in names {
        let mut merging = bench.home.command(env!("CARGO_BIN_EXE_myclaw"));
        merging.args(["worktrees", "merge", &name]).current_dir(&project);
        RunningChild::run(&mut merging).assert_code(0);
    }
    assert!(project.join("left.sh").exists() && project.join("right.sh").exists());
    ask(&mut chat, "/todos", "[x] Write the parts side by side");
    // A reminder, which appears while nothing is said.
    chat.send_line("remind me to stretch");
    chat.expect("Time to stretch.");
    chat.expect_screen(|screen| screen.trim_end().ends_with("You:"));
    // A fact is remembered, corrected, and forgotten.
    ask(&mut chat, "remember that the meeting is on Monday", "Noted and done.");
    ask(&mut chat, "no, it is on Tuesday", "Noted and done.");
    ask(&mut chat, "/memory", "The meeting is on Tuesday.");
    assert!(!chat.text().contains("on Monday. "), "{}", chat.text());
    ask(&mut chat, &format!("note that Ann says {SECRET_PLACE}"), "Noted and done.");
    let last = json!(bench.model.last_request().messages()).to_string();
    ask(&mut chat, &format!("/memory forget {}", newest_fact(&last)), "forgot");
    chat.send_line("/quit");
    assert!(chat.wait().success(), "{}", chat.text());
    let facts = bench.myclaw(&["memory", "list", "--json"]).stdout();
    assert!(facts.contains("on Tuesday") && !facts.contains("on Monday"), "{facts}");
    assert!(!facts.contains("blue pot"), "{facts}");
    gateway.stop();
}
