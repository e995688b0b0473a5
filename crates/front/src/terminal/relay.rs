//! What the line editor reads: the keys of the terminal, without its reports, and each in one piece.
//!
//! The line editor reads standard input by itself, and takes reports and the pieces of keys for text. So while it reads,
//! standard input is a terminal of this program's own, into which a thread writes what the filter passes on.
//!
//! The line editor takes all keys that are there at once, and drops those after one that ends its work, such as Enter or
//! the key of a command. So the thread waits after such a key until the editor has either ended or gone on with the line.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use myclaw_files::open_pseudo_terminal;
use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionread, read, write};
use rustix::stdio::{dup2_stdin, stdin};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use super::keys::{KeyFilter, Kind, filter, kinds, translate_earlier};

/// Bytes that are read at once.
const READ_BYTES: usize = 4096;
/// Keys that wait for the line editor before more are read.
const MOST_WAITING: usize = 64 * 1024;
/// How often the thread looks whether the line goes on after a key that may end it.
const HELD_INTERVAL: Duration = Duration::from_millis(5);
/// Longest time until the editor reads such a key.
const LONGEST_UNREAD: Duration = Duration::from_secs(5);
/// Longest time until it handles the key: it may ignore it.
const LONGEST_UNHANDLED: Duration = Duration::from_millis(300);
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
static WAITING: Mutex<Waiting> = Mutex::new(Waiting::new());
/// Whether the line editor may get more keys.
static GATE: Mutex<Gate> = Mutex::new(Gate::Open);

struct Waiting {
    /// Places of the cursor. The editor needs them at once.
    places: Vec<u8>,
    keys: Vec<u8>,
    /// The offsets in `keys` behind those that may end the line, in order.
    ends: VecDeque<usize>,
}

#[derive(Clone, Copy)]
enum Gate {
    Open,
    /// The editor got a key that may end the line, at this time.
    Closed(Instant),
    /// The editor has read that key, at this time.
    Read(Instant),
}

/// The line editor has read a key that may end the line.
pub fn end_was_read() {
    let mut gate = GATE.lock();
    if matches!(*gate, Gate::Closed(_)) {
        *gate = Gate::Read(Instant::now());
    }
}

/// The line editor draws: if it has read a key that may end the line, then the line goes on.
pub fn line_is_drawn() {
    let mut gate = GATE.lock();
    if matches!(*gate, Gate::Read(_)) {
        *gate = Gate::Open;
    }
}

impl Gate {
    fn is_open(self) -> bool {
        match self {
            Self::Open => true,
            Self::Closed(since) => since.elapsed() >= LONGEST_UNREAD,
            Self::Read(since) => since.elapsed() >= LONGEST_UNHANDLED,
        }
    }
}

impl Waiting {
    const fn new() -> Self {
        Self { places: Vec::new(), keys: Vec::new(), ends: VecDeque::new() }
    }

    /// Appends the keys that `filtered` gets from the filter.
    fn append(&mut self, filtered: impl FnOnce(&mut KeyFilter, &mut Vec<u8>)) {
        let mut filter = filter();
        let (was_pasting, mut keys) = (filter.is_pasting(), Vec::new());
        filtered(&mut filter, &mut keys);
        for (key, kind) in kinds(&keys, was_pasting) {
            match kind {
                Kind::Place => self.places.extend(key),
                Kind::Key | Kind::End => self.keys.extend(key),
            }
            if kind == Kind::End {
                self.ends.push_back(self.keys.len());
            }
        }
    }

    /// Writes what the editor may get now: keys only up to one that may end the line, and none while the gate is closed.
    fn write(&mut self, writing: &OwnedFd) -> Result<(), Errno> {
        if !self.places.is_empty() {
            let count = write(writing, &self.places)?;
            self.places.drain(..count);
            return Ok(());
        }
        // Locked meanwhile, because the editor may read the key at once.
        let mut gate = GATE.lock();
        if !gate.is_open() {
            return Ok(());
        }
        let end = self.ends.front().copied().unwrap_or(self.keys.len());
        let count = write(writing, &self.keys[..end])?;
        self.keys.drain(..count);
        self.ends.iter_mut().for_each(|end| *end -= count);
        if self.ends.pop_front_if(|end| *end == 0).is_some() {
            *gate = Gate::Closed(Instant::now());
        }
        Ok(())
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::replace(self, Self::new()).keys
    }
}

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
    bytes.append(&mut waiting().take());
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
    *GATE.lock() = Gate::Open;
    loop {
        let (patience, mut waiting) = (filter().patience(), waiting());
        let is_held = !waiting.keys.is_empty() && !GATE.lock().is_open();
        let writes_keys = !waiting.keys.is_empty() && !is_held;
        let has_space = waiting.keys.len() < MOST_WAITING;
        let reads = if has_space { PollFlags::IN } else { PollFlags::empty() };
        let writes = if writes_keys || !waiting.places.is_empty() {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        let mut ready = [
            PollFd::from_borrowed_fd(stopped.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(terminal.as_fd(), reads),
            PollFd::from_borrowed_fd(writing.as_fd(), writes),
        ];
        let wait = if is_held { Some(HELD_INTERVAL) } else { patience };
        match poll(&mut ready, wait.map(timespec).as_ref()) {
            Ok(0) if is_held => continue,
            Ok(0) => waiting.append(|filter, keys| filter.give_up(keys)),
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
            waiting.append(|filter, keys| filter.push(&buffer[..count], keys));
        }
        if takes_keys.contains(PollFlags::OUT) {
            match waiting.write(writing) {
                Ok(()) | Err(Errno::INTR | Errno::AGAIN) => {}
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

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock()
}
