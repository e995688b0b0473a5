//! SIGINT, SIGTERM and SIGHUP: the first aborts the turn, the second quits.
//!
//! A thread of its own waits for them, because the second one must work even when the main thread is stuck in a write
//! to a reader that reads no more. It sleeps in a read; its stack is the smallest there is.

use std::io;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::terminal;

/// Stack of the waiting thread. It calls little; the standard library's own minimum is below this.
const STACK_BYTES: usize = 64 * 1024;

/// What a signal does right now.
#[derive(Debug, Default)]
enum Target {
    /// No turn runs: quit.
    #[default]
    Quit,
    /// A turn runs: abort it, then [`Target::QuitAfterAbort`].
    Abort(CancellationToken),
    /// A turn is being aborted: quit, whatever it still does.
    QuitAfterAbort,
}

/// The installed handlers. There is one per process.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    target: Arc<Mutex<Target>>,
}

impl Interrupts {
    /// Installs the handlers. Until a turn is armed a signal quits.
    ///
    /// # Errors
    /// If the system refuses the handlers or the thread.
    pub(crate) fn install() -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let target = Arc::new(Mutex::new(Target::default()));
        let shared = Arc::clone(&target);
        thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES).spawn(
            move || {
                for _signal in signals.forever() {
                    handle(&shared);
                }
            },
        )?;
        Ok(Self { target })
    }

    /// Lets the next signal abort the turn that listens to `cancel`, and the one after it quit. Ends with the guard.
    pub(crate) fn arm(&self, cancel: CancellationToken) -> ArmedTurn<'_> {
        *lock(&self.target) = Target::Abort(cancel);
        ArmedTurn { interrupts: self }
    }
}

/// A turn that signals abort, as long as this lives.
#[derive(Debug)]
pub(crate) struct ArmedTurn<'a> {
    interrupts: &'a Interrupts,
}

impl Drop for ArmedTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.interrupts.target) = Target::Quit;
    }
}

fn handle(target: &Mutex<Target>) {
    let mut target = lock(target);
    match std::mem::replace(&mut *target, Target::QuitAfterAbort) {
        Target::Abort(cancel) => cancel.cancel(),
        Target::Quit | Target::QuitAfterAbort => {
            terminal::restore();
            process::exit(i32::from(Exit::Aborted as u8));
        }
    }
}

fn lock(target: &Mutex<Target>) -> MutexGuard<'_, Target> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}
