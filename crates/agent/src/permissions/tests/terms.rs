//! What an approval is bound to: one test for each thing that changes it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use myclaw_engine::{
    ApprovalTerms, CallEffect, CommandLine, JobCommand, JobInput, ScopeKind, Target, TargetAccess,
};
use serde_json::{Value, json};

use super::calls::prepared_in;
use super::{Permissions, session};

/// A directory with a script, and a session in it whose calls are all asked about.
struct Place {
    directory: tempfile::TempDir,
    permissions: Permissions,
}

impl Place {
    fn new() -> Self {
        Self::with(&json!({}), "main")
    }

    fn with(sandbox: &Value, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = json!({
            "tools": {"ask": ["exec", "write", "edit", "apply_patch", "read", "grep"]},
            "agents": {"defaults": {"sandbox": sandbox}},
        });
        let mut session = session(config, name);
        session.directory = Some(directory.path().canonicalize().unwrap());
        let place = Self { directory, permissions: Permissions::new(&session, None, &[]).unwrap() };
        place.program("t.sh", "echo one\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn program(&self, name: &str, content: &str) {
        self.file(name, content);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn terms(&self, tool: &str, arguments: &Value) -> ApprovalTerms {
        let call = prepared_in(&self.path(""), tool, arguments);
        let reason = match self.permissions.check(&call) {
            super::Verdict::NeedsApproval(reason) => format!("policy: {reason}"),
            other => panic!("{other:?}"),
        };
        self.permissions.terms(&call, &reason, None)
    }

    /// The id of what "always" covers for a command; `None` if it cannot be approved for good.
    fn command(&self, command: &str) -> Option<String> {
        self.call("bash", &json!({"command": command}))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Option<String> {
        self.terms(tool, arguments).always.first().map(|scope| scope.id().to_owned())
    }

    fn scopes(&self, tool: &str, arguments: &Value) -> Vec<(ScopeKind, String, String)> {
        let root = self.path("").display().to_string();
        let shown = |text: &str| text.replace(root.trim_end_matches('/'), "@");
        let scopes = self.terms(tool, arguments).always;
        scopes.iter().map(|it| (it.kind(), shown(it.covers()), it.id().to_owned())).collect()
    }
}

/// Checks that `change` changes what "always" covers for `command`, and that nothing else did.
fn is_bound(command: &str, change: impl FnOnce(&Place)) {
    let place = Place::new();
    let before = place.command(command).expect(command);
    assert_eq!(place.command(command), Some(before.clone()), "{command}");
    change(&place);
    assert_ne!(place.command(command), Some(before), "{command}");
}

#[test]
fn the_content_of_a_script_is_bound_however_it_is_started() {
    for command in [
        "./t.sh",
        "sh t.sh",
        "sh -e ./t.sh",
        "sh < t.sh",
        ". ./t.sh",
        "env A=1 ./t.sh",
        "nice -n 5 sh t.sh",
        "sh -c './t.sh a'",
        "sh -c 'cd . && sh t.sh'",
        "cd . && ./t.sh",
        "(./t.sh)",
        "if true; then ./t.sh; fi",
        "awk -ft.sh",
        "make --file=t.sh",
        "tar -cf /dev/null --checkpoint-action=exec=./t.sh .",
        "git -c alias.x=!f=1=./t.sh x",
        "timeout 5 ./t.sh > out",
        "A=1 ./t.sh",
    ] {
        is_bound(command, |place| place.program("t.sh", "echo two\n"));
    }
}

/// By this an answer "no" withdraws earlier answers.
#[test]
fn a_command_with_other_scripts_is_the_same_command() {
    let place = Place::new();
    let id = |command: &str| {
        place.terms("exec", &json!({"command": command})).command_id.expect("a command")
    };
    let (before, covers) = (id("sh t.sh"), place.command("sh t.sh"));
    place.program("t.sh", "echo two\n");
    assert_eq!(id("sh t.sh"), before);
    assert_ne!(place.command("sh t.sh"), covers);
    for other in ["sh  t.sh", "sh ./t.sh", "sh t.sh 2", "A=1 sh t.sh"] {
        assert_ne!(id(other), before, "{other}");
    }
    // One that cannot be approved for good is a command as well.
    let terms = place.terms("exec", &json!({"command": "sh *.sh"}));
    assert!(terms.always.is_empty() && terms.command_id.is_some());
    assert_eq!(place.terms("write", &json!({"path": "a", "content": ""})).command_id, None);
}

#[test]
fn the_same_content_in_another_file_is_another_script() {
    is_bound("./t.sh", |place| {
        fs::rename(place.path("t.sh"), place.path("old.sh")).unwrap();
        place.program("t.sh", "echo one\n");
    });
}

#[test]
fn a_script_that_comes_into_being_is_bound() {
    is_bound("sh ./later.sh", |place| place.file("later.sh", "echo\n"));
    is_bound("cd sub && ./x.sh", |place| place.program("sub/x.sh", "echo\n"));
}

/// Names of files and what is in them.
type Files = &'static [(&'static str, &'static str)];

/// Files that a program obeys without being told: the command, the files before, and a file that is written then.
const OBEYED: &[(&str, Files, (&str, &str))] = &[
    ("make all", &[], ("Makefile", "all:\n")),
    ("make", &[("Makefile", "all:\n")], ("Makefile", "all:\n\t./x\n")),
    ("make", &[("Makefile", "all:\n")], ("GNUmakefile", "all:\n\t./x\n")),
    ("make", &[("Makefile", "include more.mk\n"), ("more.mk", "")], ("more.mk", "all:\n\t./x\n")),
    ("make", &[("Makefile", "-include rules\n"), ("rules", "")], ("rules", "all:\n\t./x\n")),
    ("make", &[("Makefile", "include a.mk\n"), ("a.mk", "include b\n"), ("b", "")], ("b", "x:\n")),
    (
        "make",
        &[("Makefile", "all:\n\tsh tools/u.sh\n"), ("tools/u.sh", "")],
        ("tools/u.sh", "id\n"),
    ),
    ("make -C g", &[("g/Makefile", "all:\n")], ("g/Makefile", "all:\n\t./x\n")),
    ("make -Cg", &[("g/Makefile", "all:\n")], ("g/Makefile", "all:\n\t./x\n")),
    ("make --directory=g", &[("g/Makefile", "all:\n")], ("g/Makefile", "all:\n\t./x\n")),
    ("make -f x.mk", &[("x.mk", "include y.mk\n"), ("y.mk", "")], ("y.mk", "all:\n\t./x\n")),
    ("cd g && make", &[("g/Makefile", "all:\n")], ("g/Makefile", "all:\n\t./x\n")),
    ("nice make", &[("Makefile", "all:\n")], ("Makefile", "all:\n\t./x\n")),
    ("sh -c 'cd g; make all'", &[("g/Makefile", "all:\n")], ("g/Makefile", "all:\n\t./x\n")),
    ("npm test", &[], ("package.json", "{}")),
    (
        "npm run x",
        &[("package.json", r#"{"scripts":{"x":"node b.js"}}"#), ("b.js", "")],
        ("b.js", "1"),
    ),
    ("npm --prefix g run x", &[("g/package.json", "{}")], ("g/package.json", "{\"scripts\":{}}")),
    ("npm --prefix=g run x", &[("g/package.json", "{}")], ("g/package.json", "{\"scripts\":{}}")),
    ("npm ci", &[], (".npmrc", "script-shell=./x")),
    ("cd a/b && npm run x", &[("a/b/c", ""), ("a/package.json", "{}")], ("a/package.json", "{ }")),
    ("yarn x", &[], (".yarnrc.yml", "yarnPath: ./x")),
    ("pnpm x", &[], (".pnpmfile.cjs", "1")),
    ("cargo test", &[("Cargo.toml", "")], ("build.rs", "fn main() {}")),
    ("cargo test", &[("Cargo.toml", "")], (".cargo/config.toml", "[target]")),
    (
        "cargo build --manifest-path g/Cargo.toml",
        &[("g/Cargo.toml", "")],
        ("g/build.rs", "fn main() {}"),
    ),
    ("cd a/b && cargo test", &[("a/b/c", "")], ("a/.cargo/config", "[target]")),
    ("cargo +nightly test", &[], ("rust-toolchain", "x")),
    ("just x", &[("justfile", "import 'x.just'\n"), ("x.just", "")], ("x.just", "x:\n ./x\n")),
    ("just x", &[("justfile", "mod x\n")], ("justfile", "mod y\n")),
    ("just -d g -f g/j x", &[("g/j", "import 'k'\n"), ("g/k", "")], ("g/k", "x:\n ./x\n")),
    ("pytest", &[], ("conftest.py", "1")),
    ("pytest sub", &[("sub/x", "")], ("sub/conftest.py", "1")),
    ("pytest sub/test_a.py", &[("sub/test_a.py", "")], ("sub/conftest.py", "1")),
    ("pytest", &[("pytest.ini", "")], ("pytest.ini", "[pytest]\naddopts = -p x")),
    ("python3 -m pytest", &[], ("conftest.py", "1")),
    ("python3 -m pytest", &[], ("pytest.py", "1")),
    ("python3 -ma.b", &[("a/x", "")], ("a/b.py", "1")),
    ("python3 t.py", &[("t.py", "run('./u.sh')"), ("u.sh", "")], ("u.sh", "id")),
    ("python3 g/t.py", &[("g/t.py", "import m"), ("g/m.py", "")], ("g/m.py", "1")),
    ("python3 t.py", &[("t.py", "import os, json as j  # x")], ("json.py", "1")),
    ("python3 t.py", &[("t.py", "import p.q.r")], ("p/q/__init__.py", "1")),
    ("python3 t.py", &[("t.py", "try:\n    from p import (a, b as c)")], ("p/b.py", "1")),
    ("python3 t.py", &[("t.py", "from m import *"), ("m.py", "import n")], ("n.py", "1")),
    (
        "python3 t.py",
        &[("t.py", "import p"), ("p/__init__.py", "from . import a")],
        ("p/a.py", "1"),
    ),
    ("python3 t.py", &[("t.py", "import p.a"), ("p/a.py", "from ..b import x")], ("b.py", "1")),
    ("node t.js", &[("t.js", "const b = require('./b')"), ("b.js", "")], ("b.js", "1")),
    ("node t.mjs", &[("t.mjs", "import b from \"./lib\";")], ("lib/index.js", "1")),
    ("node g/t.ts", &[("g/t.ts", "export * from '../b'")], ("b.ts", "1")),
    ("docker compose up", &[("compose.yaml", "")], ("compose.yaml", "services:")),
    ("docker compose up", &[("compose.yaml", "include: [a.yml]"), ("a.yml", "")], ("a.yml", "x:")),
    (
        "docker compose -f g/c.yml up",
        &[("g/c.yml", "extends: {file: b.yml}"), ("g/b.yml", "")],
        ("g/b.yml", "x:"),
    ),
    ("docker compose up", &[("compose.yaml", "")], ("compose.override.yml", "services:")),
    ("docker-compose up", &[("docker-compose.yml", "")], (".env", "X=1")),
    ("docker build g", &[("g/Dockerfile", "")], ("g/Dockerfile", "RUN x")),
    ("rake x", &[], ("Rakefile", "sh 'x'")),
    ("tox", &[("tox.ini", "")], ("tox.ini", "[testenv]")),
    ("hg log", &[], (".hg/hgrc", "[hooks]")),
    ("uv run x", &[], ("pyproject.toml", "[tool.uv]")),
    ("go test", &[], ("go.work", "use ./x")),
    ("mvn test", &[("pom.xml", "")], (".mvn/jvm.config", "-javaagent:x")),
    ("sh t.sh", &[("t.sh", "sh u.sh\n"), ("u.sh", "")], ("u.sh", "id\n")),
    ("sh t.sh", &[("t.sh", ". ./lib\n"), ("lib", "")], ("lib", "id\n")),
    ("./t.sh", &[("u.sh", "sh v.sh"), ("v.sh", ""), ("w", "./t.sh u.sh")], ("t.sh", "sh v.sh\n")),
];

#[test]
fn files_that_a_program_obeys_without_being_told_are_bound() {
    for (command, before, (name, content)) in OBEYED {
        let place = Place::new();
        before.iter().for_each(|(name, content)| place.file(name, content));
        let covers = place.command(command).unwrap_or_else(|| panic!("{command}"));
        assert_eq!(place.command(command), Some(covers.clone()), "{command}");
        place.file("unrelated", "x");
        assert_eq!(place.command(command), Some(covers.clone()), "{command}");
        place.file(name, content);
        assert_ne!(place.command(command), Some(covers), "{command}: {name}");
    }
}

#[test]
fn what_nobody_can_know_of_obeyed_files_is_approved_once() {
    let place = Place::new();
    place.file("g/Makefile", "include $(wildcard *.mk)\n");
    place.file("long/Makefile", &"# a line\n".repeat(200_000));
    for command in ["make -C g", "cd long && make", "jest", "npx jest", "nix build", "mise run x"] {
        let terms = place.terms("bash", &json!({"command": command}));
        assert_eq!(terms.always, [], "{command}");
        assert!(terms.shown.iter().any(|fact| fact.label == "only once"), "{command}");
    }
}

/// What is done to a repository `g` so that git may start a program there.
const STARTS: &[&str] = &[
    "git -C g config alias.z '!./evil'",
    "git -C g config core.fsmonitor ./evil",
    "git -C g config core.hooksPath hooks",
    "git -C g config core.sshCommand ./evil",
    "git -C g config core.pager ./evil",
    "git -C g config diff.x.textconv ./evil",
    "git -C g config filter.x.smudge ./evil",
    "git -C g config include.path ../more",
    "git -C g config includeIf.gitdir:/.path ../more",
    "git -C g config credential.helper '!./evil'",
    "git -C g config extensions.worktreeConfig true; git -C g config --worktree alias.z '!./evil'",
    "printf '#!/bin/sh\n' >g/.git/hooks/post-index-change; chmod +x g/.git/hooks/*",
    "rm -rf g/.git; git init -q h; git -C h config alias.z '!./evil'; echo 'gitdir: ../h/.git' >g/.git",
    "git init -q g/i; git -C g/i -c user.name=a -c user.email=a commit -q --allow-empty -m x; git -C g add i 2>/dev/null",
];

#[test]
fn git_is_approved_for_good_only_where_the_repository_starts_nothing() {
    for change in STARTS {
        let place = Place::new();
        let run = |script: &str| {
            let status = std::process::Command::new("bash")
                .args(["-euc", script])
                .current_dir(place.path(""))
                .env("HOME", place.path(""))
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .status();
            assert!(status.unwrap().success(), "{script}");
        };
        run("git init -q g; mkdir -p g/src");
        let commands = [
            "git -C g z",
            "git -C g/src status",
            "cd g && git z",
            "git --git-dir=g/.git --work-tree g z",
            "GIT_DIR=g/.git git z",
            "env GIT_DIR=g/.git git z",
            "nice git -C g diff",
            "sh -c 'cd g; git z'",
            "(cd g/src && git log | head)",
        ];
        for command in commands {
            assert!(place.command(command).is_some(), "{command} before {change}");
        }
        run(change);
        for command in commands {
            let terms = place.terms("bash", &json!({"command": command}));
            assert_eq!(terms.always, [], "{command} after {change}");
        }
    }
}

#[test]
fn hooks_count_for_commands_of_git_that_may_run_them() {
    let place = Place::new();
    fs::create_dir_all(place.path(".git/objects")).unwrap();
    fs::create_dir_all(place.path(".git/refs")).unwrap();
    place.file(".git/HEAD", "ref: refs/heads/main\n");
    place.program(".git/hooks/pre-commit", "#!/bin/sh\n");
    assert!(place.command("git status").is_some());
    for command in ["git commit -m x", "git z", "git -c a.b=c status -x", "git push"] {
        assert_eq!(place.command(command), None, "{command}");
    }
    fs::remove_file(place.path(".git/hooks/pre-commit")).unwrap();
    assert!(place.command("git commit -m x").is_some());
    for command in [
        "git -c include.path=more z",
        "git -c core.hooksPath=h commit -m x",
        "git --exec-path=h z",
        "git --config-env=alias.z=X z",
    ] {
        assert_eq!(place.command(command), None, "{command}");
    }
}

#[test]
fn the_config_of_the_owner_is_bound_as_well() {
    let mut place = Place::new();
    place.file("home/.gitconfig", "[alias]\n\tz = !./x\n");
    let home = place.path("home").display().to_string();
    place.permissions.environment = place.permissions.environment.clone().with("HOME", home);
    for (command, file) in [
        ("git z", "home/.gitconfig"),
        ("git z", "home/.config/git/config"),
        ("npm run x", "home/.npmrc"),
        ("cargo test", "home/.cargo/config.toml"),
    ] {
        let before = place.command(command).expect(command);
        place.file(file, "changed\n");
        assert_ne!(place.command(command), Some(before), "{command}: {file}");
    }
}

#[test]
fn the_program_behind_the_first_line_of_a_script_is_bound() {
    let place = Place::new();
    place.program("run", "#!/bin/sh\n");
    place.program("t.sh", &format!("#!{}\n", place.path("run").display()));
    let before = place.command("./t.sh");
    place.program("run", "#!/bin/sh\necho two\n");
    assert_ne!(place.command("./t.sh"), before);
}

#[test]
fn a_program_in_the_path_is_bound_by_its_content_and_by_where_it_is() {
    let mut place = Place::new();
    place.program("bin/tool", "#!/bin/sh\n");
    place.program("other/tool", "#!/bin/sh\n");
    let path = |name: &str, place: &Place| format!("{}:/usr/bin:/bin", place.path(name).display());
    let bin = path("bin", &place);
    place.permissions.environment = place.permissions.environment.clone().with("PATH", bin);
    let before = place.command("tool x");
    place.program("bin/tool", "#!/bin/sh\necho two\n");
    let after = place.command("tool x");
    assert_ne!(after, before);
    let launched = place.command("nice tool x");
    place.program("bin/tool", "#!/bin/sh\necho three\n");
    assert_ne!(place.command("nice tool x"), launched, "a program that another one starts");
    // The same path leads to another file.
    let before = place.command("tool x");
    fs::remove_file(place.path("bin/tool")).unwrap();
    symlink(place.path("other/tool"), place.path("bin/tool")).unwrap();
    assert_ne!(place.command("tool x"), before);
}

#[test]
fn files_that_a_command_only_reads_or_writes_are_not_bound() {
    let place = Place::new();
    place.file("notes", "one\n");
    for command in ["cat notes", "grep -n one notes | wc -l", "printf x >> notes", "echo a > notes"]
    {
        let before = place.command(command).expect(command);
        place.file("notes", &format!("{command}\n"));
        assert_eq!(place.command(command), Some(before), "{command}");
    }
    // A program of the agent's own may have such a name.
    place.program("cat", "#!/bin/sh\n");
    let before = place.command("./cat notes");
    place.file("notes", "other\n");
    assert_ne!(place.command("./cat notes"), before);
}

#[test]
fn what_is_only_known_when_it_runs_cannot_be_approved_for_good() {
    let place = Place::new();
    for command in [
        "sh *.sh",
        "$X",
        "./t$X.sh",
        "sh $(cat name)",
        "sh `cat name`",
        "PATH=. tool",
        "export PATH=.; tool",
        "sh <<E\n./t.sh\nE",
        "sh -c 'x=t.sh; ./$x'",
        "cd $X && ./t.sh",
        "cat t.sh | sh",
        "cat t.sh|bash -s",
        "head -n 5 t.sh | \"sh\"",
        "grep . t.sh | sudo /bin/sh",
        "cat t.py | python3.12 -",
        "cat a.patch | git apply",
        "xargs sh < list",
        "xargs -a list rm",
        "echo t.sh | xargs sh",
        "printf 'sh t%ssh' . | timeout 5 dash",
    ] {
        let terms = place.terms("bash", &json!({"command": command}));
        assert_eq!(terms.always, [], "{command}");
        assert!(terms.shown.iter().any(|fact| fact.label == "only once"), "{command}");
    }
    for command in [
        "ls *.sh",
        "echo $HOME",
        "git commit -m 'a; b (c)'",
        "cargo test 2>&1 | tail -n 5",
        "cat t.sh | wc -l",
        "false || sh t.sh",
    ] {
        assert!(place.command(command).is_some(), "{command}");
    }
}

/// Lines in which a program may run what it reads, also in quotes.
const RUN_INPUT: &[&str] = &[
    "flock /tmp/l -c 'cat t.sh | sh'",
    "flock -c \"head t.sh | bash\" /tmp/l",
    "watch 'cat t.sh | sh'",
    "watch -n1 \"grep . list | xargs sh\"",
    "su -c 'cat t.sh | sh' ann",
    "su ann -c 'sh *.sh'",
    "sudo sh -c 'cat t.sh | sh'",
    "ssh localhost 'cat t.sh | sh'",
    "script -qc 'cat t.sh | sh' log",
    "timeout 5 sh -c 'cat t.sh | python3'",
    "nice bash -c 'cat t.sh | perl'",
    "docker exec x sh -c 'cat t.sh | sh'",
    "find . -exec sh -c 'cat t.sh | sh' ;",
    "echo t.sh | xargs sh -c",
    "cat list | env -S sh",
    "env -S 'cat t.sh | sh'",
    "cat t.sh | busybox sh",
    "cat t.sql | sqlite3 x",
    "cat t.pl | ruby3.1",
    "cat t.sh | ksh93",
    "cat t.sh | ./run",
    "cat t.sh | (cat; sh)",
    "cat t.sh | while true; do sh; done",
    "ls | sed 's/.*/sh &/e'",
    "ls | sed -n 'w out'",
    "cat t.awk | awk -f -",
    "cat t | parallel",
    "git commit -m \"$(cat t.sh | sh)\"",
];

/// Lines in which programs read text only.
const READ_INPUT: &[&str] = &[
    "ls | sed 's/a/b/'",
    "ls | sed -n -e 's/^[^.]*//p' -e '1,5p'",
    "cat x | grep y | head",
    "cat x | sort | uniq -c | sort -rn",
    "cat x.json | jq .",
    "cat x.json | jq -r '.a | .b'",
    "ls | tee list",
    "cat x | timeout 5 grep y",
    "git log --oneline | head -n 3",
    "ls | cut -c1-3; sh t.sh",
    "ps aux | grep sh | wc -l",
    "git commit -m 'read a | b'",
    "grep -E 'sh|bash' t.sh",
];

#[test]
fn an_input_that_is_run_is_approved_once_and_one_that_is_read_for_good() {
    let place = Place::new();
    for command in RUN_INPUT {
        let terms = place.terms("bash", &json!({"command": command}));
        assert_eq!(terms.always, [], "{command}");
        assert!(terms.shown.iter().any(|fact| fact.label == "only once"), "{command}");
    }
    for command in READ_INPUT {
        assert!(place.command(command).is_some(), "{command}");
    }
}

#[test]
fn the_call_itself_is_bound() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    let with = |arguments: Value| place.call("bash", &arguments).unwrap();
    let plain = with(json!({"command": "echo a"}));
    // How long it may take does not change what it does.
    assert_eq!(plain, with(json!({"cmd": "echo a", "timeout": 5, "cwd": "."})));
    assert_eq!(plain, with(json!({"command": "echo a", "workdir": "sub/.."})));
    for other in [
        json!({"command": "echo b"}),
        json!({"command": "echo a", "workdir": "sub"}),
        json!({"command": "echo a", "env": {"A": "b"}}),
    ] {
        assert_ne!(plain, with(other.clone()), "{other}");
    }
    let env =
        |value: &str| with(json!({"command": "git diff", "env": {"GIT_EXTERNAL_DIFF": value}}));
    assert_ne!(env("./t.sh"), env("./other.sh"));
    let before = env("./t.sh");
    place.program("t.sh", "echo two\n");
    assert_ne!(env("./t.sh"), before, "a program that a variable names");
}

#[test]
fn input_is_bound_with_the_job_that_gets_it() {
    let place = Place::new();
    let id = |input: &str, command: &str, directory: &str| {
        let job =
            JobCommand { command: command.to_owned(), is_whole: true, directory: directory.into() };
        let mut call = prepared_in(&place.path(""), "read", &json!({"path": "x"}));
        let input = JobInput { input: input.to_owned(), job: Some(job) };
        call.subject.effects = vec![CallEffect::Input(input)];
        place.permissions.terms(&call, "policy: x", None).always[0].id().to_owned()
    };
    let plain = id("submit ls", "sh", "/a");
    assert_eq!(plain, id("submit ls", "sh", "/a"));
    for other in
        [id("submit rm", "sh", "/a"), id("submit ls", "python3", "/a"), id("submit ls", "sh", "/b")]
    {
        assert_ne!(plain, other);
    }
}

#[test]
fn what_only_the_owner_decides_is_never_approved_for_good() {
    let place = Place::new();
    let always = |effects: Vec<CallEffect>| {
        let mut call = prepared_in(&place.path(""), "read", &json!({"path": "x"}));
        call.subject.effects = effects;
        place.permissions.terms(&call, "policy: x", None).always
    };
    let target = |name: &str| {
        CallEffect::Touch(Target { access: TargetAccess::Write, path: place.path(name) })
    };
    let owners = || CallEffect::OwnerDecides("a message to another person".to_owned());
    assert_eq!(always(vec![owners()]), []);
    assert_eq!(always(vec![target("a"), owners()]), []);
    assert_eq!(always(vec![CallEffect::ChangeConfig]), []);
    // The same arguments may lead to another file.
    let to = |name: &str| {
        let effects = vec![target(name), CallEffect::Connect("http://example.org".to_owned())];
        always(effects)[0].id().to_owned()
    };
    assert_eq!(to("a"), to("a"));
    assert_ne!(to("a"), to("b"));
}

#[test]
fn a_question_shows_no_file_that_a_sandboxed_session_may_not_read() {
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().canonicalize().unwrap().join("s.sh");
    fs::write(&outside, "echo private\n").unwrap();
    for (name, is_shown) in [("main", true), ("trip", false)] {
        let place = Place::with(&json!({}), name);
        let command = format!("sh {}; sh t.sh", outside.display());
        let bound = place.terms("bash", &json!({"command": command})).bound;
        let text = |path: &Path| {
            let label = format!("file {}", path.display());
            bound.iter().find(|fact| fact.label == label).unwrap().text.clone()
        };
        assert_eq!(text(&outside).is_some(), is_shown, "{name}");
        assert_eq!(text(&place.path("t.sh")).as_deref(), Some("echo one\n"), "{name}");
    }
}

#[test]
fn a_change_that_hides_behind_size_and_time_is_seen() {
    let place = Place::new();
    let times = fs::metadata(place.path("t.sh")).unwrap().modified().unwrap();
    let write = |content: &str| {
        let file = fs::OpenOptions::new().write(true).truncate(true).open(place.path("t.sh"));
        let mut file = file.unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
        file.set_modified(times).unwrap();
    };
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..100 {
        write(&format!("echo {number:03}\n"));
        assert!(seen.insert(place.command("sh t.sh")), "{number} is not told from an earlier one");
    }
}

#[test]
fn a_command_that_names_very_many_files_is_asked_about_each_time() {
    let place = Place::new();
    let names = |count: usize| {
        let names = (0..count).map(|number| format!("./f{number}"));
        names.collect::<Vec<_>>().join(" ")
    };
    assert!(place.command(&format!("python3 {}", names(50))).is_some());
    assert_eq!(place.command(&format!("python3 {}", names(1_100))), None);
}

#[test]
fn command_lines_are_not_followed_endlessly_into_each_other() {
    let place = Place::new();
    let within = |depth: usize| {
        (0..depth).fold("echo a; echo b".to_owned(), |line, _| {
            format!("sh -c '{}'", line.replace('\'', "'\\''"))
        })
    };
    assert!(place.command(&within(2)).is_some());
    assert_eq!(place.command(&within(8)), None);
}

#[test]
fn how_a_command_is_started_is_bound() {
    let place = Place::new();
    let id = |change: fn(&mut CommandLine)| {
        let mut call = prepared_in(&place.path(""), "bash", &json!({"command": "echo a"}));
        for effect in &mut call.subject.effects {
            let CallEffect::Run(command) = effect else { panic!("{effect:?}") };
            change(command);
        }
        place.permissions.terms(&call, "policy: x", None).always[0].id().to_owned()
    };
    let plain = id(|_| {});
    assert_eq!(plain, id(|_| {}));
    assert_ne!(plain, id(|command| command.terminal = true));
    assert_ne!(plain, id(|command| command.background = true));
}

#[test]
fn the_directory_is_bound_behind_links() {
    let place = Place::new();
    for name in ["one", "two"] {
        fs::create_dir(place.path(name)).unwrap();
    }
    symlink("one", place.path("link")).unwrap();
    let in_link = || place.call("bash", &json!({"command": "ls", "workdir": "link"}));
    let before = in_link();
    assert_eq!(before, place.call("bash", &json!({"command": "ls", "workdir": "one"})));
    fs::remove_file(place.path("link")).unwrap();
    symlink("two", place.path("link")).unwrap();
    assert_ne!(in_link(), before);
}

#[test]
fn the_confinement_is_bound() {
    let sandboxes = [
        (json!({"mode": "off"}), "main"),
        (json!({"mode": "all"}), "main"),
        (json!({"mode": "all", "confinement": {"level": "bubblewrap"}}), "main"),
        (json!({"mode": "all", "confinement": {"network": "open"}}), "main"),
    ];
    let place = Place::new();
    let mut ids = Vec::new();
    for (sandbox, name) in sandboxes {
        let other = Place::with(&sandbox, name);
        // The same files: only the rules differ.
        let permissions = Permissions { directory: place.path(""), ..other.permissions };
        let place = Place { permissions, directory: tempfile::tempdir().unwrap() };
        for (tool, arguments) in [
            ("bash", json!({"command": "ls", "workdir": "/usr"})),
            ("write", json!({"path": "/usr/x", "content": ""})),
        ] {
            ids.push(place.call(tool, &arguments).unwrap());
        }
    }
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn file_tools_are_approved_by_path_or_by_a_directory_of_the_session() {
    let place = Place::new();
    place.file("src/a.rs", "");
    symlink("src", place.path("link")).unwrap();
    let write = |path: &str| place.scopes("write", &json!({"path": path, "content": path}));
    let a = write("src/a.rs");
    let named: Vec<(ScopeKind, &str)> = a.iter().map(|it| (it.0, it.1.as_str())).collect();
    assert_eq!(
        named,
        [
            (ScopeKind::Path, "write on @/src/a.rs, not sandboxed"),
            (ScopeKind::Directory, "write on every file in @/src, not sandboxed")
        ]
    );
    assert_eq!(write("link/a.rs"), a, "the path behind a link");
    let b = write("src/b.rs");
    assert_ne!(a[0].2, b[0].2);
    assert_eq!(a[1].2, b[1].2);
    assert_ne!(write("src/below/c.rs")[1].2, a[1].2, "what is below counts as another directory");
    let edit = json!({"path": "src/a.rs", "oldText": "a", "newText": "b"});
    assert_ne!(place.scopes("edit", &edit)[0].2, a[0].2, "another tool");
    assert_ne!(place.scopes("read", &json!({"path": "src/a.rs"}))[0].2, a[0].2);
}

#[test]
fn no_directory_covers_places_from_which_programs_start() {
    let place = Place::new();
    let outside = tempfile::tempdir().unwrap();
    for path in [
        ".git/config",
        "sub/.git/hooks/x",
        ".envrc",
        "sub/Makefile",
        "package.json",
        ".vscode/tasks.json",
        "AGENTS.md",
        "t.sh",
        outside.path().join("x").to_str().unwrap(),
        "/root/.bashrc",
    ] {
        let scopes = place.scopes("write", &json!({"path": path, "content": ""}));
        let kinds: Vec<ScopeKind> = scopes.iter().map(|scope| scope.0).collect();
        assert_eq!(kinds, [ScopeKind::Path], "{path}");
    }
}

#[test]
fn a_patch_is_approved_with_all_its_files() {
    let place = Place::new();
    let patch = |files: &[&str]| {
        let parts: String =
            files.iter().map(|file| format!("*** Add File: {file}\n+x\n")).collect();
        json!({"patch": format!("*** Begin Patch\n{parts}*** End Patch")})
    };
    let one = place.scopes("apply_patch", &patch(&["a", "b"]));
    assert_eq!(one.len(), 2);
    assert_eq!(one, place.scopes("apply_patch", &patch(&["b", "a"])));
    assert_ne!(one[0].2, place.scopes("apply_patch", &patch(&["a", "c"]))[0].2);
    assert_eq!(place.scopes("apply_patch", &patch(&["a", "sub/b"])).len(), 1);
    let deleted = "*** Begin Patch\n*** Delete File: t.sh\n*** End Patch";
    let added = "*** Begin Patch\n*** Update File: t.sh\n@@\n-echo one\n+echo two\n*** End Patch";
    let scope = |patch: &str| place.scopes("apply_patch", &json!({"patch": patch}))[0].2.clone();
    assert_ne!(scope(deleted), scope(added));
}

#[test]
fn a_hook_asks_about_the_very_call() {
    let place = Place::new();
    let terms = |content: &str, reason: &str| {
        let arguments = json!({"path": "a", "content": content});
        let call = prepared_in(&place.path(""), "write", &arguments);
        let terms = place.permissions.terms(&call, reason, None);
        let scopes: Vec<_> =
            terms.always.iter().map(|scope| (scope.kind(), scope.id().to_owned())).collect();
        scopes
    };
    let one = terms("x", "hook: a reason");
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].0, ScopeKind::Call);
    assert_eq!(one, terms("x", "hook: a reason"));
    assert_ne!(one, terms("y", "hook: a reason"));
    assert_ne!(one, terms("x", "hook: another reason"));
}

#[test]
fn the_fast_memory_of_digests_is_not_fooled() {
    let place = Place::new();
    let bound = |place: &Place| place.terms("bash", &json!({"command": "sh t.sh"})).bound;
    let before = bound(&place);
    let script = place.path("t.sh");
    let times = fs::metadata(&script).unwrap();
    // As many bytes, and the old time of the last change of the content.
    fs::write(&script, "echo two\n").unwrap();
    let file = fs::File::options().write(true).open(&script).unwrap();
    file.set_modified(times.modified().unwrap()).unwrap();
    let after = bound(&place);
    let changed: Vec<&str> = after
        .iter()
        .zip(&before)
        .filter(|(one, other)| one != other)
        .map(|(one, _)| one.text.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(changed, ["echo two\n"]);
    assert!(Path::new(&after[0].label.replace("file ", "")).is_absolute());
}
