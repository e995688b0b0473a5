//! What a session keeps of where its tools run.

use std::path::PathBuf;
use std::sync::Arc;

use myclaw_exec::HidingRunner;
use myclaw_executor::Executor;
use parking_lot::Mutex;

use super::proxy::SessionProxy;

/// The executor of a session, made by its first run and kept for the next ones; and what runs the commands of one that is not
/// sandboxed.
#[derive(Debug, Default)]
pub(crate) struct ExecutorSlot {
    pub(super) placed: Mutex<Option<Placed>>,
    /// The runner of the commands of a session that is not sandboxed.
    pub(crate) hiding: Mutex<Option<Arc<HidingRunner>>>,
}

/// Where the tools of a sandboxed session run.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) executor: Arc<Executor>,
    /// The proxy to the permitted hosts, if the config lists hosts.
    pub(super) proxy: Option<Arc<SessionProxy>>,
    /// The directories of skills that existed when the executor was made. The model may create more.
    pub(super) skills: Vec<PathBuf>,
}
