//! The container runner, as a host runs it: a job on standard input, blocks on standard output, files in `ipc`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails fails the test that uses it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use myclaw_testkit::{ChildOutput, ModelServer, RunningChild, Script, TempHome};
use serde_json::{Value, json};

mod hosts;
mod originals;
mod protocol;
mod requests;
mod tools;
mod workflows;

const START: &str = "---NANOCLAW_OUTPUT_START---\n";
const END: &str = "---NANOCLAW_OUTPUT_END---\n";
const SECRET: &str = "sk-or-v1-0123456789abcdef0123456789abcdef";

/// The directories of a container, and a model.
struct Bench {
    home: TempHome,
    server: ModelServer,
}

impl Bench {
    fn new(script: impl Into<Script>) -> Self {
        let home = TempHome::new();
        for directory in ["w/group/workflows", "w/global", "w/ipc/input", "h"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        Self { home, server: ModelServer::spawn_blocking_thread(script) }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.path(path), content).unwrap();
    }

    /// A job, with further fields.
    fn job(&self, prompt: &str, more: Value) -> String {
        let mut job = json!({
            "group": {"name": "Family"},
            "groupFolder": "family",
            "chatJid": "123@g.us",
            "isMain": false,
            "assistantName": "Andy",
            "prompt": prompt,
            "secrets": {
                "OPENROUTER_API_KEY": SECRET,
                "MODEL_NAME": "test/model",
                "OPENROUTER_BASE_URL": format!("{}/v1", self.server.url()),
            },
        });
        let Value::Object(more) = more else { panic!("not an object: {more}") };
        for (name, value) in more {
            job[name] = value;
        }
        job.to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.arg("runner").arg("--workspace").arg(self.path("w"));
        command.arg("--home").arg(self.path("h")).args(arguments);
        command
    }

    fn run(&self, job: impl Into<Vec<u8>>, arguments: &[&str]) -> ChildOutput {
        RunningChild::run_with_input(&mut self.command(arguments), job)
    }

    /// Starts the runner with a job on its closed input.
    fn start(&self, job: &str, arguments: &[&str]) -> RunningChild {
        let mut child = RunningChild::spawn_piped(&mut self.command(arguments));
        child.send(job);
        child.close_stdin();
        child
    }

    /// Runs a job in which the model calls one tool; returns the text of the result.
    fn call(tool: &str, arguments: Value, prepare: impl FnOnce(&Self), options: &[&str]) -> String {
        use myclaw_testkit::Reply;
        let bench = Self::new(Script::from([
            Reply::openai().tool_call("call_1", tool, arguments),
            Reply::openai().text("Done."),
        ]));
        prepare(&bench);
        bench.run(bench.job("Do it", json!({})), options).assert_code(0);
        bench.result(1)
    }

    /// The text of the last message of a request.
    fn result(&self, request: usize) -> String {
        let requests = self.server.requests();
        let messages = requests[request].messages();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    }

    /// The session files.
    fn sessions(&self) -> Vec<PathBuf> {
        files(&self.path("h/.stingyclaw/sessions"), "json")
    }

    fn only_session(&self) -> Value {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        serde_json::from_slice(&fs::read(&sessions[0]).unwrap()).unwrap()
    }

    /// The files for the host in a directory of `ipc`, the oldest first.
    fn sent(&self, directory: &str) -> Vec<Value> {
        let directory = self.path("w/ipc").join(directory);
        files(&directory, "json")
            .iter()
            .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
            .collect()
    }
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

/// The blocks of an output, which must have nothing between them.
fn blocks(output: &ChildOutput) -> Vec<Value> {
    let text = output.stdout();
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (block, after) = rest.strip_prefix(START).unwrap().split_once(END).unwrap();
        blocks.push(serde_json::from_str(block).unwrap());
        rest = after;
    }
    blocks
}

/// Waits until something is true.
fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited in vain: {what}");
}
