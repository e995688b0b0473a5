//! Messages that are accepted and answered: how fast, at what cost, and each exactly once.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use myclaw_testkit::{Signal, send_signal};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Fallible;
use crate::figures::{Figures, Table};
use crate::model::Model;
use crate::server::{GatewayHome, Server};
use crate::wire::{Address, Http, Socket};

/// Sessions that stream while messages are accepted.
const BUSY: u64 = 100;
/// Messages that are timed one after the other.
const TIMED: u64 = 300;
/// Messages whose `fsync`s are counted.
const COUNTED: u64 = 100;
/// Sessions of the load: as many as eight clients watch.
const SESSIONS: u64 = 8 * WATCHED;
/// Most sessions that one WebSocket watches.
const WATCHED: u64 = 64;
/// Connections that send.
const SENDERS: u64 = 32;
/// Longest wait for the answers after the last message.
const GRACE: Duration = Duration::from_secs(120);
/// Messages for the channel that never answers.
const DEAD: u64 = 200;
const SECRET: &str = "secret-of-the-load";

/// Sends a message; gives its id.
pub(crate) async fn send(
    http: &mut Http,
    session: &str,
    number: u64,
    order: &str,
) -> Fallible<String> {
    let body = json!({"session": session, "id": format!("n{number}-{order}"), "text": format!("<m{number} {order}>")});
    let (status, answer) = http.ask("POST", "/api/messages", "", &body.to_string()).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    match (status, answer["messageId"].as_str()) {
        (202, Some(id)) => Ok(id.to_owned()),
        _ => Err(format!("a message was answered with {status}: {answer}").into()),
    }
}

/// How soon the model hears of a message while other sessions work, and what accepting one costs.
pub(crate) async fn acceptance(table: &mut Table, myclaw: &Path) -> Fallible<()> {
    let model = Model::start().await?;
    let home = GatewayHome::new(&model, |_| {})?;
    let gateway = home.start(myclaw);
    let mut http = Http::open(&gateway.address).await?;
    for busy in 0..BUSY {
        send(&mut http, &format!("busy{busy}"), busy, "stream 600 10").await?;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (mut accepted, mut asked) = (Figures::default(), Figures::default());
    for number in BUSY..BUSY + TIMED {
        let begun = model.now();
        send(&mut http, &format!("new{number}"), number, "say").await?;
        let now = model.now();
        accepted.add(now.saturating_sub(begun) as f64 / 1e6);
        for _ in 0..1_000 {
            if let Some((arrived, _)) = model.seen(number) {
                asked.add(arrived.saturating_sub(now) as f64 / 1e6);
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let median = asked.quantile(0.5);
    let shown = |figures: &Figures| {
        format!("{:.1} ms (p99 {:.1})", figures.quantile(0.5), figures.quantile(0.99))
    };
    let name = format!("acceptance to first model request, {BUSY} sessions busy, median");
    table.add(&name, shown(&asked), None, "≤ 5 ms", Some(median <= 5.0));
    table.add("the same, request to acceptance", shown(&accepted), None, "–", None);
    gateway.stop();
    let gateway = home.start(myclaw);
    if let Some(syncs) =
        syncs_per_message(&gateway, &mut Http::open(&gateway.address).await?).await?
    {
        let is_met = syncs <= 1.05;
        table.add(
            "fsyncs of the store for an accepted message",
            format!("{syncs:.2}"),
            None,
            "1",
            Some(is_met),
        );
    }
    gateway.stop();
    Ok(())
}

/// Counts the `fsync`s of the store's writer with `strace`, while no message is answered.
async fn syncs_per_message(gateway: &Server, http: &mut Http) -> Fallible<Option<f64>> {
    // The first message of a route and of a session stores where it came from.
    for number in 0..COUNTED {
        send(http, &format!("count{number}"), 1_000_000 + number, "say").await?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    let Some(thread) = gateway.thread("store-write") else { return Ok(None) };
    let output = std::env::temp_dir().join(format!("load-syncs-{}", gateway.id()));
    let Ok(mut tracer) = trace(thread, &output) else {
        eprintln!("the fsyncs are not counted: there is no strace");
        return Ok(None);
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    for number in 0..COUNTED {
        send(http, &format!("count{number}"), 2_000_000 + number, "wait 20000").await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    send_signal(tracer.id(), Signal::Interrupt);
    tracer.wait()?;
    let text = std::fs::read_to_string(&output)?;
    std::fs::remove_file(&output)?;
    let syncs = text.lines().filter(|line| line.contains("sync(")).count();
    Ok(Some(syncs as f64 / COUNTED as f64))
}

fn trace(thread: u32, output: &Path) -> std::io::Result<Child> {
    let mut command = Command::new("strace");
    command.args(["-e", "trace=fsync,fdatasync", "-p", &thread.to_string(), "-o"]).arg(output);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// What the clients know.
#[derive(Default)]
struct Book {
    /// By the id of the message: when it was sent.
    sent: HashMap<String, u64>,
    /// When its answers came.
    answered: HashMap<String, Vec<u64>>,
    /// Milliseconds from the request to the acknowledgement.
    accepted: Figures,
    refused: u64,
}

struct Load {
    model: Arc<Model>,
    book: Mutex<Book>,
    rate: u64,
    seconds: u64,
}

impl Load {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Notes the answers in the sessions from `first` on.
    async fn watch(self: Arc<Self>, address: Address, first: u64) -> Fallible<()> {
        let mut socket = watching(&address, first).await?;
        loop {
            let frame = socket.next().await?;
            if !frame.contains(r#""type":"reply""#) {
                continue;
            }
            let now = self.model.now();
            let frame: Value = serde_json::from_str(frame)?;
            let ids = frame["event"]["messageIds"].as_array().cloned().unwrap_or_default();
            let mut book = self.book();
            for id in ids {
                let id = id.as_str().unwrap_or_default().to_owned();
                book.answered.entry(id).or_default().push(now);
            }
        }
    }

    /// Sends every [`SENDERS`]th message, each at its time.
    async fn talk(self: Arc<Self>, address: Address, first: u64) -> Fallible<()> {
        let mut http = Http::open(&address).await?;
        let begun = tokio::time::Instant::now();
        for number in (first..self.rate * self.seconds).step_by(SENDERS as usize) {
            let due = Duration::from_secs_f64(number as f64 / self.rate as f64);
            tokio::time::sleep_until(begun + due).await;
            let sent = self.model.now();
            let outcome = send(&mut http, &format!("s{}", number % SESSIONS), number, "say").await;
            let mut book = self.book();
            match outcome {
                Ok(id) => {
                    book.accepted.add(self.model.now().saturating_sub(sent) as f64 / 1e6);
                    book.sent.insert(id, sent);
                }
                Err(error) => {
                    if book.refused == 0 {
                        eprintln!("refused: {error}");
                    }
                    book.refused += 1;
                }
            }
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        let book = self.book();
        book.sent.keys().all(|id| book.answered.contains_key(id))
    }
}

/// A client of the sessions from `first` on.
async fn watching(address: &Address, first: u64) -> Fallible<Socket> {
    let mut socket = Socket::open(address).await?;
    for session in first..first + WATCHED {
        let request = json!({"type": "request", "id": "w", "method": "watch", "params": {"session": format!("s{session}")}});
        socket.send(&request.to_string()).await?;
    }
    Ok(socket)
}

/// What one load showed.
struct Shown {
    answered: Figures,
    accepted: Figures,
    missing: usize,
    twice: usize,
    refused: u64,
    /// Messages a second, to the last answer.
    rate: f64,
    /// Share of one core.
    cpu: f64,
    peak: f64,
}

async fn run(gateway: &Server, model: &Arc<Model>, rate: u64, seconds: u64) -> Fallible<Shown> {
    let load = Arc::new(Load { model: Arc::clone(model), book: Mutex::default(), rate, seconds });
    let mut watchers = JoinSet::new();
    for first in (0..SESSIONS).step_by(WATCHED as usize) {
        watchers.spawn(Arc::clone(&load).watch(gateway.address.clone(), first));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (begun, cpu) = (model.now(), gateway.cpu());
    let mut senders = JoinSet::new();
    for first in 0..SENDERS {
        senders.spawn(Arc::clone(&load).talk(gateway.address.clone(), first));
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    let waiting = tokio::time::Instant::now();
    while !load.is_complete() && waiting.elapsed() < GRACE {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let cpu = gateway.cpu() - cpu;
    let book = load.book();
    let times = || book.sent.iter().filter_map(|(id, sent)| Some((book.answered.get(id)?, sent)));
    let mut answered = Figures::default();
    times().for_each(|(came, sent)| answered.add(came[0].saturating_sub(*sent) as f64 / 1e6));
    let last = times().map(|(came, _)| came[0]).max().unwrap_or(begun + 1);
    let elapsed = last.saturating_sub(begun) as f64 / 1e9;
    Ok(Shown {
        missing: book.sent.len() - answered.len(),
        twice: times().filter(|(came, _)| came.len() > 1).count(),
        refused: book.refused,
        rate: answered.len() as f64 / elapsed,
        accepted: book.accepted.clone(),
        answered,
        cpu: cpu / elapsed,
        peak: gateway.peak(),
    })
}

/// The load alone, and with clients that never read and a channel that never answers.
pub(crate) async fn compare(
    table: &mut Table,
    myclaw: &Path,
    rate: u64,
    seconds: u64,
) -> Fallible<()> {
    let model = Model::start().await?;
    let dead = TcpListener::bind("127.0.0.1:0").await?;
    let dead_port = dead.local_addr()?.port();
    let home = home_with_channel(&model, dead_port)?;
    let gateway = home.start(myclaw);
    let shown = run(&gateway, &model, rate, seconds).await?;
    let logged = logged_once(&home, rate * seconds)?;
    gateway.stop();
    let name = |what: &str| format!("{rate} messages/s for {seconds} s: {what}");
    let count = shown.answered.len() + shown.missing;
    let outcome = format!(
        "{} of {count} once, {} twice, {} never, {} refused; {logged} once in the logs",
        shown.answered.len() - shown.twice,
        shown.twice,
        shown.missing,
        shown.refused
    );
    let is_met = shown.twice + shown.missing == 0 && shown.refused == 0;
    table.add(&name("answered"), outcome, None, "each once", Some(is_met));
    let is_met = shown.rate >= 0.95 * rate as f64;
    table.add(
        &name("answered a second"),
        format!("{:.0}", shown.rate),
        None,
        &rate.to_string(),
        Some(is_met),
    );
    let times = |figures: &Figures| {
        let [median, p99] = [0.5, 0.99].map(|share| figures.quantile(share));
        format!("{median:.1} / {p99:.0} / {:.0} ms", figures.most())
    };
    table.add(
        &name("acknowledged after, median / p99 / most"),
        times(&shown.accepted),
        None,
        "–",
        None,
    );
    table.add(
        &name("answered after, median / p99 / most"),
        times(&shown.answered),
        None,
        "–",
        None,
    );
    let cost = format!("{:.2} cores, {:.2} ms a message", shown.cpu, shown.cpu * 1e3 / shown.rate);
    table.add(&name("processor time"), cost, None, "–", None);
    table.add(&name("peak memory"), format!("{:.0} MB", shown.peak), None, "–", None);
    disturbed(table, myclaw, &model, dead_port, rate / 2, (seconds / 4).max(5)).await
}

fn home_with_channel(model: &Model, dead_port: u16) -> Fallible<GatewayHome> {
    GatewayHome::new(model, |config| {
        config["channels"]["webhook"]["dead"] =
            json!({"secret": SECRET, "url": format!("http://127.0.0.1:{dead_port}/")});
    })
}

/// Half of the rate, alone and disturbed: only what is left over can be delayed.
async fn disturbed(
    table: &mut Table,
    myclaw: &Path,
    model: &Arc<Model>,
    dead_port: u16,
    rate: u64,
    seconds: u64,
) -> Fallible<()> {
    let mut loads = Vec::new();
    for is_disturbed in [false, true] {
        let home = home_with_channel(model, dead_port)?;
        let gateway = home.start(myclaw);
        let disturbing = if is_disturbed { disturb(&gateway.address).await? } else { Vec::new() };
        loads.push(run(&gateway, model, rate, seconds).await?);
        drop(disturbing);
        gateway.stop();
    }
    let [alone, beside] = &loads[..] else { return Ok(()) };
    let name = format!(
        "{rate} messages/s beside 8 WebSockets that never read and a channel that never answers: answered after, \
         median / p99"
    );
    let [(median, p99), (alone, p99_alone)] =
        [beside, alone].map(|load| (load.answered.quantile(0.5), load.answered.quantile(0.99)));
    let shown = format!("{median:.1} / {p99:.0} ms; without them {alone:.1} / {p99_alone:.0} ms");
    let is_met = median <= alone * 1.5 + 5.0 && beside.missing == 0;
    table.add(&name, shown, None, "the same", Some(is_met));
    Ok(())
}

/// Clients that watch and never read, and messages from a channel whose server never answers.
async fn disturb(address: &Address) -> Fallible<Vec<Socket>> {
    let mut sockets = Vec::new();
    for first in (0..SESSIONS).step_by(WATCHED as usize) {
        sockets.push(watching(address, first).await?);
    }
    let mut http = Http::open(address).await?;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    for number in 0..DEAD {
        let body = json!({"id": format!("d{number}"), "text": format!("<m{} say>", 3_000_000 + number), "chat": format!("c{}", number % 20)}).to_string();
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let time = since.as_secs();
        let tag = ring::hmac::sign(&key, format!("{time}.{body}").as_bytes());
        let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let headers = format!("X-Myclaw-Timestamp: {time}\r\nX-Myclaw-Signature: sha256={tag}\r\n");
        let (status, answer) = http.ask("POST", "/hooks/webhook/dead", &headers, &body).await?;
        if status != 202 {
            let answer = String::from_utf8_lossy(&answer).into_owned();
            return Err(format!("the webhook answered {status}: {answer}").into());
        }
    }
    Ok(sockets)
}

/// How many messages the logs hold exactly once.
fn logged_once(home: &GatewayHome, count: u64) -> Fallible<usize> {
    let mut found: HashMap<u64, u32> = HashMap::new();
    for path in home.home.transcripts() {
        for line in std::fs::read_to_string(path)?.lines() {
            let row: Value = serde_json::from_str(line)?;
            if row["role"] != "user" {
                continue;
            }
            let text = row["content"].to_string();
            for mark in text.split("<m").skip(1) {
                let number = mark.split(' ').next().and_then(|number| number.parse().ok());
                *found.entry(number.unwrap_or(u64::MAX)).or_default() += 1;
            }
        }
    }
    Ok((0..count).filter(|number| found.get(number) == Some(&1)).count())
}
