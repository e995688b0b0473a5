//! The host and its runners are killed at random moments while messages arrive.

use myclaw_testkit::{Random, number_from, send_signal};

use super::*;

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 12;
/// Longest life of a host.
const LONGEST_LIFE: Duration = Duration::from_millis(600);
const CHATS: u64 = 3;

#[test]
fn every_message_is_answered_once_or_reported_once() {
    let kills = number_from("MYCLAW_HOST_KILLS").unwrap_or(DEFAULT_KILLS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_123);
    let mut random = Random::new(seed);
    let bench = Bench::new(
        r#"echo $$ > "$w/group/pid"; sleep "0.0$((RANDOM % 9))"
say "$(grep -o '\[m[0-9]*\]' <<< "$job" | tr '\n' ' ')"; sleep "0.0$((RANDOM % 5))"; over"#,
    );
    for chat in 0..CHATS {
        bench.add(&format!("chat{chat}"), &format!("g{chat}"), &["--all"]);
    }
    let mut host = bench.start(&[]);
    let mut sent = 0;
    for kill in 0..kills {
        for _ in 0..=random.below(4) {
            bench.send(
                &format!("id-{sent}"),
                &format!("chat{}", sent % CHATS),
                &format!("[m{sent}]"),
            );
            sent += 1;
            random.pause(Duration::from_millis(60));
        }
        random.pause(LONGEST_LIFE);
        if random.below(2) == 0 {
            let path = bench.host(&format!("groups/g{}/pid", random.below(CHATS)));
            let pid =
                fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok());
            // Only a process that is one of the runners: its number may belong to another one by now.
            if let Some(pid) = pid.filter(|pid| is_runner(*pid, &bench)) {
                send_signal(pid, Signal::Kill);
            }
        } else {
            host.signal(Signal::Kill);
            drop(host.wait(PATIENCE));
            host = bench.start(&[]);
        }
        eprint!("\rseed {seed}, kill {}", kill + 1);
    }
    let has_outcome = |out: &[Value], number: u64| {
        let (answers, notices) = outcome(out, number);
        answers + notices > 0
    };
    wait_until("all have an outcome", || {
        let out = bench.out();
        (0..sent).all(|number| has_outcome(&out, number))
    });
    // A message after all others shows that nothing of theirs is on its way.
    for chat in 0..CHATS {
        bench.send(
            &format!("last-{chat}"),
            &format!("chat{chat}"),
            &format!("[m{}]", 1_000_000 + chat),
        );
    }
    wait_until("the last ones are answered", || {
        let out = bench.out();
        (0..CHATS).all(|chat| has_outcome(&out, 1_000_000 + chat))
    });
    stop(host);
    let out = bench.out();
    for number in 0..sent {
        let (answers, notices) = outcome(&out, number);
        let is_fine = answers <= 1 && notices <= 1;
        assert!(
            is_fine,
            "seed {seed}: m{number} has {answers} answers and {notices} notices: {out:#?}"
        );
    }
    eprintln!("\n{sent} messages, {} parts", out.len());
}

/// How often a message was answered, and how often it was reported.
fn outcome(out: &[Value], number: u64) -> (usize, usize) {
    let (mark, id) = (format!("[m{number}]"), json!(format!("id-{number}")));
    let is_answer = |part: &&Value| {
        part["kind"] == "message" && part["text"].as_str().is_some_and(|text| text.contains(&mark))
    };
    let is_notice =
        |part: &&Value| part["about"].as_array().is_some_and(|about| about.contains(&id));
    (out.iter().filter(is_answer).count(), out.iter().filter(is_notice).count())
}

fn is_runner(pid: u32, bench: &Bench) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(bench.path("fake-runner").to_str().unwrap())
}
