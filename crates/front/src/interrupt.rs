//! SIGINT, SIGTERM and SIGHUP: the first aborts the turn, the second quits. After SIGTERM and SIGHUP a chat ends with
//! its turn. A second SIGHUP changes nothing: the kernel and the shell each send one when a terminal is closed, and the
//! turn that the first aborts still has to write down what its tool has printed.
//!
//! A thread of its own waits for them, because they must work even if the main thread is blocked in a write to a reader
//! that no longer reads. It sleeps in a read; its stack is small.

use std::io::{self, IsTerminal as _, Read as _};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

#[cfg_attr(unix, path = "interrupt/unix.rs")]
#[cfg_attr(windows, path = "interrupt/windows.rs")]
mod basis;

pub use self::basis::survive_file_size_limit;
use self::basis::{Handle, SIGHUP, SIGINT, SIGTERM, SIGUSR2, Signals};
use crate::exit::{CliError, Exit};
use crate::panic::advice_about;
use crate::terminal;

/// Stack of the waiting thread: enough to read the process table when it ends background jobs.
const STACK_BYTES: usize = 256 * 1024;
/// Time for the main thread to kill the tools and exit after the second signal.
const QUIT_GRACE: Duration = Duration::from_secs(1);
/// Time for the main thread to kill the tools of a turn that has not ended in time.
const KILL_GRACE: Duration = Duration::from_millis(100);
/// How long the turn of a chat may take to end after SIGTERM. What it has said so far is in the session by then.
const LONGEST_END: Duration = Duration::from_millis(700);
/// How often the waiting thread looks for a third signal meanwhile.
const QUIT_POLL: Duration = Duration::from_millis(10);

/// The effect of the next signal.
#[derive(Debug, Default)]
enum Target {
    /// No turn runs: exit.
    #[default]
    Leave,
    /// A turn runs: abort it. The following signal quits.
    Abort {
        /// Aborts the turn in good order.
        cancel: CancellationToken,
        /// Drops the turn.
        quit: CancellationToken,
    },
    /// A turn is being aborted: drop it.
    Quit(CancellationToken),
}

/// The installed handlers. There is one per process.
pub struct Interrupts {
    target: Arc<Mutex<Target>>,
    /// Whether a signal asked the whole program to end.
    is_ending: Arc<AtomicBool>,
    before_leaving: Arc<OnceLock<Farewell>>,
    on_hangup: Arc<OnceLock<Hangup>>,
    on_restart: Arc<OnceLock<Farewell>>,
    /// Adds signals to those that are waited for.
    handle: OnceLock<Handle>,
    /// Whether an aborted turn may take only [`LONGEST_END`] after SIGTERM.
    limits_turns: Arc<AtomicBool>,
}

/// What SIGHUP does where it does not end the program.
struct Hangup {
    /// Whether standard input or standard error was a terminal at first.
    had_terminal: bool,
    work: Farewell,
}

impl Hangup {
    /// Whether SIGHUP came because the terminal was closed.
    fn has_lost_terminal(&self) -> bool {
        self.had_terminal && !has_terminal()
    }
}

fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stderr().is_terminal()
}

/// Work before the process exits for a signal.
type Farewell = Box<dyn Fn() + Send + Sync>;

impl Interrupts {
    /// Installs the handlers. While no turn is armed a signal ends the process.
    ///
    /// # Errors
    /// The system cannot install the handlers or start the thread.
    pub fn install() -> Result<Self, CliError> {
        let interrupts = Self {
            target: Arc::default(),
            is_ending: Arc::default(),
            before_leaving: Arc::default(),
            on_hangup: Arc::default(),
            on_restart: Arc::default(),
            handle: OnceLock::new(),
            limits_turns: Arc::default(),
        };
        interrupts.spawn().map_err(|error| {
            let advice = advice_about(&error);
            CliError::failure(format!("cannot listen for Ctrl-C: {error}{advice}"))
        })?;
        Ok(interrupts)
    }

    /// Whether SIGTERM or SIGHUP has asked the program to end.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Calls `work` before a signal ends the process. It is called from another thread. The first call counts.
    pub fn before_leaving(&self, work: impl Fn() + Send + Sync + 'static) {
        let _ = self.before_leaving.set(Box::new(work));
    }

    /// Calls `work` for SIGHUP, from another thread, unless the terminal was closed. The first call counts.
    pub fn on_hangup(&self, work: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_hangup.set(Hangup { had_terminal: has_terminal(), work: Box::new(work) });
    }

    /// Calls `work` for SIGUSR2, from another thread. The first call counts. Until then the signal ends the process.
    pub fn on_restart(&self, work: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_restart.set(Box::new(work));
        if let Some(handle) = self.handle.get() {
            let _ = handle.add_signal(SIGUSR2);
        }
    }

    /// Ends the process 0.7 seconds after SIGTERM, even if a turn has not ended by then: a tool, a hook or a server
    /// can be slow to heed the abort.
    pub fn limit_turns(&self) {
        self.limits_turns.store(true, Ordering::SeqCst);
    }

    fn spawn(&self) -> io::Result<()> {
        let limits_turns = Arc::clone(&self.limits_turns);
        let on_hangup = Arc::clone(&self.on_hangup);
        let on_restart = Arc::clone(&self.on_restart);
        let before_leaving = Arc::clone(&self.before_leaving);
        let (target, is_ending) = (Arc::clone(&self.target), Arc::clone(&self.is_ending));
        let ignored = ignored_signals();
        let wanted =
            [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0);
        let mut signals = Signals::new(wanted)?;
        let _ = self.handle.set(signals.handle());
        let wait = move || {
            while let Some(signal) = signals.wait().next() {
                if signal == SIGHUP
                    && let Some(hangup) = on_hangup.get().filter(|it| !it.has_lost_terminal())
                {
                    (hangup.work)();
                    continue;
                }
                if signal == SIGUSR2 {
                    if let Some(restart) = on_restart.get() {
                        restart();
                    }
                    continue;
                }
                let was_ending = is_ending.fetch_or(signal != SIGINT, Ordering::SeqCst);
                if !(was_ending && signal == SIGHUP) {
                    handle(&target, &mut signals, &before_leaving);
                }
                if signal == SIGTERM && limits_turns.load(Ordering::SeqCst) {
                    wait_for_signal(&mut signals, LONGEST_END);
                    let quits = std::mem::take(&mut *target.lock());
                    if let Target::Quit(quit) = quits {
                        // The tools are killed with the future that runs them.
                        quit.cancel();
                        wait_for_signal(&mut signals, KILL_GRACE);
                    }
                    leave(&before_leaving);
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES).spawn(wait)?;
        Ok(())
    }

    /// Lets the next signal fire `cancel`, and the one after it end [`ArmedTurn::unless_quit`]. Ends with the guard.
    pub fn arm(&self, cancel: CancellationToken) -> ArmedTurn<'_> {
        let quit = CancellationToken::new();
        *self.target.lock() = Target::Abort { cancel, quit: quit.clone() };
        ArmedTurn { interrupts: self, quit }
    }
}

/// A turn that signals abort, as long as this lives.
pub struct ArmedTurn<'a> {
    interrupts: &'a Interrupts,
    quit: CancellationToken,
}

impl ArmedTurn<'_> {
    /// Runs `work`, and drops it at a second signal: tools die with the future that runs them.
    ///
    /// # Errors
    /// There was a second signal, or the work failed.
    pub async fn unless_quit<T>(
        &self,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = self.quit.cancelled() => Err(CliError::quit()),
        }
    }
}

impl Drop for ArmedTurn<'_> {
    fn drop(&mut self) {
        // After a second signal the process exits in any case.
        if !self.quit.is_cancelled() {
            *self.interrupts.target.lock() = Target::Leave;
        }
    }
}

/// The signals that this process was started to ignore, one bit each from signal 1 on: `nohup` and shells that put a
/// job into the background do so on purpose. Zero if the system does not provide them.
fn ignored_signals() -> u64 {
    let status = read_proc("/proc/self/status");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// A file of `/proc`, read at once: these have no length that says how much to read. Empty if it cannot be read.
pub fn read_proc(path: &str) -> String {
    /// Longer than the usual ones, and the longest.
    const ROOM: (usize, u64) = (8 * 1024, 1024 * 1024);
    let mut text = String::with_capacity(ROOM.0);
    // What was read before an error is used.
    let _ = std::fs::File::open(path).map(|file| file.take(ROOM.1).read_to_string(&mut text));
    text
}

fn handle(target: &Mutex<Target>, signals: &mut Signals, before_leaving: &OnceLock<Farewell>) {
    let mut target = target.lock();
    match std::mem::take(&mut *target) {
        Target::Leave => leave(before_leaving),
        Target::Abort { cancel, quit } => {
            *target = Target::Quit(quit);
            drop(target);
            cancel.cancel();
        }
        Target::Quit(quit) => {
            drop(target);
            quit.cancel();
            wait_for_signal(signals, QUIT_GRACE);
            leave(before_leaving);
        }
    }
}

/// Waits for another signal, or for the main thread to exit.
fn wait_for_signal(signals: &mut Signals, limit: Duration) {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline && signals.pending().next().is_none() {
        thread::sleep(QUIT_POLL);
    }
}

fn leave(before_leaving: &OnceLock<Farewell>) -> ! {
    if let Some(work) = before_leaving.get() {
        work();
    }
    terminal::restore();
    process::exit(i32::from(Exit::Aborted as u8));
}
