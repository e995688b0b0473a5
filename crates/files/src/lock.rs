//! Advisory locks (`flock`), respected by every process of this program.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use crate::portable::process::Pid;
use crate::portable::{
    MetadataExt, has_ended, try_lock_readable, try_lock_shared, try_lock_to_look,
};
use crate::private_options;

/// First pause between two tries; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Longest pause between two tries: short enough that nobody notices, long enough to cost nothing.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// How long a lock may outlive the process that took it: a child process that it was starting has a copy of the open file until
/// it starts its program.
const LEFT_BEHIND: Duration = Duration::from_secs(2);

/// How to wait while another holder has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Give up at once, or after 2 s if the process that took the lock is gone.
    Fail,
    /// Try again until this much time has passed.
    Until(Duration),
}

/// The processes that may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Any number of shared holders, which read or append.
    Shared,
    /// One holder, who no longer writes; others may read.
    Readable,
    /// One holder alone.
    Exclusive,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Somebody else has it.
    Held {
        /// The process that wrote its id into the lock file, as far as it is known and no other one has that id now.
        process_id: Option<u32>,
        /// How long this call waited.
        waited: Duration,
    },
    /// The system refused.
    Io {
        /// The attempted action, in words that follow "failed to"; the path follows them.
        action: &'static str,
        /// The I/O error.
        source: io::Error,
    },
}

/// Locks an open file. Closing the file releases the lock, so a killed process leaves none behind.
///
/// # Errors
/// [`LockError::Held`] if others held it for too long; otherwise an I/O error.
pub fn lock(file: &File, kind: LockKind, wait: LockWait) -> Result<(), LockError> {
    let waiting = Waiting::new(wait);
    loop {
        let tried = match kind {
            LockKind::Shared => try_lock_shared(file),
            LockKind::Readable => try_lock_readable(file),
            LockKind::Exclusive => file.try_lock(),
        };
        match tried {
            Ok(()) => return Ok(()),
            // Such locks are held for moments only. With growing pauses, a waiter would miss its turn each time the
            // same holder takes the lock again.
            Err(TryLockError::WouldBlock) => waiting.pause(&mut { FIRST_PAUSE }, None)?,
            Err(TryLockError::Error(source)) => {
                return Err(LockError::Io { action: "lock", source });
            }
        }
    }
}

/// How long a caller has waited, and how long it will.
struct Waiting {
    wait: LockWait,
    started: Instant,
}

impl Waiting {
    fn new(wait: LockWait) -> Self {
        Self { wait, started: Instant::now() }
    }

    /// Sleeps until the next try, or gives up.
    fn pause(&self, pause: &mut Duration, holder: Option<Holder>) -> Result<(), LockError> {
        let state = holder.map(|holder| holder.state());
        let process_id =
            holder.filter(|_| state != Some(HolderState::Replaced)).map(|holder| holder.process_id);
        let limit = match self.wait {
            LockWait::Until(limit) => limit,
            LockWait::Fail if state.is_some_and(|state| state != HolderState::Alive) => LEFT_BEHIND,
            LockWait::Fail => {
                let has_waited = *pause > FIRST_PAUSE;
                let waited = if has_waited { self.started.elapsed() } else { Duration::ZERO };
                return Err(LockError::Held { process_id, waited });
            }
        };
        let waited = self.started.elapsed();
        let left = limit.saturating_sub(waited);
        if left.is_zero() {
            return Err(LockError::Held { process_id, waited });
        }
        thread::sleep((*pause).min(left));
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

/// A held lock on a file that exists for this purpose only and names the process that holds it. Dropping it removes the
/// file, unless it is to stay, and lets the next one in.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    /// The lock lives as long as this file is open.
    file: File,
    /// Whether the file stays when the lock is given back.
    stays: bool,
}

impl LockFile {
    /// Takes the lock at `path`, whose directory must exist.
    ///
    /// # Errors
    /// [`LockError::Held`] with the holder's process id; otherwise an I/O error.
    pub fn acquire(path: &Path, wait: LockWait) -> Result<Self, LockError> {
        let waiting = Waiting::new(wait);
        let mut pause = FIRST_PAUSE;
        loop {
            match Self::try_acquire(path)? {
                Attempt::Acquired(lock) => return Ok(lock),
                Attempt::Removed => {}
                Attempt::HeldBy(holder) => waiting.pause(&mut pause, holder)?,
            }
        }
    }

    /// Leaves the file in place when the lock is given back. For locks that are taken again and again: to create and to
    /// remove a file costs more than everything else about a lock.
    pub fn leave_file(&mut self) {
        self.stays = true;
    }

    /// True if another file is in the place of this one: somebody removed it, and somebody else may hold the other. As long
    /// as none is there, nobody else has the lock.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn is_replaced(&self) -> io::Result<bool> {
        Ok(!is_still_at(&self.file, &self.path)? && self.path.try_exists()?)
    }

    fn try_acquire(path: &Path) -> Result<Attempt, LockError> {
        let failed = |action| move |source| LockError::Io { action, source };
        let mut options = private_options();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .open(path)
            .map_err(failed("open the lock file"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Attempt::HeldBy(Holder::read(&mut file)));
            }
            Err(TryLockError::Error(source)) => {
                return Err(LockError::Io { action: "lock", source });
            }
        }
        if !is_still_at(&file, path).map_err(failed("check the lock file"))? {
            return Ok(Attempt::Removed);
        }
        // The holder is only for the message to other processes, so a full disk is no reason to fail.
        let own = Holder::this_process();
        if Holder::read(&mut file) != Some(own) {
            let _ = own.write(&mut file);
        }
        Ok(Attempt::Acquired(Self { path: path.to_path_buf(), file, stays: false }))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Removed while still locked: a process that waits on the removed file notices and locks the next one. A file
        // that cannot be removed is harmless, because only the lock on it counts. If somebody put another file there,
        // it is not ours to remove.
        if !self.stays && is_still_at(&self.file, &self.path).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
        // Closing is not enough: a child process has a copy of the open file until it starts its program.
        let _ = self.file.unlock();
    }
}

enum Attempt {
    Acquired(LockFile),
    /// The file was removed (by its last holder) between opening and locking it.
    Removed,
    /// Another holder, as far as its process is known.
    HeldBy(Option<Holder>),
}

/// Whether somebody holds the lock at `path`. Creates no file, and is in nobody's way for longer than a moment.
///
/// # Errors
/// The file cannot be opened or locked.
pub fn is_locked(path: &Path) -> Result<bool, LockError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(LockError::Io { action: "open the lock file", source }),
    };
    match try_lock_to_look(&file) {
        Ok(()) => {
            let _ = file.unlock(); // closing is not enough, as for a [`LockFile`]
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(LockError::Io { action: "lock", source }),
    }
}

/// True if `file` is the file at `path`.
///
/// # Errors
/// An I/O error; a missing file is not an error.
pub fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    still_at(file, path).map(|found| found.is_some())
}

/// What `file` is, if it is the file at `path`.
///
/// # Errors
/// As for [`is_still_at`].
pub fn still_at(file: &File, path: &Path) -> io::Result<Option<Metadata>> {
    let held = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(found) => Ok(((found.dev(), found.ino()) == (held.dev(), held.ino())).then_some(held)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The process that took a lock, as its file names it: its id and, where the system tells, when it started. The system gives
/// the id of a process that has ended to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    process_id: u32,
    /// In ticks since the system started. Lock files of earlier versions lack it.
    started: Option<u64>,
}

/// What became of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HolderState {
    /// It runs, as far as that can be seen.
    Alive,
    /// It has ended, perhaps without being collected by its parent.
    Ended,
    /// It has ended, and another process has its id.
    Replaced,
}

impl Holder {
    fn this_process() -> Self {
        static STARTED: OnceLock<Option<u64>> = OnceLock::new();
        let process_id = std::process::id();
        let started = || process_stat(process_id).and_then(|stat| stat.started);
        Self { process_id, started: *STARTED.get_or_init(started) }
    }

    fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.take(64).read_to_string(&mut text).ok()?;
        let mut words = text.split_whitespace();
        let process_id = words.next()?.parse().ok()?;
        Some(Self { process_id, started: words.next().and_then(|word| word.parse().ok()) })
    }

    fn write(self, file: &mut File) -> io::Result<()> {
        let Self { process_id, started } = self;
        let started = started.map_or_else(String::new, |ticks| format!(" {ticks}"));
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{process_id}{started}\n").as_bytes())
    }

    fn state(self) -> HolderState {
        let id = i32::try_from(self.process_id).ok().and_then(Pid::from_raw);
        if id.is_none_or(has_ended) {
            return HolderState::Ended;
        }
        match process_stat(self.process_id) {
            Some(stat) if self.started.is_some() && stat.started != self.started => {
                HolderState::Replaced
            }
            Some(stat) if stat.has_ended => HolderState::Ended,
            _ => HolderState::Alive,
        }
    }
}

/// What the system tells about a process.
struct ProcessStat {
    /// Whether only its parent keeps it in the list.
    has_ended: bool,
    /// In ticks since the system started.
    started: Option<u64>,
}

/// Reads `/proc/PID/stat`. `None` where there is no such file.
fn process_stat(process_id: u32) -> Option<ProcessStat> {
    /// The fields in front of the start are the id, the name, and these, of which the first is the state (proc(5)).
    const BEFORE_START: usize = 19;
    let text = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    // The name of the program stands in brackets and may have any characters.
    let (_, rest) = text.rsplit_once(") ")?;
    let started = rest.split_whitespace().nth(BEFORE_START).and_then(|word| word.parse().ok());
    Some(ProcessStat { has_ended: rest.starts_with(['Z', 'X']), started })
}
