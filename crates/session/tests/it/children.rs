//! Other processes: this test binary runs itself, and the copy does one of the jobs below.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use myclaw_session::{
    Entry, EntryId, Inbox, Keeper, LockWait, MetaPatch, QueuedKind, QueuedMessage, SessionKey,
    SessionStore,
};

use crate::{limit_in_bytes, user, work};

/// Names the job; set in copies only.
const JOB: &str = "MYCLAW_SESSION_TEST_JOB";
/// The sessions directory that the job works in.
const DIRECTORY: &str = "MYCLAW_SESSION_TEST_DIRECTORY";
/// Begins each line that a job reports, since the test harness prints lines of its own.
const REPORT: &str = "report ";
/// Long enough for any machine; reached only by a job that hangs.
const PATIENCE: LockWait = LockWait::Until(Duration::from_secs(30));

/// A copy of this test binary about to be started.
pub(crate) struct Child {
    job: &'static str,
    directory: PathBuf,
    /// A command that runs the copy, if it is not run directly.
    wrapper: Vec<OsString>,
}

/// What a copy reported.
pub(crate) struct Report {
    lines: Vec<String>,
    pub(crate) succeeded: bool,
    /// Everything it printed, for messages.
    pub(crate) printed: String,
}

impl Child {
    pub(crate) fn new(job: &'static str) -> Self {
        Self { job, directory: PathBuf::new(), wrapper: Vec::new() }
    }

    pub(crate) fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Runs the copy through a shell script, whose last command should be `exec "$@"`.
    pub(crate) fn through(mut self, program: &[&str], script: &str) -> Self {
        self.wrapper = program.iter().map(OsString::from).collect();
        self.wrapper.extend(["sh", "-c", script, "sh"].map(OsString::from));
        self
    }

    pub(crate) fn command(&self) -> Command {
        let binary = std::env::current_exe().unwrap().into_os_string();
        let arguments = ["--exact", "children::job", "--nocapture"].map(OsString::from);
        let line: Vec<_> = self.wrapper.iter().cloned().chain([binary]).chain(arguments).collect();
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env(JOB, self.job).env(DIRECTORY, &self.directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the copy to its end.
    pub(crate) fn run(&self) -> Report {
        Report::of(self.command().spawn().unwrap())
    }
}

impl Report {
    /// Waits for a started copy.
    pub(crate) fn of(child: std::process::Child) -> Self {
        let output = child.wait_with_output().unwrap();
        let printed = [output.stdout, output.stderr]
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .concat();
        Self {
            lines: printed.lines().filter_map(report_line).collect(),
            succeeded: output.status.success(),
            printed,
        }
    }

    /// What it reported under `name`.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.lines
            .iter()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }
}

/// The harness prints the test's name and no line feed before a job's first report.
fn report_line(line: &str) -> Option<String> {
    line.split_once(REPORT).map(|(_, report)| report.to_owned())
}

/// Waits until a started copy has reported something.
pub(crate) fn wait_for_report(child: &mut std::process::Child) -> String {
    reports(child).next().unwrap()
}

/// The reports of a started copy, as they arrive.
pub(crate) fn reports(child: &mut std::process::Child) -> impl Iterator<Item = String> {
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    output.lines().map(Result::unwrap).filter_map(|line| report_line(&line))
}

fn report(name: &str, value: impl std::fmt::Display) {
    println!("{REPORT}{name}={value}");
    std::io::stdout().flush().unwrap();
}

/// Not a test: in a copy of this binary it does the job.
#[test]
fn job() {
    let Ok(job) = std::env::var(JOB) else { return };
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    match job.as_str() {
        "hold" => hold(&directory),
        "append_often" => append_often(&directory),
        "upsert_often" => upsert_often(&directory),
        "one_turn" => one_turn(&directory),
        "append_forever" => append_forever(&directory),
        "fork_forever" => fork_forever(&directory),
        "fill" => fill(&directory),
        "fill_inbox" => fill_inbox(&directory),
        "acknowledge" => acknowledge(&directory),
        "try_to_write" => try_to_write(&directory),
        other => panic!("no such job: {other}"),
    }
}

/// Opens the session, appends to it and keeps it until its input ends.
fn hold(directory: &Path) {
    let mut log = SessionStore::new(directory).open(&work(), PATIENCE).unwrap();
    log.append(&[user("held").into()]).unwrap();
    report("holding", std::process::id());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Opens, appends to and closes the same session many times, and checks that nobody else has it meanwhile.
fn append_often(directory: &Path) {
    let store = SessionStore::new(directory);
    let mine = directory.join("mine");
    for number in 0..50 {
        let mut log = store.open(&work(), PATIENCE).unwrap();
        let text = format!("{} {number} {}", std::process::id(), "x".repeat(number * 50));
        std::fs::File::create_new(&mine).unwrap();
        log.append(&[Entry::from(user(&text))]).unwrap();
        std::fs::remove_file(&mine).unwrap();
    }
}

/// Appends until it is killed, and reports each message that it has appended.
fn append_forever(directory: &Path) {
    let mut log = SessionStore::new(directory).open(&work(), PATIENCE).unwrap();
    for number in 0_u64.. {
        let text = format!("{number} {}", "x".repeat(number as usize % 7 * 10_000));
        log.append(&[user(&text).into(), user("second of the batch").into()]).unwrap();
        report("appended", number);
    }
}

/// Forks the session again and again until it is killed, and reports each fork.
fn fork_forever(directory: &Path) {
    let store = SessionStore::new(directory);
    for number in 0_u64.. {
        let to = SessionKey::for_cli("main", &format!("fork-{number}"));
        if !store.exists(&to) {
            store.fork(&work(), None, &to).unwrap();
        }
        report("forked", number);
    }
}

/// Adds fifty sessions to the index and changes one that all processes share.
fn upsert_often(directory: &Path) {
    let index = SessionStore::new(directory).index();
    for number in 0..50 {
        let name = format!("{}-{number}", std::process::id());
        let key = SessionKey::for_cli("main", &name);
        index.upsert(&key, MetaPatch::default()).unwrap();
        let extra = serde_json::json!({ name: 1 }).as_object().cloned();
        index.upsert(&work(), MetaPatch { extra, ..MetaPatch::default() }).unwrap();
    }
}

/// Opens the session, reads its tail, appends, and reports how many bytes that read and how many writes it took.
fn one_turn(directory: &Path) {
    let before = io_counter("rchar");
    let mut log = SessionStore::new(directory).open(&work(), LockWait::Fail).unwrap();
    let tail = log.tail(limit_in_bytes(1 << 20)).unwrap();
    let writes_before = io_counter("syscw");
    log.append(&[user("one more").into(), user(&"x".repeat(1_000_000)).into()]).unwrap();
    let writes_after = io_counter("syscw");
    let after = io_counter("rchar");
    report("messages", tail.messages.len());
    if let (Some(before), Some(after)) = (before, after) {
        report("read", after - before);
    }
    if let (Some(before), Some(after)) = (writes_before, writes_after) {
        report("writes", after - before);
    }
}

/// One of the numbers that the system keeps about this process, where it does: `rchar` counts the bytes read, `syscw`
/// the calls that write.
fn io_counter(name: &str) -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?.parse().ok()
}

/// Appends until there is no space, makes space by deleting `ballast`, and appends again.
fn fill(directory: &Path) {
    let store = SessionStore::new(directory);
    let mut log = store.open(&work(), LockWait::Fail).unwrap();
    let mut stored = 0;
    let error = loop {
        let batch: Vec<Entry> = (0..3).map(|_| user(&"x".repeat(700)).into()).collect();
        match log.append(&batch) {
            Ok(()) => stored += batch.len(),
            Err(error) => break error,
        }
        assert!(stored < 100_000, "the disk does not fill up");
    };
    report("error", &error);
    report("is_no_space", matches!(error, myclaw_session::SessionError::NoSpace { .. }));
    let count = || store.reader(&work()).unwrap().unwrap().message_count().unwrap();
    let bytes = std::fs::read(log.path()).unwrap();
    report("intact", bytes.ends_with(b"\n") && count() == stored);
    let other = SessionKey::for_cli("main", "other");
    let first =
        store.open(&other, LockWait::Fail).unwrap().append(&[user(&"x".repeat(5000)).into()]);
    report("first_append_failed", first.is_err());
    report("left_an_empty_file", store.transcript_path(&other).exists());
    let ballast = directory.join("ballast");
    if ballast.exists() {
        std::fs::remove_file(ballast).unwrap();
        log.append(&[user("again").into()]).unwrap();
        report("usable_again", count() == stored + 1);
    }
}

/// Sends messages until there is no space, makes space by deleting `ballast`, and sends another one.
fn fill_inbox(directory: &Path) {
    let inbox = SessionStore::new(directory).inbox(&work());
    let message = |text: &str| QueuedMessage {
        id: EntryId::generate(),
        kind: QueuedKind::Steer,
        content: text.to_owned(),
        ts: 1,
        meta: None,
        keeper: Keeper::Inbox,
    };
    let mut acknowledged = Vec::new();
    let error = loop {
        let next = message(&"x".repeat(700));
        match inbox.push(&next) {
            Ok(()) => acknowledged.push(next),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 100_000, "the disk does not fill up");
    };
    report("error", &error);
    report("is_no_space", matches!(error, myclaw_session::SessionError::NoSpace { .. }));
    let bytes = std::fs::read(inbox.path()).unwrap();
    report("intact", bytes.ends_with(b"\n") && inbox.pending().unwrap() == acknowledged);
    // Waiting messages can be taken although nothing can be written.
    let ids: Vec<EntryId> = acknowledged.iter().map(|message| message.id).collect();
    let mut open = inbox.hold().unwrap().unwrap();
    report("one_cannot_be_settled", open.change(&[], &ids[..1]).is_err());
    report("still_intact", open.pending().unwrap() == acknowledged);
    drop(open);
    let ballast = directory.join("ballast");
    if ballast.exists() {
        std::fs::remove_file(ballast).unwrap();
        let again = message("again");
        inbox.push(&again).unwrap();
        acknowledged.push(again);
        report("usable_again", inbox.pending().unwrap() == acknowledged);
    }
    report("all_can_be_settled", inbox.hold().unwrap().unwrap().change(&[], &ids).is_ok());
}

/// Sends a message to an inbox in which one message waits, and in one in which 10,000 do, and reports the bytes that
/// each read and the calls that each made to write.
fn acknowledge(directory: &Path) {
    for waiting in [1, 10_000] {
        let key = SessionKey::for_cli("main", &format!("with-{waiting}"));
        let inbox = SessionStore::new(directory).inbox(&key);
        let message = || QueuedMessage {
            id: EntryId::generate(),
            kind: QueuedKind::Steer,
            content: "Not that one.".to_owned(),
            ts: 1,
            meta: None,
            keeper: Keeper::Inbox,
        };
        let earlier: Vec<QueuedMessage> = (0..waiting).map(|_| message()).collect();
        inbox.hold_or_create().unwrap().change(&earlier, &[]).unwrap();
        let next = message();
        let read_before = io_counter("rchar");
        let writes_before = io_counter("syscw");
        inbox.push(&next).unwrap();
        let writes_after = io_counter("syscw");
        let read_after = io_counter("rchar");
        report(&format!("waiting_{waiting}"), inbox.pending().unwrap().len());
        if let (Some(before), Some(after)) = (read_before, read_after) {
            report(&format!("read_{waiting}"), after - before);
        }
        if let (Some(before), Some(after)) = (writes_before, writes_after) {
            report(&format!("writes_{waiting}"), after - before);
        }
    }
}

/// Calls every function that writes, and reports how each fails.
fn try_to_write(directory: &Path) {
    let store = SessionStore::new(directory);
    if let Err(error) = store.open(&work(), LockWait::Fail) {
        report("open", error);
    }
    if let Err(error) = store.index().upsert(&work(), MetaPatch::default()) {
        report("upsert", error);
    }
    report("listed", store.index().list().unwrap().len());
    report("read", store.reader(&work()).unwrap().unwrap().message_count().unwrap());
}
