//! `--worktree` and `myclaw worktrees`: nothing that was not committed is lost, and no program of a repository is started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_testkit::{
    ChildOutput, Gate, ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step,
    TempHome, skip_without,
};
use serde_json::json;

use crate::sandbox::until;
use crate::{myclaw, serve};

fn has_git() -> bool {
    let is_there = Command::new("git").arg("--version").output().is_ok();
    if !is_there {
        skip_without("git is not installed");
    }
    is_there
}

/// Runs git in a directory.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity =
        ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
    let output = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A model that writes a file when it is asked to.
fn writer() -> (ModelServer, TempHome, PathBuf) {
    let (server, home) = serve(Script::answer_with(answer));
    let project = home.path().join("thing");
    fs::create_dir_all(&project).expect("a directory");
    git(&project, &["init", "--quiet"]);
    fs::write(project.join("a.txt"), "a\n").expect("a file");
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "first"]);
    (server, home, project)
}

fn answer(request: &RecordedRequest, number: usize) -> Step {
    let last = json!(request.messages().last()).to_string();
    match last.contains("write it") {
        true => {
            let arguments = json!({"path": "made.txt", "content": "made\n"});
            Reply::anthropic().tool_call(format!("c{number}"), "write", arguments).step()
        }
        false => Reply::anthropic().text("Done.").step(),
    }
}

fn run_in(home: &TempHome, directory: &Path, arguments: &[&str]) -> ChildOutput {
    RunningChild::run(myclaw(home, arguments).current_dir(directory))
}

#[test]
fn a_run_works_in_a_worktree_which_is_taken_up_merged_and_removed() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    fs::write(project.join("loose.txt"), "x").expect("a file");
    let output = run_in(&home, &project, &["run", "--worktree=fix", "write it"]);
    output.assert_code(0);
    let told = output.stderr();
    assert!(told.contains("new worktree fix: ") && told.contains("branch myclaw/fix"), "{told}");
    assert!(told.contains("what is not committed in "), "{told}");
    assert!(told.contains("has 1 changed file without a commit, and 0 commits"), "{told}");
    let place = home.path().join("thing.worktrees/fix");
    assert!(place.join("made.txt").exists() && !project.join("made.txt").exists());
    // The same name goes on with the same session.
    let output = run_in(&home, &project, &["--worktree=fix", "run", "and now"]);
    output.assert_code(0);
    assert!(output.stderr().contains("myclaw: worktree fix: "), "{}", output.stderr());
    let listed = run_in(&home, &project, &["worktrees", "list", "--json"]).stdout();
    let row: serde_json::Value = serde_json::from_str(listed.trim()).expect("one row");
    assert_eq!(
        (&row["name"], &row["changed"], &row["ahead"]),
        (&json!("fix"), &json!(1), &json!(0))
    );
    let merged = run_in(&home, &project, &["worktrees", "merge", "fix"]);
    merged.assert_code(0);
    assert!(project.join("made.txt").exists() && project.join("loose.txt").exists());
    assert!(!place.exists());
    assert!(!git(&project, &["branch"]).contains("myclaw/"), "{}", merged.stdout());
}

#[test]
fn a_drop_keeps_what_was_not_committed_and_an_unused_worktree_goes() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    let output = run_in(&home, &project, &["run", "--worktree", "hello"]);
    output.assert_code(0);
    assert!(
        output.stderr().contains("nothing was changed in the worktree wt-"),
        "{}",
        output.stderr()
    );
    assert!(!home.path().join("thing.worktrees").exists());
    run_in(&home, &project, &["run", "--worktree=fix", "write it"]).assert_code(0);
    let dropped = run_in(&home, &project, &["worktrees", "drop", "fix"]);
    dropped.assert_code(0);
    assert!(
        dropped.stdout().contains("the branch myclaw/fix stays, with 1 commit"),
        "{}",
        dropped.stdout()
    );
    assert_eq!(git(&project, &["show", "myclaw/fix:made.txt"]), "made\n");
    // The branch is taken up again.
    run_in(&home, &project, &["run", "--worktree=fix", "hello"]).assert_code(0);
    assert!(home.path().join("thing.worktrees/fix/made.txt").exists());
    // What has a repository inside stays.
    let inner = home.path().join("thing.worktrees/fix/inner");
    fs::create_dir_all(&inner).expect("a directory");
    git(&inner, &["init", "--quiet"]);
    fs::write(inner.join("b"), "b").expect("a file");
    git(&inner, &["add", "."]);
    git(&inner, &["commit", "--quiet", "-m", "inner"]);
    let refused = run_in(&home, &project, &["worktrees", "drop", "fix"]);
    refused.assert_code(1);
    assert!(
        refused.stderr().contains("directories of other repositories inside (inner)"),
        "{}",
        refused.stderr()
    );
    assert!(inner.join("b").exists());
}

#[test]
fn a_conflict_changes_nothing() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    run_in(&home, &project, &["run", "--worktree=fix", "write it"]).assert_code(0);
    fs::write(project.join("made.txt"), "other\n").expect("a file");
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "other"]);
    let refused = run_in(&home, &project, &["worktrees", "merge", "fix"]);
    refused.assert_code(1);
    assert!(
        refused.stderr().contains("conflicts in made.txt, and nothing has changed"),
        "{}",
        refused.stderr()
    );
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(project.join("made.txt")).expect("a file"), "other\n");
    assert_eq!(git(&project, &["show", "myclaw/fix:made.txt"]), "made\n");
}

#[test]
fn no_program_of_the_repository_is_started() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    let mark = home.path().join("mark");
    let script = home.write("evil", format!("#!/bin/sh\ntouch {}\ncat\n", mark.display()));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
    let program = script.display().to_string();
    for hook in
        ["post-checkout", "pre-commit", "post-commit", "post-merge", "reference-transaction"]
    {
        let hook = project.join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().expect("a parent")).expect("a directory");
        fs::copy(&script, &hook).expect("a hook");
    }
    fs::write(project.join(".gitattributes"), "* filter=evil merge=evil\n").expect("a file");
    git(&project, &["-c", "core.hooksPath=/dev/null", "add", "."]);
    git(&project, &["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "attributes"]);
    let driver = format!("{program} %A");
    for (key, value) in [
        ("filter.evil.smudge", program.as_str()),
        ("filter.evil.clean", program.as_str()),
        ("filter.evil.required", "true"),
        ("merge.evil.driver", driver.as_str()),
        ("core.fsmonitor", program.as_str()),
        ("core.editor", program.as_str()),
        ("commit.gpgsign", "true"),
        ("gpg.program", program.as_str()),
    ] {
        git(&project, &["config", key, value]);
    }
    run_in(&home, &project, &["run", "--worktree=fix", "write it"]).assert_code(0);
    run_in(&home, &project, &["worktrees", "list"]).assert_code(0);
    run_in(&home, &project, &["worktrees", "merge", "fix"]).assert_code(0);
    assert!(project.join("made.txt").exists());
    assert!(!mark.exists(), "a program of the repository was started");
}

#[test]
fn what_cannot_be_done_gets_one_clear_message() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    for name in ["a b", "../x", "-x", "x.lock", "é", "a/b", ".x", "a..b"] {
        let output = run_in(&home, &project, &["run", &format!("--worktree={name}"), "hello"]);
        output.assert_code(2);
        assert!(
            output.stderr().contains("a worktree cannot be called"),
            "{name}: {}",
            output.stderr()
        );
    }
    let outside = home.path().join("plain");
    fs::create_dir_all(&outside).expect("a directory");
    let output = run_in(&home, &outside, &["run", "--worktree", "hello"]);
    output.assert_code(1);
    assert!(
        output.stderr().contains("is in no git repository that can be used"),
        "{}",
        output.stderr()
    );
    git(&outside, &["init", "--quiet"]);
    let output = run_in(&home, &outside, &["run", "--worktree", "hello"]);
    output.assert_code(1);
    assert!(output.stderr().contains("has no commit yet"), "{}", output.stderr());
    fs::create_dir_all(home.path().join("thing.worktrees/taken")).expect("a directory");
    let output = run_in(&home, &project, &["run", "--worktree=taken", "hello"]);
    output.assert_code(1);
    assert!(output.stderr().contains("is no worktree of this repository"), "{}", output.stderr());
    let output = run_in(&home, &project, &["worktrees", "drop", "nope"]);
    output.assert_code(2);
    assert!(output.stderr().contains("there is no worktree `nope` here"), "{}", output.stderr());
    // A submodule is empty in a worktree.
    git(
        &project,
        &["-c", "protocol.file.allow=always", "submodule", "add", "--quiet", "./", "sub"],
    );
    git(&project, &["commit", "--quiet", "-m", "sub"]);
    let output = run_in(&home, &project, &["run", "--worktree=mod", "hello"]);
    output.assert_code(0);
    assert!(
        output.stderr().contains("the directories of submodules are empty in it"),
        "{}",
        output.stderr()
    );
}

#[test]
fn a_killed_run_leaves_a_worktree_that_is_listed_and_taken_up_and_none_is_removed_below_a_session()
{
    if !has_git() {
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let (server, home) = serve(Script::answer_with(move |request, number| {
        let last = json!(request.messages().last()).to_string();
        match last.contains("wait") && !last.contains("write it") {
            true => Reply::anthropic().text("waited").step().hold_after(0, &held),
            false => answer(request, number),
        }
    }));
    let project = home.path().join("thing");
    fs::create_dir_all(&project).expect("a directory");
    git(&project, &["init", "--quiet"]);
    git(&project, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let running = RunningChild::spawn(
        myclaw(&home, &["run", "--worktree=fix", "wait"]).current_dir(&project),
    );
    until("a request", || !server.requests().is_empty());
    let refused = run_in(&home, &project, &["worktrees", "drop", "fix"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("works in the worktree fix"), "{}", refused.stderr());
    running.signal(Signal::Kill);
    running.wait(std::time::Duration::from_secs(30));
    let listed = run_in(&home, &project, &["worktrees", "list"]).stdout();
    assert!(listed.contains("fix  0 changed, 0 commits"), "{listed}");
    gate.open();
    let output = run_in(&home, &project, &["run", "--worktree=fix", "write it"]);
    output.assert_code(0);
    assert!(home.path().join("thing.worktrees/fix/made.txt").exists());
    // git itself was killed while it made one.
    let lock = project.join(".git/worktrees/fix/locked");
    fs::write(&lock, "initializing").expect("a lock");
    let listed = run_in(&home, &project, &["worktrees", "list"]).stdout();
    assert!(listed.contains("a program was killed while it was made"), "{listed}");
}

#[test]
fn a_worktree_with_another_branch_or_none_is_listed_taken_up_and_not_lost() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    let place = home.path().join("thing.worktrees");
    for (name, switched) in [("other", ["-c", "side"]), ("none", ["--quiet", "--detach"])] {
        run_in(&home, &project, &["run", &format!("--worktree={name}"), "hello"]).assert_code(0);
        let worktree = place.join(name);
        git(&worktree, &[&["switch"], &switched[..]].concat());
        fs::write(worktree.join(name), "more\n").expect("a file");
        git(&worktree, &["add", "."]);
        git(&worktree, &["commit", "--quiet", "-m", "more"]);
    }
    let listed = run_in(&home, &project, &["worktrees", "list"]).stdout();
    assert!(listed.contains("none   no branch is checked out in it"), "{listed}");
    assert!(listed.contains("other  0 changed, 1 commit  "), "{listed}");
    let taken = run_in(&home, &project, &["run", "--worktree=other", "write it"]);
    taken.assert_code(0);
    let told = taken.stderr();
    assert!(told.contains("branch side") && told.contains("1 changed file without"), "{told}");
    // What is on no branch is neither merged nor dropped.
    for command in ["merge", "drop"] {
        let refused = run_in(&home, &project, &["worktrees", command, "none"]);
        refused.assert_code(1);
        assert!(refused.stderr().contains("switch -c BRANCH"), "{}", refused.stderr());
        assert!(place.join("none/none").exists());
    }
    git(&place.join("none"), &["switch", "-c", "kept"]);
    let dropped = run_in(&home, &project, &["worktrees", "drop", "none"]).stdout();
    assert!(dropped.contains("the branch kept stays, with 1 commit more"), "{dropped}");
    let merged = run_in(&home, &project, &["worktrees", "merge", "other"]);
    merged.assert_code(0);
    assert!(merged.stdout().contains("the branch side stays"), "{}", merged.stdout());
    assert!(project.join("other").exists() && project.join("made.txt").exists());
    let branches = git(&project, &["branch", "--list"]);
    let own = |name: &str| branches.contains(name);
    assert!(own("kept") && own("side") && !own("myclaw/other"), "{branches}");
}

#[test]
fn a_merge_into_no_branch_keeps_the_branch_and_files_in_an_empty_submodule_stay() {
    if !has_git() {
        return;
    }
    let (_server, home, project) = writer();
    let first = git(&project, &["rev-parse", "HEAD"]);
    let link = format!("160000,{},inner", first.trim());
    git(&project, &["update-index", "--add", "--cacheinfo", &link]);
    git(&project, &["commit", "--quiet", "-m", "a submodule"]);
    git(&project, &["switch", "--quiet", "--detach"]);
    run_in(&home, &project, &["run", "--worktree=fix", "write it"]).assert_code(0);
    let merged = run_in(&home, &project, &["worktrees", "merge", "fix"]);
    merged.assert_code(0);
    let told = merged.stdout();
    assert!(told.contains("the branch myclaw/fix stays, because no branch"), "{told}");
    assert!(git(&project, &["branch", "--list"]).contains("myclaw/fix"));
    // One in which nothing was done leaves no branch.
    let unused = run_in(&home, &project, &["run", "--worktree", "hello"]);
    unused.assert_code(0);
    assert!(unused.stderr().contains("nothing was changed"), "{}", unused.stderr());
    assert!(!git(&project, &["branch", "--list"]).contains("myclaw/wt-"));
    // git does not look into the directory of a submodule.
    run_in(&home, &project, &["run", "--worktree=more", "hello"]).assert_code(0);
    let inner = home.path().join("thing.worktrees/more/inner");
    fs::create_dir_all(&inner).expect("a directory");
    fs::write(inner.join("made.txt"), "made\n").expect("a file");
    let refused = run_in(&home, &project, &["worktrees", "drop", "more"]);
    refused.assert_code(1);
    assert!(refused.stderr().contains("repositories inside (inner)"), "{}", refused.stderr());
    assert!(inner.join("made.txt").exists());
}
