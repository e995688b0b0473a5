use std::process::Command;

use myclaw_config::{Config, Environment};
use serde_json::json;

use super::*;
use crate::permissions::tests::calls::prepared_in;
use crate::permissions::{Permissions, Verdict};
use crate::{Home, SessionConfig, SessionOptions};

/// A directory that is removed afterwards.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("myclaw-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn run(&self, script: &str) {
        let status = Command::new("bash")
            .args(["-euc", script])
            .current_dir(&self.0)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.0.join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(status.status.success(), "{script}: {}", String::from_utf8_lossy(&status.stderr));
    }

    /// The verdict on a command of the main session, whose allowlist has `git`.
    fn verdict(&self, command: &str) -> String {
        let config = json!({"tools": {"exec": {
            "security": "allowlist", "allowlist": ["git", "cd", "ls"],
        }}});
        let mut config: Config = serde_json::from_value(config).unwrap();
        let environment = Environment::new([("MYCLAW_HOME", "/nowhere")], None, None);
        config.paths = Some(environment.paths().unwrap());
        let home = Home::new(environment, config.paths.clone().unwrap());
        let options =
            SessionOptions { directory: Some(self.0.clone()), ..SessionOptions::default() };
        let session = SessionConfig::new(home, std::sync::Arc::new(config), &options).unwrap();
        let permissions = Permissions::new(&session, None, &[]).unwrap();
        let call = prepared_in(&self.0, "bash", &json!({"command": command}));
        match permissions.check(&call) {
            Verdict::Allowed => "allowed".to_owned(),
            Verdict::NeedsApproval(reason) | Verdict::Denied(reason) => reason,
        }
    }
}

const PLAIN: &str = "git init -q -b main . && git config user.name a && git config user.email a@b && echo x >f && git \
                     add f && git commit -qm x && git remote add origin https://example.com/x && git config \
                     branch.main.remote origin";
/// A program that leaves a mark.
const EVIL: &str = "printf '#!/bin/sh\\ntouch %s/mark\\ncat\\n' \"$PWD\" >evil && chmod +x evil";

/// Each of these makes `git status` or `git diff` start a program, which the script proves.
const ATTACKS: &[(&str, &str, &str)] = &[
    ("git config core.fsmonitor $PWD/evil", "git status", "`core.fsmonitor` in"),
    ("git config --worktree core.fsmonitor $PWD/evil", "git status", "`core.fsmonitor` in"),
    (
        "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $PWD/evil",
        "git status",
        "`core.fsmonitor` in",
    ),
    (
        "printf '[core]\\nfsmonitor = %s/evil\\n' $PWD >.git/more; git config include.path more",
        "git status",
        "`include.path` in",
    ),
    (
        "printf '[core]\\nfsmonitor = %s/evil\\n' $PWD >more; git config includeIf.gitdir:/.path $PWD/more",
        "git status",
        "`includeif ….path` in",
    ),
    (
        "printf '[CoRe]FSMonitor = %s/evil\\n' $PWD >>.git/config",
        "git status",
        "the section `[CoRe]",
    ),
    (
        "printf '[core]\\n\\tfsm\\\\\\nonitor = %s/evil\\n' $PWD >/dev/null; git config core.fsmonitor $PWD/evil",
        "git status",
        "`core.fsmonitor` in",
    ),
    (
        "git config filter.x.clean $PWD/evil; echo 'f filter=x' >.gitattributes; touch -d yesterday f",
        "git status",
        "`filter ….clean` in",
    ),
    (
        "git config diff.x.textconv $PWD/evil; echo 'f diff=x' >.git/info/attributes; echo y >f",
        "git diff",
        "`diff ….textconv` in",
    ),
    ("git config diff.external $PWD/evil; echo y >f", "git diff", "`diff.external` in"),
    (
        "mv evil .git/hooks/post-index-change; sleep 0; touch -d yesterday f",
        "git status",
        "the hook post-index-change in",
    ),
    (
        "mkdir e; (cd e; git init -q .; git -c user.name=a -c user.email=a commit -q --allow-empty -m x; git config \
         core.fsmonitor $OLDPWD/evil); git add e 2>/dev/null",
        "git status",
        "the repository e inside it",
    ),
    (
        "mkdir e; (cd e; git init -q .; git -c user.name=a -c user.email=a commit -q --allow-empty -m x; git config \
         core.fsmonitor $OLDPWD/evil); git update-index --index-version 4; git add e 2>/dev/null",
        "git status",
        "the repository e inside it",
    ),
    (
        "mv .git .gut; echo 'gitdir: .gut' >.git; git config core.fsmonitor $PWD/evil",
        "git status",
        "`core.fsmonitor` in",
    ),
    (
        "git worktree add -q w; git config core.fsmonitor $PWD/evil; cd w",
        "git status",
        "`core.fsmonitor` in",
    ),
];

#[test]
fn a_repository_that_makes_git_start_a_program_is_asked_about() {
    for (index, (attack, command, expected)) in ATTACKS.iter().enumerate() {
        let directory = Directory::new(&format!("repository-{index}"));
        directory.run(&format!("{PLAIN}\n{EVIL}"));
        assert_eq!(directory.verdict(command), "allowed", "before {attack}");
        directory.run(&format!("{attack}\n"));
        let inner = if attack.ends_with("cd w") { "cd w && " } else { "" };
        let verdict = directory.verdict(&format!("{inner}{command}"));
        assert!(verdict.contains(expected), "{attack}: {verdict}");
        // git itself obeys: the attack is real.
        directory
            .run(&format!("{inner}{command} >out 2>&1 || true; ls -a {}", directory.0.display()));
        assert!(directory.0.join("mark").exists(), "{attack} starts nothing");
    }
}

#[test]
fn a_bare_repository_in_a_directory_is_looked_at_as_well() {
    let directory = Directory::new("repository-bare");
    directory.run(&format!("{PLAIN}; {EVIL}; git init -q --bare e; mkdir src"));
    assert_eq!(directory.verdict("cd src && git status"), "allowed");
    assert_eq!(directory.verdict("cd e && git log"), "allowed");
    directory.run("cd e; git config core.bare false; git config core.worktree ..; git config core.fsmonitor ../evil");
    let verdict = directory.verdict("cd e && git status");
    assert!(verdict.contains("`core.worktree` in") && verdict.contains("/e/config"), "{verdict}");
    assert_eq!(directory.verdict("git status"), "allowed");
    assert!(directory.verdict("git --git-dir=e log").contains("not among"));
}

#[test]
fn git_may_look_further_up_than_a_repository_that_is_broken() {
    let directory = Directory::new("repository-broken");
    directory.run(&format!(
        "mkdir p; cd p; {PLAIN}; {EVIL}; git config core.fsmonitor ./evil; mkdir -p a/.git/objects a/.git/refs"
    ));
    for head in ["", "ref:refs/heads/main", "0123\n", "ref: refs/heads/ \n"] {
        fs::write(directory.0.join("p/a/.git/HEAD"), head).unwrap();
        let verdict = directory.verdict("cd p/a && git status");
        assert!(verdict.contains("core.fsmonitor"), "{head:?}: {verdict}");
    }
    directory.run("cd p/a; rm -r .git; git init -q .");
    assert_eq!(directory.verdict("cd p/a && git status"), "allowed");
}

#[test]
fn hooks_matter_where_the_repository_changes() {
    let directory = Directory::new("repository-hooks");
    directory.run(&format!("{PLAIN}; {EVIL}"));
    assert_eq!(directory.verdict("git commit -m y"), "allowed");
    directory.run("mv evil .git/hooks/pre-commit");
    assert_eq!(directory.verdict("git status"), "allowed");
    let verdict = directory.verdict("git commit -m y");
    assert!(verdict.contains("the hook pre-commit in"), "{verdict}");
}

#[test]
fn files_that_cannot_be_read_count_as_programs() {
    let directory = Directory::new("repository-odd");
    for (odd, expected) in [
        ("rm .git/config; mkfifo .git/config", "what cannot be read of"),
        ("rm .git/index; mkfifo .git/index", "what cannot be read of"),
        ("rm .git/config; ln -s /dev/zero .git/config", "what cannot be read of"),
        ("head -c 300000 /dev/zero | tr '\\0' '#' >.git/config", "what cannot be read of"),
        ("printf 'DIRC\\0\\0\\0\\2\\0\\0\\0\\1' >.git/index", "what cannot be read of"),
        ("git update-index --split-index", "what cannot be read of"),
        ("mkfifo .git/commondir", "the unusual file"),
        ("rm -rf .git; echo 'gitdir  x' >.git", "the unusual file"),
        ("printf '[user]\\nname = a \\\\\\nx\\n' >>.git/config", "`user.name` in"),
        ("printf 'x = y\\n' >.git/config", "`.x` in"),
        ("printf '[core \"a\\\\\"b\"]\\nx = y\\n' >.git/config", "the section"),
    ] {
        let _ = fs::remove_dir_all(directory.0.join(".git"));
        let _ = fs::remove_file(directory.0.join(".git"));
        directory.run(&format!("{PLAIN}\n{odd}"));
        let verdict = directory.verdict("git log");
        assert!(verdict.contains(expected), "{odd}: {verdict}");
    }
    let _ = fs::remove_dir_all(directory.0.join(".git"));
    directory.run(PLAIN);
    assert!(directory.verdict("cd nowhere && git log").contains("does not exist"));
}

/// git takes a repository for a part of the outer one as soon as a commit says so, and runs what its config names.
#[test]
fn a_commit_with_a_repository_in_it_is_not_switched_to_without_a_question() {
    for (index, command) in [
        "git checkout other",
        "git checkout -f other",
        "git switch other",
        "git reset --hard other",
        "git merge --ff-only other",
        "git restore -s other -SW .",
        "git cherry-pick -n other",
        "git stash apply",
    ]
    .into_iter()
    .enumerate()
    {
        let directory = Directory::new(&format!("switch-{index}"));
        directory.run(&format!("{PLAIN}\n{EVIL}"));
        directory.run(
            "mkdir keep; git init -q sub; cd sub; git config user.name a; git config user.email a@b; \
             git commit -q --allow-empty -m a; cd ..; git checkout -q -b other; \
             git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git commit -q -m sub; \
             mv sub aside; git checkout -q -; rm -rf sub; mv aside sub",
        );
        directory.run("git -C sub config core.fsmonitor $PWD/evil");
        let verdict = directory.verdict(command);
        assert!(
            verdict.contains("the repository") && verdict.contains("/sub"),
            "{command}: {verdict}"
        );
        assert_eq!(directory.verdict("git log"), "allowed", "{command}");
        // git itself obeys: the attack is real.
        if command.contains("checkout") || command.contains("switch") {
            directory.run(&format!("{command} && git status; ls mark"));
            directory.run("git checkout -q -f -; rm mark");
        }
        directory.run("rm -rf sub");
        assert_eq!(directory.verdict(command), "allowed", "{command} without a repository");
    }
}
