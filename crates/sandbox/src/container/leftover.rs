//! Removes a container whose helper was ended by force.

use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

/// Longest wait for a container to be removed. A busy machine needs a second.
const LIMIT: Duration = Duration::from_secs(30);
/// How often removing is tried.
const ATTEMPTS: u32 = 10;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// What may be left of a command that runs in a container.
///
/// The helper removes its container when the command ends. A helper that is ended by force, half a second after it was
/// asked to end, has no time for that on a busy machine. The container is a child of the container engine, so no signal
/// to the helper's processes reaches it.
#[derive(Debug)]
pub(crate) struct Leftover {
    /// The command that removes the container; empty if there is none.
    removal: Vec<String>,
}

impl Leftover {
    pub(crate) fn new(removal: Vec<String>) -> Self {
        Self { removal }
    }

    /// The helper ended by itself, so it has removed the container.
    pub(crate) fn forget(mut self) {
        self.removal.clear();
    }

    /// Removes the container and waits for that.
    pub(crate) async fn remove(mut self) {
        if let Some(removal) = self.take() {
            let removing = tokio::task::spawn_blocking(move || remove(&removal));
            drop(timeout(LIMIT, removing).await);
        }
    }

    fn take(&mut self) -> Option<Vec<String>> {
        let removal = std::mem::take(&mut self.removal);
        (!removal.is_empty()).then_some(removal)
    }
}

impl Drop for Leftover {
    /// A dropped future cannot wait: a thread removes the container while this program continues.
    fn drop(&mut self) {
        if let Some(removal) = self.take() {
            let thread = std::thread::Builder::new().name("container removal".to_owned());
            drop(thread.spawn(move || remove(&removal)));
        }
    }
}

/// Removes a container. The engine can fail while the container is starting, or while the engine's own processes of a
/// killed command are still ending.
fn remove(removal: &[String]) {
    let [program, arguments @ ..] = removal else { return };
    for _ in 0..ATTEMPTS {
        let Ok(output) = Command::new(program).args(arguments).stdin(Stdio::null()).output() else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || said.to_lowercase().contains("no such container") {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
