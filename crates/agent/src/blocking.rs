//! Work that waits for files, off the async threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt as _;
use myclaw_engine::HookError;

use crate::{AgentError, FailureClass};

/// Does `work` on a thread where blocking is allowed, and waits for it.
///
/// # Errors
/// It has panicked, which is a defect.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AgentError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        AgentError::new(FailureClass::Internal, format!("internal error: {error}"))
    })
}

/// How the panic begins with which the runtime ends a blocking call if it has no thread and gets none.
const NO_THREAD: &str = "OS can't spawn worker thread";

/// Does `work`. A panic because the system allows no further thread becomes an error; what is on disk by then is what a killed
/// process leaves, and the next run continues it.
///
/// # Errors
/// Those of `work`, and that there is no thread.
pub(crate) async fn with_threads<T>(
    work: impl Future<Output = Result<T, AgentError>>,
) -> Result<T, AgentError> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(no_thread(panic)))
}

/// What a panic says about threads. Every other panic is passed on.
pub(crate) fn no_thread(panic: Box<dyn Any + Send>) -> AgentError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    if !text.or(panic.downcast_ref::<&str>().copied()).is_some_and(|it| it.starts_with(NO_THREAD)) {
        resume_unwind(panic);
    }
    AgentError::new(
        FailureClass::Internal,
        "the system allows no further thread. End other programs of this user, or raise the limit of its processes \
         (ulimit -u; in a container, the limit of pids), and try again; the session is kept",
    )
}

impl From<AgentError> for HookError {
    fn from(error: AgentError) -> Self {
        Self(error.message)
    }
}
