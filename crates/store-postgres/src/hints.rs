//! Notifications between processes: a hint that a queue has changed. They may be lost; polling is the truth.
//!
//! `NOTIFY` takes a lock that all databases of a server share, so it is never part of a transaction that stores something.
//! Hints are collected, and sent a few times in a second at most.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use myclaw_store::{Partition, QueueId, Watches};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use tokio_postgres::types::Type;

use crate::failure::Failure;
use crate::pool::{Pool, answer};

/// Between two notifications: 20 in a second at most.
const BETWEEN: Duration = Duration::from_millis(50);
/// Between two attempts to listen.
const PAUSE: Duration = Duration::from_secs(1);
/// Largest payload, in bytes: <https://www.postgresql.org/docs/current/sql-notify.html>
const MOST_BYTES: usize = 7_999;

/// Sends hints.
pub(crate) struct Hints(Arc<Waiting>);

#[derive(Default)]
struct Waiting {
    queues: Mutex<HashSet<QueueId>>,
    some: Notify,
}

impl Hints {
    /// Sends a hint that these queues have changed, soon.
    pub(crate) fn send(&self, touched: HashSet<QueueId>) {
        if !touched.is_empty() {
            self.0.queues.lock().extend(touched);
            self.0.some.notify_one();
        }
    }
}

/// Begins to send and to receive hints.
pub(crate) fn start(pool: &Arc<Pool>, watches: &Arc<Watches>) -> (Hints, [AbortHandle; 2]) {
    let waiting = Arc::new(Waiting::default());
    let sending = tokio::spawn(send(Arc::clone(pool), Arc::clone(&waiting)));
    let receiving = tokio::spawn(receive(Arc::clone(pool), Arc::clone(watches)));
    (Hints(waiting), [sending.abort_handle(), receiving.abort_handle()])
}

async fn send(pool: Arc<Pool>, waiting: Arc<Waiting>) {
    loop {
        waiting.some.notified().await;
        let queues: Vec<QueueId> = waiting.queues.lock().drain().collect();
        for payload in payloads(&queues) {
            let sql = "SELECT pg_notify('myclaw', $1)";
            // Without a hint the others see the change when they poll.
            drop(pool.query(sql, &[(&payload, Type::TEXT)]).await);
        }
        sleep(BETWEEN).await;
    }
}

async fn receive(pool: Arc<Pool>, watches: Arc<Watches>) {
    loop {
        drop(listen(&pool, &watches).await);
        sleep(PAUSE).await;
    }
}

/// Receives hints until the connection ends.
async fn listen(pool: &Pool, watches: &Arc<Watches>) -> Result<(), Failure> {
    let watches = Arc::clone(watches);
    let (client, served) = pool.connect(move |payload| watches.wake(&queues(payload))).await?;
    answer(client.batch_execute(&pool.tenant().statement("LISTEN myclaw"))).await?;
    // The connection stays open as long as the client does.
    drop(served.await);
    drop(client);
    Ok(())
}

/// The names of queues as payloads: JSON pairs of partition and name, one a line.
fn payloads(queues: &[QueueId]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for QueueId { partition, name } in queues {
        let line = serde_json::json!([partition.as_str(), name]).to_string();
        match payloads.last_mut() {
            Some(last) if last.len() + line.len() < MOST_BYTES => {
                last.push('\n');
                last.push_str(&line);
            }
            // A name that is too long is left to polling.
            _ if line.len() > MOST_BYTES => {}
            _ => payloads.push(line),
        }
    }
    payloads
}

fn queues(payload: &str) -> Vec<QueueId> {
    let pair = |line| serde_json::from_str::<(String, String)>(line).ok();
    let queue = |(partition, name)| QueueId { partition: Partition::new(partition), name };
    payload.lines().filter_map(pair).map(queue).collect()
}

#[cfg(test)]
mod tests;
