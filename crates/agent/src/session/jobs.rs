//! The background jobs of an open session.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use myclaw_llm::ContentBlock;
use myclaw_session::QueuedKind;
use myclaw_tools::{JobRecord, Killer};

use super::{Session, SessionEvent};
use crate::jobs::OpenToJobs;

impl OpenToJobs for Session {
    fn put<'a>(&'a self, kind: QueuedKind, content: Vec<ContentBlock>) -> BoxFuture<'a, ()> {
        Box::pin(async move { drop(self.enqueue(kind, content).await) })
    }

    fn begin_turn(self: Arc<Self>) {
        self.go_on();
    }
}

impl Session {
    /// Lets a turn begin in the session when one of its jobs ends.
    pub(super) fn can_be_woken(self: &Arc<Self>) {
        let open = Arc::clone(self) as Arc<dyn OpenToJobs>;
        self.config().background.opened(self.key(), Arc::downgrade(&open));
    }

    /// The background jobs of the session, the oldest first: those that run, and those that have ended and were not
    /// removed.
    pub async fn jobs(&self) -> Vec<JobRecord> {
        self.config().jobs().await.list().await
    }

    /// Ends a background job with everything it started. The agent gets a message about it.
    ///
    /// # Errors
    /// There is no such job, or it does not run; the text says what to do.
    pub async fn kill_job(&self, id: &str) -> Result<JobRecord, String> {
        self.config().jobs().await.kill(id, Killer::User).await
    }

    /// Ends the background jobs of the session concurrently with the caller, and calls `then` when they have ended. The session can
    /// be opened again.
    pub fn end_jobs(self: &Arc<Self>, then: impl FnOnce() + Send + 'static) {
        let this = Arc::clone(self);
        self.spawn(async move {
            this.config().close_own_jobs(&|event| this.emit(SessionEvent::Run(&event))).await;
            then();
        });
    }
}
