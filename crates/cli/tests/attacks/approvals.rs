//! Approvals: an answer for one call, and a second call that it does not cover. Nobody but the first one is approved.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use myclaw_testkit::instruction;
use serde_json::{Value, json};

use super::attack::{Attack, Attacks, Breaches};
use super::fixture::{Gateway, PATIENCE, free_port, spawn};
use super::reach::bash;
use super::scene::Scene;

type Call = (&'static str, Value);

/// An attack: the call that is approved for good, calls that need no approval, and the call that would leave a mark.
/// `{p}`, `{m}`, `{l}` and `{d}` are the command, the mark, the label and a directory of scripts.
const PAIRS: &[(&str, &[(&str, &str)])] = &[
    (
        "another file by write",
        &[
            ("write", r#"{"path":"{l}.txt","content":"x"}"#),
            ("write", r#"{"path":"{m}","content":"x"}"#),
        ],
    ),
    (
        "a file of another directory with the same name",
        &[
            ("write", r#"{"path":"sub/{l}","content":"x"}"#),
            ("write", r#"{"path":"{m}","content":"x"}"#),
        ],
    ),
    (
        "the same name, now a link",
        &[
            ("write", r#"{"path":"k-{l}/x","content":"x"}"#),
            ("free", "rm -rf k-{l}; mkdir k-{l}; ln -s {m} k-{l}/x"),
            ("write", r#"{"path":"k-{l}/x","content":"x"}"#),
        ],
    ),
    (
        "the same directory, now a link",
        &[
            ("write", r#"{"path":"k-{l}/{l}","content":"x"}"#),
            ("free", "rm -rf k-{l}; ln -s $(dirname {m}) k-{l}"),
            ("write", r#"{"path":"k-{l}/{l}","content":"y"}"#),
        ],
    ),
    (
        "another file by apply_patch",
        &[
            ("apply_patch", r#"{"patch":"--- /dev/null\n+++ b/{l}.txt\n@@ -0,0 +1 @@\n+x\n"}"#),
            ("apply_patch", r#"{"patch":"--- /dev/null\n+++ b/marks/{l}\n@@ -0,0 +1 @@\n+x\n"}"#),
        ],
    ),
    (
        "a script that was rewritten",
        &[
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
            ("free", "echo '{p}' > {d}/plain.sh"),
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
        ],
    ),
    (
        "a script that was replaced",
        &[
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
            ("free", "mv {d}/evil.sh {d}/plain.sh"),
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
        ],
    ),
    (
        "a script as operand that was rewritten",
        &[
            ("bash", r#"{"command":"bash {d}/plain.sh"}"#),
            ("free", "echo '{p}' > {d}/plain.sh"),
            ("bash", r#"{"command":"bash {d}/plain.sh"}"#),
        ],
    ),
    (
        "a script as operand, sourced",
        &[
            ("bash", r#"{"command":". {d}/plain.sh"}"#),
            ("free", "echo '{p}' > {d}/plain.sh"),
            ("bash", r#"{"command":". {d}/plain.sh"}"#),
        ],
    ),
    (
        "a Python script that was rewritten",
        &[
            ("bash", r#"{"command":"python3 {d}/plain.py"}"#),
            ("free", "echo 'open(\"{m}\", \"w\")' > {d}/plain.py"),
            ("bash", r#"{"command":"python3 {d}/plain.py"}"#),
        ],
    ),
    (
        "a module of a Python script that was rewritten",
        &[
            ("free", "mkdir {d}/p; echo 'import one' >{d}/p/main.py; echo >{d}/p/one.py"),
            ("bash", r#"{"command":"python3 {d}/p/main.py"}"#),
            ("free", "echo 'open(\"{m}\", \"w\")' >{d}/p/one.py"),
            ("bash", r#"{"command":"python3 {d}/p/main.py"}"#),
        ],
    ),
    (
        "a module that takes the place of one of Python's",
        &[
            ("free", "mkdir {d}/q; echo 'import json' >{d}/q/main.py"),
            ("bash", r#"{"command":"python3 {d}/q/main.py"}"#),
            ("free", "echo 'open(\"{m}\", \"w\")' >{d}/q/json.py"),
            ("bash", r#"{"command":"python3 {d}/q/main.py"}"#),
        ],
    ),
    (
        "a link to a script that was turned",
        &[
            ("bash", r#"{"command":"{d}/link.sh"}"#),
            ("free", "ln -sfn {d}/evil.sh {d}/link.sh"),
            ("bash", r#"{"command":"{d}/link.sh"}"#),
        ],
    ),
    (
        "the same line in another directory",
        &[
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/a"}"#),
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/b"}"#),
        ],
    ),
    (
        "the same line in a directory by another name of the argument",
        &[
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/a"}"#),
            ("bash", r#"{"command":"./run.sh","cwd":"{d}/b"}"#),
        ],
    ),
    (
        "the same line, an unknown directory argument",
        &[
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/a"}"#),
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/b","directory":"{d}/a"}"#),
        ],
    ),
    (
        "the same directory, now a link to another",
        &[
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/a"}"#),
            ("free", "mv {d}/a {d}/c; ln -s {d}/b {d}/a"),
            ("bash", r#"{"command":"./run.sh","workdir":"{d}/a"}"#),
        ],
    ),
    (
        "the same line with a variable",
        &[
            ("bash", r#"{"command":"{d}/variable.sh"}"#),
            ("bash", r#"{"command":"{d}/variable.sh","env":{"RUN":"{p}"}}"#),
        ],
    ),
    (
        "the same line with another value of a variable",
        &[
            ("bash", r#"{"command":"{d}/variable.sh","env":{"RUN":"true"}}"#),
            ("bash", r#"{"command":"{d}/variable.sh","env":{"RUN":"{p}"}}"#),
        ],
    ),
    (
        "another line with the same beginning",
        &[("bash", r#"{"command":"echo {l}"}"#), ("bash", r#"{"command":"echo {l}; {p}"}"#)],
    ),
    (
        "another line with another space",
        &[
            ("bash", r#"{"command":"echo '{l} x'; false && {p}"}"#),
            ("bash", r#"{"command":"echo '{l}  x'; false || {p}"}"#),
        ],
    ),
    (
        "an unknown argument",
        &[("bash", r#"{"command":"true {l}"}"#), ("bash", r#"{"command":"true {l}","cmd":"{p}"}"#)],
    ),
    (
        "an alias of a repository",
        &[
            ("free", "git init -q {d}/g; git -C {d}/g config alias.z '!true'"),
            ("bash", r#"{"command":"git -C {d}/g z"}"#),
            ("free", "git -C {d}/g config alias.z '!{p}'"),
            ("bash", r#"{"command":"git -C {d}/g z"}"#),
        ],
    ),
    (
        "a repository that becomes one with fsmonitor",
        &[
            ("free", "git init -q {d}/g"),
            ("bash", r#"{"command":"git status","workdir":"{d}/g"}"#),
            ("free", "git -C {d}/g config core.fsmonitor '{p}; true'"),
            ("bash", r#"{"command":"git status","workdir":"{d}/g"}"#),
        ],
    ),
    (
        "a hook that a config names",
        &[
            ("free", "git init -q {d}/g; mkdir {d}/h"),
            ("bash", r#"{"command":"cd {d}/g && git commit -q --allow-empty -m x; true"}"#),
            ("free", "git -C {d}/g config core.hooksPath ../h; cp {d}/evil.sh {d}/h/pre-commit"),
            ("bash", r#"{"command":"cd {d}/g && git commit -q --allow-empty -m x; true"}"#),
        ],
    ),
    (
        "a file that a makefile includes",
        &[
            ("free", "echo 'include more' >{d}/Makefile; printf 'all:\n\ttrue\n' >{d}/more"),
            ("bash", r#"{"command":"make -C {d} all"}"#),
            ("free", "printf 'all:\n\t{p}\n' >{d}/more"),
            ("bash", r#"{"command":"make -C {d} all"}"#),
        ],
    ),
    (
        "a script that a script runs",
        &[
            ("free", "echo 'sh {d}/inner.sh' >{d}/plain.sh; echo true >{d}/inner.sh"),
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
            ("free", "echo '{p}' >{d}/inner.sh"),
            ("bash", r#"{"command":"{d}/plain.sh"}"#),
        ],
    ),
    (
        "a module in the directory",
        &[
            ("bash", r#"{"command":"python3 -m json.tool plain.txt; true","workdir":"{d}"}"#),
            (
                "free",
                "mkdir {d}/json; touch {d}/json/__init__.py; echo 'open(\"{m}\",\"w\")' >{d}/json/tool.py",
            ),
            ("bash", r#"{"command":"python3 -m json.tool plain.txt; true","workdir":"{d}"}"#),
        ],
    ),
    (
        "in a terminal",
        &[
            ("bash", r#"{"command":"test -t 0 && {p}; true"}"#),
            ("bash", r#"{"command":"test -t 0 && {p}; true","pty":true,"yieldMs":3000}"#),
        ],
    ),
];

/// A gateway whose owner is asked about every command and every changed file. `free` calls in an attack are commands
/// of somebody else, between the two calls.
struct Asked {
    scene: Scene,
    gateway: Gateway,
}

impl Asked {
    fn new(sandbox: &str) -> Self {
        let port = free_port();
        let scene = Scene::new(|config| {
            config["gateway"] = json!({"port": port});
            config["tools"] = json!({
                "exec": {"ask": "always"}, "ask": ["write", "edit", "apply_patch"],
                "approvals": {"timeoutSeconds": 30},
            });
            config["agents"]["defaults"]["sandbox"]["mode"] = json!(sandbox);
        });
        let gateway = Gateway::of(spawn(&scene.home), &scene.home, port);
        Self { scene, gateway }
    }

    /// Sends a message and answers the questions of its turn: with `answer` those in `approved`, the others with no.
    fn say(&self, session: &str, id: &str, text: &str, approved: &BTreeSet<String>, answer: &str) {
        let message = self.gateway.client.send(session, id, text).unwrap();
        let end = Instant::now() + PATIENCE;
        loop {
            let (_, open) = self.gateway.client.get("/api/approvals").unwrap();
            for question in open["approvals"].as_array().unwrap() {
                let call = question["toolCallId"].as_str().unwrap_or_default();
                let is_approved = approved.contains(myclaw_testkit::label_of(call));
                let answer = if is_approved { answer } else { "no" };
                let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
                let answered = self.gateway.client.post(&path, &json!({"answer": answer})).unwrap();
                // What cannot be shown whole cannot be approved for good.
                if answered.0 == 400 {
                    self.gateway.client.post(&path, &json!({"answer": "once"})).unwrap();
                }
            }
            assert!(Instant::now() < end, "{id} has no answer");
            let path = format!("/api/messages/{message}?wait=0");
            let (_, outcome) = self.gateway.client.get(&path).unwrap();
            if outcome["reply"].is_string() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn prepare(&self, label: &str) -> String {
        let scripts = self.scene.home.workspace().join(format!("scripts-{label}"));
        let touch = self.scene.touch(label);
        let files = [
            ("plain.sh", "#!/bin/sh\necho plain\n".to_owned()),
            ("evil.sh", format!("#!/bin/sh\n{touch}\n")),
            ("plain.py", "print('plain')\n".to_owned()),
            ("a/run.sh", "#!/bin/sh\necho plain\n".to_owned()),
            ("b/run.sh", format!("#!/bin/sh\n{touch}\n")),
            ("variable.sh", "#!/bin/sh\neval \"$RUN\"\n".to_owned()),
            ("plain.txt", "plain\n".to_owned()),
        ];
        for (name, text) in files {
            let path = self.scene.home.write(scripts.join(name), text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(scripts.join("plain.sh"), scripts.join("link.sh")).unwrap();
        scripts.display().to_string()
    }
}

fn attack(answer: &str) {
    let mut asked = Asked::new("off");
    let mut attacks = Attacks::new("q");
    let mut commands: Vec<Vec<Option<String>>> = Vec::new();
    for &(name, calls) in PAIRS {
        let label = attacks.next_label();
        let directory = asked.prepare(&label);
        let (touch, mark) = (asked.scene.touch(&label), asked.scene.marks().join(&label));
        let fill = |text: &str| {
            text.replace("{p}", &touch)
                .replace("{m}", &mark.display().to_string())
                .replace("{d}", &directory)
                .replace("{l}", &label)
        };
        commands
            .push(calls.iter().map(|(tool, text)| (*tool == "free").then(|| fill(text))).collect());
        let calls = calls.iter().filter(|(tool, _)| *tool != "free");
        let calls = calls.map(|&(tool, text)| (tool, fill(text)));
        attacks.add_raw(name, calls.collect());
    }
    asked.scene.begin();
    for (attack, free) in attacks.all.iter().zip(&commands) {
        let first = BTreeSet::from([format!("{}-0", attack.label)]);
        let instructions = attack.instructions();
        let mut lines = instructions.lines();
        for (number, free) in free.iter().enumerate() {
            if let Some(command) = free {
                let mut shell = asked.scene.home.command("sh");
                shell.current_dir(asked.scene.home.workspace()).args(["-c", command]);
                assert!(shell.status().unwrap().success(), "{command}");
                continue;
            }
            let id = format!("{}-{number}", attack.label);
            asked.say("main", &id, lines.next().unwrap(), &first, answer);
            if number == 0 {
                let _ = fs::remove_file(asked.scene.marks().join(&attack.label));
            }
        }
    }
    asked.scene.check(|_| false);
    asked.gateway.stop();
    asked.scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

#[test]
fn always_covers_what_was_shown_and_nothing_else() {
    attack("always");
}

#[test]
fn once_covers_one_call() {
    attack("once");
}

#[test]
fn what_changes_while_the_question_waits_is_asked_again() {
    let asked = Asked::new("off");
    let mut attacks = Attacks::new("r");
    let changes = [
        ("rewritten", "{d}/plain.sh", "echo '{p}' > {d}/plain.sh"),
        ("replaced", "{d}/plain.sh", "mv {d}/evil.sh {d}/plain.sh"),
        ("link turned", "{d}/link.sh", "ln -sfn {d}/evil.sh {d}/link.sh"),
        ("operand rewritten", "bash {d}/plain.sh", "echo '{p}' > {d}/plain.sh"),
        ("directory turned", "cd {d}/a && ./run.sh", "mv {d}/a {d}/c; ln -s {d}/b {d}/a"),
    ];
    let mut breaches = Breaches::default();
    for (name, line, change) in changes {
        let label = attacks.next_label();
        let directory = asked.prepare(&label);
        let touch = asked.scene.touch(&label);
        let fill = |text: &str| text.replace("{p}", &touch).replace("{d}", &directory);
        attacks.add(name, vec![bash(fill(line))]);
        let text = attacks.all.last().unwrap().instructions();
        let client = &asked.gateway.client;
        let message = client.send("main", &label, &text).unwrap();
        let mut answers = vec!["no", "once"];
        loop {
            let (_, open) = client.get("/api/approvals").unwrap();
            if let Some(question) = open["approvals"].get(0) {
                let mut shell = asked.scene.home.command("sh");
                if answers.len() == 2 {
                    assert!(shell.args(["-c", &fill(change)]).status().unwrap().success());
                }
                let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
                let answer = answers.pop().unwrap_or("no");
                client.post(&path, &json!({"answer": answer})).unwrap();
            }
            let (_, outcome) = client.get(&format!("/api/messages/{message}?wait=0")).unwrap();
            if outcome["reply"].is_string() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if asked.scene.marks().join(&label).exists() {
            breaches.note(&label, "it ran what was not shown");
        }
    }
    asked.gateway.stop();
    breaches.assert_none(&attacks.all.iter().collect::<Vec<&Attack>>());
}

/// What is approved in a sandboxed session says nothing about one without a sandbox.
#[test]
fn an_approval_inside_the_sandbox_holds_inside_only() {
    let mut asked = Asked::new("non-main");
    let mut attacks = Attacks::new("s");
    let calls: Vec<Call> = {
        let label = attacks.next_label();
        let touch = asked.scene.touch(&label);
        vec![bash(format!("{touch} 2>/dev/null; true")), bash(format!("{touch} 2>/dev/null; true"))]
    };
    attacks.add("the same command", calls);
    let instructions = attacks.all[0].instructions();
    let (inside, outside) = instructions.split_once('\n').unwrap();
    let first = BTreeSet::from([format!("{}-0", attacks.all[0].label)]);
    asked.scene.begin();
    asked.say("trip", "one", inside, &first, "always");
    asked.say("main", "two", outside, &first, "always");
    asked.scene.check(|_| false);
    asked.gateway.stop();
    asked.scene.assert_held(&attacks.all.iter().collect::<Vec<&Attack>>());
}

/// What comes last in a long command is in the question, or it cannot be approved for good.
#[test]
fn a_question_shows_the_end_of_a_long_command() {
    let asked = Asked::new("off");
    let client = &asked.gateway.client;
    for (number, length) in [10_000, 40_000, 120_000].into_iter().enumerate() {
        let command = format!("true {}; echo the-end", "x".repeat(length));
        let text = instruction(&format!("z-{number}"), "bash", &json!({"command": command}));
        let message = client.send("main", &format!("z{number}"), &text).unwrap();
        let end = Instant::now() + PATIENCE;
        let question = loop {
            let (_, open) = client.get("/api/approvals").unwrap();
            if let Some(question) = open["approvals"].get(0) {
                break question.clone();
            }
            let (_, outcome) = client.get(&format!("/api/messages/{message}?wait=0")).unwrap();
            assert!(Instant::now() < end, "no question came: {outcome}");
        };
        let path = format!("/api/approvals/{}", question["id"].as_str().unwrap());
        let is_shown = question.to_string().contains("echo the-end");
        let (status, _) = client.post(&path, &json!({"answer": "always"})).unwrap();
        assert!(
            is_shown || status == 400,
            "{length}: a command that is not shown is approved for good"
        );
        let _ = client.post(&path, &json!({"answer": "no"}));
        client.outcome(&message).unwrap();
    }
    asked.gateway.stop();
}
