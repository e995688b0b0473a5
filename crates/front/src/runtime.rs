//! The asynchronous runtime, made only by commands that need it: one thread, or several for the gateway.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

#[cfg_attr(unix, path = "runtime/unix.rs")]
#[cfg_attr(windows, path = "runtime/windows.rs")]
mod basis;

pub use self::basis::raise_file_limit;
use crate::exit::CliError;
use crate::panic::advice_about;

/// Runs `work` to its end. Blocking calls that still run then are not waited for.
///
/// # Errors
/// The system cannot provide the resources of a runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    // Its second thread would begin a heap of its own.
    myclaw_exec::use_one_heap();
    let runtime = build(&mut Builder::new_current_thread(), FOREVER)?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(outcome)
}

/// A runtime with a thread for blocking calls that stays, and others that end when they had nothing to do for `idle`. Without
/// any such thread a call for which the system allows none would end in a panic; with one it waits until that one is free.
fn build(builder: &mut Builder, idle: Duration) -> Result<Runtime, CliError> {
    let failed = |error: std::io::Error| {
        let advice = advice_about(&error);
        CliError::failure(format!("cannot start: {error}{advice}"))
    };
    let runtime = builder.enable_all().thread_keep_alive(idle).build().map_err(failed)?;
    begin_blocking_thread(&runtime).map_err(failed)?;
    if idle < FOREVER {
        // One thread has something to do before it would end.
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(idle / 3).await;
                drop(tokio::task::spawn_blocking(|| {}));
            }
        });
    }
    Ok(runtime)
}

/// Starts the thread for blocking calls. The runtime cannot report that the system allows none; it panics.
fn begin_blocking_thread(runtime: &Runtime) -> std::io::Result<()> {
    let hook = std::panic::take_hook();
    // The caller reports it.
    std::panic::set_hook(Box::new(|_| {}));
    let begun = catch_unwind(AssertUnwindSafe(|| drop(runtime.spawn_blocking(|| {}))));
    std::panic::set_hook(hook);
    begun.map_err(|_| std::io::ErrorKind::WouldBlock.into())
}

/// How long a thread for blocking calls waits for the next one: a year. A program for one person makes few.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The same for a gateway, in which many sessions work at once and then none. Idle threads take turns, so that the looks at
/// the config, one in a second, keep a few of them.
const IDLE_OF_GATEWAY: Duration = Duration::from_secs(5);
/// Most threads of a gateway. Its work is waiting; more threads cost memory.
const MOST_THREADS: usize = 4;
/// Most threads for blocking calls of a gateway: as many as a thousand turns need that begin within some seconds. Without a
/// limit of its own the runtime starts hundreds for calls that take microseconds to milliseconds.
const MOST_BLOCKING_THREADS: usize = 64;
/// How long the end of a gateway waits for blocking calls, such as a write to a disk.
const END_WAIT: Duration = Duration::from_secs(2);

/// Like [`block_on`], with several threads. Tasks that still run at the end are dropped, with the tools they run.
///
/// # Errors
/// As for [`block_on`].
pub fn block_on_threads<T>(work: impl Future<Output = T>) -> Result<T, CliError> {
    // Before there are threads that could begin heaps of their own.
    myclaw_exec::use_one_heap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).max_blocking_threads(MOST_BLOCKING_THREADS);
    let runtime = build(&mut builder, IDLE_OF_GATEWAY)?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(END_WAIT);
    Ok(outcome)
}
