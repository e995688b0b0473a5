//! Processes by their ids.

use std::io;
use std::num::NonZero;
use std::process::{Command, Stdio};

/// The id of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pid(NonZero<i32>);

impl Pid {
    /// The process with this id; `None` for 0.
    pub fn from_raw(raw: i32) -> Option<Self> {
        NonZero::new(raw).map(Self)
    }
    /// The process of a child. Ids are multiples of 4, and 0 belongs to the system.
    pub fn of_child(child: &std::process::Child) -> Self {
        Self(NonZero::new(child.id().cast_signed()).unwrap_or(NonZero::<i32>::MAX))
    }
    /// Its number.
    pub fn as_raw_nonzero(self) -> NonZero<i32> {
        self.0
    }
    /// Its number.
    pub fn as_raw_pid(self) -> i32 {
        self.0.get()
    }
}

/// What a process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(bool);

impl Signal {
    /// To end.
    pub const TERM: Self = Self(false);
    /// To end at once.
    pub const KILL: Self = Self(true);
    /// To end.
    pub const INT: Self = Self(false);
    /// To begin anew, which no program on Windows knows.
    pub const USR2: Self = Self(false);
}

/// The user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uid(u32);

impl Uid {
    /// The number of all users.
    pub fn as_raw(self) -> u32 {
        self.0
    }
    /// No.
    pub fn is_root(self) -> bool {
        false
    }
}

/// The user.
pub fn getuid() -> Uid {
    Uid(super::OWNER)
}

/// The user.
pub fn geteuid() -> Uid {
    getuid()
}

/// The group.
pub fn getegid() -> Uid {
    getuid()
}

/// It is not known.
pub fn getppid() -> Option<Pid> {
    None
}

/// Ends a process with all that it has started (`taskkill`).
///
/// # Errors
/// There is none, or it is not one's own.
pub fn kill_process(process: Pid, signal: Signal) -> io::Result<()> {
    let mut command = Command::new("taskkill");
    command.args(["/T", "/PID", &process.as_raw_pid().to_string()]);
    if signal.0 {
        command.arg("/F");
    }
    let ended =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if ended.success() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// The same: a process is ended with all that it has started.
///
/// # Errors
/// As for [`kill_process`].
pub fn kill_process_group(process: Pid, signal: Signal) -> io::Result<()> {
    kill_process(process, signal)
}

/// Whether there is such a process (`tasklist`).
///
/// # Errors
/// There is none.
pub fn test_kill_process(process: Pid) -> io::Result<()> {
    let filter = format!("PID eq {}", process.as_raw_pid());
    let said = Command::new("tasklist").args(["/NH", "/FO", "CSV", "/FI", &filter]).output()?;
    let wanted = format!("\"{}\"", process.as_raw_pid());
    match String::from_utf8_lossy(&said.stdout).contains(&wanted) {
        true => Ok(()),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}
