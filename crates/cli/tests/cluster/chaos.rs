//! Three gateways on one database, with random faults, while clients send to all of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use myclaw_testkit::{Random, Signal, number_from};
use parking_lot::Mutex;

use super::proxy::Proxy;
use super::*;

/// Faults in a quick run.
const DEFAULT_FAULTS: u64 = 8;
/// Sessions that are talked to at the same time, each by one client.
const SESSIONS: u64 = 4;
const NODES: usize = 3;
/// Longest time between two faults.
const REST: Duration = Duration::from_millis(1_500);
/// Longer than a lease.
const TOO_LONG: Duration = Duration::from_millis(LEASE_MS * 3 / 2);
/// Messages of a session that wait at most.
const MOST_WAITING: usize = 20;
/// Longest time in which everything is answered once the faults are over.
const SETTLED: Duration = Duration::from_secs(120);

/// What can happen to a node or to the database.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The process is killed, and started again.
    Kill,
    /// It stands still for longer than a lease.
    Pause,
    /// All its connections to the database break at once.
    Break,
    /// It does not reach the database for longer than a lease.
    CutOff,
    /// It is stopped gracefully, and started again.
    Stop,
    /// The database is killed, and started again.
    KillDatabase,
}

const FAULTS: [Fault; 6] =
    [Fault::Kill, Fault::Pause, Fault::Break, Fault::CutOff, Fault::Stop, Fault::KillDatabase];

/// What the clients were promised: the number of each message, and its id.
type Promised = Mutex<HashMap<u64, String>>;

#[test]
fn every_message_is_answered_once_whatever_happens_to_nodes_and_the_database() {
    let Some((server, url)) = database() else { return };
    let faults = number_from("MYCLAW_CLUSTER_FAULTS").unwrap_or(DEFAULT_FAULTS);
    let seed = number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129);
    eprintln!("seed {seed}, {faults} faults");
    let mut random = Random::new(seed);
    let model = model();
    let proxies: Vec<Proxy> = (0..NODES).map(|_| Proxy::start(server.port())).collect();
    let machines: Vec<Machine> = proxies
        .iter()
        .enumerate()
        .map(|(number, proxy)| {
            let url = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
            Machine::new(&format!("node-{number}"), &url, &model)
        })
        .collect();
    let mut gateways: Vec<Option<Gateway>> =
        machines.iter().map(|machine| Some(machine.start())).collect();
    let (promised, is_over, next) =
        (Promised::default(), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (machines, promised, is_over, next) = (&machines, &promised, &is_over, &next);
            scope.spawn(move || talk(machines, session, promised, is_over, next));
        }
        // A fault that panics must not leave the clients waiting.
        let over = Over(&is_over);
        for number in 0..faults {
            random.pause(REST);
            let at = usize::try_from(random.below(NODES as u64)).unwrap();
            // The first ones are one of each kind.
            let kind = FAULTS.get(usize::try_from(number).unwrap()).copied();
            let fault = kind.unwrap_or_else(|| {
                FAULTS[usize::try_from(random.below(FAULTS.len() as u64)).unwrap()]
            });
            eprintln!("fault {number}: {fault:?} of node {at}, {} messages", promised.lock().len());
            match fault {
                Fault::KillDatabase => {
                    server.kill();
                    random.pause(TOO_LONG);
                    server.launch();
                }
                fault => {
                    let of_node = (&machines[at], &proxies[at]);
                    inflict(fault, of_node, &mut gateways[at], &mut random);
                }
            }
        }
        drop(over);
    });
    let promised = promised.into_inner();
    settle(&promised, &machines, seed);
    gateways.into_iter().flatten().for_each(Gateway::stop);
    let logs = exported(&machines[0]);
    for number in promised.keys() {
        let mark = format!("<m{number}>");
        for role in ["user", "assistant"] {
            let found = count(&logs, role, &mark);
            assert_eq!(found, 1, "seed {seed}: rows of the {role} with {mark}");
        }
    }
    assert!(promised.len() as u64 > faults, "only {} messages met {faults} faults", promised.len());
    eprintln!("{} messages, {} model calls", promised.len(), model.requests().len());
}

/// What happens to one node.
fn inflict(
    fault: Fault,
    (machine, proxy): (&Machine, &Proxy),
    gateway: &mut Option<Gateway>,
    random: &mut Random,
) {
    match fault {
        Fault::Kill => {
            gateway.take().unwrap().kill();
            random.pause(TOO_LONG);
            *gateway = Some(machine.start());
        }
        Fault::Pause => {
            let child = &gateway.as_ref().unwrap().child;
            child.signal(Signal::Pause);
            thread::sleep(TOO_LONG);
            child.signal(Signal::Continue);
        }
        Fault::Break => {
            proxy.cut();
            proxy.mend();
        }
        Fault::CutOff => {
            proxy.cut();
            thread::sleep(TOO_LONG);
            proxy.mend();
        }
        Fault::Stop => {
            gateway.take().unwrap().stop();
            *gateway = Some(machine.start());
        }
        Fault::KillDatabase => {}
    }
}

/// Waits until each message is answered.
fn settle(promised: &HashMap<u64, String>, machines: &[Machine], seed: u64) {
    let begun = Instant::now();
    for (number, id) in promised {
        let client = machines[usize::try_from(*number).unwrap() % NODES].client();
        let outcome = loop {
            match client.outcome(id) {
                Ok(outcome) if outcome["state"] != "open" => break outcome,
                open => {
                    let is_late = begun.elapsed() >= SETTLED;
                    if is_late {
                        machines.iter().for_each(show_log);
                    }
                    assert!(!is_late, "seed {seed}: <m{number}> stays open: {open:?}");
                }
            }
        };
        if outcome["state"] != "answered" {
            machines.iter().for_each(show_log);
        }
        assert_eq!(outcome["state"], "answered", "seed {seed}: <m{number}>: {outcome}");
        assert!(outcome["reply"].as_str().unwrap().contains(&format!("<m{number}>")));
    }
}

/// Shows what a node has logged.
fn show_log(machine: &Machine) {
    let log = machine.home.state_directory().join("logs/myclaw.log");
    eprintln!("{}:\n{}", log.display(), std::fs::read_to_string(&log).unwrap_or_default());
}

/// Ends the clients.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Sends messages one after the other, each under its id to one node after the other until it is acknowledged.
fn talk(
    machines: &[Machine],
    session: u64,
    promised: &Promised,
    is_over: &AtomicBool,
    next: &AtomicU64,
) {
    let (mut sent, mut at): (Vec<String>, usize) = (Vec::new(), 0);
    while !is_over.load(Ordering::SeqCst) {
        let number = next.fetch_add(1, Ordering::SeqCst);
        let (name, id, text) =
            (format!("s{session}"), format!("id-{number}"), format!("<m{number}>"));
        let begun = Instant::now();
        let (message, client) = loop {
            at += 1;
            let client = machines[at % NODES].client();
            match client.send(&name, &id, &text) {
                Ok(message) => break (message, client),
                // It may have been stored: only the same id again is safe.
                Err(error) => {
                    let waited = begun.elapsed();
                    assert!(waited < PATIENCE * 2, "{text} is not acknowledged: {error}");
                    thread::sleep(Duration::from_millis(20));
                }
            }
        };
        promised.lock().insert(number, message.clone());
        sent.push(message);
        if let Some(index) = sent.len().checked_sub(MOST_WAITING) {
            while client
                .get(&format!("/api/messages/{}", sent[index]))
                .is_ok_and(|(_, outcome)| outcome["state"] == "open")
                && !is_over.load(Ordering::SeqCst)
            {
                thread::sleep(Duration::from_millis(50));
            }
        }
        thread::sleep(Duration::from_millis(30 + number % 70));
    }
}
