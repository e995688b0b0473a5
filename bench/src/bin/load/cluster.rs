//! A gateway on PostgreSQL next to one on SQLite: what a message costs the database, and how it is with many sessions and
//! with a long one. `MYCLAW_POSTGRES` names the programs of PostgreSQL.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use myclaw_testkit::PostgresServer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::Fallible;
use crate::figures::{Figures, Table};
use crate::messages::send;
use crate::model::Model;
use crate::options::Options;
use crate::server::{GatewayHome, Server};
use crate::wire::Http;

/// Connections that send as fast as they can, each to a session of its own: few of them, and until one core is busy.
const SENDERS: [u64; 3] = [8, 32, 128];
/// The database counts what a connection has done within this time.
const COUNTED: Duration = Duration::from_millis(2_500);
/// Turns of a measurement in a session, short or long.
const TURNS: u64 = 20;
/// Runs that are open at the same time, and for how many milliseconds their model waits.
const OPEN_RUNS: u64 = 1_000;
const OPEN_MS: u64 = 90_000;
/// Longest time until all of them are open.
const OPENED: Duration = Duration::from_secs(85);
/// Of so many known sessions it is measured.
const KNOWN: [u64; 2] = [100_000, 1_000_000];

/// A database with a network that counts.
struct Database {
    _server: PostgresServer,
    client: Client,
    url: String,
    process: u32,
    round_trips: Arc<AtomicU64>,
}

/// What the database has done so far.
#[derive(Debug, Clone, Copy)]
struct Work {
    transactions: i64,
    /// Those that wrote or locked something.
    commits: i64,
    rows: i64,
    round_trips: u64,
}

impl Database {
    async fn start() -> Fallible<Self> {
        let server = PostgresServer::start("").ok_or("MYCLAW_POSTGRES names no PostgreSQL")?;
        let (client, connection) = tokio_postgres::connect(&server.url("postgres"), NoTls).await?;
        tokio::spawn(connection);
        let round_trips = Arc::new(AtomicU64::new(0));
        let port = counting(server.port(), Arc::clone(&round_trips)).await?;
        let url =
            server.url("postgres").replace(&format!(":{}/", server.port()), &format!(":{port}/"));
        let process = server.process_id();
        Ok(Self { _server: server, client, url, process, round_trips })
    }

    async fn work(&self) -> Fallible<Work> {
        tokio::time::sleep(COUNTED).await;
        // A transaction gets an id with the first row that it writes or locks.
        let sql = "
            SELECT xact_commit, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, tup_returned
            FROM pg_stat_database WHERE datname = current_database()";
        let row = self.client.query_one(sql, &[]).await?;
        let round_trips = self.round_trips.load(Ordering::SeqCst);
        Ok(Work { transactions: row.get(0), commits: row.get(1), rows: row.get(2), round_trips })
    }

    /// More sessions, each a copy of one.
    async fn add_sessions(&self, count: u64) -> Fallible<()> {
        let sql = "
            INSERT INTO myclaw.session (partition, key, header, listed, listed_at, written_at)
            SELECT partition, key || '-' || $1::bigint || '-' || copy, header, listed, listed_at - copy, written_at
            FROM (SELECT * FROM myclaw.session WHERE listed IS NOT NULL LIMIT 1) AS sample, generate_series(1, $1::bigint) AS copy";
        self.client.execute(sql, &[&i64::try_from(count)?]).await?;
        self.client.batch_execute("VACUUM ANALYZE").await?;
        Ok(())
    }

    /// Processor time of all its processes, in seconds.
    fn cpu(&self) -> f64 {
        let mut ticks = 0.0;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((_, rest)) = stat.rsplit_once(')') else { continue };
            let fields: Vec<f64> =
                rest.split_whitespace().map(|it| it.parse().unwrap_or(0.0)).collect();
            // Behind the name: state, parent, …, user time, system time, and those of ended children.
            if fields.get(1) == Some(&f64::from(self.process)) {
                ticks += fields.iter().skip(11).take(2).sum::<f64>();
            }
        }
        ticks / 100.0
    }
}

/// A relay to the database. It counts requests that come after an answer.
async fn counting(to: u16, count: Arc<AtomicU64>) -> Fallible<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
            tokio::spawn(relay(client, server, Arc::clone(&count)));
        }
    });
    Ok(port)
}

async fn relay(mut client: TcpStream, mut server: TcpStream, count: Arc<AtomicU64>) {
    if client.set_nodelay(true).and_then(|()| server.set_nodelay(true)).is_err() {
        return;
    }
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut is_answered = true;
    loop {
        let passed = tokio::select! {
            length = client.read(&mut asked) => match length {
                Ok(length @ 1..) => {
                    count.fetch_add(u64::from(is_answered), Ordering::SeqCst);
                    is_answered = false;
                    server.write_all(&asked[..length]).await
                }
                _ => return,
            },
            length = server.read(&mut answered) => match length {
                Ok(length @ 1..) => {
                    is_answered = true;
                    client.write_all(&answered[..length]).await
                }
                _ => return,
            },
        };
        if passed.is_err() {
            return;
        }
    }
}

/// Sends messages one after the other, each after the answer to the one before. Returns the times until the acceptance and from
/// there to the model, in milliseconds.
async fn talk(
    model: &Model,
    gateway: &Server,
    session: &str,
    numbers: std::ops::Range<u64>,
) -> Fallible<[Figures; 2]> {
    let mut http = Http::open(&gateway.address).await?;
    let (mut accepted, mut asked) = (Figures::default(), Figures::default());
    for number in numbers {
        let begun = model.now();
        let id = send(&mut http, session, number, "say").await?;
        let now = model.now();
        http.ask("GET", &format!("/api/messages/{id}?wait=55"), "", "").await?;
        let (arrived, _) = model.seen(number).ok_or("a message did not reach the model")?;
        accepted.add(now.saturating_sub(begun) as f64 / 1e6);
        asked.add(arrived.saturating_sub(now) as f64 / 1e6);
    }
    Ok([accepted, asked])
}

pub(crate) async fn measure(table: &mut Table, options: &Options) -> Fallible<()> {
    let model = Model::start().await?;
    let database = Database::start().await?;
    let on_files = GatewayHome::new(&model, |_| {})?;
    let url = database.url.clone();
    let on_database = GatewayHome::new(&model, |config| config["gateway"]["store"] = json!(url))?;
    let messages = options.scaled(200);
    let files = on_files.start(&options.myclaw);
    let shared = on_database.start(&options.myclaw);
    let mut next = 1;
    let mut numbers = |count: u64| {
        next += count;
        next - count..next
    };
    talk(&model, &files, "warm", numbers(5)).await?;
    talk(&model, &shared, "warm", numbers(5)).await?;
    let of_files = talk(&model, &files, "timed", numbers(messages)).await?;
    let idle = database.work().await?;
    let begun = Instant::now();
    let before = database.work().await?;
    let of_pause = begun.elapsed();
    let begun = Instant::now();
    let of_database = talk(&model, &shared, "timed", numbers(messages)).await?;
    let after = database.work().await?;
    // What it does without messages is not theirs.
    let share = begun.elapsed().as_secs_f64() / of_pause.as_secs_f64();
    let shown = |[accepted, asked]: &[Figures; 2]| {
        format!("{:.1} and {:.1} ms", accepted.quantile(0.5), asked.quantile(0.5))
    };
    let name = "one message after the other: until accepted, and from there to the model, median";
    let text = format!("PostgreSQL {}, SQLite {}", shown(&of_database), shown(&of_files));
    table.add(name, text, None, "–", None);
    costs(table, [idle, before, after], (share, messages as f64));
    for senders in SENDERS {
        for (name, gateway) in [("SQLite", &files), ("PostgreSQL", &shared)] {
            let cpu = (database.cpu(), gateway.cpu());
            let count = options.scaled(3_200) / senders;
            let numbers = (0..senders).map(|_| numbers(count)).collect();
            let begun = Instant::now();
            send_all(gateway, numbers).await?;
            let seconds = begun.elapsed().as_secs_f64();
            let text = format!(
                "{:.0} (cores busy: database {:.2}, gateway {:.2})",
                (count * senders) as f64 / seconds,
                (database.cpu() - cpu.0) / seconds,
                (gateway.cpu() - cpu.1) / seconds
            );
            let name = format!("answers a second to {senders} clients, {name}");
            table.add(&name, text, None, "–", None);
        }
    }
    let runs = options.scaled(OPEN_RUNS);
    open_runs(table, "SQLite", (&model, &files), numbers(runs)).await?;
    files.stop();
    shared.stop();
    long_session(table, options, (&model, &database, &on_database), &mut numbers).await?;
    let mut known = 0;
    for count in KNOWN.map(|count| options.scaled(count)) {
        database.add_sessions(count - known).await?;
        known = count;
        let gateway =
            known_sessions(table, options, (&model, &on_database), count, &mut numbers).await?;
        if count == options.scaled(KNOWN[0]) {
            let name = format!("PostgreSQL with {count} known sessions");
            open_runs(table, &name, (&model, &gateway), numbers(runs)).await?;
        }
        gateway.stop();
    }
    Ok(())
}

/// Connections that each send their messages to a session of their own, one after the other.
async fn send_all(gateway: &Server, numbers: Vec<std::ops::Range<u64>>) -> Fallible<()> {
    let mut senders = JoinSet::new();
    for (sender, all) in numbers.into_iter().enumerate() {
        let address = gateway.address.clone();
        senders.spawn(async move {
            let mut http = Http::open(&address).await?;
            for number in all {
                let id = send(&mut http, &format!("many{sender}"), number, "say").await?;
                http.ask("GET", &format!("/api/messages/{id}?wait=55"), "", "").await?;
            }
            Fallible::Ok(())
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent??;
    }
    Ok(())
}

/// The memory of a gateway with a run for each of these messages at the same time.
async fn open_runs(
    table: &mut Table,
    name: &str,
    (model, gateway): (&Model, &Server),
    numbers: std::ops::Range<u64>,
) -> Fallible<()> {
    let mut http = Http::open(&gateway.address).await?;
    let begun = Instant::now();
    let mut ids = Vec::new();
    for number in numbers.clone() {
        let order = format!("wait {OPEN_MS}");
        ids.push(send(&mut http, &format!("open{number}"), number, &order).await?);
    }
    let is_open = |number: &u64| model.seen(*number).is_some();
    while begun.elapsed() < OPENED && !numbers.clone().all(|number| is_open(&number)) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (seconds, open) = (begun.elapsed().as_secs_f64(), numbers.filter(is_open).count());
    let memory = gateway.memory();
    table.add(
        &format!("memory with {open} open runs, {name}"),
        format!("{memory:.0} MB (open after {seconds:.1} s)"),
        None,
        "< 1,500 MB",
        Some(memory < 1_500.0),
    );
    // What is measured next has the gateway for itself.
    for id in ids {
        let path = format!("/api/messages/{id}?wait=55");
        let mut http = Http::open(&gateway.address).await?;
        while http.ask("GET", &path, "", "").await?.1.windows(6).any(|part| part == b"\"open\"") {}
    }
    Ok(())
}

/// What a message costs, of the work before and after a pause and after the messages, which took `share` times as long as the
/// pause.
fn costs(table: &mut Table, [idle, before, after]: [Work; 3], (share, messages): (f64, f64)) {
    let costs = [
        (
            "transactions that write, for a message and its answer",
            [idle.commits, before.commits, after.commits].map(|count| count as f64),
            Some(3.0),
        ),
        (
            "transactions for them, with those that only read",
            [idle.transactions, before.transactions, after.transactions].map(|count| count as f64),
            None,
        ),
        (
            "round trips for them",
            [idle.round_trips, before.round_trips, after.round_trips].map(|count| count as f64),
            None,
        ),
    ];
    for (name, [idle, before, after], aim) in costs {
        let count = ((after - before) - (before - idle) * share).max(0.0) / messages;
        let wanted = aim.map_or("–".to_owned(), |aim| aim.to_string());
        table.add(name, format!("{count:.1}"), None, &wanted, aim.map(|aim| count <= aim));
    }
}

/// A turn in a session, before and after it has become long.
async fn long_session(
    table: &mut Table,
    options: &Options,
    (model, database, home): (&Model, &Database, &GatewayHome),
    numbers: &mut impl FnMut(u64) -> std::ops::Range<u64>,
) -> Fallible<()> {
    let rows = i64::try_from(options.scaled(1_000_000))?;
    for (session, count) in [("long1", rows.min(20_000)), ("long2", rows)] {
        let gateway = home.start(&options.myclaw);
        talk(model, &gateway, session, numbers(1)).await?;
        gateway.stop();
        // More of the same, with ids of their own.
        let sql = "
            WITH sample AS (
                SELECT session.id AS session, last_seq, entry.seq, entry.id, kind, body FROM myclaw.session
                JOIN myclaw.entry ON entry.session = session.id WHERE session.key LIKE '%:' || $1 AND kind = 'message'
            )
            INSERT INTO myclaw.entry (session, seq, id, kind, body)
            SELECT session, last_seq + (row_number() OVER (ORDER BY copy, seq)), id || copy, kind,
                replace(body, '\"' || id || '\"', '\"' || id || copy || '\"')
            FROM sample, generate_series(1, $2::bigint / 2) AS copy";
        database.client.execute(sql, &[&session, &count]).await?;
        // And a summary of all that, as each long session has one.
        let sql = "
            INSERT INTO myclaw.entry (session, seq, id, kind, body)
            SELECT session.id, max(entry.seq) + 1, 'summary', 'compaction',
                '{\"type\":\"compaction\",\"id\":\"summary\",\"ts\":1,\"summary\":\"much\",\"firstKeptId\":\"summary\",' ||
                '\"tokensBefore\":1,\"oldCount\":1,\"newCount\":1}'
            FROM myclaw.session JOIN myclaw.entry ON entry.session = session.id
            WHERE session.key LIKE '%:' || $1 GROUP BY session.id";
        database.client.execute(sql, &[&session]).await?;
        let sql = "
            UPDATE myclaw.session SET last_seq = (SELECT max(seq) FROM myclaw.entry WHERE entry.session = myclaw.session.id)
            WHERE key LIKE '%:' || $1";
        database.client.execute(sql, &[&session]).await?;
        database.client.batch_execute("ANALYZE").await?;
        let gateway = home.start(&options.myclaw);
        talk(model, &gateway, session, numbers(2)).await?;
        let before = database.work().await?;
        let [_, asked] = talk(model, &gateway, session, numbers(TURNS)).await?;
        let after = database.work().await?;
        table.add(
            &format!("a session of {count} rows and a summary: from acceptance to the model, median; rows read for a turn"),
            format!("{:.1} ms; {}", asked.quantile(0.5), (after.rows - before.rows) / TURNS as i64),
            None,
            "flat",
            None,
        );
        gateway.stop();
    }
    Ok(())
}

/// Measures a start with many sessions, and turns there. Returns the gateway, which is still running.
async fn known_sessions(
    table: &mut Table,
    options: &Options,
    (model, home): (&Model, &GatewayHome),
    count: u64,
    numbers: &mut impl FnMut(u64) -> std::ops::Range<u64>,
) -> Fallible<Server> {
    let begun = Instant::now();
    let gateway = home.start(&options.myclaw);
    let ready = begun.elapsed().as_secs_f64() * 1e3;
    let mut http = Http::open(&gateway.address).await?;
    let [accepted, asked] = talk(model, &gateway, "timed", numbers(TURNS)).await?;
    let begun = Instant::now();
    http.ask("GET", "/api/sessions", "", "").await?;
    let listed = begun.elapsed().as_secs_f64() * 1e3;
    let text = format!("{ready:.0} ms, {listed:.0} ms, {:.0} MB", gateway.memory());
    let name = format!("{count} known sessions: start, list, memory of a gateway");
    table.add(&name, text, None, "start < 1 s", Some(ready < 1_000.0));
    let text = format!("{:.1} and {:.1} ms", accepted.quantile(0.5), asked.quantile(0.5));
    let name =
        format!("{count} known sessions: until accepted, and from there to the model, median");
    table.add(&name, text, None, "flat", None);
    Ok(gateway)
}
