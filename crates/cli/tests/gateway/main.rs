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
    Gate, ModelServer, Random, RecordedRequest, Reply, RunningChild, Script, Signal, SignalServer,
    Step, TelegramServer, TempHome, WireFormat, number_from,
};
use serde_json::{Value, json};

mod approvals;
mod attach;
mod backup;
mod chaos;
mod choices;
mod client;
mod config;
mod cron;
mod delivery;
mod devices;
#[cfg(target_os = "linux")]
mod disk;
mod failures;
mod fixture;
mod goals;
mod guard;
mod half_a_day;
#[cfg(target_os = "linux")]
mod limits;
mod mcp;
mod mcp_client;
mod mcp_others;
mod new_channels;
mod nodes;
mod openai;
mod openai_tools;
mod pages;
mod plans;
mod processes;
mod reload;
mod reminders;
mod restart;
mod service;
mod session_tools;
mod sessions;
mod socket;
mod states;
mod subagents;
mod telemetry;
mod tls;
#[cfg(target_os = "linux")]
mod update;
mod usage;
mod watching;
mod web_socket;
mod web_ui;

use client::Client;
use fixture::*;

/// A home, a model server, and a port for a gateway.
struct Bench {
    home: TempHome,
    model: ModelServer,
    port: u16,
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
        spawn(&self.home)
    }

    fn start(&self) -> Gateway {
        Gateway::of(self.command(), &self.home, self.port)
    }

    fn token_path(&self) -> std::path::PathBuf {
        token_path(&self.home)
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

fn shared(step: impl Fn(&RecordedRequest, usize) -> Step + Send + Sync + 'static) -> Script {
    let step = Arc::new(step);
    Script::answer_with(move |request, number| step(request, number))
}

/// As [`echoing`]; the first answer waits for the gate.
fn echoing_after(gate: &Gate) -> Script {
    let gate = gate.clone();
    Script::answer_with(move |request, number| match number {
        0 => echo(request).step().hold_after(0, &gate),
        _ => echo(request).step(),
    })
}

/// The model that a request is for.
fn model_of(request: &RecordedRequest) -> String {
    let body: Value = serde_json::from_str(&request.body_text()).unwrap();
    body["model"].as_str().unwrap().to_owned()
}
