//! Servers, connections and programs that end in the middle of writes. Each write is there once, or was reported as failed.
//!
//! `MYCLAW_KILLS` sets the number of kills.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use myclaw_store::conformance::crash;
use myclaw_store::{Batch, Commit, Place, QueueId, RecordId, Store, StoreError, Write};
use myclaw_store_postgres::Options;
use myclaw_testkit::{PostgresServer, number_from};

use crate::proxy::{COMMIT, Cut, Fate, Proxy};
use crate::server::{block_on, connect, database, open, open_with, server};

/// Kills in a quick run.
const DEFAULT_KILLS: u64 = 20;
/// Names the database of a process that is to be killed.
const VICTIM: &str = "MYCLAW_STORE_OF_VICTIM";

/// Chains of writes that run on, and how far each has come.
struct Chains {
    acknowledged: Arc<[AtomicU64; crash::CHAINS]>,
    work: tokio::task::JoinHandle<()>,
    /// Apart from that of the store, so that the chains can be stopped alone.
    runtime: tokio::runtime::Runtime,
}

impl Chains {
    fn start(store: Arc<dyn Store>) -> Self {
        let acknowledged: Arc<[AtomicU64; crash::CHAINS]> = Arc::default();
        let counted = Arc::clone(&acknowledged);
        let acknowledge = move |chain: usize, step| counted[chain].store(step, Ordering::SeqCst);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let work = runtime.spawn(crash::write_until_killed(store, acknowledge));
        Self { acknowledged, work, runtime }
    }

    /// Stops the chains, and checks what `store` holds then.
    async fn verify(self, store: &dyn Store) -> [u64; crash::CHAINS] {
        let Self { acknowledged, runtime, .. } = self;
        tokio::task::block_in_place(|| runtime.shutdown_timeout(Duration::from_secs(60)));
        // What a chain has handed over is still carried out, and comes before this.
        let _ = store.commit(Batch::of(insert(&RecordId::new("end", "end")))).await.unwrap();
        let steps = std::array::from_fn(|chain| acknowledged[chain].load(Ordering::SeqCst));
        crash::verify(store, steps).await
    }

    fn steps(&self) -> [u64; crash::CHAINS] {
        std::array::from_fn(|chain| self.acknowledged[chain].load(Ordering::SeqCst))
    }

    /// Waits until each chain has made some steps more.
    async fn advance(&self, steps: u64) {
        let begun = self.steps();
        while self.steps().iter().zip(begun).any(|(now, begun)| *now < begun + steps) {
            assert!(!self.work.is_finished(), "a chain has failed, see above");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// A quarter of those of other tests: the server takes a second to start again.
fn kills() -> u64 {
    number_from("MYCLAW_KILLS").map_or(DEFAULT_KILLS, |kills| kills.div_ceil(4))
}

#[test]
fn each_write_is_there_once_when_the_server_is_killed_again_and_again() {
    let Some(server) = PostgresServer::start("") else { return };
    block_on(async {
        let url = database(&server).await;
        let store = open(&url).await;
        let chains = Chains::start(Arc::clone(&store));
        for kill in 0..kills().div_ceil(4) {
            chains.advance(1 + kill % 7).await;
            // A process of a connection that dies takes all others with it; the first process starts them anew.
            if kill % 3 == 0 {
                let admin = connect(&url).await;
                let sql = "SELECT pid FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() LIMIT 1";
                if let Ok(Some(row)) = admin.query_opt(sql, &[]).await {
                    let id: i32 = row.get(0);
                    myclaw_testkit::send_signal(id.unsigned_abs(), myclaw_testkit::Signal::Kill);
                }
            } else {
                tokio::task::block_in_place(|| {
                    server.kill();
                    server.launch();
                });
            }
        }
        chains.advance(3).await;
        let stored = chains.verify(&*store).await;
        assert!(stored.iter().all(|step| *step > 3));
    });
}

#[test]
fn each_write_is_there_once_when_connections_are_ended_at_random() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let store = open(&url).await;
        let chains = Chains::start(Arc::clone(&store));
        let admin = connect(&url).await;
        let mut ended = 0;
        for kill in 0..kills() * 10 {
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
            ended += admin.query(sql, &[]).await.unwrap().len();
            tokio::time::sleep(Duration::from_millis(kill * 7 % 40)).await;
        }
        assert!(ended > 0);
        chains.advance(3).await;
        chains.verify(&*store).await;
    });
}

/// An answer to a commit that is lost leaves open whether it happened. The store finds out before it tries again.
#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        // The tables are there before, so the first commits are those of records.
        open(&url).await;
        let proxy = Proxy::start(server.port(), COMMIT, |commit| match commit % 3 {
            0 => Some(Cut::After),
            1 => Some(Cut::Before),
            _ => None,
        });
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
        let store = open(&through).await;
        for number in 0..20 {
            let id = RecordId::new("thing", number.to_string());
            let commit = store.commit(Batch::of(insert(&id))).await.unwrap();
            assert!(matches!(commit, Commit::Done(_)), "write {number} gave {commit:?}");
        }
        let chains = Chains::start(Arc::clone(&store));
        chains.advance(10).await;
        let all = store.scan(QueueId::new("queue"), None, 100).await.unwrap();
        assert_eq!(all.len(), 20);
        chains.verify(&*store).await;
        assert!(proxy.commits.load(Ordering::SeqCst) > 60);
    });
}

/// A call gives up in time and says what is known.
#[test]
fn a_commit_that_nobody_can_answer_for_is_reported_as_unknown() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        // The lock of the partition is there from its first write on.
        let first = RecordId::new("thing", "first");
        let _ = open(&url).await.commit(Batch::of(insert(&first))).await.unwrap();
        let options = || Options { patience: Duration::from_millis(700), ..Options::default() };
        let cuts: [Fate; 2] = [|_| Some(Cut::After), |_| Some(Cut::Before)];
        for cut in cuts {
            // Mostly the first attempt is enough: another one has to get the lock before the store has it again.
            let mut is_reported = false;
            for attempt in 0..10 {
                let proxy = Proxy::start(server.port(), COMMIT, cut);
                let through =
                    url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
                let store = open_with(&through, options()).await;
                let admin = connect(&url).await;
                let id = RecordId::new("thing", format!("{:?} {attempt}", cut(0)));
                let lock = async {
                    while proxy.commits.load(Ordering::SeqCst) == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    admin.batch_execute("BEGIN; SELECT 1 FROM myclaw.partition FOR UPDATE").await
                };
                let (commit, locked) = tokio::join!(store.commit(Batch::of(insert(&id))), lock);
                locked.unwrap();
                admin.batch_execute("ROLLBACK").await.unwrap();
                let is_stored = open(&url).await.get(id).await.unwrap().is_some();
                assert_eq!(is_stored, cut(0) == Some(Cut::After));
                if let Err(error) = commit {
                    assert!(matches!(error, StoreError::Unconfirmed { .. }), "{error}");
                    assert!(error.to_string().contains("whether it is stored is unknown"));
                    is_reported = true;
                    break;
                }
            }
            assert!(is_reported, "{:?}", cut(0));
        }
    });
}

/// What a program has locked that stands still in the middle of a transaction is free soon. It goes on when it wakes.
#[test]
fn a_program_that_stands_still_holds_no_other_one_up() {
    let Some(server) = server() else { return };
    block_on(async {
        let url = database(server).await;
        let ids = ["first", "held", "other"].map(|key| RecordId::new("thing", key));
        // The lock of the partition is there from its first write on.
        let _ = open(&url).await.commit(Batch::of(insert(&ids[0]))).await.unwrap();
        let proxy = Proxy::start(server.port(), b"INSERT INTO myclaw.record", |number| {
            (number == 0).then_some(Cut::Hold)
        });
        let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port));
        let (frozen, write) = (open(&through).await, Batch::of(insert(&ids[1])));
        let held = tokio::spawn(async move { frozen.commit(write).await });
        while proxy.commits.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let options = Options { patience: Duration::from_secs(6), ..Options::default() };
        let other = open_with(&url, options).await;
        let commit = other.commit(Batch::of(insert(&ids[2]))).await.unwrap();
        assert!(matches!(commit, Commit::Done(_)), "{commit:?}");
        assert!(!held.is_finished());
        proxy.is_released.store(true, Ordering::SeqCst);
        let commit = held.await.unwrap().unwrap();
        assert!(matches!(commit, Commit::Done(_)), "{commit:?}");
    });
}

#[test]
fn what_a_killed_program_was_told_is_stored_is_there() {
    let Some(server) = server() else { return };
    let url = block_on(database(server));
    let mut stored = [0; crash::CHAINS];
    for kill in 0..kills() {
        let mut acknowledged = stored;
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::victim", "--nocapture"])
            .env(VICTIM, &url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It dies after this many steps, wherever the others are then.
        let mut steps = 1 + kill * 7 % 50;
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            let Some((_, step)) = line.split_once("stored ") else { continue };
            let (chain, step) = step.split_once(' ').unwrap();
            acknowledged[chain.parse::<usize>().unwrap()] = step.parse().unwrap();
            steps -= 1;
            if steps == 0 {
                victim.kill().unwrap();
                // What it reported before it died counts too.
                steps = u64::MAX;
            }
        }
        victim.wait().unwrap();
        assert!(acknowledged > stored, "kill {kill} came before the first step");
        stored = block_on(async {
            // A commit that was on its way when the program died may still come: the lock waits for it.
            let wait = "SELECT counter FROM myclaw.partition FOR UPDATE";
            connect(&url).await.query(wait, &[]).await.unwrap();
            crash::verify(&*open(&url).await, acknowledged).await
        });
    }
}

/// The process of the test above; alone it does nothing.
#[test]
fn victim() {
    let Ok(url) = std::env::var(VICTIM) else { return };
    // Nobody waits for it longer than this if its parent is gone.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        std::process::abort();
    });
    block_on(async {
        let store = open(&url).await;
        let out = Mutex::new(());
        let out = Arc::new(out);
        crash::write_until_killed(store, move |chain, step| {
            // One write per line, so that a kill leaves no half line.
            let _whole = out.lock();
            let _ = std::io::stdout().write_all(format!("stored {chain} {step}\n").as_bytes());
        })
        .await;
    });
}

fn insert(id: &RecordId) -> Write {
    Write::Insert { id: id.clone(), value: Vec::new(), place: Some(Place::last("queue")) }
}
