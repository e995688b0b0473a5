//! Gateways that share a PostgreSQL database, as the built program. `MYCLAW_POSTGRES` names the database's programs.
//!
//! `MYCLAW_CLUSTER_FAULTS` sets the number of faults, `MYCLAW_KILL_SEED` what is random in them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use myclaw_testkit::{
    ChildOutput, Gate, ModelServer, PostgresServer, Reply, RunningChild, Script, TempHome,
    WireFormat,
};
use serde_json::{Value, json};

mod audit;
mod chaos;
mod chats;
#[path = "../gateway/client.rs"]
mod client;
mod cost;
mod files;
#[path = "../gateway/fixture.rs"]
#[expect(dead_code, reason = "the tests of one gateway use the rest")]
mod fixture;
mod forgetting;
mod front_ends;
mod goals;
mod keys;
mod nodes;
mod objects;
mod page;
mod proxy;
mod refusals;
mod relay;
mod rewinds;
mod roles;
mod scene;
mod segments;
mod sharing;
mod side_files;
mod stage;
mod standby;
mod surroundings;
mod suspended;
mod tenants;
mod transfer;
mod versions;
#[path = "../gateway/web_socket.rs"]
#[expect(dead_code, reason = "the tests of one gateway use the rest")]
mod web_socket;

use client::Client;
use fixture::*;

/// The lease of the tests, in milliseconds: short, so that they need not wait long for it.
const LEASE_MS: u64 = 2_000;

/// A machine with a gateway.
struct Machine {
    home: TempHome,
    port: u16,
    url: String,
    lease_ms: u64,
}

impl Machine {
    /// A machine whose gateway shares the database at `url`.
    fn new(name: &str, url: &str, model: &ModelServer) -> Self {
        Self::with_lease(name, url, model, LEASE_MS)
    }

    fn with_lease(name: &str, url: &str, model: &ModelServer, lease_ms: u64) -> Self {
        let (home, port) = (TempHome::new(), free_port());
        let machine = Self { home, port, url: url.to_owned(), lease_ms };
        machine.configure(name, model, |_| {});
        machine
    }

    fn configure(&self, name: &str, model: &ModelServer, change: impl FnOnce(&mut Value)) {
        let mut config = TempHome::config_for(model.url(), WireFormat::AnthropicMessages);
        config["gateway"] =
            json!({"port": self.port, "node": name, "token": "t".repeat(40), "store": self.url});
        config["logging"] = json!({"file": true});
        change(&mut config);
        self.home.write_config(&config);
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(arguments).env("MYCLAW_STORE_LEASE_MS", self.lease_ms.to_string());
        command
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        RunningChild::run(&mut self.command(arguments))
    }

    fn client(&self) -> Client {
        Client { port: self.port, token: "t".repeat(40) }
    }

    fn start(&self) -> Gateway {
        let child = RunningChild::spawn(&mut self.command(&["gateway"]));
        child.wait_for_stderr("listening on http://127.0.0.1:");
        Gateway { child, client: self.client() }
    }
}

/// A database, with a server of its own; `None` if there is none on this machine.
fn database() -> Option<(PostgresServer, String)> {
    let server = PostgresServer::start("fsync = off")?;
    let url = server.url("postgres");
    Some((server, url))
}

/// A model that repeats what it is told, after a moment.
fn model() -> ModelServer {
    ModelServer::spawn_blocking_thread(Script::answer_with(|request, number| {
        let pause = std::time::Duration::from_millis((number as u64 * 7) % 40);
        echo(request).step().delay(pause)
    }))
}

/// The rows of all logs of an exported state directory.
fn exported(machine: &Machine) -> Vec<(String, Vec<Value>)> {
    let directory = machine.home.path().join(format!("export-{}", fresh()));
    machine.run(&["store", "export", directory.to_str().unwrap()]).assert_code(0);
    let mut logs = Vec::new();
    for file in std::fs::read_dir(directory.join("sessions")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            logs.push((name, TempHome::read_lines(&path)));
        }
    }
    logs
}

fn fresh() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// How many rows of this role have the mark, over all logs. Of the assistant, they are answers.
fn count(logs: &[(String, Vec<Value>)], role: &str, mark: &str) -> usize {
    let answer = if role == "assistant" { "re: " } else { "" };
    let rows = logs.iter().flat_map(|(_, rows)| rows).filter(|row| row["role"] == role);
    let texts = rows.map(|row| row["content"].to_string());
    texts.filter(|text| text.contains(mark) && text.contains(answer)).count()
}
