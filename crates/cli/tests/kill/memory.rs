//! Facts that are remembered, and forgotten, by programs that are killed at random moments: none that was acknowledged is lost,
//! and none comes back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, Script, Signal, Step, TempHome, WireFormat,
};
use serde_json::{Value, json};

use crate::{DEADLINE, SESSION, kills, myclaw, on_this_machine, run, seed};

/// Longest time between the start of a program and its kill, on a fast machine.
const LONGEST: Duration = Duration::from_millis(70);

/// Remembers something new with each second request.
fn work(_request: &RecordedRequest, number: usize) -> Step {
    if number % 2 == 1 {
        return Reply::anthropic().text("Noted.").step();
    }
    let fact = json!({"fact": format!("Secret kumquat{number} of the owner.")});
    Reply::anthropic().tool_call(format!("call_{number}"), "memory_write", fact).step()
}

/// The facts, by their text.
fn facts(home: &TempHome) -> BTreeMap<String, String> {
    let listed = myclaw(home, &["memory", "list", "--json"]).wait(DEADLINE);
    listed.assert_code(0);
    let facts = listed
        .stdout()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .collect::<Vec<_>>();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    facts.iter().map(|fact| (text(&fact["text"]), text(&fact["id"]))).collect()
}

/// The facts whose results are in the log: they were acknowledged.
fn acknowledged(home: &TempHome) -> Vec<String> {
    let path = home.transcript_path(SESSION);
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let results = rows.filter(|row| row["role"] == "tool");
    results
        .filter_map(|row| {
            let (_, fact) = row["content"].as_str()?.split_once("): ")?;
            fact.lines().next().map(str::to_owned)
        })
        .collect()
}

/// The files below `directory` that have `word`, but for those in `without`.
fn files_with(directory: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, word));
        } else if fs::read(&path).is_ok_and(|bytes| {
            bytes.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        }) {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_acknowledged_fact_is_lost_and_none_comes_back() {
    let (kills, seed) = (kills(), seed());
    let mut random = Random::new(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(work));
    home.write_config(&TempHome::config_for(server.url(), WireFormat::AnthropicMessages));
    let longest = on_this_machine(&home, LONGEST);
    let mut forgotten: Vec<String> = Vec::new();
    let mut met = 0;
    for kill in 0..kills {
        let turn = run(&home, "go on");
        random.pause(longest);
        turn.signal(Signal::Kill);
        turn.wait(DEADLINE);
        let known = facts(&home);
        for fact in acknowledged(&home) {
            let is_forgotten =
                fact.contains('*') || forgotten.iter().any(|word| fact.contains(word));
            assert!(
                is_forgotten || known.contains_key(&fact),
                "seed {seed}, kill {kill}: {fact} is lost"
            );
        }
        let Some((fact, id)) = known.into_iter().next().filter(|_| random.below(2) == 0) else {
            continue;
        };
        let word = fact.split(' ').nth(1).unwrap().to_owned();
        // Other numbers begin alike.
        let words = ["memory", "forget", id.as_str(), "--redact", "--word", word.as_str(), "--yes"];
        let forget = myclaw(&home, &words);
        random.pause(longest / 2);
        forget.signal(Signal::Kill);
        forget.wait(DEADLINE);
        // Whether the kill came before or after it began, any command completes what has begun.
        if facts(&home).contains_key(&fact) {
            myclaw(&home, &words).wait(DEADLINE).assert_code(0);
        } else {
            met += 1;
        }
        assert!(!home.state_directory().join("forget.json").exists(), "seed {seed}, kill {kill}");
        forgotten.push(word);
        for word in &forgotten {
            let left = files_with(&home.state_directory(), &format!("{word} "));
            assert_eq!(left, Vec::<PathBuf>::new(), "seed {seed}, kill {kill}: {word}");
        }
    }
    println!(
        "{} facts forgotten, {met} of them by commands that were killed or as quick as the kill",
        forgotten.len()
    );
    assert!(kills < 20 || !forgotten.is_empty(), "nothing was ever forgotten");
}
