//! One started child: noticing its end, and collecting its exit status.

use tokio::task::JoinHandle;

use crate::Exit;
use crate::system::Started;

/// A child, for which a thread waits.
pub(crate) struct Child {
    notice: JoinHandle<Option<i32>>,
    exited: bool,
    code: Option<i32>,
    collected: bool,
}

impl Child {
    /// Takes charge of a child of this process.
    pub(crate) fn new(mut child: Started) -> Self {
        let wait = move || child.wait().ok().and_then(|status| status.code());
        let notice = tokio::task::spawn_blocking(wait);
        Self { notice, exited: false, code: None, collected: false }
    }

    /// Whether [`Child::exited`] has returned.
    pub(crate) fn has_exited(&self) -> bool {
        self.exited
    }

    /// Whether the exit status was collected.
    pub(crate) fn is_collected(&self) -> bool {
        self.collected
    }

    /// Returns when the child has ended. May be dropped and called again.
    pub(crate) async fn exited(&mut self) {
        if !self.exited {
            self.code = (&mut self.notice).await.unwrap_or_default();
            self.exited = true;
        }
    }

    /// Collects the exit status if the child has ended.
    pub(crate) fn collect(&mut self) -> Option<Exit> {
        if self.collected || !self.exited {
            return None;
        }
        self.collected = true;
        self.code.map(Exit::Code)
    }
}
