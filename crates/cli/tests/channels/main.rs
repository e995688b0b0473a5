//! Channels, as the built program against servers over real sockets.
#![expect(clippy::unwrap_used, reason = "all of this is test code, where a panic is a failed test")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use myclaw_testkit::{
    ChildOutput, ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, TelegramServer,
    TempHome, WireFormat,
};
use serde_json::{Value, json};

mod access;
mod chaos;
#[path = "../gateway/client.rs"]
mod client;
mod programs;
mod reload;
mod telegram;

use client::Client;

/// Longest that anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
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

/// A gateway that listens.
struct Gateway {
    child: RunningChild,
    client: Client,
}

impl Bench {
    fn new(script: Script) -> Self {
        let (home, model) = (TempHome::new(), ModelServer::spawn_blocking_thread(script));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bench = Self { home, model, bot: TelegramServer::start(), port };
        bench.configure(|_| {});
        bench
    }

    /// Writes a config with a bot to which [`ANN`] may write.
    fn configure(&self, change: impl FnOnce(&mut Value)) {
        let mut config = TempHome::config_for(self.model.url(), WireFormat::AnthropicMessages);
        config["gateway"] = json!({"port": self.port});
        config["agents"] = json!({"defaults": {"sandbox": {"mode": "off"}}});
        config["channels"] = json!({"telegram": {
            "botToken": self.bot.token(), "baseUrl": self.bot.url(), "allowFrom": [ANN],
        }});
        change(&mut config);
        self.home.write_config(&config);
    }

    fn run(&self, arguments: &[&str]) -> ChildOutput {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        RunningChild::run(command.args(arguments))
    }

    fn start(&self) -> Gateway {
        let mut command = self.home.command(env!("CARGO_BIN_EXE_myclaw"));
        let child = RunningChild::spawn(command.arg("gateway"));
        child.wait_for_stderr("listening on http://127.0.0.1:");
        let path = self.home.state_directory().join("gateway/token");
        let token = std::fs::read_to_string(path).unwrap().trim().to_owned();
        Gateway { child, client: Client { port: self.port, token } }
    }

    /// The user messages of the newest model call.
    fn asked(&self) -> String {
        let requests = self.model.requests();
        json!(requests.last().unwrap().messages()).to_string()
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

    /// The reasons of the dropped messages, once there are `count`.
    fn dropped(&self, count: usize) -> Vec<String> {
        let list = |state: &Value| state["dropped"].as_array().unwrap().clone();
        let state = self.channels(|state| list(state).len() >= count);
        list(&state).iter().map(|drop| drop["reason"].as_str().unwrap().to_owned()).collect()
    }
}

/// Answers `re: ` and all words of the form `<m1>` since the last answer.
fn echo(request: &RecordedRequest) -> Reply {
    let messages = request.messages();
    let since = messages.iter().rposition(|message| message["role"] == "assistant");
    let text = json!(&messages[since.map_or(0, |at| at + 1)..]).to_string();
    let marks = text.split('<').filter_map(|rest| rest.split_once('>')).map(|(word, _)| word);
    let is_mark = |word: &&str| word.starts_with('m') && word[1..].parse::<u64>().is_ok();
    let marks: Vec<String> = marks.filter(is_mark).map(|word| format!("<{word}>")).collect();
    Reply::anthropic().text(format!("re: {}", marks.join(" ")))
}

fn echoing() -> Script {
    Script::answer_with(|request, _| echo(request).step())
}

fn answering(text: &str) -> Script {
    Script::repeat(Reply::anthropic().text(text))
}

fn group() -> Value {
    json!({"id": -1_005, "type": "supergroup", "title": "Team", "is_forum": true})
}
