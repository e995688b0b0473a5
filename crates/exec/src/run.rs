//! The course of one run: start, read, notice the end, or end it.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use tokio::net::unix::pipe::Receiver;
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, CapturedOutput};
use crate::child::Child;
use crate::system::{Image, spawn};
use crate::tree::{MARK_VARIABLE, Mark, Tree};
use crate::{ChildSpec, ExecError};

/// Bytes read at a time: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;
/// How long output of processes that a program left behind is waited for after the program itself has ended. What the
/// program printed is in the pipe by then.
const DRAIN_GRACE: Duration = Duration::from_millis(100);
/// How long a killed program may take to vanish; longer only if the kernel is stuck in it.
const VANISH_GRACE: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code; 0 is success.
    Code(i32),
    /// By this signal, which did not come from here.
    Signal(i32),
    /// Its time was up; it was ended with everything it started.
    TimedOut,
    /// The caller cancelled; it was ended with everything it started.
    Aborted,
}

/// A program that has ended, one way or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it and its descendants printed until then, standard output and standard error in the order of printing.
    pub output: CapturedOutput,
    /// From start to end.
    pub duration: Duration,
    /// Processes that it started and that run on, if they share its output or its process group (others are not
    /// looked for). What they print from now on is read and thrown away.
    pub left_running: Vec<LeftRunning>,
}

/// A process that outlives the program that started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRunning {
    /// Process id.
    pub pid: i32,
    /// The name of its program, cut to 15 bytes by the kernel.
    pub name: String,
}

/// Runs a program to its end. `on_output` sees every piece of output as it arrives.
///
/// If the returned future is dropped, the program is killed at once with everything it started.
///
/// # Errors
/// [`ExecError`] if it could not be started, or if how it ended cannot be known. A bad end is no error; it is in
/// [`Finished`].
pub async fn run(
    spec: ChildSpec,
    cancel: &CancellationToken,
    on_output: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Finished, ExecError> {
    let started = Instant::now();
    let (reader, writer) = io::pipe().map_err(ExecError::Pipe)?;
    let receiver = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(ExecError::Pipe)?;
    let running = Running::start(&spec, writer.as_fd())?;
    // The output ends when the last writer has gone, so this process must not be one.
    drop(writer);
    let output = Output {
        receiver: Some(receiver),
        buffer: vec![0; READ_BYTES],
        capture: Capture::new(spec.output),
        on_output,
    };
    let (exit, output, left_running) = attend(running, output, cancel, spec.timeout).await;
    let exit = exit.ok_or(ExecError::StatusLost { program: spec.program })?;
    Ok(Finished {
        exit,
        output: output.capture.finish().await,
        duration: started.elapsed(),
        left_running,
    })
}

/// A started child; dropped before its end, it is killed with everything it started.
struct Running {
    child: Child,
    tree: Tree,
}

/// The reading end of a child's output.
struct Output<'a> {
    /// `None` once nobody can write any more.
    receiver: Option<Receiver>,
    buffer: Vec<u8>,
    capture: Capture,
    on_output: &'a mut (dyn FnMut(&[u8]) + Send),
}

/// What happens next to a running child.
enum Event {
    Cancelled,
    OutOfTime,
    /// So many bytes of output are in the buffer.
    Printed(usize),
    Exited,
}

/// Watches over a run until its end. No exit means that it was lost.
async fn attend<'a>(
    mut running: Running,
    mut output: Output<'a>,
    cancel: &CancellationToken,
    limit: Option<Duration>,
) -> (Option<Exit>, Output<'a>, Vec<LeftRunning>) {
    let mut cancelled = pin!(cancel.cancelled());
    let mut out_of_time = pin!(sleep_up_to(limit));
    while output.is_open() || !running.child.has_exited() {
        let event = tokio::select! {
            biased;
            () = &mut cancelled => Event::Cancelled,
            () = &mut out_of_time => Event::OutOfTime,
            length = output.read(), if output.is_open() => Event::Printed(length),
            () = running.child.exited(), if !running.child.has_exited() => Event::Exited,
        };
        match event {
            Event::Cancelled => {
                return (Some(Exit::Aborted), running.end(output).await, Vec::new());
            }
            Event::OutOfTime => {
                return (Some(Exit::TimedOut), running.end(output).await, Vec::new());
            }
            Event::Printed(length) => output.take(length).await,
            Event::Exited => {
                output.drain().await;
                break;
            }
        }
    }
    let exit = running.child.collect();
    let mut left_running = Vec::new();
    if output.is_open() || running.tree.group_is_alive() {
        left_running = running.left_running().await;
        output.leave_to_itself();
    }
    (exit, output, left_running)
}

async fn sleep_up_to(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

impl Running {
    fn start(spec: &ChildSpec, output: BorrowedFd<'_>) -> Result<Self, ExecError> {
        let path = spec.resolve_program()?;
        let mark = Mark::new();
        let program =
            c_string(path.as_os_str(), || format!("the program name {:?}", spec.program))?;
        let directory = c_string(spec.directory.as_os_str(), || {
            format!("the directory {:?}", spec.directory.display())
        })?;
        let arguments = std::iter::once(spec.program.as_os_str())
            .chain(spec.args.iter().map(OsString::as_os_str))
            .map(|argument| c_string(argument, || "an argument".to_owned()))
            .collect::<Result<Vec<CString>, ExecError>>()?;
        let environment = spec
            .environment
            .iter()
            .filter(|(name, _)| *name != MARK_VARIABLE)
            .map(|(name, value)| {
                let mut pair = name.to_owned();
                pair.push("=");
                pair.push(value);
                c_string(&pair, || format!("the variable {name:?}"))
            })
            .chain([c_string(&mark.variable(), String::new)])
            .collect::<Result<Vec<CString>, ExecError>>()?;
        let image = Image {
            program: &program,
            arguments: &arguments,
            environment: &environment,
            directory: &directory,
            output,
        };
        let pid = spawn(&image).map_err(|source| start_failure(spec, path.clone(), source))?;
        Ok(Self { child: Child::new(pid), tree: Tree::new(pid, mark) })
    }

    /// Ends the child with everything it started, and takes what is printed meanwhile.
    async fn end<'a>(mut self, mut output: Output<'a>) -> Output<'a> {
        let tree = self.tree.clone();
        let mut ending = pin!(tree.terminate());
        loop {
            tokio::select! {
                biased;
                () = &mut ending => break,
                length = output.read(), if output.is_open() => output.take(length).await,
            }
        }
        // Out of patience, the child is left to a thread that collects it some day.
        drop(timeout(VANISH_GRACE, self.child.exited()).await);
        output.drain().await;
        self.child.collect();
        output
    }

    async fn left_running(&self) -> Vec<LeftRunning> {
        let tree = self.tree.clone();
        let members =
            tokio::task::spawn_blocking(move || tree.descendants()).await.unwrap_or_default();
        members
            .into_iter()
            .map(|member| LeftRunning { pid: member.pid, name: member.name })
            .collect()
    }
}

impl Drop for Running {
    /// Nobody waits for a future that was dropped, so there is no time for a grace; this takes some milliseconds.
    fn drop(&mut self) {
        if !self.child.is_collected() {
            self.tree.kill_now();
        }
    }
}

impl Output<'_> {
    fn is_open(&self) -> bool {
        self.receiver.is_some()
    }

    /// Waits for output and returns how many bytes of it are in the buffer. May be dropped and called again.
    async fn read(&mut self) -> usize {
        loop {
            let Some(receiver) = &self.receiver else { return 0 };
            let read = match receiver.readable().await {
                Ok(()) => receiver.try_read(&mut self.buffer),
                Err(error) => Err(error),
            };
            match read {
                Ok(length) if length > 0 => return length,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // The end, or (never seen) an error after which nothing more can come.
                Ok(_) | Err(_) => self.receiver = None,
            }
        }
    }

    async fn take(&mut self, length: usize) {
        let piece = &self.buffer[..length];
        (self.on_output)(piece);
        self.capture.push(piece).await;
    }

    /// Takes what is still in the pipe; returns at its end, or a little later if somebody holds it open.
    async fn drain(&mut self) {
        let deadline = tokio::time::Instant::now() + DRAIN_GRACE;
        while self.is_open() {
            let Ok(length) = timeout_at(deadline, self.read()).await else { return };
            self.take(length).await;
        }
    }

    /// Keeps reading for processes that were left running. If nobody read, they would be killed by their next line.
    fn leave_to_itself(&mut self) {
        let Some(receiver) = self.receiver.take() else { return };
        tokio::spawn(async move {
            let mut buffer = vec![0; READ_BYTES];
            while receiver.readable().await.is_ok() {
                match receiver.try_read(&mut buffer) {
                    Ok(0) => return,
                    Err(error)
                        if !matches!(
                            error.kind(),
                            ErrorKind::WouldBlock | ErrorKind::Interrupted
                        ) =>
                    {
                        return;
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        });
    }
}

fn c_string(text: &OsStr, what: impl FnOnce() -> String) -> Result<CString, ExecError> {
    CString::new(text.as_bytes()).map_err(|_| ExecError::NulByte { what: what() })
}

/// The system gives one error number for several causes; the directory is the one it cannot name.
fn start_failure(spec: &ChildSpec, program: PathBuf, source: io::Error) -> ExecError {
    let directory_failure = match spec.directory.metadata() {
        Ok(metadata) if !metadata.is_dir() => Some(ErrorKind::NotADirectory.into()),
        Ok(_) => rustix::fs::access(&spec.directory, rustix::fs::Access::EXEC_OK)
            .err()
            .map(io::Error::from),
        Err(error) => Some(error),
    };
    match directory_failure {
        Some(source) => ExecError::Directory { directory: spec.directory.clone(), source },
        None => ExecError::Spawn { program, source },
    }
}

#[cfg(test)]
mod tests;
