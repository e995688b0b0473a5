//! `myclaw review`: findings about changes, in words and as JSON.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::{
    ChildOutput, ModelServer, Reply, RunningChild, Script, TempHome, skip_without,
};
use serde_json::{Value, json};

use crate::chat_branches::PNG;
use crate::{myclaw, serve};

const FINDINGS: &str = r#"{"summary":"One fault.","findings":[{"file":"a.txt","line":2,"severity":"high",
  "problem":"wrong","shows":"always"}]}"#;

/// A project with a commit, a branch `parser` with another one, and changes in the working tree; `None` without git.
fn project(home: &TempHome) -> Option<PathBuf> {
    if Command::new("git").arg("--version").output().is_err() {
        skip_without("git is missing");
        return None;
    }
    let place = home.path().join("project");
    std::fs::create_dir_all(&place).expect("made");
    home.write(place.join("dot.png"), PNG);
    let script = "git init -q -b main . && git config user.email a@b.c && git config user.name A && \
                  echo one > a.txt && git add . && git commit -qm one && git checkout -qb parser && \
                  echo of-the-branch > b.txt && git add . && git commit -qm two && git checkout -q main && \
                  echo in-the-tree ./dot.png >> a.txt && echo new > untracked.txt";
    let made = home.command("sh").args(["-c", script]).current_dir(&place).status();
    assert!(made.expect("sh").success());
    Some(place)
}

fn review(home: &TempHome, place: &Path, options: &[&str]) -> ChildOutput {
    let mut command = myclaw(home, &[&["review"], options].concat());
    RunningChild::run_with_input(command.current_dir(place), "")
}

fn asked(server: &ModelServer) -> String {
    json!(server.last_request().messages().last()).to_string()
}

#[test]
fn the_changes_are_reviewed_without_commands_and_nothing_is_kept() {
    let text = || Reply::anthropic().text("a.txt:2 (high): wrong.");
    let (server, home) = serve([text(), text(), text()]);
    let Some(place) = project(&home) else { return };
    let output = review(&home, &place, &["the error paths"]);
    output.assert_code(0);
    assert_eq!(output.stdout(), "a.txt:2 (high): wrong.\n");
    let said = asked(&server);
    for part in ["+in-the-tree", "untracked.txt", "the working tree", "the error paths"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("of-the-branch"), "{said}");
    // What a change names is not sent.
    assert!(said.contains("./dot.png") && !said.contains("\"image\""), "{said}");
    review(&home, &place, &["--branch", "parser"]).assert_code(0);
    let said = asked(&server);
    assert!(said.contains("+of-the-branch") && !said.contains("in-the-tree"), "{said}");
    assert_eq!(home.transcripts().len(), 0);
}

#[test]
fn a_repository_without_a_commit_is_reviewed_as_new() {
    let (server, home) = serve(Reply::anthropic().text("fine"));
    let Some(project) = project(&home) else { return };
    let script = "mkdir new && cd new && git init -q && echo staged > a.txt && git add a.txt && echo x > b.txt";
    let made = home.command("sh").args(["-c", script]).current_dir(project).status();
    assert!(made.expect("sh").success());
    review(&home, &home.path().join("project/new"), &[]).assert_code(0);
    let said = asked(&server);
    assert!(said.contains("+staged") && said.contains("b.txt"), "{said}");
}

/// The config of a repository may be the work of others.
#[test]
fn no_program_that_a_repository_names_is_started() {
    let (server, home) = serve([Reply::anthropic().text("Fine.")]);
    let Some(place) = project(&home) else { return };
    let script = "git config filter.own.clean 'touch ../started; cat' && git config diff.own.textconv 'touch ../started' && \
                  git config core.fsmonitor 'touch ../started' && echo '*.txt filter=own diff=own' > .gitattributes";
    let made = home.command("sh").args(["-c", script]).current_dir(&place).status();
    assert!(made.expect("sh").success());
    review(&home, &place, &[]).assert_code(0);
    assert!(asked(&server).contains("+in-the-tree"));
    assert!(!home.path().join("started").exists());
}

#[test]
fn findings_are_json_that_fits_the_documented_form() {
    let replies = [
        Reply::anthropic().text("Here they are."),
        Reply::anthropic().text(r#"{"summary":"x","findings":[{"file":"a.txt"}]}"#),
        Reply::anthropic().text(FINDINGS),
        Reply::anthropic().text("no"),
        Reply::anthropic().text("no"),
        Reply::anthropic().text("no"),
    ];
    let (server, home) = serve(replies);
    let Some(place) = project(&home) else { return };
    let output = review(&home, &place, &["--json", "-q"]);
    output.assert_code(0);
    let value: Value = serde_json::from_str(&output.stdout()).expect("one value");
    assert_eq!(value["findings"][0]["line"], 2);
    assert!(asked(&server).contains("does not fit the schema"), "{}", asked(&server));
    let output = review(&home, &place, &["--json", "-q"]);
    output.assert_code(9);
    assert_eq!(output.stdout(), "");
}

#[test]
fn the_agent_of_a_review_changes_and_runs_nothing() {
    let call = Reply::anthropic().tool_call("call_1", "bash", json!({"command": "touch made"}));
    let (server, home) = serve([call, Reply::anthropic().text("Nothing.")]);
    let Some(place) = project(&home) else { return };
    review(&home, &place, &[]).assert_code(0);
    assert!(asked(&server).contains("read-only"), "{}", asked(&server));
    assert!(!place.join("made").exists());
}

#[test]
fn what_cannot_be_reviewed_is_said_before_a_model_is_asked() {
    let (server, home) = serve(Reply::anthropic().text("not asked"));
    let Some(place) = project(&home) else { return };
    let cases: [(&[&str], &str); 4] = [
        (&["--branch", "nowhere"], "there is no such branch"),
        (&["--branch", "--output=x"], "there is no such branch"),
        (&["--pr", "--help"], "--pr takes the number"),
        (&["--pr", "1", "--branch", "parser"], "cannot be used with"),
    ];
    for (options, message) in cases {
        let options: Vec<String> = match options {
            [option, value] => vec![format!("{option}={value}")],
            others => others.iter().map(|&option| option.to_owned()).collect(),
        };
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let output = review(&home, &place, &options);
        output.assert_code(2);
        assert!(output.stderr().contains(message), "{options:?}: {}", output.stderr());
    }
    let outside = home.path().join("outside");
    std::fs::create_dir_all(&outside).expect("made");
    let output = review(&home, &outside, &[]);
    output.assert_code(2);
    assert_eq!(
        output.stderr(),
        "myclaw: this directory is in no git repository, or git is missing; name a repository with -C\n"
    );
    let clean = home
        .command("git")
        .args(["checkout", "-q", "parser", "--force"])
        .current_dir(&place)
        .status();
    assert!(clean.expect("git").success());
    std::fs::remove_file(place.join("untracked.txt")).expect("removed");
    let output = review(&home, &place, &["--json"]);
    output.assert_code(0);
    assert!(output.stdout().contains("\"findings\":[]"), "{}", output.stdout());
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_pull_request_comes_from_gh_whose_failures_are_said_and_whose_output_is_bounded() {
    let (server, home) = serve(Script::answer_with(|_, _| Reply::anthropic().text("Fine.").step()));
    let Some(place) = project(&home) else { return };
    let programs = home.path().join("programs");
    let gh = home.write(programs.join("gh"), "");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let review_with = |script: &str, path: &str| {
        std::fs::write(&gh, format!("#!/bin/sh\n{script}\n")).expect("a program");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&gh, mode).expect("a program");
        let mut command = myclaw(&home, &["review", "--pr", "17", "--json"]);
        RunningChild::run(command.current_dir(&place).env("PATH", path))
    };
    for (script, said) in [
        ("echo 'To log in, run: gh auth login' >&2; exit 4", "gh pr diff 17: To log in, run"),
        ("exit 3", "gh pr diff 17: exit status: 3"),
        ("exec yes +line", "gh pr diff 17: it printed more than 40 MiB"),
    ] {
        let failed = review_with(script, &path);
        failed.assert_code(1);
        assert!(failed.stderr().contains(said), "{script}: {}", failed.stderr());
    }
    // Only that directory, so that no gh of this machine is found.
    std::fs::remove_file(&gh).expect("removed");
    let mut command = myclaw(&home, &["review", "--pr", "17"]);
    let missing = RunningChild::run(command.current_dir(&place).env("PATH", &programs));
    missing.assert_code(1);
    assert!(missing.stderr().contains("needs the program gh"), "{}", missing.stderr());
    assert_eq!(server.requests().len(), 0);
    let nothing = review_with("exit 0", &path);
    nothing.assert_code(0);
    assert!(nothing.stdout().contains("\"findings\":[]"), "{}", nothing.stdout());
    let answered = review_with("echo '+a line of it'", &path);
    answered.assert_code(9);
    let asked = json!(server.requests()[0].messages()).to_string();
    assert!(asked.contains("+a line of it"), "{asked}");
}
