//! Three gateways on one database, with random faults, while clients send to all of them.
//!
//! A message that was acknowledged is in one log once and is answered once, and no gateway writes to a session of another one:
//! the database itself watches that (`audit.rs`). Other tests break one safeguard each in the network between a gateway and
//! the database, and expect that the same run notices.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use myclaw_testkit::{Random, number_from};
use parking_lot::Mutex;

use super::proxy::{Mark, Rewrite};
use super::scene::{FAULTS, Fault, Scene};
use super::*;

/// Faults in a quick run: each kind once, but for the last one, which takes longest.
const DEFAULT_FAULTS: u64 = FAULTS.len() as u64 - 1;
/// Sessions that are talked to at the same time, each by one client.
const SESSIONS: u64 = 4;
/// Longest time between two faults.
const REST: Duration = Duration::from_millis(1_500);
/// Messages of a session that wait at most.
const MOST_WAITING: usize = 20;
/// Longest time in which everything is answered once the faults are over, and where a safeguard is broken.
const SETTLED: Duration = Duration::from_secs(120);
const SETTLED_IF_BROKEN: Duration = Duration::from_secs(15);
/// Of so many messages, one is sent to two nodes at the same time.
const PER_DOUBLE: u64 = 3;
/// How often the fault happens that provokes what a broken safeguard lets pass.
const PROVOCATIONS: usize = 3;
/// How often such a run is made until something is noticed.
const RUNS: usize = 3;

/// What the clients were promised: the number of each message, its session and its id.
pub(crate) type Promised = HashMap<u64, (u64, String)>;

/// The clients, one for each session.
#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) promised: Mutex<Promised>,
    pub(crate) is_over: AtomicBool,
    /// They send nothing now.
    pub(crate) is_quiet: AtomicBool,
    next: AtomicU64,
}

impl Clients {
    /// The number of the next message.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }
}

/// Whoever has lost a session can append to its log as long as nobody else has.
const FENCING: Rewrite = Rewrite::new("epoch = $2 AND last_seq = $3", "$2 = $2 AND last_seq = $3");
const RECEIPT: &str = "SELECT EXISTS (SELECT FROM myclaw.receipt WHERE token = $1)";
/// A commit without an answer counts as not made. What depends on what was there is refused then, and its caller finds what it
/// wrote; sums do not.
const NOT_MADE: Rewrite = Rewrite::new(RECEIPT, "SELECT $1 <> $1");
/// A commit without an answer counts as made.
const MADE: Rewrite = Rewrite::new(RECEIPT, "SELECT $1 = $1");
pub(crate) const LEASE: &str = "SET epoch = new.epoch, owner = new.owner, lease_until = new.until";
/// A message that its sender keeps is taken in, whoever has taken it in meanwhile.
pub(crate) const TAKEN: Rewrite = Rewrite::new(
    "AND NOT EXISTS (SELECT FROM myclaw.taken WHERE session = $1 AND taken.id = ANY ($11))",
    "AND $11::text[] IS NOT NULL",
);

#[test]
fn every_message_is_answered_once_whatever_happens_to_nodes_and_the_database() {
    let Some((server, url)) = database() else { return };
    let faults = number_from("MYCLAW_CLUSTER_FAULTS").unwrap_or(DEFAULT_FAULTS);
    let problems = run(Scene::new(&server, &url), &of_all_kinds(faults), SETTLED);
    assert_eq!(problems, [] as [String; 0], "seed {}", seed());
}

/// So many faults, of which the first ones are one of each kind.
fn of_all_kinds(faults: u64) -> Vec<Fault> {
    let mut random = Random::new(seed());
    (0..faults)
        .map(|number| FAULTS.get(usize::try_from(number).unwrap()).copied())
        .map(|kind| kind.unwrap_or_else(|| FAULTS[choice(&mut random, FAULTS.len())]))
        .collect()
}

/// How many of all faults it takes until a broken safeguard is noticed: `MYCLAW_CLUSTER_FAULTS` at most.
fn search_for(broken: Rewrite) {
    let Some((server, url)) = database() else { return };
    let mut scene = Scene::new(&server, &url);
    scene.is_search = true;
    scene.proxies.iter().for_each(|proxy| proxy.rewrite(broken));
    let faults = number_from("MYCLAW_CLUSTER_FAULTS").unwrap_or(3 * DEFAULT_FAULTS);
    let problems = run(scene, &of_all_kinds(faults), SETTLED_IF_BROKEN);
    assert!(!problems.is_empty(), "{broken:?} is not noticed with seed {}", seed());
    eprintln!("{problems:#?}");
}

#[test]
#[ignore = "takes minutes, and says after how many of all faults it is noticed"]
fn search_for_broken_fencing() {
    search_for(FENCING);
}

#[test]
#[ignore = "takes minutes, and says after how many of all faults it is noticed"]
fn search_for_commits_that_count_as_made() {
    search_for(MADE);
}

#[test]
#[ignore = "takes minutes, and says after how many of all faults it is noticed"]
fn search_for_commits_that_count_as_not_made() {
    search_for(NOT_MADE);
}

#[test]
#[ignore = "takes minutes, and says after how many of all faults it is noticed"]
fn search_for_a_missing_margin() {
    search_for(Rewrite::new(
        LEASE,
        "SET epoch=new.epoch, owner=new.owner, lease_until=new.until-333",
    ));
}

#[test]
#[ignore = "takes minutes, and says after how many of all faults it is noticed"]
fn search_for_messages_that_are_taken_twice() {
    search_for(TAKEN);
}

#[test]
fn broken_fencing_of_logs_is_noticed() {
    assert_noticed(FENCING, Fault::Late(Mark::Append), "appends row");
}

#[test]
fn a_commit_that_nobody_looks_for_is_noticed() {
    assert_noticed(MADE, Fault::AtCommit, "");
}

#[test]
fn a_commit_that_is_made_twice_is_noticed() {
    assert_noticed(NOT_MADE, Fault::AtTotals, "tokens count as used");
}

/// The database ends leases before their holders count them as lost.
#[test]
fn a_lease_without_a_margin_is_noticed() {
    let shorter = "SET epoch=new.epoch, owner=new.owner, lease_until=new.until-900";
    assert_noticed(Rewrite::new(LEASE, shorter), Fault::CutOff, "without a lease");
}

/// A message to a chat counts as not sent yet while it is being sent.
#[test]
fn a_message_to_a_chat_that_is_sent_again_is_noticed() {
    let sending = r#""state":"sending","attempt":1"#;
    let broken = Rewrite::new(sending, r#""state":"queued""#);
    assert_noticed(broken, Fault::LateSend, "times at Telegram");
}

/// Runs with a broken safeguard, and with the fault that shows it.
fn assert_noticed(broken: Rewrite, fault: Fault, expected: &str) {
    let mut noticed = Vec::new();
    // A fault needs its moment, which a busy machine can miss.
    for _ in 0..RUNS {
        let Some((server, url)) = database() else { return };
        let scene = Scene::new(&server, &url);
        scene.proxies.iter().for_each(|proxy| proxy.rewrite(broken));
        noticed.extend(run(scene, &[fault; PROVOCATIONS], SETTLED_IF_BROKEN));
        if noticed.iter().any(|problem| problem.contains(expected)) {
            return;
        }
    }
    panic!("{broken:?} is not noticed: {noticed:?}");
}

fn seed() -> u64 {
    number_from("MYCLAW_KILL_SEED").unwrap_or(20_261_129)
}

fn choice(random: &mut Random, of: usize) -> usize {
    usize::try_from(random.below(of as u64)).unwrap()
}

/// Lets faults happen while clients talk. Returns what is wrong then.
fn run(mut scene: Scene<'_>, faults: &[Fault], settled: Duration) -> Vec<String> {
    eprintln!("seed {}, {} faults", seed(), faults.len());
    let mut random = Random::new(seed());
    let clients = Clients::default();
    let (machines, chats) = (std::mem::take(&mut scene.machines), Arc::clone(&scene.chats));
    thread::scope(|scope| {
        for session in 0..SESSIONS {
            let (machines, clients) = (&machines, &clients);
            scope.spawn(move || talk(machines, session, clients));
        }
        scope.spawn(|| chats.write(&clients));
        // A fault that panics must not leave the clients waiting.
        let over = Over(&clients.is_over);
        for (number, fault) in faults.iter().enumerate() {
            random.pause(REST);
            let at = choice(&mut random, machines.len());
            eprintln!(
                "fault {number}: {fault:?} of node {at}, {} messages",
                clients.promised.lock().len()
            );
            scene.inflict(*fault, at, &machines, &clients, &mut random);
            if let Some(problem) = scene.problems(&machines).first() {
                eprintln!("noticed after {} faults: {problem}", number + 1);
                if scene.is_search {
                    break;
                }
            }
        }
        drop(over);
    });
    let promised = clients.promised.into_inner();
    let mut problems = settle(&promised, &machines, settled);
    problems.extend(chats.settle(&machines[0], settled));
    if !problems.is_empty() && settled == SETTLED {
        machines.iter().for_each(show_log);
        let records = problems.iter().map(|problem| scene.records_about(problem));
        eprintln!("{:#?}", records.collect::<Vec<_>>());
    }
    scene.stop();
    let rows = Rows::of(&exported(&machines[0]));
    problems.extend(promised.keys().flat_map(|number| rows.wrong(*number)));
    problems.extend(chats.wrong_rows(&rows));
    problems.extend(scene.problems(&machines));
    problems.extend(scene.tokens_twice());
    if promised.len() < faults.len() {
        problems.push(format!("only {} messages met the faults", promised.len()));
    }
    eprintln!("{} messages, {} model calls", promised.len(), scene.model.requests().len());
    problems
}

/// What is not in the logs once.
pub(crate) fn missing_rows(promised: &Promised, machine: &Machine) -> Vec<String> {
    let rows = Rows::of(&exported(machine));
    promised.keys().flat_map(|number| rows.wrong(*number)).collect()
}

/// In how many rows of each role a message is.
pub(crate) struct Rows(HashMap<(&'static str, u64), usize>);

impl Rows {
    pub(crate) fn of(logs: &[(String, Vec<Value>)]) -> Self {
        let mut all = HashMap::new();
        for row in logs.iter().flat_map(|(_, rows)| rows) {
            // Of the assistant, they are answers.
            let role = ["user", "assistant"].into_iter().find(|role| row["role"] == *role);
            let text = row["content"].to_string();
            let Some(role) = role.filter(|role| *role == "user" || text.contains("re: ")) else {
                continue;
            };
            let marks = text.split("<m").skip(1).filter_map(|rest| rest.split_once('>'));
            let numbers: HashSet<u64> = marks.filter_map(|(mark, _)| mark.parse().ok()).collect();
            numbers.into_iter().for_each(|number| *all.entry((role, number)).or_default() += 1);
        }
        Self(all)
    }

    /// What is wrong with the rows of a message.
    pub(crate) fn wrong(&self, number: u64) -> Vec<String> {
        let found = |role| self.0.get(&(role, number)).copied().unwrap_or_default();
        let found = ["user", "assistant"].map(|role| (role, found(role)));
        let wrong = found.into_iter().filter(|(_, found)| *found != 1);
        wrong.map(|(role, found)| format!("<m{number}> has {found} rows of the {role}")).collect()
    }
}

/// Waits until each message is answered, and still is when it arrives once more. Returns what is not.
pub(crate) fn settle(promised: &Promised, machines: &[Machine], settled: Duration) -> Vec<String> {
    let (begun, mut problems) = (Instant::now(), Vec::new());
    for (number, (session, id)) in promised {
        let client = machines[usize::try_from(*number).unwrap() % machines.len()].client();
        let outcome = loop {
            match client.state_within(id, 0) {
                Ok(outcome) if outcome["state"] != "open" => break outcome,
                open if begun.elapsed() >= settled => break json!({"state": format!("{open:?}")}),
                _ => thread::sleep(Duration::from_millis(50)),
            }
        };
        let reply = outcome["reply"].as_str().unwrap_or_default();
        if !reply.contains(&format!("<m{number}>")) {
            problems.push(format!("<m{number}> has no answer: {outcome}"));
            continue;
        }
        let (name, source, text) = message_of(*session, *number);
        let again = client.send(&name, &source, &text).map_err(|error| error.to_string());
        let state = client.state_within(id, 0).map(|outcome| outcome["state"] == "answered");
        if again.as_ref() != Ok(id) || !state.is_ok_and(|is_answered| is_answered) {
            problems.push(format!("<m{number}> once more is another message: {again:?}"));
        }
    }
    problems
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

/// The session, the id and the text of a message.
pub(crate) fn message_of(session: u64, number: u64) -> (String, String, String) {
    (format!("s{session}"), format!("id-{number}"), format!("<m{number}> in s{session}"))
}

/// Sends messages one after the other, each under its id to one node after the other until it is acknowledged.
pub(crate) fn talk(machines: &[Machine], session: u64, clients: &Clients) {
    let Clients { promised, is_over, is_quiet, .. } = clients;
    let (mut sent, mut at): (Vec<String>, usize) = (Vec::new(), 0);
    while !is_over.load(Ordering::SeqCst) {
        let number = clients.number();
        let begun = Instant::now();
        let message = loop {
            at += 1;
            let client = machines[at % machines.len()].client();
            let other = machines[(at + 1) % machines.len()].client();
            match send(number, session, &client, &other) {
                Ok(message) => break message,
                // It may have been stored: only the same id again is safe.
                Err(error) => {
                    let waited = begun.elapsed();
                    assert!(waited < PATIENCE * 2, "<m{number}> is not acknowledged: {error}");
                    thread::sleep(Duration::from_millis(20));
                }
            }
        };
        promised.lock().insert(number, (session, message.clone()));
        sent.push(message);
        if let Some(index) = sent.len().checked_sub(MOST_WAITING) {
            // A node that cannot say it now is no reason to send more than a queue takes.
            let is_settled = |asked: &Client| {
                let state = asked.state_within(&sent[index], 0);
                state.is_ok_and(|outcome| outcome["state"] != "open")
            };
            let mut asked = machines.iter().cycle().skip(at % machines.len());
            while !asked.next().is_some_and(|machine| is_settled(&machine.client()))
                && !is_over.load(Ordering::SeqCst)
            {
                thread::sleep(Duration::from_millis(50));
            }
        }
        thread::sleep(Duration::from_millis(30 + number % 70));
        while is_quiet.load(Ordering::SeqCst) && !is_over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sends a message to one node, or to two at the same time, for which it is the same message.
fn send(number: u64, session: u64, client: &Client, other: &Client) -> std::io::Result<String> {
    let (name, id, text) = message_of(session, number);
    if !number.is_multiple_of(PER_DOUBLE) {
        return client.send(&name, &id, &text);
    }
    let (here, there) = thread::scope(|scope| {
        let there = scope.spawn(|| other.send(&name, &id, &text));
        (client.send(&name, &id, &text), there.join().unwrap())
    });
    if let (Ok(here), Ok(there)) = (&here, &there) {
        assert_eq!(here, there, "ids of {text}");
    }
    here.or(there)
}
