//! Removes a container whose helper was ended by force.

use std::process::{Command, Stdio};
use std::time::Duration;

use myclaw_exec::ChildSpec;
use tokio_util::sync::CancellationToken;

/// Longest wait for a container to be removed. A busy machine needs a second.
const LIMIT: Duration = Duration::from_secs(30);

/// What may be left of a command that runs in a container.
///
/// The helper removes its container when the command ends. A helper that is ended by force, half a second after it was
/// asked to end, has no time for that on a busy machine. The container is a child of the container engine, so no signal
/// to the helper's processes reaches it.
#[derive(Debug, Default)]
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
        if let [program, arguments @ ..] = self.removal.as_slice() {
            let mut spec = ChildSpec::new(program, "/");
            spec.args = arguments.iter().map(Into::into).collect();
            spec.timeout = Some(LIMIT);
            // Usually there is none any more, and the engine says so.
            drop(myclaw_exec::run(spec, &CancellationToken::new(), &mut |_| {}).await);
        }
        self.removal.clear();
    }
}

impl Drop for Leftover {
    /// A dropped future cannot wait: the engine removes the container while this program continues.
    fn drop(&mut self) {
        if let [program, arguments @ ..] = self.removal.as_slice() {
            let mut command = Command::new(program);
            command
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if let Ok(mut child) = command.spawn() {
                let collect = std::thread::Builder::new().name("container removal".to_owned());
                drop(collect.spawn(move || child.wait()));
            }
        }
    }
}
