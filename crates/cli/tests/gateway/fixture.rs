//! What the tests of the gateway and of the channels share.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use myclaw_testkit::{RecordedRequest, Reply, RunningChild, Script, Signal, TempHome};
use serde_json::json;

use super::client::Client;

/// Longest that anything may take on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that listens.
pub(super) struct Gateway {
    pub(super) child: RunningChild,
    pub(super) client: Client,
}

impl Gateway {
    /// Waits until a started gateway listens on `port`.
    pub(super) fn of(child: RunningChild, home: &TempHome, port: u16) -> Self {
        child.wait_for_stderr("listening on http://127.0.0.1:");
        let token = std::fs::read_to_string(token_path(home)).unwrap();
        Self { child, client: Client { port, token: token.trim().to_owned() } }
    }

    pub(super) fn kill(self) {
        self.child.signal(Signal::Kill);
        self.child.wait(PATIENCE);
    }

    pub(super) fn stop(self) {
        self.child.signal(Signal::Terminate);
        self.child.wait(PATIENCE).assert_code(0);
    }
}

pub(super) fn token_path(home: &TempHome) -> std::path::PathBuf {
    home.state_directory().join("gateway/token")
}

/// Starts a gateway.
pub(super) fn spawn(home: &TempHome) -> RunningChild {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    RunningChild::spawn(command.arg("gateway"))
}

/// Waits for a state that nothing announces.
pub(super) fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A port that nobody uses at this moment. It is below those that the system gives to outgoing connections, so none of
/// them takes it before the gateway does.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let of_process = std::process::id() % 200 * 100;
    loop {
        let next = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + (of_process + next) % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Answers `re: ` and all words of the form `<m1>` since the last answer.
pub(super) fn echo(request: &RecordedRequest) -> Reply {
    Reply::anthropic().text(format!("re: {}", marks(request).join(" ")))
}

/// The words of the form `<m1>` in the user messages since the last answer.
pub(super) fn marks(request: &RecordedRequest) -> Vec<String> {
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

pub(super) fn echoing() -> Script {
    Script::answer_with(|request, _| echo(request).step())
}

pub(super) fn answering(text: &str) -> Script {
    Script::repeat(Reply::anthropic().text(text))
}
