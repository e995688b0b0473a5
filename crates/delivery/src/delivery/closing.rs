//! The end of the process.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Delivery;
use super::desk::Desk;

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
        if let Err(error) = self.ledger().claims().release_all().await {
            tracing::warn!(%error, "other gateways wait for the sessions of this one");
        }
    }
}
