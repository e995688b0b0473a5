//! What holds answers back until a test lets them go.

use std::sync::Arc;

use tokio::sync::watch;

/// Closed at first. Once it is open, it stays so.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets everything go that it holds.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is open.
    pub(crate) async fn opened(&self) {
        // The sender is here, so the channel is not closed.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}
