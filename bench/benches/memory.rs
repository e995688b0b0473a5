//! Searching 10,000 sessions: how long the index takes, its size, and how long searches take.
//!
//! `cargo bench -p myclaw-bench --bench memory`.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has nothing to measure")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use myclaw_memory::{Hidden, SessionSearch, Wanted};
use myclaw_session::{
    Catalog, Entry, LockWait, MetaPatch, Role, SessionKey, SessionStore, TranscriptMessage,
};
use tempfile::TempDir;

/// Sessions, of five exchanges each.
const SESSIONS: u64 = 10_000;
/// Timed searches.
const SEARCHES: usize = 200;
/// Different words of the texts.
const WORDS: u64 = 20_000;

fn main() {
    // Cargo's test run asks every bench whether it has tests.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let (logs, index) = (directory.path().join("sessions"), directory.path().join("index"));
    let store = Arc::new(SessionStore::new(&logs));
    let mut state = 1;
    for number in 0..SESSIONS {
        let entries: Vec<Entry> = (0..10)
            .map(|row| {
                let role = if row % 2 == 0 { Role::User } else { Role::Assistant };
                let length = if row % 2 == 0 { 20 } else { 90 };
                Entry::Message(TranscriptMessage::new(role, text(&mut state, length), 1_000 + row))
            })
            .collect();
        let key = SessionKey::for_cli("main", &format!("session-{number}"));
        store.open(&key, LockWait::Fail).expect("a log").append(&entries).expect("an append");
        Catalog::update(&*store, &key, MetaPatch::default()).expect("an entry");
    }
    let search = SessionSearch::new(store, "main", index.clone());
    let began = Instant::now();
    search.rebuild(&Hidden::new()).expect("an index");
    println!("{SESSIONS} sessions: the index takes {:.1} s", began.elapsed().as_secs_f64());
    let share = bytes_of(&index) as f64 / bytes_of(&logs) as f64;
    println!("it has {:.1} % of the size of the logs", share * 100.0);
    let mut times: Vec<f64> = (0..SEARCHES)
        .map(|_| {
            let query = text(&mut state, 5);
            let began = Instant::now();
            let wanted = Wanted { query: &query, most: 6, may_see: &|_| true, encoder: None };
            let found = search.search(&wanted, &Hidden::new()).expect("a search");
            assert!(!found.passages.is_empty());
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("a search takes {:.2} ms (median), {:.2} ms (p95)", at(0.5), at(0.95));
}

/// Words of which few are common and most are rare, as in a language.
fn text(state: &mut u64, length: usize) -> String {
    let mut words = String::new();
    for _ in 0..length {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let share = (*state >> 11) as f64 / (1_u64 << 53) as f64;
        let word = ((WORDS as f64).powf(share)) as u64;
        words.push_str(&format!("word{word} "));
    }
    words
}

fn bytes_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}
