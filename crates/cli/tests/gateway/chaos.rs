//! The gateway is killed at random moments while clients send.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::*;
use parking_lot::Mutex;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 40;
/// Sessions that are talked to at the same time, each by one client.
const SESSIONS: u64 = 4;
/// Longest life of a process.
const LONGEST_LIFE: Duration = Duration::from_millis(400);

/// Messages of a session that wait at most. The queue holds 1,000.
const MOST_WAITING: usize = 500;

/// What the clients were promised: by session, the number and the id of each message.
pub(super) type Promised = Mutex<HashMap<u64, Vec<(u64, String)>>>;

#[test]
fn every_acknowledged_message_is_answered_exactly_once() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_122);
    let mut random = Random::new(seed);
    let bench = Bench::new(shared(|request, number| {
        // Answers take different times, so kills meet all steps.
        let pause = Duration::from_millis((number as u64 * 7) % 40);
        echo(request).step().delay(pause)
    }));
    // Clients send faster than the model answers.
    bench.configure(|config| config["messages"] = json!({"queue": {"cap": 1_000}}));
    let gateway = bench.start();
    let client = gateway.client.clone();
    let (promised, is_over) = (Promised::default(), AtomicBool::new(false));
    let next = AtomicU64::new(0);
    let gateway = thread::scope(|scope| {
        let mut gateway = gateway;
        for session in 0..SESSIONS {
            let (client, promised, is_over, next) = (&client, &promised, &is_over, &next);
            scope.spawn(move || talk(client, session, promised, is_over, next));
        }
        for kill in 0..kills {
            random.pause(LONGEST_LIFE);
            gateway.kill();
            gateway = bench.start();
            eprint!("\rseed {seed}, kill {}", kill + 1);
        }
        is_over.store(true, Ordering::SeqCst);
        gateway
    });
    eprintln!();
    let promised = promised.into_inner();
    let mut count = 0;
    for (session, messages) in &promised {
        for (number, id) in messages {
            let outcome = gateway.client.outcome(id).unwrap();
            let mark = format!("<m{number}>");
            assert_eq!(outcome["state"], "answered", "seed {seed}: {mark}: {outcome}");
            let reply = outcome["reply"].as_str().unwrap();
            assert!(reply.contains(&mark), "seed {seed}: {mark} was answered with {reply}");
            count += 1;
        }
        let rows = bench.rows(&format!("s{session}"));
        for (number, _) in messages {
            for role in ["user", "assistant"] {
                let mark = format!("<m{number}>");
                let holds = |row: &&Value| {
                    row["role"] == role
                        && row["content"].as_str().unwrap_or_default().contains(&mark)
                };
                let found = rows.iter().filter(holds).count();
                assert_eq!(
                    found, 1,
                    "seed {seed}: rows of the {role} with {mark} in session {session}"
                );
            }
        }
    }
    super::subagents::settle(&gateway.client);
    gateway.stop();
    assert!(count > kills / 4, "only {count} messages met {kills} kills");
    eprintln!("{count} messages, {} model calls", bench.model.requests().len());
}

/// Messages that arrive one after the other for a queue with one place.
const BURST: usize = 6;
/// Kills after which everything may end before the next one. Fewer messages than the model is shown are dropped by then.
const KILLS_BETWEEN_RESTS: u64 = 5;

#[test]
fn chaos_a_message_of_a_full_queue_is_answered_once_or_dropped_once() {
    let kills = number_from("MYCLAW_GATEWAY_KILLS").unwrap_or(DEFAULT_KILLS / 2);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_124);
    let mut random = Random::new(seed);
    let bench =
        Bench::new(shared(|request, _| echo(request).step().delay(Duration::from_millis(60))));
    bench.configure(|config| {
        config["messages"] = json!({"queue": {"mode": "followup", "cap": 1, "drop": "summarize"}});
    });
    let mut gateway = bench.start();
    let mut sent: Vec<(String, String)> = Vec::new();
    for kill in 0..kills {
        for _ in 0..BURST {
            let text = format!("say <m{}>", sent.len());
            let id = gateway.client.send("main", &text, &text).unwrap();
            sent.push((text, id));
        }
        if kill % KILLS_BETWEEN_RESTS == 0 {
            for (_, id) in &sent[sent.len() - BURST..] {
                gateway.client.outcome(id).unwrap();
            }
        }
        random.pause(Duration::from_millis(30));
        gateway.kill();
        gateway = bench.start();
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    eprintln!();
    let outcomes: Vec<Value> =
        sent.iter().map(|(_, id)| gateway.client.outcome(id).unwrap()).collect();
    // It shows the model what was dropped last.
    let last = gateway.client.send("main", "last", "that is all").unwrap();
    gateway.client.outcome(&last).unwrap();
    let rows = bench.rows("main");
    let asked = rows.iter().filter(|row| row["role"] == "user");
    let asked: Vec<&str> = asked.flat_map(|row| row["content"].as_str()).collect();
    let asked = asked.join("\n");
    let mut dropped = 0;
    for ((text, _), outcome) in sent.iter().zip(&outcomes) {
        let called_dropped = asked.matches(&format!("\n- {text}")).count();
        let said = asked.matches(text.as_str()).count() - called_dropped;
        let is_answered = outcome["state"] == "answered";
        let expected = (usize::from(is_answered), usize::from(!is_answered));
        assert_eq!((said, called_dropped), expected, "seed {seed}: {text}: {outcome}\n{asked}");
        assert!(is_answered || outcome["class"] == "queue_full", "seed {seed}: {text}: {outcome}");
        dropped += expected.1;
    }
    gateway.stop();
    assert!(dropped as u64 > kills, "only {dropped} messages were dropped in {kills} kills");
    eprintln!("{} messages, {dropped} of them dropped", sent.len());
}

/// Sends messages one after the other, each under its id until it is acknowledged.
pub(super) fn talk(
    client: &Client,
    session: u64,
    promised: &Promised,
    is_over: &AtomicBool,
    next: &AtomicU64,
) {
    let mut sent: Vec<String> = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        // On a slow machine the model falls behind: a full queue would drop messages.
        while let Some(index) = sent.len().checked_sub(MOST_WAITING)
            && client.outcome(&sent[index]).is_ok_and(|outcome| outcome["state"] == "open")
            && !is_over.load(Ordering::SeqCst)
        {
            thread::sleep(Duration::from_millis(5));
        }
        let number = next.fetch_add(1, Ordering::SeqCst);
        let (name, id, text) =
            (format!("s{session}"), format!("id-{number}"), format!("<m{number}>"));
        let begun = Instant::now();
        let message = loop {
            match client.send(&name, &id, &text) {
                Ok(message) => break message,
                // It may have been stored: only the same id again is safe.
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
            assert!(begun.elapsed() < PATIENCE, "{text} was never acknowledged");
        };
        let mut promised = promised.lock();
        promised.entry(session).or_default().push((number, message.clone()));
        sent.push(message);
        drop(promised);
        // Every other message comes while the one before is worked on.
        if number.is_multiple_of(2) {
            thread::sleep(Duration::from_millis(number % 30));
        }
    }
}
