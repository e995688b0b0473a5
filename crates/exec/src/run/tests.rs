use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::*;
use crate::{EnvironmentPolicy, ErrorOutput};

/// In seconds: long enough that a test that waits for it has failed, short enough that no process is left for long.
const FOREVER: &str = "60";

fn bash(directory: &Path, script: &str) -> ChildSpec {
    let mut spec = ChildSpec::new("bash", directory);
    spec.args = vec!["-c".into(), script.into()];
    spec
}

async fn finished(spec: ChildSpec) -> Finished {
    run(spec, &CancellationToken::new(), &mut |_| {}).await.unwrap()
}

async fn in_bash(script: &str) -> Finished {
    finished(bash(Path::new("/"), script)).await
}

/// Waits until `condition` gives something.
async fn eventually<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until `file` holds a process id and returns it.
async fn pid_in(file: &Path) -> i32 {
    let pid = || fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok();
    eventually(&format!("{} holds a process id", file.display()), pid).await
}

fn is_alive(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits until the process is gone; a process killed with SIGKILL takes a moment.
async fn vanishes(pid: i32) {
    eventually(&format!("process {pid} is gone"), || (!is_alive(pid)).then_some(())).await;
}

/// A script that starts processes of every kind, each of which writes its id to a file in the directory, and waits.
fn script_of_escapees() -> String {
    format!(
        "sleep {FOREVER} & echo $! > child
         (trap '' TERM; echo $BASHPID > stubborn; sleep {FOREVER}; sleep {FOREVER}) &
         setsid bash -c 'echo $$ > session; sleep {FOREVER}; true' &
         (setsid bash -c '(echo $BASHPID > daemon; exec sleep {FOREVER}) & exit' < /dev/null > /dev/null 2>&1 &)
         wait"
    )
}

async fn escapees(directory: &Path) -> Vec<i32> {
    let mut pids = Vec::new();
    for name in ["child", "stubborn", "session", "daemon"] {
        pids.push(pid_in(&directory.join(name)).await);
    }
    pids
}

#[tokio::test]
async fn output_exit_code_and_order() {
    let result = in_bash("echo one; echo two >&2; echo three; printf four >&2; exit 3").await;
    assert_eq!(result.exit, Exit::Code(3));
    assert_eq!(result.output.tail, "one\ntwo\nthree\nfour");
    assert_eq!(
        (result.output.total_bytes, result.output.total_lines, result.output.truncated),
        (18, 4, false)
    );
    assert_eq!(result.left_running, []);
}

#[tokio::test]
async fn a_signal_from_elsewhere_is_reported() {
    assert_eq!(in_bash("kill -9 $$").await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn pieces_are_reported_as_they_come() {
    let mut seen = Vec::new();
    let spec = bash(Path::new("/"), "echo one; echo two");
    run(spec, &CancellationToken::new(), &mut |piece| seen.extend_from_slice(piece)).await.unwrap();
    assert_eq!(seen, b"one\ntwo\n");
}

#[tokio::test]
async fn a_child_has_no_input_no_terminal_and_its_own_session() {
    let result = in_bash("cat; ps -o sid= -p $$ | tr -d ' '; echo $$; (: < /dev/tty) 2>/dev/null || echo no terminal").await;
    let lines: Vec<&str> = result.output.tail.lines().collect();
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[2], "no terminal");
}

#[tokio::test]
async fn signals_are_not_inherited_as_ignored() {
    // Rust programs ignore SIGPIPE; `yes` would complain about it instead of dying.
    let result = in_bash("yes | head -1; echo ${PIPESTATUS[0]}").await;
    assert_eq!(result.output.tail, "y\n141\n");
}

#[tokio::test]
async fn the_environment_is_only_what_the_policy_says() {
    let mut spec = ChildSpec::new("env", "/");
    let environment = EnvironmentPolicy::filtered(
        [
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("OPENAI_API_KEY".into(), "sk-1".into()),
        ],
        &["OPENAI_API_KEY"],
    );
    spec.environment = environment.clone();
    let result = finished(spec).await;
    let mut names: Vec<&str> =
        result.output.tail.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    let mut expected: Vec<&str> =
        environment.iter().filter_map(|(name, _)| name.to_str()).collect();
    expected.push(MARK_VARIABLE);
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert!(!result.output.tail.contains("sk-1"));
}

#[tokio::test]
async fn a_hundred_megabytes_without_a_newline() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("all.log");
    let mut spec = bash(Path::new("/"), "head -c 104857600 /dev/zero");
    spec.output.side_file = Some(file.clone());
    let before = peak_memory();
    let result = finished(spec).await;
    assert_eq!(result.exit, Exit::Code(0));
    assert_eq!(result.output.total_bytes, 104_857_600);
    assert_eq!(result.output.tail.len(), 50 * 1024);
    assert_eq!(file.metadata().unwrap().len(), 104_857_600);
    // Other tests run at the same time; what must not happen is that the output itself is held.
    assert!(
        peak_memory() - before < 50 * 1024,
        "peak memory grew from {before} to {} KB",
        peak_memory()
    );
}

/// Of this process, in KB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_side_file_stops_growing_at_its_limit() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("all.log");
    let mut spec = bash(Path::new("/"), "head -c 300000000 /dev/zero");
    spec.output.side_file = Some(file.clone());
    let result = finished(spec).await;
    let limit = 256 * 1024 * 1024;
    assert_eq!(
        result.output.side_file.unwrap().problem,
        Some(crate::SideFileProblem::Capped { limit })
    );
    assert_eq!(file.metadata().unwrap().len(), limit);
    assert_eq!(result.output.total_bytes, 300_000_000);
}

#[tokio::test]
async fn when_time_is_up_the_whole_tree_ends() {
    let directory = TempDir::new().unwrap();
    let mut spec = bash(directory.path(), &format!("echo before; {}", script_of_escapees()));
    spec.timeout = Some(Duration::from_secs(2));
    let result = finished(spec).await;
    assert_eq!(result.exit, Exit::TimedOut);
    assert_eq!(result.output.tail, "before\n");
    for pid in escapees(directory.path()).await {
        vanishes(pid).await;
    }
}

#[tokio::test]
async fn cancelling_ends_the_whole_tree_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let mut bystander = std::process::Command::new("sleep").arg(FOREVER).spawn().unwrap();
    let cancel = CancellationToken::new();
    let running = {
        let (spec, cancel) = (bash(directory.path(), &script_of_escapees()), cancel.clone());
        tokio::spawn(async move { run(spec, &cancel, &mut |_| {}).await.unwrap() })
    };
    let pids = escapees(directory.path()).await;
    cancel.cancel();
    let exit = running.await.unwrap().exit;
    let alive: Vec<i32> = pids.into_iter().filter(|pid| is_alive(*pid)).collect();
    let bystander_is_alive = is_alive(bystander.id().cast_signed());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert_eq!((exit, alive, bystander_is_alive), (Exit::Aborted, vec![], true));
}

#[tokio::test]
async fn a_dropped_future_kills_the_whole_tree() {
    let directory = TempDir::new().unwrap();
    let spec = bash(directory.path(), &script_of_escapees());
    let running =
        tokio::spawn(async move { run(spec, &CancellationToken::new(), &mut |_| {}).await });
    let pids = escapees(directory.path()).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    for pid in pids {
        vanishes(pid).await;
    }
}

#[tokio::test]
async fn a_polite_program_may_clean_up_and_say_so() {
    let directory = TempDir::new().unwrap();
    let script =
        format!("trap 'echo cleaned up; exit 5' TERM; echo $$ > ready; sleep {FOREVER} & wait");
    let cancel = CancellationToken::new();
    let running = {
        let (spec, cancel) = (bash(directory.path(), &script), cancel.clone());
        tokio::spawn(async move { run(spec, &cancel, &mut |_| {}).await.unwrap() })
    };
    pid_in(&directory.path().join("ready")).await;
    cancel.cancel();
    let result = running.await.unwrap();
    assert_eq!((result.exit, result.output.tail.as_str()), (Exit::Aborted, "cleaned up\n"));
}

#[tokio::test]
async fn a_process_outside_the_group_is_asked_to_end_only_once() {
    let directory = TempDir::new().unwrap();
    let script = "setsid bash -c 'trap \"echo x >> asked\" TERM; echo $$ > escaped; while :; do sleep 0.01; done' &
        wait";
    let cancel = CancellationToken::new();
    let running = {
        let (spec, cancel) = (bash(directory.path(), script), cancel.clone());
        tokio::spawn(async move { run(spec, &cancel, &mut |_| {}).await.unwrap() })
    };
    let escaped = pid_in(&directory.path().join("escaped")).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap().exit, Exit::Aborted);
    vanishes(escaped).await;
    // A program that cleans up would begin again with each further signal. A slow machine may not get to the first.
    let asked = fs::read_to_string(directory.path().join("asked")).unwrap_or_default();
    assert!(asked.lines().count() <= 1, "{asked}");
}

#[tokio::test]
async fn one_that_prints_without_end_is_ended_too() {
    let mut spec = bash(Path::new("/"), "trap '' TERM; while :; do echo x; done");
    spec.timeout = Some(Duration::from_millis(50));
    assert_eq!(finished(spec).await.exit, Exit::TimedOut);
}

#[tokio::test]
async fn already_cancelled_is_aborted() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = run(bash(Path::new("/"), "sleep 60"), &cancel, &mut |_| {}).await.unwrap();
    assert_eq!(result.exit, Exit::Aborted);
}

#[tokio::test]
async fn a_background_process_does_not_hold_up_the_result() {
    let directory = TempDir::new().unwrap();
    let script = format!("sleep {FOREVER} & echo $! > pid; echo started");
    let result = finished(bash(directory.path(), &script)).await;
    let pid = pid_in(&directory.path().join("pid")).await;
    assert_eq!((result.exit, result.output.tail.as_str()), (Exit::Code(0), "started\n"));
    assert_eq!(result.left_running, [LeftRunning { pid, name: "sleep".into() }]);
    assert!(is_alive(pid));
    kill(pid);
}

#[tokio::test]
async fn background_processes_are_seen_without_a_pipe_and_outside_the_session() {
    let directory = TempDir::new().unwrap();
    let quiet = "> /dev/null 2>&1 < /dev/null";
    let script = format!("sleep {FOREVER} {quiet} & echo $! > same; setsid bash -c 'echo $$ > other; exec sleep {FOREVER}' &
        until [ -s other ]; do :; done");
    let result = finished(bash(directory.path(), &script)).await;
    let mut expected = vec![
        pid_in(&directory.path().join("same")).await,
        pid_in(&directory.path().join("other")).await,
    ];
    expected.sort_unstable();
    let mut left: Vec<i32> = result.left_running.iter().map(|process| process.pid).collect();
    left.sort_unstable();
    assert_eq!(left, expected);
    expected.into_iter().for_each(kill);
}

#[tokio::test]
async fn a_background_process_may_go_on_printing() {
    let directory = TempDir::new().unwrap();
    let script =
        "(while [ ! -e stop ]; do echo noise || break; echo x >> printed; sleep 0.01; done;
        echo done > end) & echo started";
    finished(bash(directory.path(), script)).await;
    let printed = || fs::read(directory.path().join("printed")).unwrap_or_default().len();
    let before = printed();
    eventually("the process has printed more", || (printed() > before + 4).then_some(())).await;
    fs::write(directory.path().join("stop"), "").unwrap();
    eventually("the process has printed all", || {
        directory.path().join("end").exists().then_some(())
    })
    .await;
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn closed_output_is_not_the_end() {
    let result = in_bash("exec > /dev/null 2>&1; sleep 0.05; exit 4").await;
    assert_eq!(result.exit, Exit::Code(4));
}

#[tokio::test]
async fn no_zombie_and_no_descriptor_is_left() {
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    in_bash("true").await;
    let (before, seen) = (descriptors(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..50 {
        let seen = Arc::clone(&seen);
        let spec = bash(Path::new("/"), "echo x");
        run(spec, &CancellationToken::new(), &mut |piece| {
            seen.fetch_add(piece.len(), Ordering::Relaxed);
        })
        .await
        .unwrap();
    }
    assert_eq!(seen.load(Ordering::Relaxed), 100);
    // Other tests of this process open some at the same time, but not fifty.
    assert!(descriptors() < before + 40);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let directory = TempDir::new().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
    let cases = |program: &str, directory: &Path| ChildSpec::new(program, directory);
    let error = async |spec| run(spec, &CancellationToken::new(), &mut |_| {}).await.unwrap_err();

    let missing = error(cases("no-such-program-anywhere", directory.path())).await;
    assert!(matches!(missing, ExecError::ProgramNotFound { .. }), "{missing:?}");
    assert!(missing.to_string().contains("no-such-program-anywhere was not found"), "{missing}");

    let no_file = error(cases("./nothing", directory.path())).await;
    assert!(matches!(no_file, ExecError::ProgramNotFound { .. }), "{no_file:?}");

    let plain = error(cases("./script", directory.path())).await;
    assert!(matches!(plain, ExecError::NotExecutable { .. }), "{plain:?}");

    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let interpreter = error(cases("./script", directory.path())).await;
    assert!(matches!(interpreter, ExecError::Spawn { .. }), "{interpreter:?}");

    let nowhere = error(cases("true", &directory.path().join("nowhere"))).await;
    assert!(matches!(nowhere, ExecError::Directory { .. }), "{nowhere:?}");
    assert!(nowhere.to_string().contains("nowhere: No such file"), "{nowhere}");

    let file_as_directory = error(cases("true", &script)).await;
    assert!(matches!(file_as_directory, ExecError::Directory { .. }), "{file_as_directory:?}");

    let mut nul = bash(directory.path(), "true");
    nul.args.push("a\0b".into());
    let nul = error(nul).await;
    assert_eq!(
        nul.to_string(),
        "an argument holds a NUL byte, which cannot be passed to a program; remove it"
    );
}

#[tokio::test]
async fn programs_are_found_in_the_childs_own_path() {
    let directory = TempDir::new().unwrap();
    let program = directory.path().join("mine");
    fs::write(&program, "#!/bin/sh\necho \"$0 in $PWD\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = ChildSpec::new("mine", "/");
    spec.environment = EnvironmentPolicy::empty().with("PATH", directory.path());
    assert_eq!(finished(spec).await.output.tail, format!("{} in /\n", program.display()));
}

#[tokio::test]
async fn input_is_read_to_its_end_and_errors_go_apart() {
    // More than a pipe holds, both ways at once.
    let input = "a line\n".repeat(40_000).into_bytes();
    let length = input.len() as u64;
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("output");
    let mut spec = bash(Path::new("/"), "echo oops >&2; tee /dev/null; echo again >&2");
    spec.input = input.clone();
    spec.errors = ErrorOutput::Apart;
    spec.output.keep_tail_lines = 1;
    spec.output.side_file = Some(file.clone());
    let result = finished(spec).await;
    assert_eq!(result.exit, Exit::Code(0));
    assert_eq!((result.output.total_bytes, result.output.tail.as_str()), (length, "a line\n"));
    assert_eq!((result.errors.total_lines, result.errors.tail.as_str()), (2, "again\n"));
    // The side file holds the output alone.
    assert_eq!(result.errors.side_file, None);
    assert!(fs::read(file).unwrap() == input);
}

#[tokio::test]
async fn input_that_nobody_reads_is_no_error() {
    for script in ["exit 4", "exec <&-; exit 4", "head -c 3 > /dev/null; exit 4"] {
        let mut spec = bash(Path::new("/"), script);
        spec.input = vec![b'x'; 1 << 20];
        assert_eq!(finished(spec).await.exit, Exit::Code(4), "{script}");
    }
}

#[tokio::test]
async fn a_program_that_waits_for_input_gets_its_end() {
    let mut spec = bash(Path::new("/"), "cat; echo end");
    spec.input = b"all of it\n".to_vec();
    assert_eq!(finished(spec).await.output.tail, "all of it\nend\n");
}
