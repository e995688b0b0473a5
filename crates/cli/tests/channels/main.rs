//! Channels, as the built program against servers over real sockets.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use myclaw_testkit::{
    ChildOutput, Gate, ModelServer, Reply, RunningChild, Script, Signal, TelegramFault,
    TelegramServer, TempHome, WireFormat,
};
use serde_json::{Value, json};

mod access;
mod chaos;
#[path = "../gateway/client.rs"]
mod client;
#[cfg(target_os = "linux")]
mod clock;
mod containers;
mod discord;
mod email;
#[path = "../gateway/fixture.rs"]
mod fixture;
mod groups;
mod identity;
mod irc;
mod matrix;
mod message;
mod programs;
mod reload;
mod signal;
mod slack;
mod speech;
mod telegram;
mod third_party;
mod whatsapp;
mod xmpp;

use client::Client;
use fixture::*;

/// A person who may write.
const ANN: i64 = 42;
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A home, a model, a Bot API server, and a port for a gateway.
struct Bench {
    home: TempHome,
    model: ModelServer,
    bot: TelegramServer,
    port: u16,
}

impl Bench {
    fn new(script: Script) -> Self {
        let (home, model) = (TempHome::new(), ModelServer::spawn_blocking_thread(script));
        let bench = Self { home, model, bot: TelegramServer::start(), port: free_port() };
        bench.configure(|_| {});
        bench
    }

    /// Writes a config with a bot to which [`ANN`] may write. It shows no previews: on a slow machine any answer would
    /// have one, which a test could take for the answer.
    fn configure(&self, change: impl FnOnce(&mut Value)) {
        let mut config = TempHome::config_for(self.model.url(), WireFormat::AnthropicMessages);
        config["gateway"] = json!({"port": self.port});
        config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
        config["channels"] = json!({"telegram": {
            "botToken": self.bot.token(), "baseUrl": self.bot.url(), "allowFrom": [ANN], "preview": false,
        }});
        change(&mut config);
        self.home.write_config(&config);
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(arguments))
    }

    fn start(&self) -> Gateway {
        Gateway::of(spawn(&self.home), &self.home, self.port)
    }

    /// The user messages of the newest model call.
    fn asked(&self) -> String {
        let requests = self.model.requests();
        json!(requests.last().unwrap().messages()).to_string()
    }
}

/// A server that stands for a vendor.
trait Vendor {
    /// The name of its channel.
    const CHANNEL: &'static str;

    fn begin() -> Self;

    /// The config of its channel.
    fn config(&self) -> Value;
}

/// A [`Bench`] whose channel is that of another vendor than Telegram.
struct Desk<V> {
    bench: Bench,
    server: V,
}

impl<V: Vendor> Desk<V> {
    fn new(script: Script) -> Self {
        let desk = Self { bench: Bench::new(script), server: V::begin() };
        desk.configure(|_| {});
        desk
    }

    /// Writes a config whose channel is changed.
    fn configure(&self, change: impl FnOnce(&mut Value)) {
        let mut channel = self.server.config();
        change(&mut channel);
        self.bench.configure(|config| config["channels"] = json!({V::CHANNEL: channel}));
    }

    /// A gateway whose channel works.
    fn start(&self) -> Gateway {
        let gateway = self.bench.start();
        gateway.channels(|state| state["channels"][0]["state"] == "working");
        gateway
    }
}

impl Gateway {
    /// What `GET /api/channels` says, as soon as `is_there` finds what it looks for.
    fn channels(&self, is_there: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let (status, state) = self.client.get("/api/channels").unwrap();
            assert_eq!(status, 200);
            if is_there(&state) {
                return state;
            }
            assert!(Instant::now() < end, "{state:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The texts of all parts that were not delivered, page by page.
    fn undelivered(&self) -> Vec<String> {
        let (mut texts, mut seen) = (Vec::new(), Vec::new());
        let mut path = "/api/channels".to_owned();
        loop {
            let (status, state) = self.client.get(&path).unwrap();
            assert_eq!(status, 200, "{state}");
            let parts = state["undelivered"].as_array().unwrap();
            let Some(last) = parts.last() else { return texts };
            assert!(!seen.contains(last), "a page came again: {last}");
            seen.push(last.clone());
            path = format!("/api/channels?before={}", last["part"].as_str().unwrap());
            texts.extend(parts.iter().map(|part| part["text"].as_str().unwrap().to_owned()));
        }
    }

    /// The reasons of the dropped messages, once there are `count`.
    fn dropped(&self, count: usize) -> Vec<String> {
        let list = |state: &Value| state["dropped"].as_array().unwrap().clone();
        let state = self.channels(|state| list(state).len() >= count);
        list(&state).iter().map(|drop| drop["reason"].as_str().unwrap().to_owned()).collect()
    }
}

fn group() -> Value {
    json!({"id": -1_005, "type": "supergroup", "title": "Team", "is_forum": true})
}
