//! A handle to a running program: its input, how much of its output is kept, and how it is found again.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use myclaw_files::portable::process::Pid;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};

use crate::mark::Mark;
use crate::tree::{Tree, start_of};

/// Most pieces of input that wait for a program that does not read. The caller bounds their size.
const MAX_WAITING_PIECES: usize = 16;

/// Where a program gets its input while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// From [`ChildSpec::input`](crate::ChildSpec::input) alone.
    None,
    /// From a pipe that stays open, into which a [`Handle`] writes.
    Pipe,
    /// From a terminal of its own, to which it also prints.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Width.
    pub columns: u16,
    /// Height.
    pub rows: u16,
}

/// A handle to a program that is about to run, runs, or has ended.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    /// `None` if nothing can be written.
    input: Option<mpsc::Sender<Piece>>,
    is_terminal: bool,
}

/// The other end of a [`Handle`], for [`run_attached`](crate::run_attached) or another [`Runner`](crate::Runner).
#[derive(Debug)]
pub struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) attachment: Attachment,
    pub(crate) input: Option<mpsc::Receiver<Piece>>,
}

/// Input on its way to a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// What it reads next.
    Bytes(Vec<u8>),
    /// No more input comes.
    End,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) mark: Mark,
    /// The process and the time of its start, once it has been started.
    started: OnceLock<(i32, u64)>,
    keeps_all: AtomicBool,
    keeps_all_now: Notify,
}

/// The data by which a program and everything it started are found again, also after the process that started it has
/// ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeTrace {
    /// A text that no other tree has; all its processes carry it in their environment.
    pub mark: String,
    /// The program's process id, and its start in clock ticks since the machine started; `None` before its start.
    pub root: Option<(i32, u64)>,
    /// Identifies the start of the machine to which ids and ticks belong; empty where the system does not provide it.
    pub boot: String,
}

/// Why a program was not written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It was started with an empty input, or its input was closed.
    #[error("its input is closed")]
    Closed,
    /// It does not read what was written before.
    #[error("it has not read what was written before")]
    Full,
}

/// Makes a handle to a program, and the link that [`run_attached`](crate::run_attached) needs.
pub fn attach(attachment: Attachment) -> (Handle, Link) {
    attach_with(attachment, Mark::new())
}

/// Like [`attach`], for a program that another process looks after: its tree carries the mark of that process's own
/// [`Handle::trace`]. `None` if the text is no mark.
pub fn attach_marked(attachment: Attachment, mark: &str) -> Option<(Handle, Link)> {
    Some(attach_with(attachment, Mark::from_text(mark)?))
}

fn attach_with(attachment: Attachment, mark: Mark) -> (Handle, Link) {
    let (input, receiver) = match attachment {
        Attachment::None => (None, None),
        Attachment::Pipe | Attachment::Terminal(_) => {
            let (sender, receiver) = mpsc::channel(MAX_WAITING_PIECES);
            (Some(sender), Some(receiver))
        }
    };
    let shared = Arc::new(Shared {
        mark,
        started: OnceLock::new(),
        keeps_all: AtomicBool::new(false),
        keeps_all_now: Notify::new(),
    });
    let is_terminal = matches!(attachment, Attachment::Terminal(_));
    let handle = Handle { shared: Arc::clone(&shared), input, is_terminal };
    (handle, Link { shared, attachment, input: receiver })
}

impl Handle {
    /// Whether the program has a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether the program can still be written to, as far as is known.
    pub fn is_writable(&self) -> bool {
        self.input.as_ref().is_some_and(|input| !input.is_closed())
    }

    /// Passes `bytes` on to the program's input. They wait in memory until it reads them.
    ///
    /// # Errors
    /// [`WriteError`]; none of the bytes were passed on.
    pub fn write(&self, bytes: Vec<u8>) -> Result<(), WriteError> {
        self.send(Piece::Bytes(bytes))
    }

    /// Ends the program's input after what was written before. At a terminal it is Ctrl-D, which ends a line of input
    /// that is empty.
    ///
    /// # Errors
    /// As for [`Handle::write`].
    pub fn end_input(&self) -> Result<(), WriteError> {
        const CTRL_D: u8 = 4;
        self.send(if self.is_terminal { Piece::Bytes(vec![CTRL_D]) } else { Piece::End })
    }

    /// Like [`Handle::write`] and [`Handle::end_input`], but waits for room. [`Piece::End`] does nothing at a terminal.
    ///
    /// # Errors
    /// [`WriteError::Closed`].
    pub async fn pass_on(&self, piece: Piece) -> Result<(), WriteError> {
        let input = self.input.as_ref().ok_or(WriteError::Closed)?;
        input.send(piece).await.map_err(|_| WriteError::Closed)
    }

    fn send(&self, piece: Piece) -> Result<(), WriteError> {
        let input = self.input.as_ref().ok_or(WriteError::Closed)?;
        input.try_send(piece).map_err(|error| match error {
            TrySendError::Full(_) => WriteError::Full,
            TrySendError::Closed(_) => WriteError::Closed,
        })
    }

    /// Writes all output to the side file from now on, even if it is short.
    pub fn keep_all_output(&self) {
        self.shared.keeps_all.store(true, Ordering::Relaxed);
        self.shared.keeps_all_now.notify_one();
    }

    /// The data by which the program is found again.
    pub fn trace(&self) -> TreeTrace {
        self.shared.trace()
    }
}

impl Link {
    /// Where the program is to read from.
    pub fn attachment(&self) -> Attachment {
        self.attachment
    }

    /// The data by which the program is found again, as the handle has it.
    pub fn trace(&self) -> TreeTrace {
        self.shared.trace()
    }

    /// What is written to the handle; `None` if nothing can be written, or if it was taken.
    pub fn take_input(&mut self) -> Option<mpsc::Receiver<Piece>> {
        self.input.take()
    }

    /// Returns once the handle was told to keep all output in the side file. May be dropped and called again.
    pub async fn all_output_wanted(&self) {
        while !self.shared.keeps_all() {
            self.shared.keeps_all_now.notified().await;
        }
    }

    /// A link without a handle.
    pub(crate) fn none() -> Self {
        attach(Attachment::None).1
    }
}

impl Shared {
    fn trace(&self) -> TreeTrace {
        TreeTrace {
            mark: self.mark.as_str().to_owned(),
            root: self.started.get().copied(),
            boot: boot_id(),
        }
    }

    /// Notes the process that was started.
    pub(crate) fn started(&self, pid: Pid) {
        let pid = pid.as_raw_pid();
        if let Some(start) = start_of(pid) {
            // It is set once: a link is used for one run.
            let _ = self.started.set((pid, start));
        }
    }

    pub(crate) fn keeps_all(&self) -> bool {
        self.keeps_all.load(Ordering::Relaxed)
    }
}

/// Ends a program that another process started, with everything that belongs to it: sends `SIGTERM`, waits half a
/// second, then sends `SIGKILL`. Returns how many processes there were.
pub async fn end_traced(trace: &TreeTrace) -> usize {
    let Some(tree) = traced_tree(trace) else { return 0 };
    let counted = tree.clone();
    let found = tokio::task::spawn_blocking(move || counted.members()).await.unwrap_or_default();
    if !found.is_empty() {
        tree.terminate().await;
    }
    found.len()
}

/// Like [`end_traced`], for a child of this process whose exit status is not collected yet.
pub async fn end_child(pid: u32) {
    let root = i32::try_from(pid).ok().and_then(|pid| Some((pid, start_of(pid)?)));
    Tree::traced(root, Mark::new()).terminate().await;
}

/// The memory in use by a program and everything that it started, in bytes; 0 where the system does not say. Blocks for a few
/// milliseconds.
pub fn memory_of_traced(trace: &TreeTrace) -> u64 {
    let members = traced_tree(trace).map(|tree| tree.members()).unwrap_or_default();
    let resident = |pid: i32| -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    let kilobytes: u64 = members.iter().filter_map(|member| resident(member.pid)).sum();
    kilobytes.saturating_mul(1024)
}

/// Like [`end_traced`], by force and without waiting. Blocks for a few milliseconds.
pub fn kill_traced(trace: &TreeTrace) {
    if let Some(tree) = traced_tree(trace) {
        tree.kill_now();
    }
}

/// `None` if the machine was restarted since, or if this program cannot have written the trace.
fn traced_tree(trace: &TreeTrace) -> Option<Tree> {
    let mark = Mark::from_text(&trace.mark)?;
    (trace.boot == boot_id()).then(|| Tree::traced(trace.root, mark))
}

/// Differs between two starts of the machine.
fn boot_id() -> String {
    // It is the same for the life of the process, and each command has it in its trace.
    static BOOT_ID: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    });
    BOOT_ID.clone()
}

#[cfg(test)]
mod tests;
