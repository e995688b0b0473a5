//! Backups that are made while a gateway works, and restored elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::chaos::{Promised, talk};
use super::*;

/// Backups in a quick run.
const DEFAULT_BACKUPS: u64 = 6;
const SESSIONS: u64 = 3;
/// Restores that are killed in a quick run.
const DEFAULT_KILLS: u64 = 12;

/// The number and the id of each message, by session.
type Messages = HashMap<u64, Vec<(u64, String)>>;

fn myclaw(home: &TempHome, arguments: &[&str]) -> std::process::Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.env("MYCLAW_LOCAL_SERVERS", "none").args(arguments);
    command
}

#[test]
fn a_backup_under_load_holds_every_message_exactly_once() {
    let backups = number_from("MYCLAW_BACKUPS").unwrap_or(DEFAULT_BACKUPS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129);
    let mut random = Random::new(seed);
    let bench = Bench::new(shared(|request, number| {
        // Answers take different times, so backups meet all steps, and are longer than a start of the program.
        echo(request).step().delay(Duration::from_millis((number as u64 * 37) % 300))
    }));
    bench.configure(|config| {
        config["messages"] = json!({"queue": {"cap": 1_000, "debounceMs": 10}})
    });
    // It is copied between the database and the logs, so answers are given meanwhile.
    let noise: Vec<u8> = (0..2_000_000).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
    bench.home.write(".myclaw/noise", noise);
    let gateway = bench.start();
    let (promised, is_over) = (Promised::default(), AtomicBool::new(false));
    let next = AtomicU64::new(0);
    let made: Vec<(String, Messages)> = thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (client, promised, is_over, next) = (&gateway.client, &promised, &is_over, &next);
            scope.spawn(move || talk(client, session, promised, is_over, next));
        }
        let made = (0..backups).map(|number| {
            random.pause(Duration::from_millis(300));
            let before = promised.lock().clone();
            let file = bench.home.path().join(format!("{number}.backup"));
            let file = file.to_str().unwrap().to_owned();
            RunningChild::run(&mut myclaw(&bench.home, &["backup", "--with-keys", &file]))
                .assert_code(0);
            (file, before)
        });
        let made = made.collect();
        is_over.store(true, Ordering::SeqCst);
        made
    });
    gateway.stop();
    let mut count = 0;
    for (file, promised) in made {
        // The same gateway elsewhere: it answers what was not answered.
        let there = TempHome::new();
        RunningChild::run(&mut myclaw(&there, &["restore", &file])).assert_code(0);
        let gateway = Gateway::of(spawn(&there), &there, bench.port);
        for (session, messages) in &promised {
            for (number, id) in messages {
                let outcome = gateway.client.outcome(id).unwrap();
                let mark = format!("<m{number}>");
                assert_eq!(outcome["state"], "answered", "seed {seed}: {mark}: {outcome}");
                let rows = TempHome::read_lines(&there.transcript_path(&format!("s{session}")));
                for role in ["user", "assistant"] {
                    let holds = |row: &&Value| {
                        row["role"] == role
                            && row["content"].as_str().unwrap_or_default().contains(&mark)
                    };
                    let found = rows.iter().filter(holds).count();
                    assert_eq!(found, 1, "seed {seed}: rows of the {role} with {mark}");
                }
                count += 1;
            }
        }
        gateway.stop();
    }
    assert!(count > backups, "only {count} messages met {backups} backups");
}

#[test]
fn a_killed_restore_leaves_what_was_there_or_the_whole_backup() {
    let kills = number_from("MYCLAW_BACKUP_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129);
    let mut random = Random::new(seed);
    let (here, there) = (TempHome::new(), TempHome::new());
    for number in 0..300 {
        here.write(format!(".myclaw/workspace/file-{number}"), "new".repeat(5_000));
    }
    let file = here.path().join("backup").to_str().unwrap().to_owned();
    RunningChild::run(&mut myclaw(&here, &["backup", &file])).assert_code(0);
    let begun = Instant::now();
    let other = TempHome::new();
    RunningChild::run(&mut myclaw(&other, &["restore", &file])).assert_code(0);
    let longest = begun.elapsed().mul_f32(1.2);
    there.write(".myclaw/workspace/old", "old");
    let mut outcomes = HashMap::new();
    for kill in 0..kills {
        let child = RunningChild::spawn(&mut myclaw(&there, &["restore", "--replace", &file]));
        random.pause(longest);
        child.signal(Signal::Kill);
        child.wait(PATIENCE);
        let names = std::fs::read_dir(there.workspace()).unwrap().count();
        let is_old = there.workspace().join("old").exists();
        assert!(
            if is_old { names == 1 } else { names == 300 },
            "seed {seed}, kill {kill}: {names}"
        );
        *outcomes.entry(is_old).or_insert(0) += 1;
        // What was there before is somewhere, whatever has happened.
        let kept = std::fs::read_dir(there.path()).unwrap().flatten();
        let kept = kept.filter(|entry| entry.path().join("workspace/old").exists()).count();
        assert_eq!(kept, 1, "seed {seed}, kill {kill}");
    }
    eprintln!("what was there stayed or was replaced: {outcomes:?}");
    RunningChild::run(&mut myclaw(&there, &["restore", "--replace", &file])).assert_code(0);
    assert_eq!(std::fs::read_dir(there.workspace()).unwrap().count(), 300);
}
