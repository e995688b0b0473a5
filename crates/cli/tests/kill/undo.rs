//! Turns that change files and undos of them, killed at random moments: in the end everything can be undone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myclaw_testkit::{
    ModelServer, Random, RecordedRequest, Reply, Script, Signal, Step, TempHome, WireFormat,
};
use serde_json::json;

use crate::{DEADLINE, SESSION, kills, myclaw, on_this_machine, run, seed};

/// Longest time between the start of a program and its kill, on a fast machine.
const LONGEST: Duration = Duration::from_millis(90);
/// After so many kills everything is undone.
const KILLS_PER_ROUND: u64 = 6;

/// Mostly changes of the same few files, by all tools.
fn work(_request: &RecordedRequest, number: usize) -> Step {
    let reply = Reply::anthropic();
    if number % 5 == 4 {
        return reply.text("Done.").step();
    }
    let path = format!("d{}/f{}", number % 2, number % 3);
    let patch = format!(
        "*** Begin Patch\n*** Delete File: d0/f0\n*** Add File: new/{number}\n+x\n*** End Patch"
    );
    reply
        .tool_call(format!("read_{number}"), "read", json!({"path": path}))
        .tool_call(
            format!("write_{number}"),
            "write",
            json!({"path": path, "content": format!("one\n{number}\n")}),
        )
        .tool_call(
            format!("edit_{number}"),
            "edit",
            json!({"path": path, "oldText": "one\n", "newText": "one\ntwo\n"}),
        )
        .tool_call(format!("patch_{number}"), "apply_patch", json!({"patch": patch}))
        .step()
}

/// The files below `directory`, without what a killed tool leaves under a temporary name.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if !entry.file_name().to_string_lossy().starts_with(".myclaw-") {
                let content = fs::read(&path).unwrap();
                found.insert(path, content);
            }
        }
    }
    found
}

#[test]
fn everything_can_be_undone_after_kills() {
    let (kills, seed) = (kills(), seed());
    let mut random = Random::new(seed);
    let home = TempHome::new();
    let server = ModelServer::spawn_blocking_thread(Script::answer_with(work));
    let mut config = TempHome::config_for(server.url(), WireFormat::AnthropicMessages);
    config["agents"]["defaults"]["sandbox"] = json!({"mode": "off"});
    home.write_config(&config);
    let longest = on_this_machine(&home, LONGEST);
    for name in ["d0/f0", "d1/f1", "d1/f2"] {
        home.write(home.workspace().join(name), format!("original {name}\n"));
    }
    let original = files(&home.workspace());
    let mut changed = 0;

    for kill in 0..kills {
        let turn = run(&home, "go on");
        random.pause(longest);
        turn.signal(Signal::Kill);
        turn.wait(DEADLINE);
        changed += u64::from(files(&home.workspace()) != original);
        if random.below(3) == 0 {
            let undo = myclaw(&home, &["sessions", "undo", SESSION]);
            random.pause(longest / 3);
            undo.signal(Signal::Kill);
            undo.wait(DEADLINE);
        }
        if kill % KILLS_PER_ROUND == KILLS_PER_ROUND - 1 {
            let undo = || myclaw(&home, &["sessions", "undo", SESSION]).wait(DEADLINE);
            let last =
                std::iter::repeat_with(undo).find(|output| output.code() != Some(0)).unwrap();
            assert!(last.stderr().contains("nothing to undo"), "{}", last.stderr());
            assert_eq!(files(&home.workspace()), original, "seed {seed}, kill {kill}");
        }
    }
    println!("{changed} of {kills} kills met changed files");
    assert!(changed > 0 || kills < 20, "no kill met a change");
}
