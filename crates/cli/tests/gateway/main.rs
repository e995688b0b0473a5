//! The gateway, as the built program and over real sockets.
//!
//! `MYCLAW_GATEWAY_KILLS` sets the number of kills, `MYCLAW_KILL_SEED` what is random in them.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome,
    WireFormat, number_from,
};
use serde_json::{Value, json};

mod approvals;
mod chaos;
mod client;
mod cron;
mod delivery;
mod guard;
mod openai;
mod processes;
mod reload;
mod service;
mod sessions;
mod socket;
mod web_ui;

use client::Client;

/// Longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home, a model server, and a port for a gateway.
struct Bench {
    home: TempHome,
    model: ModelServer,
    port: u16,
}

/// A gateway that listens.
struct Gateway {
    child: RunningChild,
    client: Client,
}

impl Bench {
    fn new(script: Script) -> Self {
        let (home, model) = (TempHome::new(), ModelServer::spawn_blocking_thread(script));
        let bench = Self { home, model, port: free_port() };
        bench.configure(|_| {});
        bench
    }

    fn configure(&self, change: impl FnOnce(&mut Value)) {
        let mut config = TempHome::config_for(self.model.url(), WireFormat::AnthropicMessages);
        config["gateway"] = json!({"port": self.port});
        change(&mut config);
        self.home.write_config(&config);
    }

    fn command(&self) -> RunningChild {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::spawn(command.arg("gateway"))
    }

    fn start(&self) -> Gateway {
        let child = self.command();
        child.wait_for_stderr("listening on http://127.0.0.1:");
        let token = std::fs::read_to_string(self.token_path()).unwrap();
        Gateway { child, client: Client { port: self.port, token: token.trim().to_owned() } }
    }

    fn token_path(&self) -> std::path::PathBuf {
        self.home.state_directory().join("gateway/token")
    }

    /// The rows of a terminal session of the main agent.
    fn rows(&self, session: &str) -> Vec<Value> {
        TempHome::read_lines(&self.home.transcript_path(session))
    }

    /// What the user said in a session, and what the model answered, in order.
    fn said(&self, session: &str) -> Vec<String> {
        let rows = self.rows(session);
        let texts = rows.iter().filter(|row| row["role"] == "user" || row["role"] == "assistant");
        texts.map(|row| row["content"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Gateway {
    fn kill(self) {
        self.child.signal(Signal::Kill);
        self.child.wait(PATIENCE);
    }

    fn stop(self) {
        self.child.signal(Signal::Terminate);
        self.child.wait(PATIENCE).assert_code(0);
    }
}

/// A port that nobody uses at this moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Answers `re: ` and all words of the form `<m1>` since the last answer.
fn echo(request: &RecordedRequest) -> Reply {
    Reply::anthropic().text(format!("re: {}", marks(request).join(" ")))
}

/// The words of the form `<m1>` in the user messages since the last answer.
fn marks(request: &RecordedRequest) -> Vec<String> {
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "assistant");
    let new = &messages[since.map_or(0, |at| at + 1)..];
    let text = json!(new).to_string();
    text.split('<')
        .filter_map(|rest| rest.split_once('>'))
        .map(|(word, _)| word)
        .filter(|word| word.starts_with('m') && word[1..].parse::<u64>().is_ok())
        .map(|word| format!("<{word}>"))
        .collect()
}

fn echoing() -> Script {
    Script::answer_with(|request, _| echo(request).step())
}

fn answering(text: &str) -> Script {
    Script::repeat(Reply::anthropic().text(text))
}

fn shared(step: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static) -> Script {
    let step = Arc::new(step);
    Script::answer_with(move |request, number| step(request, number))
}
