//! The end of the process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Delivery;
use super::desk::Desk;

/// How long turns that are abandoned may take to close their sessions.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

impl Delivery {
    /// Takes no more messages. Waits for running turns as long as `patience` is not ready, then for nothing.
    pub async fn close(&self, patience: impl Future<Output = ()>) {
        self.process.closing.cancel();
        tokio::pin!(patience);
        while self.open_count() > self.parked_count() + self.waiting_count() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
                () = &mut patience => break,
            }
        }
        self.outbox.rest().await;
        let desks: Vec<Arc<Desk>> = self.desks().values().cloned().collect();
        for desk in desks {
            let front = Arc::clone(&self.watchers.front);
            let on_event = move |event: myclaw_engine::RunEvent| {
                front.publish(event.session.as_str(), &json!(event));
            };
            desk.session.config().close_jobs(&on_event).await;
        }
        self.leave_sessions().await;
        if let Err(error) = self.ledger().claims().release_all().await {
            tracing::warn!(%error, "other gateways wait for the sessions of this one");
        }
    }

    /// Closes the sessions of turns that go on, as a crash would, so that other gateways can open them at once.
    async fn leave_sessions(&self) {
        if !self.ledger().claims().is_shared() {
            return;
        }
        let desks: Vec<Arc<Desk>> = self.desks().values().cloned().collect();
        desks.iter().for_each(|desk| desk.session.abandon());
        let left = async {
            for desk in &desks {
                while is_open(desk).await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        // Their leases run out otherwise.
        drop(tokio::time::timeout(LEAVES_WITHIN, left).await);
    }
}

/// Whether somebody has the session of a desk open.
async fn is_open(desk: &Desk) -> bool {
    let sessions = Arc::clone(desk.session.config().home.sessions());
    let key = desk.session.key().clone();
    let looking = tokio::task::spawn_blocking(move || sessions.is_in_use(&key));
    matches!(looking.await, Ok(Ok(true)))
}
