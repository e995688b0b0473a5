use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{ChildSpec, ExecError, Exit, Finished, run_attached};

const SIZE: TerminalSize = TerminalSize { columns: 90, rows: 33 };

/// A running script, and the hold on it.
struct Script {
    handle: Handle,
    run: JoinHandle<Result<Finished, ExecError>>,
    cancel: CancellationToken,
}

impl Script {
    fn start(attachment: Attachment, script: &str, directory: &std::path::Path) -> Self {
        let mut spec = ChildSpec::new("bash", directory);
        spec.args = vec!["-c".into(), script.into()];
        let (handle, link) = attach(attachment);
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
        let run = async move { run_attached(spec, link, &cancelled, &mut |_| {}).await };
        Self { handle, run: tokio::spawn(run), cancel }
    }

    async fn finish(self) -> Finished {
        self.run.await.unwrap().unwrap()
    }
}

async fn eventually<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until `file` holds a process id and returns it.
async fn pid_in(file: &std::path::Path) -> i32 {
    let pid = || fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok();
    eventually(&format!("{} holds a process id", file.display()), pid).await
}

fn is_alive(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_program_reads_what_is_written_until_its_input_ends() {
    let script = Script::start(Attachment::Pipe, "cat", "/".as_ref());
    script.handle.write(b"one\n".to_vec()).unwrap();
    script.handle.write(b"two\n".to_vec()).unwrap();
    script.handle.end_input().unwrap();
    let handle = script.handle.clone();
    assert_eq!(script.finish().await.output.tail, "one\ntwo\n");
    assert_eq!(handle.write(b"three".to_vec()), Err(WriteError::Closed));
}

#[tokio::test]
async fn without_an_attachment_nothing_can_be_written() {
    let script = Script::start(Attachment::None, "cat", "/".as_ref());
    assert_eq!(script.handle.write(b"x".to_vec()), Err(WriteError::Closed));
    assert_eq!(script.finish().await.output.tail, "");
}

#[tokio::test]
async fn what_a_program_does_not_read_is_bounded() {
    let script = Script::start(Attachment::Pipe, "sleep 60", "/".as_ref());
    let piece = vec![b'x'; 64 * 1024];
    let full = (0..100).find_map(|_| script.handle.write(piece.clone()).err());
    assert_eq!(full, Some(WriteError::Full));
    script.cancel.cancel();
    assert_eq!(script.finish().await.exit, Exit::Aborted);
}

#[tokio::test]
async fn a_terminal_is_the_programs_own() {
    let script = "tty -s && stty size && read -r line && echo \"got $line\"; ps -o tty= -p $$";
    let script = Script::start(Attachment::Terminal(SIZE), script, "/".as_ref());
    script.handle.write(b"hello\r".to_vec()).unwrap();
    let finished = script.finish().await;
    let text = finished.output.tail.replace('\r', "");
    let lines: Vec<&str> = text.lines().filter(|line| *line != "hello").collect();
    assert_eq!(lines[..2], ["33 90", "got hello"], "{text}");
    assert!(lines[2].starts_with("pts/"), "{text}");
    assert_eq!(finished.exit, Exit::Code(0));
}

#[tokio::test]
async fn ctrl_c_is_a_signal_at_a_terminal_and_ctrl_d_ends_the_input() {
    let directory = tempfile::TempDir::new().unwrap();
    let script =
        "trap 'echo interrupted; cat; exit 7' INT; touch ready; while :; do sleep 0.01; done";
    let script = Script::start(Attachment::Terminal(SIZE), script, directory.path());
    eventually("it runs", || directory.path().join("ready").exists().then_some(())).await;
    script.handle.write(vec![3]).unwrap();
    script.handle.end_input().unwrap();
    let finished = script.finish().await;
    assert!(finished.output.tail.contains("interrupted"), "{}", finished.output.tail);
    assert_eq!(finished.exit, Exit::Code(7));
}

#[tokio::test]
async fn all_output_is_kept_if_that_is_wanted() {
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("log");
    let mut spec = ChildSpec::new("bash", "/");
    spec.args = vec!["-c".into(), "echo before; read -r _; echo after".into()];
    spec.output.side_file = Some(file.clone());
    let (handle, link) = attach(Attachment::Pipe);
    let cancel = CancellationToken::new();
    let writer = handle.clone();
    let mut on_output = move |_: &[u8]| {
        writer.keep_all_output();
        // It fails once the program has read and gone on.
        let _ = writer.write(b"\n".to_vec());
    };
    let finished = run_attached(spec, link, &cancel, &mut on_output).await.unwrap();
    assert!(!finished.output.truncated);
    assert_eq!(finished.output.side_file.unwrap().path, file);
    assert_eq!(fs::read_to_string(file).unwrap(), "before\nafter\n");
}

/// A tree with an escaped session and a daemon, as a process that was killed leaves it: nobody watches it any more.
#[tokio::test]
async fn a_traced_tree_is_ended_by_others_with_its_daemons() {
    let directory = tempfile::TempDir::new().unwrap();
    let script = "setsid bash -c 'echo $$ > session; sleep 60; true' &
         (setsid bash -c '(echo $BASHPID > daemon; exec sleep 60) & exit' < /dev/null > /dev/null 2>&1 &)
         (trap '' TERM; echo $BASHPID > stubborn; sleep 60; sleep 60) &
         echo $$ > root; wait";
    let script = Script::start(Attachment::None, script, directory.path());
    let mut pids = Vec::new();
    for name in ["session", "daemon", "stubborn", "root"] {
        pids.push(pid_in(&directory.path().join(name)).await);
    }
    let trace = script.handle.trace();
    assert_eq!(trace.root.unwrap().0, pids[3]);
    assert!(end_traced(&trace).await >= 4);
    for pid in pids {
        eventually(&format!("process {pid} is gone"), || (!is_alive(pid)).then_some(())).await;
    }
    assert_eq!(end_traced(&trace).await, 0);
    drop(script.finish().await);
}

/// The mark alone finds the processes of a command whose start was not written down any more.
#[tokio::test]
async fn a_tree_is_found_without_its_root() {
    let directory = tempfile::TempDir::new().unwrap();
    let script =
        Script::start(Attachment::None, "echo $$ > root; sleep 60; true", directory.path());
    let pid = pid_in(&directory.path().join("root")).await;
    let trace = TreeTrace { root: None, ..script.handle.trace() };
    assert!(end_traced(&trace).await >= 1);
    assert!(!is_alive(pid));
    drop(script.finish().await);
}

/// The process id of a command may belong to a stranger by the time that somebody looks, and so may its group.
#[tokio::test]
async fn a_stranger_with_the_id_of_a_dead_root_is_not_touched() {
    use std::os::unix::process::CommandExt;
    let mut stranger =
        std::process::Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
    let pid = stranger.id().cast_signed();
    let start = start_of(pid).unwrap();
    let (handle, _link) = attach(Attachment::None);
    let reused = TreeTrace { root: Some((pid, start - 1)), ..handle.trace() };
    assert_eq!(end_traced(&reused).await, 0);
    kill_traced(&reused);
    let other_boot = TreeTrace { root: Some((pid, start)), boot: "other".into(), ..handle.trace() };
    assert_eq!(end_traced(&other_boot).await, 0);
    for mark in ["", "1", "x-1-2", "1-2-"] {
        let damaged = TreeTrace { mark: mark.into(), root: Some((pid, start)), boot: boot_id() };
        assert_eq!(end_traced(&damaged).await, 0, "{mark:?}");
    }
    assert!(is_alive(pid));
    kill_traced(&TreeTrace { root: Some((pid, start)), ..handle.trace() });
    assert_eq!(stranger.wait().unwrap().signal(), Some(9));
}
