//! File work off the async threads, confined to the workspace where the config demands it.

use futures_util::future::BoxFuture;
use myclaw_engine::{ToolContext, ToolError, ToolInvocation, ToolOutput};
use myclaw_files::create_private_directory;
use myclaw_sandbox::{OpenPaths, can_confine_threads, with_open_paths};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::{Judged, real_root};

/// Runs `work` on a thread where blocking is allowed and waits for it, so that a change to a file is never reported
/// before it has happened. Long work checks its own clone of the cancellation token.
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

/// Carries out a call that works on files, by `work`: [`run_blocking`] with the parsed arguments. With `workspace_only` the
/// thread can open only the workspace and the run's side files, even if a path changes after its check. On a kernel without
/// Landlock, only the path is checked.
///
/// # Errors
/// As [`run_blocking`], the arguments are invalid, or the thread cannot be confined.
pub(crate) fn run_on_files<'a, A, F>(
    invocation: ToolInvocation<'a>,
    work: F,
) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
where
    A: DeserializeOwned + Send + Sync + 'static,
    F: FnOnce(&ToolContext, &Judged, &A, &CancellationToken) -> Result<ToolOutput, ToolError>
        + Send
        + 'static,
{
    Box::pin(async move {
        let arguments: A = invocation.call.arguments.parse()?;
        let (judged, context) = (Judged::of(invocation.call), invocation.context.clone());
        run_blocking(move || {
            let work = || work(&context, &judged, &arguments, &invocation.cancel);
            if !context.workspace_only || !can_confine_threads() {
                return work();
            }
            let mut paths =
                OpenPaths { writable: vec![real_root(&context)], ..OpenPaths::default() };
            // Created here, because the confined thread may not change the parent directory. Without it, changes could not
            // be recorded.
            if create_private_directory(&context.artifact_directory).is_ok() {
                paths.writable.push(context.artifact_directory.clone());
            }
            with_open_paths(&paths, work).unwrap_or_else(|error| {
                Err(ToolError::Failed(format!(
                    "the tool cannot be confined to the workspace ({error}), so it did not run. Tell the user"
                )))
            })
        })
        .await
    })
}

#[cfg(test)]
mod tests;
