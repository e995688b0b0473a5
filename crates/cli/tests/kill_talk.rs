//! The real process, killed at random points while another process talks to it. Afterwards every message that was
//! acknowledged is in the conversation exactly once. `MYCLAW_KILLS` sets the number of kills.

use std::time::Duration;

use myclaw_session::{EntryId, QueuedKind, QueuedMessage, SessionKey, SessionStore};
use myclaw_testkit::{
    ModelServer, RecordedRequest, Reply, RunningChild, Script, Signal, Step, TempHome, WireFormat,
    validate_pairing,
};
use serde_json::{Value, json};

/// Kills in a quick run; `MYCLAW_KILLS` asks for more.
const DEFAULT_KILLS: u64 = 30;

const KINDS: [QueuedKind; 3] = [QueuedKind::Steer, QueuedKind::FollowUp, QueuedKind::Collect];

/// Random numbers that are the same in each run of a seed: the splitmix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }
}

/// A few tools, an answer, and so on.
fn some_work(_request: &RecordedRequest, number: usize) -> Step {
    match number % 4 {
        0 => Reply::anthropic().text(format!("answer {number}")).step(),
        _ => Reply::anthropic()
            .tool_call(format!("a_{number}"), "bash", json!({"command": "true"}))
            .tool_call(format!("b_{number}"), "bash", json!({"command": "sleep 0.01"}))
            .step()
            .event_by_event(),
    }
}

fn run(home: &TempHome, message: &str) -> RunningChild {
    RunningChild::spawn(home.command(env!("CARGO_BIN_EXE_myclaw")).args([
        "run",
        "--session",
        "killed",
        message,
    ]))
}

#[test]
fn what_another_process_said_is_taken_once_whatever_is_killed() {
    let kills = std::env::var("MYCLAW_KILLS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_KILLS);
    let seed =
        std::env::var("MYCLAW_KILL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    let mut random = Random(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(some_work));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["messages"] = json!({"queue": {"debounceMs": 5}});
    home.write_config(&config);
    let store = SessionStore::new(home.state_directory().join("sessions"));
    let key = SessionKey::for_cli("main", "killed");
    let inbox = store.inbox(&key);

    let mut acknowledged: Vec<EntryId> = Vec::new();
    for kill in 0..kills {
        let child = run(&home, &format!("work {kill}"));
        for number in 0..random.below(4) {
            std::thread::sleep(Duration::from_micros(random.below(60_000)));
            let message = QueuedMessage {
                id: EntryId::generate(),
                kind: KINDS[random.below(3) as usize],
                content: format!("said {kill}.{number}."),
                ts: 1,
                meta: None,
            };
            inbox.push(&message).unwrap();
            acknowledged.push(message.id);
        }
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        child.signal(Signal::Kill);
        child.wait(Duration::from_secs(20));
    }
    let waiting = inbox.pending().unwrap().len();
    let last = run(&home, "the last").wait(Duration::from_secs(60));
    last.assert_code(0);

    assert_eq!(inbox.pending().unwrap(), []);
    let text = std::fs::read(home.transcript_path("killed")).unwrap();
    let rows: Vec<Value> = String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let taken: Vec<&Value> = rows
        .iter()
        .flat_map(|row| row["meta"]["queuedIds"].as_array().into_iter().flatten())
        .collect();
    for id in &acknowledged {
        let times = taken.iter().filter(|taken| ***taken == json!(id)).count();
        assert_eq!(times, 1, "seed {seed}: {id:?}");
    }
    assert_eq!(taken.len(), acknowledged.len(), "seed {seed}");
    for request in server.requests() {
        validate_pairing(&request).unwrap();
    }
    println!("{kills} kills, {} messages, {waiting} left to the last run", acknowledged.len());
}
