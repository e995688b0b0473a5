//! Channels, as the built program against servers over real sockets.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
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
mod commands;
mod containers;
mod discord;
mod email;
#[path = "../gateway/failures.rs"]
mod failing;
mod failures;
#[path = "../gateway/fixture.rs"]
mod fixture;
mod forms;
mod groups;
mod identity;
mod irc;
mod matrix;
mod message;
mod page;
mod privacy;
mod programs;
mod questions;
mod reload;
mod shown;
mod signal;
mod slack;
mod speech;
mod strangers;
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

    /// Writes a file that the workspace of each new chat begins with.
    fn write_for_chats(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = std::path::Path::new("workspace-template").join(name);
        self.home.write_in_workspace(path, content);
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

/// What a person tells `onboard` about a channel.
#[derive(Default)]
struct Told<'a> {
    options: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
}

impl Bench {
    fn onboard(&self, channel: &str, told: &Told<'_>) -> ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        command.args(["onboard", "--yes", "--channel", channel]).args(told.options);
        RunningChild::run(command.envs(told.variables.iter().copied()))
    }

    /// That the first set-up tries the channel: with `wrong` it says why not, in these words, and changes nothing; with
    /// `right` it says who this is, and keeps no secret in the config.
    fn sets_up(
        &self,
        channel: &str,
        (wrong, refusal): (Told<'_>, &str),
        (right, found): (Told<'_>, &str),
    ) {
        self.configure(|config| config["channels"] = json!({}));
        let config = || std::fs::read_to_string(self.home.config_path()).unwrap();
        let before = config();
        let refused = self.onboard(channel, &wrong);
        refused.assert_code(1);
        let said = refused.stderr();
        assert!(said.contains(refusal) && said.contains("Nothing was written"), "{said}");
        assert_eq!(config(), before);
        let kept = self.onboard(channel, &right);
        kept.assert_code(0);
        let words = format!("channel     {channel}: {found}");
        assert!(kept.stderr().contains(&words), "{}", kept.stderr());
        for (variable, secret) in right.variables.iter().filter(|(name, _)| *name != AUTHORITY) {
            let reference = format!("${{{variable}}}");
            assert!(config().contains(&reference) && !config().contains(secret), "{}", config());
        }
    }
}

/// Names the certificates that a process trusts.
const AUTHORITY: &str = "SSL_CERT_FILE";

/// A server in front of another one, which notes what clients say.
struct Tap {
    port: u16,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tap = Self { port: listener.local_addr().unwrap().port(), said: Arc::default() };
        let said = Arc::clone(&tap.said);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let (mut from_client, mut to_server) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                let said = Arc::clone(&said);
                std::thread::spawn(move || {
                    let mut bytes = [0; 8_192];
                    while let Ok(count @ 1..) = from_client.read(&mut bytes) {
                        said.lock().unwrap().extend_from_slice(&bytes[..count]);
                        if to_server.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to_server.shutdown(std::net::Shutdown::Both);
                });
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut server, &mut client);
                    let _ = client.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        tap
    }

    /// What was said since the last call of this.
    fn take(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.said.lock().unwrap())).into_owned()
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
        works(&gateway);
        gateway
    }
}

/// Waits until the channel of the gateway works.
fn works(gateway: &Gateway) {
    gateway.channels(|state| state["channels"][0]["state"] == "working");
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
