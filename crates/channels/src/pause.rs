//! Pauses between attempts.

use std::time::Duration;

/// First pause; each is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(500);
/// Longest pause: a server that is back is noticed within a minute.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Pauses that grow while something fails.
pub(crate) struct Pause(Duration);

/// Does `work` until it succeeds: what came in is on disk then.
pub(crate) async fn until_stored<W: Future<Output = Result<(), String>>>(
    mut work: impl FnMut() -> W,
) {
    let mut pause = Pause::new();
    while let Err(reason) = work().await {
        tracing::warn!(%reason, "a message cannot be stored; trying again");
        pause.wait().await;
    }
}

impl Pause {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}
