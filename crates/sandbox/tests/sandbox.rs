//! Commands in a sandbox, through the real helper process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use myclaw_exec::{ChildSpec, Exit, Finished};
use myclaw_sandbox::{
    Confined, Confinement, Level, Limits, Network, Sandbox, SandboxError, WorkspaceAccess, probe,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

const HELPER: &str = env!("CARGO_BIN_EXE_myclaw-sandbox-helper");

struct Home {
    directory: TempDir,
    sandbox: Sandbox,
    confinement: Confinement,
}

impl Home {
    fn new(level: Level) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["workspace", "tmp"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let mut confinement = Confinement::new(level, root.join("workspace"));
        confinement.temporary = Some(root.join("tmp"));
        let sandbox = Sandbox::new(HELPER, [OsString::from("__sandbox-exec")]);
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

    async fn try_run(&self, script: &str) -> Result<Finished, SandboxError> {
        self.sandbox
            .run(self.spec(script), &self.confinement, &CancellationToken::new(), &mut |_| {})
            .await
    }

    async fn run(&self, script: &str) -> (Exit, String) {
        let finished = self.try_run(script).await.unwrap();
        (finished.exit, finished.output.tail)
    }
}

/// The levels that this machine has; those that need nothing to be installed must be there.
fn levels() -> Vec<Level> {
    let mut levels = vec![Level::Limits, Level::Landlock];
    if probe().bubblewrap.is_some() {
        levels.push(Level::Bubblewrap);
    } else {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
    }
    levels
}

#[tokio::test]
async fn everyday_commands_work() {
    let script = r#"
        echo text > file && grep -q text file && chmod +x file && mkdir -p a/b && mv file a/b && ln a/b/file hard &&
        ln -s a/b/file soft && cat soft && cat <(echo substituted) && echo piped | cat && seq 3 | sort -r | head -1 &&
        t=$(mktemp) && echo temporary > "$t" && cat "$t" && : > /dev/null && head -c 4 /dev/urandom | wc -c &&
        (exit 3); echo "status $?"
    "#;
    for level in levels() {
        let home = Home::new(level.clone());
        let expected = "text\nsubstituted\npiped\n3\ntemporary\n4\nstatus 3\n";
        assert_eq!(home.run(script).await, (Exit::Code(0), expected.to_owned()), "{level:?}");
    }
}

#[tokio::test]
async fn exit_codes_and_signals_are_passed_on() {
    for level in [Level::Limits, Level::Landlock] {
        let home = Home::new(level.clone());
        assert_eq!(home.run("exit 125").await.0, Exit::Code(125), "{level:?}");
        assert_eq!(home.run("kill -SEGV $$").await.0, Exit::Signal(libc::SIGSEGV), "{level:?}");
        assert_eq!(home.run("kill -KILL $$").await.0, Exit::Signal(libc::SIGKILL), "{level:?}");
    }
}

#[tokio::test]
async fn access_to_the_workspace_is_as_demanded() {
    for level in levels().into_iter().filter(|level| *level != Level::Limits) {
        let mut home = Home::new(level.clone());
        fs::write(home.workspace().join("file"), "text").unwrap();
        let script = "cat file 2>/dev/null; echo new 2>/dev/null > file && echo written";
        for (access, expected) in [
            (WorkspaceAccess::Rw, "textwritten\n"),
            (WorkspaceAccess::Ro, "new\n"),
            (WorkspaceAccess::None, ""),
        ] {
            home.confinement.access = access;
            assert_eq!(home.run(script).await.1, expected, "{level:?} {access:?}");
            assert_eq!(fs::read_to_string(home.workspace().join("file")).unwrap(), "new\n");
        }
    }
}

#[tokio::test]
async fn more_paths_can_be_opened() {
    for level in levels().into_iter().filter(|level| *level != Level::Limits) {
        let mut home = Home::new(level.clone());
        let root = home.directory.path().canonicalize().unwrap();
        let [shown, shared] = ["shown", "shared"].map(|name| root.join(name));
        for path in [&shown, &shared] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("file"), "old").unwrap();
        }
        home.confinement.read_only = vec![shown.clone()];
        home.confinement.read_write = vec![shared.clone()];
        let script = "for d in shown shared; do cat ../$d/file; echo new 2>/dev/null > ../$d/file || echo refused; done";
        assert_eq!(home.run(script).await.1, "oldrefused\nold", "{level:?}");
        assert_eq!(fs::read_to_string(shown.join("file")).unwrap(), "old");
        assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "new\n");
    }
}

#[tokio::test]
async fn the_environment_is_the_one_that_was_given() {
    for level in levels() {
        let home = Home::new(level.clone());
        let (_, printed) = home.run("env -0 | tr '\\0' '\\n' | cut -d= -f1 | sort | xargs").await;
        let mut expected: Vec<String> =
            ["MYCLAW_PROCESS_TREE", "OLDPWD", "PWD", "SHLVL", "TMPDIR", "_"]
                .map(str::to_owned)
                .into_iter()
                .chain(
                    home.spec("")
                        .environment
                        .iter()
                        .map(|(name, _)| name.to_str().unwrap().to_owned()),
                )
                .collect();
        expected.sort();
        expected.dedup();
        for name in printed.split_whitespace() {
            assert!(expected.iter().any(|known| known == name), "{level:?} shows {name}");
        }
    }
}

/// Processes whose command line holds `mark`.
fn running(mark: &str) -> Vec<i32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
        })
        .collect()
}

/// A number of seconds to sleep that marks the processes of one test.
fn mark(number: u32) -> String {
    format!("3600.{}{number}", std::process::id())
}

/// Starts daemons that have neither parent, session, group nor environment in common with the command.
fn daemons(mark: &str) -> String {
    format!(
        "for i in 1 2 3; do (setsid env -i bash -c 'setsid sleep {mark} & setsid sleep {mark} &' &) ; done"
    )
}

#[tokio::test]
async fn everything_ends_with_the_command() {
    for (number, level) in levels().into_iter().enumerate() {
        let home = Home::new(level.clone());
        let mark = mark(number as u32);
        let script = format!("{}; sleep 0.2; echo done", daemons(&mark));
        assert_eq!(home.run(&script).await, (Exit::Code(0), "done\n".to_owned()), "{level:?}");
        assert!(running(&mark).is_empty(), "{level:?}");
    }
}

#[tokio::test]
async fn everything_ends_when_the_caller_cancels() {
    for (number, level) in levels().into_iter().enumerate() {
        let home = Home::new(level.clone());
        let mark = mark(10 + number as u32);
        let script = format!("trap '' TERM; {}; sleep {mark}", daemons(&mark));
        let cancel = CancellationToken::new();
        let mut ignore = |_: &[u8]| {};
        let cancelled = async {
            wait_until_running(&mark).await;
            cancel.cancel();
        };
        let (finished, ()) = tokio::join!(
            home.sandbox.run(home.spec(&script), &home.confinement, &cancel, &mut ignore),
            cancelled
        );
        assert_eq!(finished.unwrap().exit, Exit::Aborted, "{level:?}");
        wait_until_gone(&mark, &level).await;
    }
}

/// What the script of [`daemons`] starts, and the command itself.
const DAEMONS_AND_COMMAND: usize = 7;

async fn wait_until_running(mark: &str) {
    let patience = Instant::now() + Duration::from_secs(60);
    while running(mark).len() < DAEMONS_AND_COMMAND {
        assert!(Instant::now() < patience, "only {:?} run", running(mark));
        tokio::task::yield_now().await;
    }
}

/// The kernel takes a moment to remove what was killed.
async fn wait_until_gone(mark: &str, level: &Level) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !running(mark).is_empty() {
        assert!(Instant::now() < patience, "{level:?}: {:?} are left", running(mark));
        tokio::task::yield_now().await;
    }
}

/// A fork bomb within a small limit.
#[tokio::test]
async fn a_fork_bomb_comes_to_rest() {
    for (number, level) in levels().into_iter().enumerate() {
        let mut home = Home::new(level.clone());
        home.confinement.limits.processes = Some(40);
        let mark = mark(20 + number as u32);
        // Not by doubling forever: each process starts others until it is refused.
        let script = format!(
            "bomb() {{ while sleep {mark} & do bomb & done; }} 2>/dev/null; echo ready; bomb; sleep {mark}"
        );
        let cancel = CancellationToken::new();
        let mut on_output = |_: &[u8]| cancel.cancel();
        let finished =
            home.sandbox.run(home.spec(&script), &home.confinement, &cancel, &mut on_output).await;
        assert_eq!(finished.unwrap().exit, Exit::Aborted, "{level:?}");
        wait_until_gone(&mark, &level).await;
    }
}

#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let home = Home::new(Level::Landlock);
    let finished = home.try_run("yes | head -c 30000000").await.unwrap();
    assert_eq!((finished.exit, finished.output.total_bytes), (Exit::Code(0), 30_000_000));
    assert!(finished.output.tail.len() <= 50 * 1024 && finished.output.truncated);
}

async fn first_line(confined: &mut Confined) -> String {
    let mut line = String::new();
    tokio::io::BufReader::new(confined.take_output().unwrap()).read_line(&mut line).await.unwrap();
    line
}

#[tokio::test]
async fn a_long_lived_helper_talks_over_pipes_and_ends_with_all_it_started() {
    for (number, level) in levels().into_iter().enumerate() {
        let home = Home::new(level.clone());
        let mark = mark(30 + number as u32);
        let script = format!("read line; {}; echo \"got $line\"; sleep {mark}", daemons(&mark));
        let mut confined = home.sandbox.spawn(home.spec(&script), &home.confinement).unwrap();
        confined.take_input().unwrap().write_all(b"hello\n").await.unwrap();
        assert_eq!(first_line(&mut confined).await, "got hello\n", "{level:?}");
        wait_until_running(&mark).await;
        confined.end().await.unwrap();
        wait_until_gone(&mark, &level).await;
    }
}

#[tokio::test]
async fn a_dropped_helper_ends_with_all_it_started() {
    for (number, level) in levels().into_iter().enumerate() {
        let home = Home::new(level.clone());
        let mark = mark(40 + number as u32);
        let script = format!("{}; echo ready; sleep {mark}", daemons(&mark));
        let mut confined = home.sandbox.spawn(home.spec(&script), &home.confinement).unwrap();
        first_line(&mut confined).await;
        wait_until_running(&mark).await;
        drop(confined);
        wait_until_gone(&mark, &level).await;
    }
}

/// `SIGKILL` for the program that wanted the command: its sandboxes end by themselves.
#[tokio::test]
async fn everything_ends_when_the_program_is_killed() {
    for (number, level) in levels().into_iter().enumerate() {
        let home = Home::new(level.clone());
        let mark = mark(50 + number as u32);
        // This test stands for whoever killed the program; a second test process stands for the program.
        let mut program = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holds_a_sandbox_open", "--nocapture", "--ignored"])
            .env("HELD_MARK", &mark)
            .env("HELD_LEVEL", serde_json::to_string(&level).unwrap())
            .env("HELD_WORKSPACE", home.workspace())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(program.stdout.take().unwrap());
        assert!(output.lines().any(|line| line.unwrap().contains("held open")), "{level:?}");
        wait_until_running(&mark).await;
        program.kill().unwrap();
        program.wait().unwrap();
        wait_until_gone(&mark, &level).await;
    }
}

#[tokio::test]
#[ignore = "a part of everything_ends_when_the_program_is_killed"]
async fn holds_a_sandbox_open() {
    let Ok(mark) = std::env::var("HELD_MARK") else { return };
    let level = serde_json::from_str(&std::env::var("HELD_LEVEL").unwrap()).unwrap();
    let mut home = Home::new(level);
    home.confinement.workspace = PathBuf::from(std::env::var("HELD_WORKSPACE").unwrap());
    let script = format!("{}; echo ready; sleep {mark}", daemons(&mark));
    let mut confined = home.sandbox.spawn(home.spec(&script), &home.confinement).unwrap();
    first_line(&mut confined).await;
    println!("held open");
    confined.wait().await.unwrap();
}

#[tokio::test]
async fn a_failure_before_the_command_is_an_error_and_no_output() {
    let mut home = Home::new(Level::Landlock);
    home.confinement.read_only = vec![home.workspace().join("missing")];
    let error = home.try_run("echo unreached").await.unwrap_err();
    assert!(matches!(error, SandboxError::Setup(_)), "{error:?}");
    assert!(error.to_string().contains("missing"), "{error}");

    let home = Home::new(Level::Landlock);
    let program = home.directory.path().join("program");
    fs::copy("/bin/true", &program).unwrap();
    let spec = ChildSpec::new(&program, home.workspace());
    let result =
        home.sandbox.run(spec, &home.confinement, &CancellationToken::new(), &mut |_| {}).await;
    let error = result.unwrap_err().to_string();
    assert!(error.contains("add its directory to the readable paths"), "{error}");
}

#[tokio::test]
async fn a_failure_of_bubblewrap_is_an_error_and_no_output() {
    if probe().bubblewrap.is_none() {
        myclaw_testkit::skip_without("bwrap is not installed (apt install bubblewrap)");
        return;
    }
    let mut home = Home::new(Level::Bubblewrap);
    home.confinement.read_only = vec![home.workspace().join("missing")];
    let error = home.try_run("echo unreached").await.unwrap_err();
    assert!(matches!(error, SandboxError::Setup(_)), "{error:?}");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[tokio::test]
async fn a_proxy_is_the_only_way_out() {
    // A service of the machine, which a sandbox must not reach.
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    service.set_nonblocking(true).unwrap();
    let port = service.local_addr().unwrap().port();
    for level in levels().into_iter().filter(|level| *level != Level::Limits) {
        let mut home = Home::new(level.clone());
        let socket = home.directory.path().canonicalize().unwrap().join("proxy");
        let listener = UnixListener::bind(&socket).unwrap();
        let proxy = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 9];
            client.read_exact(&mut request).unwrap();
            client.write_all(b"answer\n").unwrap();
            String::from_utf8(request.to_vec()).unwrap()
        });
        home.confinement.network = Network::Proxy { socket };
        let script = format!(
            r#"
            echo "$HTTP_PROXY ${{NO_PROXY-}}${{no_proxy-}}"
            (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo REACHED
            (exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null && echo REACHED
            (echo x >/dev/udp/192.0.2.1/80) 2>/dev/null && echo REACHED
            exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'question\n' >&3 && head -1 <&3
            "#
        );
        let mut spec = home.spec(&script);
        let variables = [("NO_PROXY", "*"), ("no_proxy", "*"), ("PATH", env!("PATH"))]
            .map(|(name, value)| (name.into(), value.into()));
        spec.environment = myclaw_exec::EnvironmentPolicy::filtered(variables, &[]);
        let cancel = CancellationToken::new();
        let finished =
            home.sandbox.run(spec, &home.confinement, &cancel, &mut |_| {}).await.unwrap();
        let expected = "http://127.0.0.1:3128 \nanswer\n".to_owned();
        assert_eq!((finished.exit, finished.output.tail), (Exit::Code(0), expected), "{level:?}");
        assert_eq!(proxy.join().unwrap(), "question\n");
        assert!(service.accept().is_err(), "{level:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_an_error() {
    let mut home = Home::new(Level::Landlock);
    home.confinement.network = Network::Proxy { socket: "/missing/socket".into() };
    let error = home.try_run("echo unreached").await.unwrap_err().to_string();
    assert!(error.contains("/missing/socket"), "{error}");
}

#[tokio::test]
async fn a_limit_that_is_absent_is_not_applied() {
    let mut home = Home::new(Level::Limits);
    home.confinement.limits = Limits {
        memory: None,
        processes: None,
        file_size: None,
        open_files: None,
        cpu_seconds: Some(7),
    };
    let (_, printed) = home.run("ulimit -t; ulimit -d; ulimit -f").await;
    assert_eq!(printed, "7\nunlimited\nunlimited\n");
}

#[tokio::test]
async fn errors_can_go_apart() {
    let home = Home::new(Level::Landlock);
    let mut confined =
        home.sandbox.spawn(home.spec("echo out; echo err >&2"), &home.confinement).unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    confined.take_output().unwrap().read_to_string(&mut out).await.unwrap();
    confined.take_errors().unwrap().read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("out\n", "err\n"));
    assert!(confined.wait().await.unwrap().success());
}

/// Not an assertion: `cargo test -p myclaw-sandbox --test sandbox --release -- cost --ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement"]
async fn cost_of_a_command() {
    const RUNS: u32 = 200;
    let mut bare = Duration::ZERO;
    let mut homes = Vec::new();
    for level in levels() {
        let mut home = Home::new(level.clone());
        homes.push((format!("{level:?}"), Home::new(level.clone())));
        // Root needs a cgroup for this limit, and entering one waits for all processors.
        home.confinement.limits.processes = None;
        homes.push((format!("{level:?} without a limit on processes"), home));
    }
    let mut sums = vec![Duration::ZERO; homes.len()];
    for _ in 0..RUNS {
        for ((_, home), sum) in homes.iter().zip(&mut sums) {
            let begin = Instant::now();
            home.run("true").await;
            *sum += begin.elapsed();
        }
        let begin = Instant::now();
        myclaw_exec::run(homes[0].1.spec("true"), &CancellationToken::new(), &mut |_| {})
            .await
            .unwrap();
        bare += begin.elapsed();
    }
    let milliseconds = |sum: Duration| sum.as_secs_f64() * 1000.0 / f64::from(RUNS);
    println!("bare bash -c true: {:.2} ms", milliseconds(bare));
    for ((name, _), sum) in homes.iter().zip(sums) {
        let (sum, bare) = (milliseconds(sum), milliseconds(bare));
        println!("{name}: {sum:.2} ms, +{:.2} ms, ratio {:.2}", sum - bare, sum / bare);
    }
}
