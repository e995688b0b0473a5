//! Paths inside a workspace that stay as they are although the workspace may be changed, and files outside of it whose
//! modes, owners, times and attributes Landlock does not guard. From the side of a party that runs commands inside.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_exec::{ChildSpec, Exit};
use myclaw_sandbox::{Confined, Confinement, Level, Sandbox, SandboxError, probe};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

/// Present and absent ones, files and directories, in the workspace and deeper.
const PROTECTED: [&str; 8] = [
    "AGENTS.md",
    "HEARTBEAT.md",
    ".git",
    ".envrc",
    "skills",
    ".github/workflows",
    "deep/er/absent",
    "link.md",
];

/// Protected in every directory; one of them is in a directory already.
const NAMES: [&str; 2] = [".direnv", ".vscode"];

struct Home {
    directory: TempDir,
    sandbox: Sandbox,
    confinement: Confinement,
}

impl Home {
    fn new(level: Level) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        for name in
            ["tmp", "outside", "readable", "workspace/.git/hooks", "workspace/.github/workflows"]
        {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::create_dir_all(workspace.join("sub/.vscode")).unwrap();
        fs::write(workspace.join("sub/.vscode/tasks.json"), "owner\n").unwrap();
        for name in ["AGENTS.md", ".git/config", ".git/hooks/post-checkout", "behind.md", "plain"] {
            fs::write(workspace.join(name), "owner\n").unwrap();
        }
        fs::write(workspace.join(".github/workflows/ci.yml"), "owner\n").unwrap();
        symlink("behind.md", workspace.join("link.md")).unwrap();
        for name in ["outside/file", "readable/file"] {
            fs::write(root.join(name), "owner\n").unwrap();
        }
        let mut confinement = Confinement::new(level, workspace);
        confinement.temporary = Some(root.join("tmp"));
        confinement.read_only = vec![root.join("readable")];
        confinement.protected = PROTECTED.map(PathBuf::from).to_vec();
        confinement.protected_names = NAMES.map(str::to_owned).to_vec();
        let helper = std::env::var_os("PROTECTED_HELPER")
            .unwrap_or_else(|| env!("CARGO_BIN_EXE_myclaw-sandbox-helper").into());
        let sandbox = Sandbox::new(helper, [OsString::from("__sandbox-exec")]);
        Self { directory, sandbox, confinement }
    }

    fn workspace(&self) -> &Path {
        &self.confinement.workspace
    }

    fn spec(&self, script: &str) -> ChildSpec {
        let mut spec = ChildSpec::new("bash", self.workspace());
        spec.args = ["-c", script].map(OsString::from).to_vec();
        spec
    }

    async fn run(&self, script: &str) -> (Exit, String) {
        let cancel = CancellationToken::new();
        let mut ignore = |_: &[u8]| {};
        let running = self.sandbox.run(self.spec(script), &self.confinement, &cancel, &mut ignore);
        let finished = running.await.unwrap();
        (finished.exit, finished.output.tail)
    }

    /// What must not change: content, mode, times and number of names of everything below these paths.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let root = self.workspace().parent().unwrap();
        let protected = PROTECTED.iter().map(|name| self.workspace().join(name));
        let others = ["outside", "readable", "workspace/behind.md"].map(|name| root.join(name));
        let mut named = Vec::new();
        find_named(self.workspace(), &mut named);
        for path in protected.chain(others).chain(named) {
            note(&path, &mut found);
        }
        // The directories above may be changed, but stay open for their owner and closed for others.
        for path in [self.workspace().to_owned(), self.workspace().join(".github")] {
            let about = path.metadata().unwrap();
            found.insert(path, format!("{:o} {} {}", about.mode(), about.uid(), about.gid()));
        }
        found
    }
}

/// Everything below a directory whose name is protected in every directory.
fn find_named(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.contains(&name.as_str()) {
            found.push(entry.path());
        } else if entry.file_type().unwrap().is_dir() {
            find_named(&entry.path(), found);
        }
    }
}

fn note(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(about) = path.symlink_metadata() else { return };
    let content = if about.is_file() { fs::read_to_string(path).unwrap() } else { String::new() };
    let facts = (about.mode(), about.mtime_nsec(), about.ctime_nsec(), about.ino(), about.nlink());
    found.insert(path.to_owned(), format!("{facts:?} {content}"));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if about.is_dir() {
            note(&entry.path(), found);
        }
    }
}

fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Landlock];
    if probe().bubblewrap.is_some() {
        levels.push(Level::Bubblewrap);
    } else {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
    }
    levels
}

/// Each line alone, in a directory of its own, with `x` as a file that may be changed.
const ATTACKS: &[&str] = &[
    "echo evil > ../AGENTS.md",
    "echo evil >> ../AGENTS.md",
    "echo evil > ../HEARTBEAT.md",
    "echo evil > ../heartbeat.MD",
    "echo evil > \"$PWD/../HEARTBEAT.md\"",
    "cd ..; echo evil > ./HEARTBEAT.md",
    "cd ..; echo evil > .git/config",
    "cd ../.git; echo evil > config; echo evil > new",
    "cp x ../.envrc",
    "mv x ../.envrc",
    "ln x ../.envrc",
    "ln -s x ../.envrc",
    "mkfifo ../.envrc",
    "mkdir ../.envrc",
    "truncate -s 0 ../AGENTS.md",
    "dd if=x of=../AGENTS.md conv=notrunc",
    "sed -i s/owner/evil/ ../AGENTS.md",
    "rm -f ../AGENTS.md",
    "rm -rf ../.git ../.github ../skills",
    "rm -rf ../* ../.[a-z]*",
    "mv ../AGENTS.md aside; echo evil > ../AGENTS.md",
    "mv ../.git aside",
    "mv ../.github aside; mkdir -p ../.github/workflows; echo evil > ../.github/workflows/ci.yml",
    "mv ../deep aside; mkdir -p made/er/absent; mv made ../deep",
    "mkdir -p made/er/absent; mv made ../deep",
    "mkdir -p ../deep made/absent; mv made ../deep/er",
    "mkdir -p ../deep; ln -s \"$PWD\" ../deep/er; mkdir absent",
    "mkdir -p ../deep/er; mkdir ../deep/er/absent",
    "mkdir -p ../deep/er; touch ../deep/er/Absent",
    "rmdir ../.git/hooks ../skills",
    "mkdir ../skills",
    "mkdir skills; mv skills ..",
    "mkdir skills; mv -T skills ../SKILLS",
    "ln ../AGENTS.md hard; echo evil > hard",
    "ln ../.git/config hard; echo evil > hard",
    "ln -s ../AGENTS.md soft; echo evil > soft",
    "ln -s ../HEARTBEAT.md soft; echo evil > soft",
    "ln -s ../.git soft; echo evil > soft/config",
    "ln -s . self; echo evil > self/self/../AGENTS.md",
    "exec 5<..; echo evil > /proc/self/fd/5/HEARTBEAT.md",
    "exec 5<..; cd /dev/fd/5; echo evil > HEARTBEAT.md",
    "exec 5<../AGENTS.md; echo evil > /proc/self/fd/5; echo evil > /dev/fd/5",
    "exec 0<../AGENTS.md; echo evil > /dev/stdin",
    "echo evil > ../link.md",
    "echo evil > ../behind.md",
    "rm ../link.md; echo evil > ../link.md",
    "ln -sf x ../link.md",
    "mv ../behind.md aside",
    "chmod 777 ../AGENTS.md",
    "chmod -R 777 ../.git",
    "chmod 0 ../.github/workflows/ci.yml",
    "touch -d 2001-01-01 ../AGENTS.md",
    "touch -h -d 2001-01-01 ../link.md",
    "touch ../AGENTS.md ../.git/config",
    "exec 5<../AGENTS.md; chmod 777 /proc/self/fd/5",
    "ln -s ../AGENTS.md soft; chmod 777 soft; touch soft",
    "chmod 0 ..",
    "chmod 777 ..",
    "chmod 500 ../.github",
    "chmod g+w .. ../.github",
    "chown 65534 .. ../.github; chown :65534 .. ../.github",
    "setfattr -n user.evil -v 1 ../AGENTS.md ../.github ..",
    "echo y | cp -r --remove-destination x ../AGENTS.md",
    "install -m 777 x ../AGENTS.md",
    "tar cf t x && tar xf t --transform s,x,../AGENTS.md, -P",
    "mv --exchange x ../AGENTS.md",
    "cd ..; for i in 1 2 3 4 5 6 7 8; do ln -sfn attack swap; ln -sfn .git swap; echo evil > swap/config; done",
    "mount --bind x ../AGENTS.md",
    "unshare -rm mount --bind x ../AGENTS.md",
    // In every directory.
    "mkdir .vscode; echo evil > .vscode/tasks.json",
    "echo evil > .direnv; echo evil > ../sub/.direnv",
    "echo evil > ../sub/.vscode/tasks.json; echo evil > ../sub/.vscode/new",
    "mkdir -p made/deep; mkdir made/deep/.VSCode; cp x made/deep/.Direnv",
    "mkdir v; mv v .vscode; mv -T v ../sub/deep.vscode; ln -s v .vscode; ln x .direnv",
    "mkdir -p \"$TMPDIR/p/.vscode\"; echo evil > \"$TMPDIR/p/.vscode/tasks.json\"; mv \"$TMPDIR/p\" p",
    "mkdir -p \"$TMPDIR/q/.vscode\"; cp -r \"$TMPDIR/q\" q; mv --exchange \"$TMPDIR/q\" ../sub",
    "mv ../sub/.vscode aside; rm -rf ../sub/.vscode; rm -rf ../sub",
    "ln ../sub/.vscode/tasks.json hard; echo evil > hard; chmod -R 777 ../sub/.vscode",
    "(cd ../sub; tar cf ../attack/t .vscode); mkdir out; tar xf t -C out",
    // Outside: what Landlock does not guard.
    "chmod 777 ../../outside/file",
    "chmod 777 ../../outside",
    "chmod 777 ../../readable/file",
    "exec 5<../../readable/file; chmod 777 /proc/self/fd/5; touch /dev/fd/5",
    "touch -d 2001-01-01 ../../outside/file",
    "touch -d 2001-01-01 ../../readable/file",
    "touch -a ../../readable/file",
    "chown \"$(id -u):$(id -g)\" ../../outside/file ../../readable/file",
    "ln -s ../../outside/file soft; chmod 777 soft; touch soft; chown -h \"$(id -u)\" soft",
    "cd ../../outside; chmod 777 file; chmod 777 .",
    "setfattr -n user.evil -v 1 ../../outside/file ../../readable/file",
    "chattr +A ../../readable/file",
];

#[tokio::test]
async fn nothing_protected_can_be_changed() {
    for level in levels() {
        let home = Home::new(level.clone());
        let before = home.snapshot();
        for attack in ATTACKS {
            // What one attack leaves in the workspace must not help or hinder the next one.
            let script = format!(
                "mkdir attack || exit 7; cd attack || exit 7; echo evil > x || exit 7; ( {attack} ) 2>/dev/null; true"
            );
            let (exit, printed) = home.run(&script).await;
            assert_eq!(exit, Exit::Code(0), "{level:?}: {attack}: {printed}");
            assert_eq!(home.snapshot(), before, "{level:?}: {attack}");
            for left in ["attack", "swap", "deep"] {
                drop(fs::remove_dir_all(home.workspace().join(left)));
                drop(fs::remove_file(home.workspace().join(left)));
            }
        }
        // One of the attacks removes what may be removed.
        let mut left: Vec<_> = fs::read_dir(home.workspace())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [".git", ".github", "AGENTS.md", "behind.md", "link.md", "sub"],
            "{level:?}"
        );
    }
}

/// The same tests as another user, if this is root.
#[test]
fn a_normal_user_is_as_safe() {
    if !rustix::process::geteuid().is_root() || std::env::var_os("PROTECTED_HELPER").is_some() {
        myclaw_testkit::skip_here("this is a normal user already");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let [helper, tests] = ["helper", "tests"].map(|name| directory.path().join(name));
    let programs =
        [env!("CARGO_BIN_EXE_myclaw-sandbox-helper").into(), std::env::current_exe().unwrap()];
    for (program, copy) in programs.iter().zip([&helper, &tests]) {
        // By a process of its own: a program that this one has open for writing cannot be started.
        assert!(Command::new("cp").arg(program).arg(copy).status().unwrap().success());
    }
    let output = Command::new(tests)
        .args(["--test-threads=2"])
        .env("PROTECTED_HELPER", &helper)
        .env("TMPDIR", directory.path())
        .env("HOME", directory.path())
        .current_dir(directory.path())
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn everyday_commands_work_beside_what_is_protected() {
    let script = r#"
        set -e
        cat AGENTS.md link.md .git/config .github/workflows/ci.yml
        echo text > file; cp -p file copy; chmod 640 copy; chmod +x file; stat -c %a copy file
        umask 027; echo masked > masked; mkdir dir; stat -c %a masked dir; umask 022
        mkdir -p a/b .github/other; echo x > .github/other/y; mv file a/b/; ln a/b/file hard; ln -s a/b/file soft
        echo more >> soft; cat hard; rm hard soft; mv a c; mv c/b/file top; sed -i s/text/changed/ top; cat top
        printf '#!/bin/sh\necho ran\n' > run; chmod 700 run; ./run
        mkfifo pipe; (echo through a pipe > pipe &); cat pipe; rm pipe
        tar cf archive top dir c; mkdir out; tar xpf archive -C out; ls out; (cd out; tar cf ../dot .); tar xpf dot
        touch -d 2001-02-03 top; stat -c %y top | cut -d' ' -f1
        d=$(mktemp -d); echo t > "$d/t"; mv "$d/t" from-temporary; mv from-temporary "$d/u"; ln "$d/u" linked 2>/dev/null || cp "$d/u" linked; cat linked
        echo to a descriptor > /dev/stderr; echo gone > /dev/null
        exec 3<>both; echo 12345 >&3; exec 3>&-; truncate -s 3 both; cat both; echo
        (set -C; echo new > exclusive; echo again > exclusive) 2>/dev/null || echo exists
        rm -rf out c dir; ls -d missing 2>/dev/null || echo gone
    "#;
    let expected = "owner\nowner\nowner\nowner\n640\n755\n640\n750\ntext\nmore\nchanged\nmore\nran\nthrough a pipe\nc\ndir\n\
                    top\n2001-02-03\nt\nto a descriptor\n123\nexists\ngone\n";
    for level in levels() {
        let home = Home::new(level.clone());
        assert_eq!(home.run(script).await, (Exit::Code(0), expected.to_owned()), "{level:?}");
    }
}

/// Programs that do more with files than a shell, where they are installed.
#[tokio::test]
async fn programs_that_write_many_files_work() {
    let script = r#"
        set -e
        export HOME="$TMPDIR" GIT_CONFIG_NOSYSTEM=1
        command -v git >/dev/null || { echo skipped; exit 0; }
        git init -q project; cd project; git config user.name me; git config user.email me@example.com
        for i in 1 2 3; do echo $i > $i; done; git add .; git commit -qm first; git mv 1 one; git commit -qm second
        git checkout -q HEAD~1; git checkout -q -; git gc -q; git clone -q . ../cloned; git status --porcelain
        ls ../cloned
    "#;
    for level in levels() {
        let home = Home::new(level.clone());
        let (exit, printed) = home.run(script).await;
        assert_eq!(exit, Exit::Code(0), "{level:?}: {printed}");
        assert!(printed == "2\n3\none\n" || printed == "skipped\n", "{level:?}: {printed}");
    }
}

#[tokio::test]
async fn no_file_grows_beyond_its_limit_by_a_call_of_another_process() {
    let script = r#"perl -e 'open F, ">f"; close F; truncate("f", 1 << 20) or die;
        print truncate("f", (1 << 20) + 1) ? "grew" : "refused", " ", -s "f", "\n"'"#;
    for level in levels() {
        let mut home = Home::new(level.clone());
        home.confinement.limits.file_size = Some(1 << 20);
        let expected = (Exit::Code(0), "refused 1048576\n".to_owned());
        assert_eq!(home.run(script).await, expected, "{level:?}");
    }
}

async fn answer(confined: &mut Confined, command: &str) -> String {
    let mut input = confined.take_input().unwrap();
    let mut output = BufReader::new(confined.take_output().unwrap());
    input.write_all(command.as_bytes()).await.unwrap();
    drop(input);
    let mut line = String::new();
    output.read_line(&mut line).await.unwrap();
    line
}

/// The owner's editor, and this program, replace a file by renaming another one over it.
#[tokio::test]
async fn a_file_that_its_owner_replaces_stays_protected() {
    for level in levels() {
        let home = Home::new(level.clone());
        let script = "read line; echo evil > AGENTS.md; echo evil > HEARTBEAT.md; echo evil > .git/config; cat AGENTS.md";
        let mut confined = home.sandbox.spawn(home.spec(script), &home.confinement).unwrap();
        for name in ["AGENTS.md", "HEARTBEAT.md"] {
            fs::write(home.workspace().join("next"), "replaced\n").unwrap();
            fs::rename(home.workspace().join("next"), home.workspace().join(name)).unwrap();
        }
        fs::rename(home.workspace().join(".git"), home.workspace().join("old")).unwrap();
        fs::create_dir(home.workspace().join(".git")).unwrap();
        assert_eq!(answer(&mut confined, "go\n").await, "replaced\n", "{level:?}");
        confined.wait().await.unwrap();
        for name in ["AGENTS.md", "HEARTBEAT.md"] {
            let text = fs::read_to_string(home.workspace().join(name)).unwrap();
            assert_eq!(text, "replaced\n", "{level:?} {name}");
        }
        assert!(!home.workspace().join(".git/config").exists(), "{level:?}");
    }
}

/// Another name that was made while nothing was protected.
#[tokio::test]
async fn another_name_of_a_protected_file_is_no_way_to_it() {
    for level in levels() {
        let home = Home::new(level.clone());
        fs::hard_link(home.workspace().join("AGENTS.md"), home.workspace().join("other")).unwrap();
        let before = home.snapshot();
        let script = "echo evil > other; echo evil >> other; chmod 777 other; truncate -s 0 other; ln other third";
        home.run(script).await;
        assert_eq!(home.snapshot(), before, "{level:?}");
    }
}

/// A directory that is shared for changes must not open what the workspace protects.
#[tokio::test]
async fn a_shared_directory_above_or_below_opens_nothing() {
    for level in levels() {
        for shared in ["", "workspace", "workspace/.git", "workspace/.github"] {
            let mut home = Home::new(level.clone());
            let root = home.directory.path().canonicalize().unwrap();
            home.confinement.read_write = vec![root.join(shared)];
            home.confinement.read_only.clear();
            let protected = |snapshot: BTreeMap<PathBuf, String>| -> BTreeMap<PathBuf, String> {
                snapshot
                    .into_iter()
                    .filter(|(path, _)| path.starts_with(home.workspace()))
                    .collect()
            };
            let before = protected(home.snapshot());
            let script = "echo evil > AGENTS.md; echo evil > .git/config; echo evil > .github/workflows/ci.yml; \
                          echo evil > .envrc; mv ../workspace ../aside; rm -rf .git .github; echo fine > file";
            home.run(script).await;
            assert_eq!(protected(home.snapshot()), before, "{level:?} {shared}");
            assert_eq!(fs::read_to_string(home.workspace().join("file")).unwrap(), "fine\n");
        }
    }
}

#[tokio::test]
async fn a_protected_path_is_below_the_workspace() {
    for path in ["", "/etc", "../outside", "a/../..", "./x"] {
        let mut home = Home::new(Level::Landlock);
        home.confinement.protected = vec![path.into()];
        let cancel = CancellationToken::new();
        let result =
            home.sandbox.run(home.spec(":"), &home.confinement, &cancel, &mut |_| {}).await;
        let error = result.unwrap_err();
        assert!(matches!(error, SandboxError::Demand(_)), "{path:?}: {error}");
    }
}
