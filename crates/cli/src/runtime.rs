//! The asynchronous runtime: one thread, made only by commands that need it.

use tokio::runtime::Builder;

use crate::exit::CliError;

/// Runs `work` to its end. Blocking calls that still run then are not waited for.
///
/// # Errors
/// The system cannot provide the resources of a runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(outcome)
}
