//! Many turns that stream, each watched by a client of its own.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::Fallible;
use crate::figures::{Figures, Table};
use crate::model::Model;
use crate::server::{GatewayHome, Server};
use crate::wire::{Address, Socket};

/// Time in which all turns begin.
const RAMP: Duration = Duration::from_secs(5);
/// Time that is allowed for what comes late.
const GRACE: Duration = Duration::from_secs(30);

/// A load of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) turns: u64,
    /// Deltas a second of each.
    pub(crate) rate: u64,
    /// Time in which processor time is counted.
    pub(crate) window: Duration,
}

/// What the clients saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Milliseconds from the model's write to the client's read.
    pub(crate) late: Figures,
    pub(crate) lost: u64,
    pub(crate) again: u64,
    /// Microseconds of processor time of a delta.
    cpu: f64,
    peak: f64,
}

impl Streams {
    fn deltas(self) -> u64 {
        self.rate * (RAMP + self.window + Duration::from_secs(3)).as_secs()
    }

    /// Runs the load.
    pub(crate) async fn run(self, server: &Server, model: &Arc<Model>) -> Fallible<Seen> {
        let arrived = Arc::new(AtomicU64::new(0));
        let mut clients = JoinSet::new();
        for turn in 0..self.turns {
            let (address, model) = (server.address.clone(), Arc::clone(model));
            let arrived = Arc::clone(&arrived);
            let start = RAMP.mul_f64(turn as f64 / self.turns as f64);
            clients.spawn(async move {
                tokio::time::sleep(start).await;
                let client = Client { address, model, arrived, turn };
                let limit = RAMP + self.window + GRACE;
                let mut seen = Seen::default();
                let mut numbers = HashSet::new();
                let end = tokio::time::timeout(limit, client.watch(self, &mut seen, &mut numbers));
                let failure = match end.await {
                    Ok(Ok(())) => None,
                    Ok(Err(error)) => Some(error.to_string()),
                    Err(_) => Some("it took too long".to_owned()),
                };
                seen.lost = self.deltas() - numbers.len() as u64;
                (seen, failure)
            });
        }
        tokio::time::sleep(RAMP + Duration::from_secs(1)).await;
        let (cpu, count) = (server.cpu(), arrived.load(Ordering::SeqCst));
        tokio::time::sleep(self.window).await;
        let (cpu, count) = (server.cpu() - cpu, arrived.load(Ordering::SeqCst) - count);
        let mut all = Seen { cpu: cpu * 1e6 / count.max(1) as f64, ..Seen::default() };
        let mut failures = Vec::new();
        while let Some(ended) = clients.join_next().await {
            let (seen, failure) = ended?;
            all.late.join(seen.late);
            all.lost += seen.lost;
            all.again += seen.again;
            failures.extend(failure);
        }
        all.peak = server.peak();
        if let Some(first) = failures.first() {
            eprintln!("{} clients failed, the first because {first}", failures.len());
        }
        Ok(all)
    }
}

struct Client {
    address: Address,
    model: Arc<Model>,
    arrived: Arc<AtomicU64>,
    turn: u64,
}

impl Client {
    async fn watch(
        &self,
        streams: Streams,
        seen: &mut Seen,
        numbers: &mut HashSet<u64>,
    ) -> Fallible<()> {
        let (turn, count, rate) = (self.turn, streams.deltas(), streams.rate);
        let mut socket = Socket::open(&self.address).await?;
        if !self.address.token.is_empty() {
            socket.send(&format!(
                r#"{{"type":"request","id":"watch","method":"watch","params":{{"session":"s{turn}"}}}}"#
            )).await?;
            while !socket.next().await?.contains(r#""type":"response""#) {}
        }
        let text = format!("<m{turn} stream {count} {rate}>");
        socket.send(&format!(
            r#"{{"type":"request","id":"{turn}-{count}-{rate}","method":"send","params":{{"session":"s{turn}","text":"{text}"}}}}"#
        )).await?;
        while (numbers.len() as u64) < count {
            let frame = socket.next().await?;
            let Some(at) = frame.find(r#""delta":"@"#) else { continue };
            let now = self.model.now();
            let text = frame[at + 9..].split('"').next().unwrap_or_default();
            for mark in text.split('@').filter(|mark| !mark.is_empty()) {
                let Some((number, time)) = mark.split_once(':') else { continue };
                let time: u64 = time.parse()?;
                seen.late.add(now.saturating_sub(time) as f64 / 1e6);
                seen.again += u64::from(!numbers.insert(number.parse()?));
                self.arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Compares the gateway with the relay.
pub(crate) async fn compare(
    table: &mut Table,
    streams: Streams,
    myclaw: &Path,
    relay: &Path,
) -> Fallible<()> {
    let model = Model::start().await?;
    let home = GatewayHome::new(&model, |_| {})?;
    let bare = Server::relay(relay, &model, &home.home)?;
    let of_relay = streams.run(&bare, &model).await?;
    bare.stop();
    let gateway = home.start(myclaw);
    let seen = streams.run(&gateway, &model).await?;
    gateway.stop();
    let name = |what: &str| format!("{} turns of {} deltas/s: {what}", streams.turns, streams.rate);
    let count = seen.late.len();
    table.add(
        &name("deltas lost or twice"),
        format!("{} of {count}", seen.lost + seen.again),
        Some(format!("{} of {}", of_relay.lost + of_relay.again, of_relay.late.len())),
        "0",
        Some(seen.lost + seen.again == 0),
    );
    let late = |seen: &Seen| {
        let [median, p99] = [0.5, 0.99].map(|share| seen.late.quantile(share));
        format!("{median:.2} / {p99:.1} / {:.0} ms", seen.late.most())
    };
    let [p99, p99_of_relay] = [&seen, &of_relay].map(|seen| seen.late.quantile(0.99));
    let (aim, is_met) = match streams.turns {
        1_000.. => ("p99 ≤ 3 ×", p99 <= 3.0 * p99_of_relay),
        _ => ("p99 ≤ 5 ms more", p99 - p99_of_relay <= 5.0),
    };
    let lateness = name("lateness, median / p99 / most");
    table.add(&lateness, late(&seen), Some(late(&of_relay)), aim, Some(is_met));
    let ratio = seen.cpu / of_relay.cpu;
    table.add(
        &name("processor time of a delta"),
        format!("{:.1} µs, {ratio:.2} ×", seen.cpu),
        Some(format!("{:.1} µs", of_relay.cpu)),
        "≤ 1.3 ×",
        Some(ratio <= 1.3),
    );
    let (peak, is_small) = (format!("{:.0} MB", seen.peak), seen.peak < 200.0);
    let of_relay = format!("{:.0} MB", of_relay.peak);
    table.add(&name("peak memory"), peak, Some(of_relay), "< 200 MB", Some(is_small));
    Ok(())
}
