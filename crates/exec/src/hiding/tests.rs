use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::{ChildSpec, EnvironmentPolicy, Exit, Link, Runner as _};

/// A state directory with parts that are shown, and a file elsewhere.
struct Scene {
    base: PathBuf,
    _directory: TempDir,
}

fn scene() -> Scene {
    let directory = TempDir::new().unwrap();
    let base = directory.path().canonicalize().unwrap();
    for path in ["state/workspace/deep", "state/skills", "state/keys", "home", "elsewhere"] {
        fs::create_dir_all(base.join(path)).unwrap();
    }
    for path in [
        "state/config",
        "state/keys/key",
        "state/workspace/file",
        "state/workspace/deep/key",
        "state/skills/one",
        "home/config",
        "home/hook",
        "home/notes",
        "elsewhere/key",
    ] {
        fs::write(base.join(path), format!("{path}\n")).unwrap();
    }
    Scene { base, _directory: directory }
}

impl Scene {
    fn runner(&self, if_impossible: IfImpossible) -> HidingRunner {
        use Visibility::{Hidden, ReadOnly, Shown};
        let places = [
            ("state/workspace", Shown),
            ("state", Hidden),
            ("state/skills", ReadOnly),
            ("state/keys", Hidden),
            ("state/workspace/deep/key", Hidden),
            ("state/not-there", Shown),
            ("home/config", Hidden),
            ("home/hook", ReadOnly),
            ("elsewhere", Hidden),
        ];
        let places = places.map(|(path, visibility)| (self.base.join(path), visibility));
        // As root it is not started again.
        let program = HidingProgram { program: "/nonexistent".into(), arguments: Vec::new() };
        HidingRunner::new(HiddenPaths::new(places), program, if_impossible)
    }

    fn spec(&self, command: &str) -> ChildSpec {
        let mut spec = ChildSpec::new("sh", &self.base);
        spec.args = vec!["-c".into(), command.into()];
        spec.environment = EnvironmentPolicy::inherited();
        spec
    }
}

fn run(runner: &HidingRunner, spec: ChildSpec) -> (Exit, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let cancel = tokio_util::sync::CancellationToken::new();
        let finished = runner.run(spec, Link::none(), &cancel, &mut |_| {}).await.unwrap();
        (finished.exit, finished.output.tail)
    })
}

/// Whether this test can make namespaces without a program that is started again.
fn can_hide() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        myclaw_testkit::skip_here("only root hides paths without starting this program again");
    }
    is_root
}

#[test]
fn a_command_finds_what_is_shown_and_nothing_else() {
    if !can_hide() {
        return;
    }
    let scene = scene();
    let runner = scene.runner(IfImpossible::Refuse);
    let shown = |path: &str| run(&runner, scene.spec(&format!("cat {path} 2>&1"))).1;
    assert_eq!(shown("state/workspace/file"), "state/workspace/file\n");
    assert_eq!(shown("state/skills/one"), "state/skills/one\n");
    assert_eq!(shown("home/notes"), "home/notes\n");
    assert_eq!(shown("home/hook"), "home/hook\n");
    assert_eq!(shown("home/config"), "");
    assert_eq!(shown("state/workspace/deep/key"), "");
    for path in ["state/config", "state/keys/key", "elsewhere/key"] {
        assert!(shown(path).contains("No such file"), "{path}: {}", shown(path));
    }
    assert_eq!(
        run(&runner, scene.spec("ls state elsewhere")).1,
        "elsewhere:\n\nstate:\nskills\nworkspace\n"
    );
    let around = format!(
        "cat /proc/self/root{0}/state/config /proc/self/cwd/state/config",
        scene.base.display()
    );
    assert_ne!(run(&runner, scene.spec(&around)).0, Exit::Code(0));
}

#[test]
fn a_command_changes_only_what_is_shown() {
    if !can_hide() {
        return;
    }
    let scene = scene();
    let runner = scene.runner(IfImpossible::Refuse);
    for refused in [
        "echo x > state/config",
        "mkdir state/new",
        "rm -r state",
        "mv state away",
        "echo x > state/skills/one",
        "rm state/skills/one",
        "echo x > home/config",
        "rm home/config",
        "mv home/notes home/config",
        "echo x > home/hook",
        "ln -f home/notes home/hook",
        "echo x > elsewhere/new",
        "echo x > state/workspace/deep/key",
    ] {
        assert_ne!(run(&runner, scene.spec(refused)).0, Exit::Code(0), "{refused}");
    }
    let change = "echo new > state/workspace/file && echo new > home/notes && mkdir home/sub";
    assert_eq!(run(&runner, scene.spec(change)), (Exit::Code(0), String::new()));
    let now = |path: &str| fs::read_to_string(scene.base.join(path)).unwrap();
    assert_eq!([now("state/workspace/file"), now("home/notes")], ["new\n", "new\n"]);
    for path in ["state/config", "state/skills/one", "home/config", "home/hook", "elsewhere/key"] {
        assert_eq!(now(path), format!("{path}\n"));
    }
}

#[test]
fn no_other_process_leads_around_it() {
    if !can_hide() {
        return;
    }
    let scene = scene();
    let runner = scene.runner(IfImpossible::Refuse);
    let path = scene.base.join("state/config");
    for process in [std::process::id(), 1] {
        let around = format!("cat /proc/{process}/root{}", path.display());
        assert_ne!(run(&runner, scene.spec(&around)).0, Exit::Code(0), "{around}");
    }
    let around = format!("cat /proc/$PPID/cwd/../../{}", path.display());
    assert_ne!(run(&runner, scene.spec(&around)).0, Exit::Code(0));
}

#[test]
fn what_changes_later_counts_for_the_next_command() {
    if !can_hide() {
        return;
    }
    let scene = scene();
    let runner = scene.runner(IfImpossible::Refuse);
    let shown = |path: &str| run(&runner, scene.spec(&format!("cat {path} 2>&1"))).1;
    assert_eq!(shown("home/config"), "");
    // A replaced file is another one, and the old namespace would show it.
    fs::write(scene.base.join("home/new"), "a new key\n").unwrap();
    fs::rename(scene.base.join("home/new"), scene.base.join("home/config")).unwrap();
    assert_eq!(shown("home/config"), "");
    fs::create_dir(scene.base.join("state/not-there")).unwrap();
    fs::write(scene.base.join("state/not-there/file"), "made since\n").unwrap();
    assert_eq!(shown("state/not-there/file"), "made since\n");
    // What is in a shown directory is there at once.
    fs::write(scene.base.join("state/skills/two"), "two\n").unwrap();
    assert_eq!(shown("state/skills/two"), "two\n");
}

#[test]
fn groups_exit_codes_terminals_and_ends_are_as_without_it() {
    if !can_hide() {
        return;
    }
    let scene = scene();
    let runner = scene.runner(IfImpossible::Refuse);
    let same = |command: &str| {
        let here = crate::Here;
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cancel = tokio_util::sync::CancellationToken::new();
        let plain = runtime.block_on(async {
            here.run(scene.spec(command), Link::none(), &cancel, &mut |_| {}).await.unwrap()
        });
        let hidden = run(&runner, scene.spec(command));
        assert_eq!(hidden, (plain.exit, plain.output.tail), "{command}");
    };
    for command in
        ["id -G; id -u", "exit 7", "kill -TERM $$", "pwd", "ps -o comm= -p $$", "ulimit -a"]
    {
        same(command);
    }
    let mut spec = scene.spec("sleep 1000 & setsid sleep 1000 & wait");
    spec.timeout = Some(std::time::Duration::from_millis(200));
    assert_eq!(run(&runner, spec).0, Exit::TimedOut);
}

#[test]
fn without_the_right_to_hide_a_command_is_refused_or_runs_openly() {
    let missing = HiddenPaths::new([(Path::new("/").to_owned(), Visibility::Hidden)]);
    assert_eq!(missing.places().count(), 1);
    let scene = scene();
    // A mount over the root directory is refused everywhere.
    let program = HidingProgram { program: "/nonexistent".into(), arguments: Vec::new() };
    let file = scene.base.join("home/config");
    let impossible = HiddenPaths::new([(file, Visibility::Hidden)]);
    let open = HidingRunner::new(impossible.clone(), program.clone(), IfImpossible::RunOpenly);
    assert_eq!(run(&open, scene.spec("cat home/config")).1, "home/config\n");
    if !can_hide() {
        return;
    }
    let strict = HidingRunner::new(impossible, program, IfImpossible::Refuse);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cancel = tokio_util::sync::CancellationToken::new();
    let refused = runtime
        .block_on(async {
            strict.run(scene.spec("true"), Link::none(), &cancel, &mut |_| {}).await
        })
        .unwrap_err()
        .to_string();
    assert!(refused.contains("tools.bash.stateDirectory"), "{refused}");
}
