//! `myclaw uninstall`: what it lists, what it removes and what it leaves.

use std::path::Path;

use myclaw_testkit::{ChildOutput, RunningChild, TempHome, skip_here};

use crate::packages::add;
use crate::{mounted, myclaw, run};

/// All files below a directory.
fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found.sort();
    found
}

/// A home in which the program has written what it writes.
fn used() -> TempHome {
    let home = TempHome::new();
    run(&home, &["init"]).assert_code(0);
    home.write(".myclaw/.env", "EXAMPLE_API_KEY=abc\n");
    run(&home, &["run", "-q", "--model", "builtin/demo", "write \"tea\" to list.txt"])
        .assert_code(0);
    run(&home, &["memory", "add", "I drink tea"]).assert_code(0);
    run(&home, &["groups", "add", "family@example", "family"]);
    // What was there before a command is kept, if git is there to do it.
    run(&home, &["run", "-q", "--model", "builtin/demo", "run \"echo hi\""]).assert_code(0);
    home.write("package/skills/tea/SKILL.md", "---\nname: tea\ndescription: Makes tea\n---\nBoil.");
    let source = home.path().join("package").to_str().expect("UTF-8").to_owned();
    add(&home, &source);
    std::fs::remove_dir_all(source).expect("removed");
    let script = run(&home, &["completions", "zsh"]).stdout();
    home.write(".zfunc/_myclaw", script);
    home
}

/// With a directory for temporary files of its own: other tests are killed, and leave some in the usual one.
fn uninstall(home: &TempHome, arguments: &[&str]) -> ChildOutput {
    let mut command = myclaw(home, &["uninstall"]);
    RunningChild::run(command.env("TMPDIR", home.path().join("tmp")).args(arguments))
}

#[test]
fn everything_goes_without_a_question_if_asked_for() {
    let home = used();
    home.write(".zfunc/_other", "#compdef other\n");
    // What a restore and an update keep next to the state directory, and what killed processes leave.
    let copy = home.path().join("copy").to_str().expect("UTF-8").to_owned();
    run(&home, &["backup", &copy]).assert_code(0);
    run(&home, &["restore", "--replace", &copy]).assert_code(0);
    std::fs::rename(&copy, home.path().join(".myclaw.before-9.0.0-1.backup")).expect("renamed");
    for name in [".myclaw-restore-a", "tmp/myclaw-script-a", "tmp/myclaw-package-a"] {
        home.write(format!("{name}/owner"), "1 1\n");
    }
    home.write(".myclaw/.myclaw.Ab12.tmp", "{}");
    let dry = uninstall(&home, &["--dry-run"]);
    assert!(!dry.stdout().contains("not written by MyClaw"), "{}", dry.stdout());
    assert!(dry.stdout().contains("stays: ") && dry.stdout().contains(".myclaw.before-"));
    let output = uninstall(&home, &["--yes", "--workspace"]);
    output.assert_code(0);
    assert!(output.stdout().contains(".myclaw/sessions ("), "{}", output.stdout());
    assert!(output.stdout().contains("the program is still there"), "{}", output.stdout());
    assert_eq!(files(home.path()), [home.path().join(".zfunc/_other").display().to_string()]);
    assert!(!home.path().join(".myclaw").exists());
    let again = uninstall(&home, &["--yes"]);
    again.assert_code(0);
    assert!(again.stdout().contains("nothing is left to remove"), "{}", again.stdout());
}

#[test]
fn work_and_files_of_others_stay() {
    let home = used();
    home.write(".myclaw/skills/tea/SKILL.md", "mine");
    home.write(".myclaw/photo.png", "mine");
    home.write(".myclaw/host/groups/family/MISSION.md", "mine");
    home.write(".myclaw/host/groups.json", "{}");
    home.write(".local/share/bash-completion/completions/myclaw", "# of another program\n");
    let output = uninstall(&home, &["-y"]);
    output.assert_code(0);
    let text = output.stdout();
    assert!(text.contains("photo.png (not written by MyClaw)"), "{text}");
    assert!(text.contains("workspace (--workspace removes it)"), "{text}");
    let left = files(home.path());
    let is_kept = |path: &String| {
        [
            ".myclaw/workspace/",
            "skills/tea/SKILL.md",
            "photo.png",
            "groups/family/",
            "completions/myclaw",
        ]
        .iter()
        .any(|part| path.contains(part))
    };
    assert!(left.iter().all(is_kept), "{left:?}");
    for name in ["list.txt", "SKILL.md", "photo.png", "MISSION.md", "completions/myclaw"] {
        assert!(left.iter().any(|path| path.ends_with(name)), "{name}: {left:?}");
    }
}

#[test]
fn nothing_is_removed_without_a_yes() {
    let home = used();
    let before = files(home.path());
    let dry = uninstall(&home, &["--dry-run"]);
    dry.assert_code(0);
    assert!(dry.stdout().contains("nothing was removed"), "{}", dry.stdout());
    let refused = uninstall(&home, &[]);
    refused.assert_code(2);
    assert!(refused.stderr().contains("`myclaw uninstall --yes`"), "{}", refused.stderr());
    assert_eq!(files(home.path()), before);
}

#[test]
fn a_state_directory_with_files_of_others_is_not_touched() {
    let home = used();
    let state = home.path().join("project");
    std::fs::rename(home.path().join(".myclaw"), &state).expect("moved");
    home.write("project/main.c", "int main;");
    let before = files(&state);
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.env("MYCLAW_STATE_DIR", &state).args(["uninstall", "--yes"]);
    let output = RunningChild::run(&mut command);
    output.assert_code(1);
    assert!(output.stderr().contains("project/main.c"), "{}", output.stderr());
    assert_eq!(files(&state), before);
}

#[cfg(unix)]
#[test]
fn links_go_and_what_they_lead_to_stays() {
    let home = used();
    home.write("elsewhere/notes.txt", "mine");
    std::fs::remove_dir_all(home.path().join(".myclaw/workspace")).expect("removed");
    std::os::unix::fs::symlink(
        home.path().join("elsewhere"),
        home.path().join(".myclaw/workspace"),
    )
    .expect("linked");
    uninstall(&home, &["--yes", "--workspace"]).assert_code(0);
    assert!(!home.path().join(".myclaw").exists());
    assert_eq!(
        std::fs::read_to_string(home.path().join("elsewhere/notes.txt")).expect("read"),
        "mine"
    );
}

/// What cannot be removed is named, and everything is still there.
#[cfg(unix)]
fn hindered(home: &TempHome, command: &mut std::process::Command, part: &str) {
    let before = files(home.path());
    let output = RunningChild::run(command);
    output.assert_code(1);
    let (listed, said) = (output.stdout(), output.stderr());
    assert!(listed.contains(&format!("sessions ({part}")), "{part}: {listed}");
    assert!(said.contains(&format!("nothing was removed: {part}")), "{part}: {said}");
    assert!(said.contains("correct that and repeat the command"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(files(home.path()), before, "{part}");
}

#[cfg(unix)]
#[test]
fn what_another_user_owns_is_found_before_anything_is_removed() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown};
    use std::os::unix::process::CommandExt as _;

    const USER: Option<u32> = Some(65_534);
    let home = used();
    if home.path().metadata().expect("metadata").uid() != 0 {
        skip_here("only root can give files to another user");
        return;
    }
    let mut places = vec![home.path().to_owned()];
    while let Some(place) = places.pop() {
        lchown(&place, USER, USER).expect("given away");
        if place.is_dir() && !place.is_symlink() {
            let inside = std::fs::read_dir(place).expect("a directory");
            places.extend(inside.map(|entry| entry.expect("an entry").path()));
        }
    }
    let as_user = |arguments: &[&str]| {
        let mut command = myclaw(&home, &["uninstall"]);
        command.env("TMPDIR", home.path().join("tmp")).args(arguments).uid(65_534).gid(65_534);
        command
    };
    home.write(".myclaw/sessions/hidden/file", "x");
    let hidden = home.path().join(".myclaw/sessions/hidden");
    for (mode, what) in [(0o700, "cannot read "), (0o755, "cannot change ")] {
        chown(&hidden, Some(0), Some(0)).expect("taken");
        std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(mode)).expect("mode");
        let part = format!("{what}{}", hidden.display());
        for arguments in [["--dry-run"], ["--yes"]] {
            hindered(&home, &mut as_user(&arguments), &part);
        }
    }
    // The owner of a directory can remove all files in it.
    chown(&hidden, USER, USER).expect("given away");
    RunningChild::run(&mut as_user(&["--yes", "--workspace"])).assert_code(0);
    assert!(!home.path().join(".myclaw").exists());
}

#[cfg(unix)]
#[test]
fn a_mounted_file_system_is_not_emptied() {
    let home = used();
    // A directory of the same file system: a file in it is a file of `elsewhere`.
    home.write("elsewhere/notes.txt", "mine");
    let (from, to) = (home.path().join("elsewhere"), home.path().join(".myclaw/sessions/a b"));
    std::fs::create_dir(&to).expect("made");
    let Some(mut command) = mounted(&home, &from, &to, &["uninstall", "--yes"]) else { return };
    hindered(&home, &mut command, &format!("a file system is mounted on {}", to.display()));
}

#[cfg(unix)]
#[test]
fn a_state_directory_that_is_a_link_goes_with_the_link() {
    use std::os::unix::fs::symlink;

    let home = used();
    let (state, disk) = (home.path().join(".myclaw"), home.path().join("disk"));
    std::fs::rename(&state, &disk).expect("moved");
    symlink(&disk, &state).expect("linked");
    uninstall(&home, &["--yes", "--workspace"]).assert_code(0);
    assert!(!disk.exists() && !state.is_symlink());
    // Of a disk that is gone the link is left.
    symlink(&disk, &state).expect("linked");
    let dry = uninstall(&home, &["--dry-run"]);
    assert!(dry.stdout().contains(".myclaw (1 file"), "{}", dry.stdout());
    uninstall(&home, &["--yes"]).assert_code(0);
    assert!(!state.is_symlink());
    symlink(&state, &state).expect("linked");
    let circle = uninstall(&home, &["--yes"]);
    circle.assert_code(1);
    assert!(circle.stderr().contains("symbolic links"), "{}", circle.stderr());
}
