//! The real process, killed at random points over many runs.
//!
//! `MYCLAW_KILLS` sets the number of kills of each test, `MYCLAW_KILL_SEED` what is random in them. A failure names the
//! seed and the kill.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of this is test code, where a panic is a failed test"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_session::{EntryId, Inbox, Keeper, QueuedKind, QueuedMessage, SessionKey, SessionStore};
use myclaw_testkit::{Random, RunningChild, TempHome, number_from};
use serde_json::{Value, json};

mod memory;
mod programs;
mod rivals;
mod storm;
mod transcript;
mod undo;

/// Kills in a quick run; `MYCLAW_KILLS` asks for more.
const DEFAULT_KILLS: u64 = 30;

/// Kills that meet a bit of everything, on any machine.
const ENOUGH_KILLS: u64 = 100;

/// How long a small turn takes on a fast machine.
const SMALL_TURN: Duration = Duration::from_millis(25);

/// Longest that an orderly end of the program may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The session that is killed again and again.
const SESSION: &str = "killed";

const KINDS: [QueuedKind; 4] =
    [QueuedKind::Steer, QueuedKind::FollowUp, QueuedKind::Collect, QueuedKind::Interrupt];

fn kills() -> u64 {
    number_from("MYCLAW_KILLS").unwrap_or(DEFAULT_KILLS)
}

fn seed() -> u64 {
    number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_121)
}

/// Somebody who talks into the session from outside, and remembers what was acknowledged.
struct Speaker {
    inbox: Arc<dyn Inbox>,
    acknowledged: Vec<EntryId>,
}

impl Speaker {
    fn new(home: &TempHome) -> Self {
        let store = SessionStore::new(home.sessions_directory());
        let inbox = Arc::new(store.inbox(&SessionKey::for_cli("main", SESSION)));
        Self { inbox, acknowledged: Vec::new() }
    }

    /// Says something; when this returns, it is acknowledged.
    fn say(&mut self, random: &mut Random) {
        let message = QueuedMessage {
            id: EntryId::generate(),
            kind: KINDS[random.below(4) as usize],
            content: format!("said {}.", self.acknowledged.len()),
            ts: 1,
            meta: None,
            keeper: Keeper::Inbox,
        };
        self.inbox.push(&message).unwrap();
        self.acknowledged.push(message.id);
    }
}

fn myclaw(home: &TempHome, arguments: &[&str]) -> RunningChild {
    RunningChild::spawn(home.command(env!("CARGO_BIN_EXE_myclaw")).args(arguments))
}

fn run(home: &TempHome, message: &str) -> RunningChild {
    myclaw(home, &["run", "--session", SESSION, message])
}

/// `pause`, which is right for a fast machine, on this one: kills that always come before the first step meet nothing.
fn on_this_machine(home: &TempHome, pause: Duration) -> Duration {
    let begun = Instant::now();
    let turn = ["run", "--model", "builtin/demo", "--session", "pace", "hello"];
    myclaw(home, &turn).wait(DEADLINE).assert_code(0);
    pause.mul_f64((begun.elapsed().as_secs_f64() / SMALL_TURN.as_secs_f64()).clamp(1.0, 5.0))
}

/// A config for a window that is full after some calls: the prompt and the tools take a quarter of it.
fn narrow(config: &mut Value, compaction: &Value) {
    config["models"]["providers"]["anthropic"]["models"] =
        json!([{"id": "claude-sonnet-4-20250514", "contextWindow": 8_000, "maxOutput": 1_000}]);
    config["agents"]["defaults"]["compaction"] = compaction.clone();
}
