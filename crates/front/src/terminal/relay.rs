//! What the line editor reads: the keys of the terminal, without its reports, and each in one piece.
//!
//! The line editor reads standard input by itself, and takes reports and the pieces of keys for text. So while it reads,
//! standard input is a terminal of this program's own, into which a thread writes what the filter passes on.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use myclaw_files::open_pseudo_terminal;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionread, read, write};
use rustix::stdio::{dup2_stdin, stdin};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use super::keys::{filter, translate_earlier};

/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// Keys that wait for the line editor before more are read.
const MOST_WAITING: usize = 64 * 1024;
/// Ctrl-C.
const INTERRUPT: &[u8] = b"\x03";
/// The lowest descriptor for the terminal: those below are the standard ones.
const LOWEST: i32 = 3;

/// The two ends of this program's own terminal.
struct Pair {
    writing: OwnedFd,
    reading: OwnedFd,
}

/// The user's terminal while standard input is the own one, with the mode that it had.
static LENT: Mutex<Option<(Arc<OwnedFd>, Termios)>> = Mutex::new(None);
/// Keys that the line editor has not taken.
static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The own terminal; made once, because the line editor keeps what it reads.
fn pair() -> Option<&'static Pair> {
    static PAIR: OnceLock<Option<Pair>> = OnceLock::new();
    PAIR.get_or_init(|| make_pair().ok()).as_ref()
}

fn make_pair() -> io::Result<Pair> {
    let (writing, name) = open_pseudo_terminal()?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let reading = open(name.as_c_str(), flags, Mode::empty())?;
    // The user's terminal has the mode that counts. This one passes on everything as it is.
    let mut mode = tcgetattr(&reading)?;
    mode.make_raw();
    tcsetattr(&reading, OptionalActions::Now, &mode)?;
    fcntl_setfl(&writing, fcntl_getfl(&writing)? | OFlags::NONBLOCK)?;
    Ok(Pair { writing, reading })
}

/// Standard input is the own terminal as long as this lives.
pub struct Relay {
    /// Ends the thread when it is closed.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Begins; `None` if standard input is no terminal, or there is no terminal to be had: then the line editor reads
    /// standard input as it is.
    pub fn begin() -> Option<Self> {
        if !isatty(stdin()) {
            return None;
        }
        Self::try_begin(pair()?).ok()
    }

    fn try_begin(pair: &'static Pair) -> io::Result<Self> {
        let terminal = Arc::new(fcntl_dupfd_cloexec(stdin(), LOWEST)?);
        let (stopped, stop) = io::pipe()?;
        let own = tcgetattr(&*terminal)?;
        let mut mode = own.clone();
        mode.make_raw();
        *lent() = Some((Arc::clone(&terminal), own));
        let begin = || {
            tcsetattr(&*terminal, OptionalActions::Now, &mode)?;
            let before = ioctl_fionread(&*terminal).unwrap_or(0);
            dup2_stdin(&pair.reading)?;
            let input = Arc::clone(&terminal);
            thread::Builder::new().name("keys".to_owned()).spawn(move || {
                // The error says that the terminal is gone; a signal ends the program then.
                let _ = pass_on(&input, &pair.writing, &stopped, before);
            })
        };
        match begin() {
            Ok(thread) => Ok(Self { stop: Some(stop), thread: Some(thread) }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
        restore();
    }
}

/// Gives standard input and the mode of the terminal back, if they are lent.
pub(super) fn restore() {
    if let Some((terminal, own)) = lent().take() {
        // The errors are ignored: the terminal is gone.
        let _ = dup2_stdin(&*terminal);
        let _ = tcsetattr(&*terminal, OptionalActions::Now, &own);
    }
}

/// Reads, with `work`, what the line editor has got and not handled, and then what it has not got.
pub(super) fn rest(work: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let of_editor = || -> io::Result<Vec<u8>> {
        let Some(pair) = pair() else { return Ok(work()) };
        let terminal = fcntl_dupfd_cloexec(stdin(), LOWEST)?;
        dup2_stdin(&pair.reading)?;
        let bytes = work();
        dup2_stdin(&terminal)?;
        Ok(bytes)
    };
    let mut bytes = of_editor().unwrap_or_default();
    bytes.append(&mut waiting());
    bytes
}

/// Passes keys on until `stopped` is closed or the terminal is gone. The first `before` bytes were sent in the
/// terminal's own mode.
fn pass_on(
    terminal: &OwnedFd,
    writing: &OwnedFd,
    stopped: &PipeReader,
    mut before: u64,
) -> Result<(), Errno> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let (patience, mut waiting) = (filter().patience(), waiting());
        let reads = if waiting.len() < MOST_WAITING { PollFlags::IN } else { PollFlags::empty() };
        let writes = if waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        let mut ready = [
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(terminal.as_fd(), reads),
            PollFd::from_borrowed_fd(writing.as_fd(), writes),
        ];
        match poll(&mut ready, patience.map(timespec).as_ref()) {
            Ok(0) => filter().give_up(&mut waiting),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        let [has_stopped, has_keys, takes_keys] = ready.map(|one| one.revents());
        if !has_stopped.is_empty() {
            return Ok(());
        }
        if !has_keys.is_empty() {
            let count = match read(terminal, &mut buffer) {
                Ok(count) if count > 0 => count,
                Err(Errno::INTR | Errno::AGAIN) => continue,
                _ => {
                    // The line editor ends, and finds at its next start that the terminal is gone.
                    return write(writing, INTERRUPT).map(drop);
                }
            };
            translate_earlier(&mut buffer[..count], &mut before);
            filter().push(&buffer[..count], &mut waiting);
        }
        if (takes_keys.contains(PollFlags::OUT) || writes.is_empty()) && !waiting.is_empty() {
            match write(writing, &waiting) {
                Ok(count) => drop(waiting.drain(..count)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

fn lent() -> MutexGuard<'static, Option<(Arc<OwnedFd>, Termios)>> {
    LENT.lock()
}

fn waiting() -> MutexGuard<'static, Vec<u8>> {
    WAITING.lock()
}
