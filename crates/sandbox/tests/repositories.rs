//! Repositories of git without `.git`, in a workspace that others share: git obeys the config of each directory that holds
//! `HEAD`, `objects` and `refs`, or `HEAD` and a `commondir` that leads to them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use myclaw_exec::{ChildSpec, Exit};
use myclaw_sandbox::{Confinement, Level, OpenPaths, Sandbox, probe, with_open_paths};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What the owner has there already: a repository without `.git`, a `HEAD` that belongs to none, and a work tree that leads
/// to a repository elsewhere in the workspace.
const OWNERS: &str = "git init -q --bare mine/bare && mkdir -p lone && echo 'ref: refs/heads/main' >lone/HEAD && mkdir free && \
                      git init -q other && git -C other config core.bare false && mv other/.git kept && rmdir other && \
                      mkdir tree && echo 'gitdir: ../kept' >tree/.git";

/// A repository whose config starts a program, in the directory of the command.
const PLANT: &str = "mkdir -p objects refs; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \
                     \"touch %s/../started;false\"\\n' \"$WORK\" >config";

/// Each line alone, in the new directory `attack`, with what [`PLANT`] makes.
const ATTACKS: &[&str] = &[
    "echo 'ref: refs/heads/main' >HEAD",
    "cp config HEAD; echo 'ref: refs/heads/main' >>HEAD",
    "echo 'ref: refs/heads/main' >x; mv x HEAD",
    "echo 'ref: refs/heads/main' >x; mv x head",
    "echo 'ref: refs/heads/main' >x; ln x HEAD",
    "ln -s refs/heads/main HEAD",
    "mkfifo HEAD; (echo 'ref: refs/heads/main' >HEAD &)",
    "mkdir HEAD; echo 'ref: refs/heads/main' >x; mv --exchange x HEAD; mv -T x HEAD",
    "mkdir HEAD; rmdir HEAD; cp ../mine/bare/HEAD HEAD",
    "git init -q --bare deep; git init -q --bare .",
    "git clone -q --bare ../mine/bare deep",
    "cp -r ../mine/bare deep; cp -rl ../mine/bare linked; mv ../mine/bare taken",
    "mkdir \"$TMPDIR/r\"; git init -q --bare \"$TMPDIR/r\"; mv \"$TMPDIR/r\" deep; cp -r \"$TMPDIR/r\" deep2; rm -rf \"$TMPDIR/r\"",
    "cp -r objects refs config ../lone",
    "mv objects refs config ../lone",
    "mv OBJECTS ../lone; mkdir ../lone/Objects; mkdir ../lone/objects",
    "ln -s \"$PWD/objects\" ../lone/objects; ln -s \"$PWD/refs\" ../lone/refs",
    "echo ../attack >../lone/commondir",
    "echo ../attack >x; mv x ../lone/commondir; ln -s x ../lone/commondir",
    "echo changed >../lone/HEAD; rm ../lone/HEAD; mv ../lone/HEAD .",
    "echo evil >>../mine/bare/config; sed -i s/bare/x/ ../mine/bare/config; cp config ../mine/bare/config",
    "cp config ../mine/bare/hooks/post-checkout; chmod 777 ../mine/bare/config; touch ../mine/bare/config.worktree",
    "mv ../mine ../moved; echo evil >>../moved/bare/config; mkdir ../moved/bare/hooks/x; mv ../moved ../mine",
    "ln ../mine/bare/config hard; echo evil >>hard",
    "ln -s ../mine/bare soft; echo evil >>soft/config; rm -rf soft/hooks",
    "rm -rf ../mine ../kept ../lone",
    "exec 5<../mine/bare; echo evil >>/proc/self/fd/5/config; cd /dev/fd/5 && echo evil >>config",
    "truncate -s 0 ../mine/bare/config; dd if=config of=../mine/bare/config conv=notrunc",
    "echo evil >>../kept/config; cp config ../kept/hooks/post-checkout; git -C ../tree config core.fsmonitor x",
    "echo 'gitdir: attack' >../.git; echo 'gitdir: .' >.git; mkdir d; echo 'gitdir: ..' >d/.git",
];

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
        for path in [&workspace, &root.join("tmp")] {
            fs::create_dir(path).unwrap();
        }
        let made = Command::new("bash").args(["-ec", OWNERS]).current_dir(&workspace).status();
        assert!(made.unwrap().success());
        let mut confinement = Confinement::new(level, workspace);
        confinement.temporary = Some(root.join("tmp"));
        confinement.protected = vec![PathBuf::from("AGENTS.md")];
        confinement.protected_names = vec![".git".to_owned()];
        let helper = env!("CARGO_BIN_EXE_myclaw-sandbox-helper");
        let sandbox = Sandbox::new(helper, [OsString::from("__sandbox-exec")]);
        Self { directory, sandbox, confinement }
    }

    fn workspace(&self) -> &Path {
        &self.confinement.workspace
    }

    async fn run(&self, script: &str) -> (Exit, String) {
        let mut spec = ChildSpec::new("bash", self.workspace());
        spec.args = ["-c", script].map(OsString::from).to_vec();
        spec.environment = spec.environment.with("WORK", self.workspace());
        let cancel = CancellationToken::new();
        let mut ignore = |_: &[u8]| {};
        let running = self.sandbox.run(spec, &self.confinement, &cancel, &mut ignore);
        let finished = running.await.unwrap();
        (finished.exit, finished.output.tail)
    }

    /// The directories that git takes for a repository, by asking git.
    fn repositories(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        directories(self.workspace(), &mut found);
        found.retain(|path| {
            let mut git = Command::new("git");
            git.args(["rev-parse", "--git-dir"]).env("GIT_DIR", path).current_dir(path);
            git.output().unwrap().status.success()
        });
        found.sort();
        found
    }
}

fn directories(at: &Path, found: &mut Vec<PathBuf>) {
    found.push(at.to_owned());
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            directories(&entry.path(), found);
        }
    }
}

/// Names, content and facts of everything below.
fn snapshot(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let about = path.symlink_metadata().unwrap();
    let content = if about.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    // The counts of names of a directory and the time of its parent are nobody's secret.
    found.insert(path.to_owned(), format!("{:o} {} {content:?}", about.mode(), about.ino()));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        snapshot(&entry.path(), found);
    }
}

fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Landlock];
    if probe().bubblewrap.is_some() {
        levels.push(Level::Bubblewrap);
    }
    levels
}

fn has_git() -> bool {
    let has = Command::new("git").arg("version").output().is_ok();
    if !has {
        myclaw_testkit::skip_without("git is not installed");
    }
    has
}

#[tokio::test]
async fn nothing_comes_to_be_that_git_takes_for_a_repository() {
    if !has_git() {
        return;
    }
    for level in levels() {
        let home = Home::new(level.clone());
        let owners = || {
            let mut found = BTreeMap::new();
            for name in ["mine/bare", "kept", "lone/HEAD", "tree"] {
                snapshot(&home.workspace().join(name), &mut found);
            }
            found
        };
        let (before, repositories) = (owners(), home.repositories());
        for attack in ATTACKS {
            let script = format!(
                "mkdir attack || exit 7; cd attack || exit 7; ( {PLANT}; {attack} ) 2>/dev/null; true"
            );
            let (exit, printed) = home.run(&script).await;
            assert_eq!(exit, Exit::Code(0), "{level:?}: {attack}: {printed}");
            assert_eq!(home.repositories(), repositories, "{level:?}: {attack}");
            assert_eq!(owners(), before, "{level:?}: {attack}");
            // What the owner's git does there later.
            for at in ["attack", "lone", "free"] {
                let mut git = Command::new("git");
                let at = home.workspace().join(at);
                git.arg("status").current_dir(at).output().unwrap();
            }
            assert!(!home.directory.path().join("started").exists(), "{level:?}: {attack}");
            drop(fs::remove_dir_all(home.workspace().join("attack")));
        }
    }
}

/// Directories above are moved while the broker judges calls. The repository may be anywhere afterwards, but as it was.
#[tokio::test]
async fn a_repository_that_moves_meanwhile_stays_as_it_is() {
    const RACE: &str = "for i in $(seq 40); do (mv -T mine swap; mkdir -p mine/bare; mv -T --exchange mine swap) & \
                        (echo evil >>mine/bare/config; echo evil >>swap/bare/config; ln mine/bare/config hard$i; \
                        mkdir mine/bare/evil swap/bare/evil) & done; wait; for i in hard*; do echo evil >>$i; done";
    if !has_git() {
        return;
    }
    for level in levels() {
        let home = Home::new(level.clone());
        let facts = |directory: &Path| {
            let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.collect();
            names.sort();
            (names, fs::read_to_string(directory.join("config")).unwrap())
        };
        let before = facts(&home.workspace().join("mine/bare"));
        home.run(&format!("( {RACE} ) 2>/dev/null")).await;
        let bare = |path: &PathBuf| path.ends_with("bare");
        let found: Vec<PathBuf> = home.repositories().into_iter().filter(bare).collect();
        assert_eq!(found.len(), 1, "{level:?}: {found:?}");
        assert_eq!(facts(&found[0]), before, "{level:?}");
    }
}

#[tokio::test]
async fn directories_and_files_with_names_of_a_repository_are_free() {
    let script = "set -e; mkdir objects refs hooks; echo x >config; echo x >objects/x; mkdir -p src/head src/HEAD; \
                  echo x >src/head/x; echo y >src/HEAD/y; mv src/head/x src/HEAD/x; rm -r src/HEAD/x; echo x >commondir; \
                  echo x >HEADER; cat lone/HEAD; echo x >lone/notes; rm -r objects refs hooks config commondir src; \
                  HOME=$PWD git -c safe.bareRepository=all -C mine/bare rev-parse --is-bare-repository";
    for level in levels() {
        let home = Home::new(level.clone());
        let printed = "ref: refs/heads/main\ntrue\n";
        assert_eq!(home.run(script).await, (Exit::Code(0), printed.to_owned()), "{level:?}");
    }
}

/// The file tools work on a confined thread of another process.
#[test]
fn a_confined_thread_makes_no_repository_either() {
    let home = Home::new(Level::Landlock);
    let workspace = home.workspace();
    let paths = OpenPaths {
        writable: vec![workspace.to_owned()],
        protected: vec![workspace.join("AGENTS.md")],
        protected_names: vec![".git".to_owned()],
        ..OpenPaths::default()
    };
    let made = with_open_paths(&paths, || {
        let at = workspace.join("free");
        fs::write(at.join("notes"), "x").unwrap();
        [
            fs::write(at.join("HEAD"), "ref: refs/heads/main\n"),
            fs::rename(at.join("notes"), at.join("HEAD")),
            fs::write(workspace.join("mine/bare/config"), ""),
            fs::create_dir(workspace.join("lone/objects")),
            fs::write(workspace.join("lone/commondir"), "../free"),
            fs::rename(workspace.join("mine/bare"), at.join("bare")),
            fs::remove_file(workspace.join("lone/HEAD")),
        ]
        .map(|result| result.is_ok())
    });
    assert_eq!(made.unwrap(), [false; 7]);
}
