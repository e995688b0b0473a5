//! File work off the async threads.

use myclaw_engine::ToolError;

/// Runs `work` on a thread where blocking is allowed and waits for it, so that a change to a file is never reported
/// before it has happened. Work that takes long asks its own clone of the cancellation token.
///
/// # Errors
/// What `work` returns, or [`ToolError::Failed`] if it panicked.
pub async fn run_blocking<T, F>(work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ToolError> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(ToolError::Failed(format!("the tool failed inside and did not finish: {error}")))
        }
    }
}
