//! The host, as its users run it: messages as files, groups from the command line, runners as plain processes.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails the test that uses it")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use myclaw_testkit::{ChildOutput, RunningChild, Signal, TempHome};
use serde_json::{Value, json};

mod commands;
mod container;
mod files;
mod image;
mod kill;
mod model;
mod protocol;
mod queue;
mod runners;
mod speech;
mod tasks;

/// Longer than any wait takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What all runners of the tests begin with. `$w` is the workspace, `$job` the job.
const PRELUDE: &str = r#"#!/bin/bash
while [ $# -gt 0 ]; do
  case $1 in
    --workspace) w=$2; shift ;;
    --home) h=$2; shift ;;
  esac
  shift
done
job=$(cat)
block() { printf -- '---NANOCLAW_OUTPUT_START---\n%s\n---NANOCLAW_OUTPUT_END---\n' "$1"; }
say() { block "{\"status\":\"success\",\"result\":\"$1\",\"newSessionId\":\"s1\"}"; }
over() { block "{\"status\":\"success\",\"result\":null,\"newSessionId\":\"s1\"}"; }
send() { printf '%s' "$3" > "$w/ipc/$1/$2.tmp"; mv "$w/ipc/$1/$2.tmp" "$w/ipc/$1/$2.json"; }
await() { while [ ! -e "$1" ]; do sleep 0.01; done; }
await_close() { await "$w/ipc/input/_close"; }
"#;

/// A host's directory with a runner in it.
struct Bench {
    home: TempHome,
}

impl Bench {
    /// With a runner that does this.
    fn new(runner: &str) -> Self {
        let bench = Self { home: TempHome::new() };
        let path = bench.path("fake-runner");
        fs::write(&path, format!("{PRELUDE}{runner}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        bench
    }

    /// A bench with the group `family` and the owner's own group.
    fn with_groups(runner: &str) -> Self {
        let bench = Self::new(runner);
        bench.add("owner", "main", &[]);
        bench.add("fam@g.us", "family", &["--all"]);
        bench
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// A file of the host.
    fn host(&self, path: &str) -> PathBuf {
        self.path("host").join(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(arguments).arg("--directory").arg(self.path("host"));
        command
    }

    fn add(&self, chat: &str, folder: &str, options: &[&str]) {
        let mut command = self.command(&["groups", "add", chat, "--folder", folder]);
        RunningChild::run(command.args(options)).assert_code(0);
    }

    fn start(&self, options: &[&str]) -> RunningChild {
        let runner = self.path("fake-runner");
        self.start_with(&["--runner", runner.to_str().unwrap()], options)
    }

    /// A host with short waits.
    fn start_with(&self, runner: &[&str], options: &[&str]) -> RunningChild {
        let short = ["--retry-base", "10", "--grace", "1s", "--name", "Andy"];
        let mut command = self.command(&["host", "--backend", "process"]);
        let host = RunningChild::spawn(command.args(short).args(runner).args(options));
        host.wait_for_stderr("the host works in");
        host
    }

    /// Puts a message into the file channel.
    fn send(&self, id: &str, chat: &str, text: &str) {
        let message = json!({"id": id, "chat": chat, "text": text, "name": "Ann", "time": 1_767_225_600_000_u64});
        self.put(id, &message.to_string());
    }

    fn put(&self, name: &str, content: &str) {
        let directory = self.host("channel/in");
        fs::create_dir_all(&directory).unwrap();
        let temporary = directory.join(format!("{name}.tmp"));
        fs::write(&temporary, content).unwrap();
        fs::rename(&temporary, directory.join(format!("{name}.json"))).unwrap();
    }

    /// What has gone out, the oldest first as far as the times of the files tell.
    fn out(&self) -> Vec<Value> {
        let mut files = files(&self.host("channel/out"), "json");
        files.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
        files.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
    }

    /// Waits until this many parts have gone out.
    fn wait_for_out(&self, count: usize) -> Vec<Value> {
        wait_until(&format!("{count} parts"), || self.out().len() >= count);
        self.out()
    }

    /// The texts of what has gone out.
    fn texts(&self, count: usize) -> Vec<String> {
        let text = |part: Value| part["text"].as_str().unwrap().to_owned();
        self.wait_for_out(count).into_iter().map(text).collect()
    }

    /// How often something was written to a file of a group.
    fn lines(&self, file: &str) -> usize {
        fs::read_to_string(self.host(file)).unwrap_or_default().lines().count()
    }
}

/// Ends a host as a service manager does.
fn stop(host: RunningChild) -> ChildOutput {
    host.signal(Signal::Terminate);
    let output = host.wait(PATIENCE);
    output.assert_code(0);
    output
}

/// The files of a directory with that ending, sorted.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|other| other == ending))
        .collect();
    files.sort();
    files
}

/// Waits until something is true.
fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
