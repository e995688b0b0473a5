//! Three gateways, each with a network of its own to the database, and what can happen to them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use myclaw_testkit::{Random, Signal};
use parking_lot::Mutex;

use super::audit::Audit;
use super::chaos::Clients;
use super::chats::Chats;
use super::proxy::{Fate, Mark, Proxy};
use super::stage::{Stage, last_beats};
use super::*;

const NODES: usize = 3;
/// Longer than a lease.
const TOO_LONG: Duration = Duration::from_millis(LEASE_MS * 3 / 2);
/// From a request to its answer, over a long way.
const FAR: Duration = Duration::from_millis(200);
/// Longest wait for what a fault needs, such as a call that is under way. Without it the fault is another one.
const PREPARED: Duration = Duration::from_secs(5);
/// Longest time in which another node takes what one has lost.
const TAKEN_OVER: Duration = Duration::from_secs(15);

/// How long after a call to the model everything is stored that came before it, in milliseconds.
const SETTLE_MS: u64 = 300;
/// What one call to the model uses.
const TOKENS: usize = 120;
/// How often a write is held up until another node has taken the session.
const ATTEMPTS: usize = 3;
/// So many processes act one after the other until a tool stands still: the node, its helper, and the tool with what it started.
const STEPS_TO_STOP: i64 = 4;
/// So long before the end of its lease a node has stopped its tools at the latest: half of its margin.
const MARGIN_MS: i64 = LEASE_MS as i64 / 12;
/// A tool whose last sign is younger runs.
const RUNNING_MS: i64 = 200;

/// What can happen to a node or to the database.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// The process is killed, and started again.
    Kill,
    /// It stands still for longer than a lease in the middle of a turn.
    Pause,
    /// All its connections to the database break at once.
    Break,
    /// Its database is far away for longer than a lease: each answer takes [`FAR`].
    Slow,
    /// It does not reach the database for longer than a lease, while it runs a tool.
    CutOff,
    /// It is stopped gracefully, and started again.
    Stop,
    /// The database is killed, and started again.
    KillDatabase,
    /// Connections break at commits and appends: before the database gets them, or before it can answer.
    AtCommit,
    /// Connections break when the totals of the day were stored, before the database can say so.
    AtTotals,
    /// What it writes is held up until another node has taken its session, and arrives then.
    Late(Mark),
    /// It stands still while it takes a session, until another node has answered what it was about to.
    PauseAtOpen,
    /// A message to a chat is sent, and what its sender writes about that is held up until another node has the account.
    LateSend,
}

pub(crate) const FAULTS: [Fault; 13] = [
    Fault::Kill,
    Fault::Late(Mark::Append),
    Fault::AtCommit,
    Fault::AtTotals,
    Fault::CutOff,
    Fault::LateSend,
    Fault::Late(Mark::Answer),
    Fault::Pause,
    Fault::Break,
    Fault::Slow,
    Fault::Stop,
    Fault::KillDatabase,
    Fault::PauseAtOpen,
];

/// A node without the database for a time, in milliseconds since the Unix epoch.
struct CutOff {
    at: usize,
    begun: i64,
    ended: i64,
    /// The longest time in milliseconds that a step needed meanwhile.
    slowest: i64,
}

/// Gateways that run, and their surroundings.
pub(crate) struct Scene<'s> {
    server: &'s PostgresServer,
    stage: Arc<Stage>,
    pub(crate) model: ModelServer,
    pub(crate) chats: Arc<Chats>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) machines: Vec<Machine>,
    gateways: Vec<Option<Gateway>>,
    pub(crate) audit: Audit,
    cut_off: Vec<CutOff>,
    /// It ends with the first problem, and tools must have stopped before the end of their lease, which takes longer on a busy
    /// machine.
    pub(crate) is_search: bool,
}

impl<'s> Scene<'s> {
    pub(crate) fn new(server: &'s PostgresServer, url: &str) -> Self {
        let stage = Arc::new(Stage::default());
        let (model, chats) = (stage.model(), Arc::new(Chats::start()));
        let proxies: Vec<Proxy> = (0..NODES).map(|_| Proxy::start(server.port())).collect();
        let machine = |(number, proxy): (usize, &Proxy)| {
            let url = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
            let name = format!("node-{number}");
            let machine = Machine::new(&name, &format!("{url}?application_name={name}"), &model);
            machine.configure(&name, &model, |config| {
                let key = format!("key-{number}");
                config["provider"]["authProfiles"] = json!([{"id": "primary", "apiKey": key}]);
                config["channels"] = chats.config();
                // No message is dropped, which would be reported rather than answered: some wait for longer than a pause.
                config["messages"]["queue"]["cap"] = json!(1_000);
            });
            machine
        };
        let machines: Vec<Machine> = proxies.iter().enumerate().map(machine).collect();
        let gateways = machines.iter().map(|machine| Some(machine.start())).collect();
        let audit = Audit::install(url);
        Self {
            server,
            stage,
            model,
            chats,
            proxies,
            machines,
            gateways,
            audit,
            cut_off: Vec::new(),
            is_search: false,
        }
    }

    /// Stops all nodes.
    pub(crate) fn stop(&mut self) {
        self.gateways.drain(..).flatten().for_each(Gateway::stop);
    }

    /// What happens to one node: this one, or one that does just what the fault needs.
    pub(crate) fn inflict(
        &mut self,
        fault: Fault,
        at: usize,
        machines: &[Machine],
        clients: &Clients,
        random: &mut Random,
    ) {
        match fault {
            Fault::Kill => {
                self.gateways[at].take().unwrap().kill();
                random.pause(TOO_LONG);
                self.gateways[at] = Some(machines[at].start());
            }
            Fault::Pause => {
                let at = self.busy(&self.stage.asker).unwrap_or(at);
                let child = &self.gateways[at].as_ref().unwrap().child;
                child.signal(Signal::Pause);
                thread::sleep(TOO_LONG);
                child.signal(Signal::Continue);
            }
            Fault::Break => {
                self.proxies[at].cut();
                self.proxies[at].mend();
            }
            Fault::Slow => {
                self.proxies[at].delay(FAR / 2);
                thread::sleep(TOO_LONG);
                self.proxies[at].delay(Duration::ZERO);
            }
            Fault::CutOff => {
                // A busy machine may need long to start a tool.
                let at = (0..ATTEMPTS).find_map(|_| self.with_tool(machines)).unwrap_or(at);
                let begun = now_ms();
                self.proxies[at].cut();
                let slowest = slowest_step(TOO_LONG, &machines[at].client());
                self.proxies[at].mend();
                self.cut_off.push(CutOff { at, begun, ended: now_ms(), slowest });
            }
            Fault::Stop => {
                self.gateways[at].take().unwrap().stop();
                self.gateways[at] = Some(machines[at].start());
            }
            Fault::KillDatabase => {
                self.server.kill();
                random.pause(TOO_LONG);
                self.server.launch();
            }
            Fault::AtCommit => {
                let fates = [Fate::CutBefore, Fate::CutAfter].repeat(3);
                self.break_at(&[Mark::Commit, Mark::Append], &fates);
            }
            Fault::AtTotals => self.break_at(&[Mark::Totals], &[Fate::CutAfter; 3]),
            Fault::Late(mark) => {
                // A node may write nothing more, or keep its session.
                let is_late = (0..ATTEMPTS).any(|_| self.hold_up(mark, at, clients));
                eprintln!("late: {is_late}");
            }
            Fault::LateSend => self.hold_up_send(clients),
            Fault::PauseAtOpen => self.pause_at_open(clients),
        }
    }

    /// The next of these requests of all nodes meet these fates.
    fn break_at(&self, marks: &[Mark], fates: &[Fate]) {
        self.proxies.iter().for_each(|proxy| proxy.await_requests(marks, fates));
        within(PREPARED, || self.proxies.iter().all(|proxy| proxy.waiting() == 0));
        self.proxies.iter().for_each(Proxy::release);
    }

    /// A node that runs a tool now.
    fn with_tool(&self, machines: &[Machine]) -> Option<usize> {
        self.stage.wants_tools.store(true, Ordering::SeqCst);
        let at = self.busy(&self.stage.with_tool);
        self.stage.wants_tools.store(false, Ordering::SeqCst);
        // The log has the call before the tool runs.
        let runs = |beat: i64| now_ms() - beat < RUNNING_MS;
        at.filter(|at| {
            within(PREPARED, || last_beats(&machines[*at]).iter().any(|(_, beat)| runs(*beat)))
        })
    }

    /// Whoever takes a session next stands still before the database knows. Another node answers the message, and the first one
    /// then has the session again, with the message in its memory.
    fn pause_at_open(&self, clients: &Clients) {
        clients.is_quiet.store(true, Ordering::SeqCst);
        self.calm_down();
        for proxy in &self.proxies {
            proxy.await_requests(&[Mark::Open], &[Fate::Hold]);
        }
        clients.is_quiet.store(false, Ordering::SeqCst);
        let held = || self.proxies.iter().position(|proxy| proxy.waiting() == 0);
        within(PREPARED, || held().is_some());
        let paused = held();
        if let Some(at) = paused {
            let child = &self.gateways[at].as_ref().unwrap().child;
            child.signal(Signal::Pause);
            let others = self.proxies.iter().enumerate().filter(|(other, _)| *other != at);
            others.for_each(|(_, proxy)| proxy.release());
            // The log gets more rows behind the message than the first node will read.
            thread::sleep(TOO_LONG + TOO_LONG);
            clients.is_quiet.store(true, Ordering::SeqCst);
            self.calm_down();
            self.proxies[at].release();
            // The database carries out what was held up.
            thread::sleep(Duration::from_millis(SETTLE_MS));
            child.signal(Signal::Continue);
        }
        eprintln!("paused while it took a session: {paused:?}");
        self.proxies.iter().for_each(Proxy::release);
        clients.is_quiet.store(false, Ordering::SeqCst);
    }

    /// What is wrong so far.
    pub(crate) fn problems(&self, machines: &[Machine]) -> Vec<String> {
        let mut problems = self.audit.violations();
        problems.extend(self.late_tools(machines));
        for machine in machines {
            let log = machine.home.state_directory().join("logs/myclaw.log");
            let log = std::fs::read_to_string(log).unwrap_or_default();
            // What cannot be carried out was decided on something that was not so.
            let refused = log.lines().filter(|line| line.contains("refuses a statement"));
            problems.extend(refused.map(str::to_owned));
        }
        problems
    }

    /// What the database has of a message that has no answer in its chat.
    pub(crate) fn records_about(&self, problem: &str) -> Vec<String> {
        let mark = problem.split(['<', '>']).nth(1).unwrap_or(problem);
        let sql = "
            SELECT concat_ws(' ', kind, key, queue, convert_from(value, 'UTF8')) FROM myclaw.record
            WHERE kind IN ('incoming', 'outgoing') AND position($1 IN convert_from(value, 'UTF8')) > 0";
        self.audit.texts(sql, &[&format!("<{mark}>")])
    }

    /// Whether more tokens count as used than the model gave: then some count twice. Those of the last second before a kill are
    /// missing.
    pub(crate) fn tokens_twice(&self) -> Option<String> {
        let sql = "SELECT convert_from(value, 'UTF8')::jsonb->>'tokens' FROM myclaw.record WHERE kind = 'spending'";
        let counted: usize = self.audit.texts(sql, &[]).concat().parse().unwrap();
        let given = self.model.requests().len() * TOKENS;
        eprintln!("{counted} tokens of {given}");
        (counted > given)
            .then(|| format!("{counted} tokens count as used, and the model gave {given}"))
    }

    /// Whether something was held up, and another node has taken the session meanwhile.
    fn hold_up(&self, mark: Mark, at: usize, clients: &Clients) -> bool {
        // With more messages the next owner of a log would write at once, and what is late would have no place there.
        clients.is_quiet.store(true, Ordering::SeqCst);
        self.calm_down();
        clients.is_quiet.store(false, Ordering::SeqCst);
        let at = self.busy(&self.stage.asker).unwrap_or(at);
        clients.is_quiet.store(mark == Mark::Append, Ordering::SeqCst);
        // What the log gets next is the answer.
        thread::sleep(Duration::from_millis(SETTLE_MS));
        let (proxy, node) = (&self.proxies[at], format!("node-{at}"));
        let losses = self.audit.losses(&node);
        proxy.await_requests(&[mark], &[Fate::Hold]);
        let is_held = within(PREPARED, || proxy.waiting() == 0);
        // The next owner waits for its model, so what is late is the next thing that the log could get.
        self.stage.is_slow.store(true, Ordering::SeqCst);
        let is_lost = is_held && within(TAKEN_OVER, || self.audit.losses(&node) > losses);
        // It has lost the others too by then.
        thread::sleep(Duration::from_millis(LEASE_MS / 2));
        eprintln!("held up at node {at}: {is_held}, taken over: {is_lost}");
        proxy.release();
        clients.is_quiet.store(false, Ordering::SeqCst);
        self.stage.is_slow.store(false, Ordering::SeqCst);
        is_lost
    }

    /// Whoever sends the next message to a chat is cut off before it can say so.
    fn hold_up_send(&self, clients: &Clients) {
        for proxy in &self.proxies {
            proxy.await_requests(&[Mark::Sent], &[Fate::Hold]);
        }
        let is_held = |proxy: &&Proxy| proxy.waiting() == 0;
        let is_sent = within(PREPARED, || self.proxies.iter().any(|proxy| is_held(&proxy)));
        // The others go on.
        self.proxies.iter().filter(|proxy| !is_held(proxy)).for_each(Proxy::release);
        eprintln!("held up behind a message to a chat: {is_sent}");
        // More messages than a queue takes would be refused.
        clients.is_quiet.store(true, Ordering::SeqCst);
        thread::sleep(TOO_LONG + TOO_LONG);
        clients.is_quiet.store(false, Ordering::SeqCst);
        self.proxies.iter().for_each(Proxy::release);
    }

    /// Waits until the model is not asked any more.
    fn calm_down(&self) {
        let is_calm = || {
            *self.stage.asker.lock() = None;
            thread::sleep(Duration::from_millis(2 * SETTLE_MS));
            self.stage.asker.lock().is_none()
        };
        within(TAKEN_OVER, is_calm);
    }

    /// The node that does something from now on that takes a while; `None` if none does.
    fn busy(&self, place: &Mutex<Option<usize>>) -> Option<usize> {
        self.stage.is_slow.store(true, Ordering::SeqCst);
        *place.lock() = None;
        within(PREPARED, || place.lock().is_some());
        self.stage.is_slow.store(false, Ordering::SeqCst);
        *place.lock()
    }

    /// Tools of nodes that were cut off which ran when another node could have their session. To stop one, a node must be given
    /// processor time a few times, so on a busy machine that takes longer.
    fn late_tools(&self, machines: &[Machine]) -> Vec<String> {
        let (mut late, mut count) = (Vec::new(), 0);
        let margin = if self.is_search { MARGIN_MS } else { 0 };
        for CutOff { at, begun, ended, slowest } in &self.cut_off {
            let allowed = STEPS_TO_STOP * slowest;
            eprintln!("node {at} was cut off; {allowed} ms are allowed");
            for (session, beat) in last_beats(&machines[*at]) {
                if !(*begun..*ended).contains(&beat) {
                    continue;
                }
                count += 1;
                let ends = self.audit.lease_end(&format!("node-{at}"), &session, beat);
                if let Some(ends) = ends.filter(|ends| beat > ends + allowed - margin) {
                    late.push(format!(
                        "a tool of {session} ran {} ms without a lease",
                        beat - ends
                    ));
                }
            }
        }
        eprintln!("{count} tools ran at nodes that were cut off");
        late
    }
}

/// Starts a process now and then during this time, and asks a gateway for a sign of life. Returns the longest time in
/// milliseconds that one of both needed: what stops a tool cannot be faster.
fn slowest_step(time: Duration, client: &Client) -> i64 {
    let end = Instant::now() + time;
    let mut slowest = Duration::ZERO;
    while Instant::now() < end {
        let begun = Instant::now();
        assert!(std::process::Command::new("true").status().unwrap().success());
        let started = begun.elapsed();
        drop(client.get("/health"));
        slowest = slowest.max(started).max(begun.elapsed() - started);
        thread::sleep(Duration::from_millis(10));
    }
    i64::try_from(slowest.as_millis()).unwrap()
}

/// Whether it happens in this time.
pub(crate) fn within(time: Duration, is: impl Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    while !is() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    true
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
