//! The asynchronous runtime, made only by commands that need it: one thread, or several for the gateway.

use std::time::Duration;

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

/// Most threads of a gateway. Its work is waiting; more threads cost memory.
const MOST_THREADS: usize = 4;
/// How long the end of a gateway waits for blocking calls, such as a write to a disk.
const END_WAIT: Duration = Duration::from_secs(2);

/// Like [`block_on`], with several threads. Tasks that still run at the end are dropped, with the tools they run.
///
/// # Errors
/// As for [`block_on`].
pub(crate) fn block_on_threads<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| CliError::failure(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(END_WAIT);
    Ok(outcome)
}
