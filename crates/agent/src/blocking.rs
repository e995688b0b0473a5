//! Work that waits for files, off the async threads.

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

impl From<AgentError> for HookError {
    fn from(error: AgentError) -> Self {
        Self(error.message)
    }
}
