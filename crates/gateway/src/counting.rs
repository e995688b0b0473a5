//! What the gateway counts: metrics for Prometheus, traces for OpenTelemetry, and usage in the store.

use std::sync::Arc;

use myclaw_config::Config;
use myclaw_delivery::counters::{Caller, Counters};
use myclaw_delivery::ledger::Ledger;
use myclaw_delivery::rows::{PartKind, PartState};
use myclaw_engine::RunEvent;
use myclaw_llm::Usage;
use tokio_util::task::TaskTracker;

use crate::metrics::Metrics;
use crate::telemetry::Telemetry;
use crate::usage::UsageBook;

/// All counters of a process.
pub(crate) struct Counting {
    pub(crate) metrics: Metrics,
    /// Traces of runs.
    pub(crate) telemetry: Telemetry,
    /// What models have used.
    pub(crate) usage: UsageBook,
}

impl Counting {
    pub(crate) fn new(ledger: Ledger, config: &Config) -> Self {
        Self {
            metrics: Metrics::default(),
            telemetry: Telemetry::new(config),
            usage: UsageBook::new(ledger),
        }
    }

    /// Begins to store usage and to send traces, as long as the process runs.
    pub(crate) fn begin(self: &Arc<Self>, tasks: &TaskTracker) {
        let (of_usage, of_traces) = (Arc::clone(self), Arc::clone(self));
        tasks.spawn(async move { of_usage.usage.record().await });
        tasks.spawn(async move { of_traces.telemetry.exporter.run().await });
    }

    /// Stores and sends the rest.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.usage.flush().await {
            tracing::warn!(%error, "the last usage is not stored");
        }
        self.telemetry.exporter.close().await;
    }
}

impl Counters for Counting {
    fn accepted(&self) {
        self.metrics.accepted();
    }

    fn ended(&self, milliseconds: &[u64], kind: PartKind) {
        self.metrics.ended(milliseconds, kind);
    }

    fn delivered(&self, channel: &str, state: &PartState) {
        self.metrics.delivered(channel, state);
    }

    fn heed(&self, event: &RunEvent) {
        self.metrics.heed(&event.kind);
    }

    fn trace(&self, event: &RunEvent, agent: &str) {
        self.telemetry.heed(event, agent);
    }

    fn used(&self, caller: Caller, usage: &Usage) {
        self.usage.note(caller, usage);
    }
}
