//! One run of a program: starts it, reads its output, and notices its end or ends it.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::pin::pin;
#[cfg(target_os = "linux")]
use std::sync::Arc;
use std::time::{Duration, Instant};

use myclaw_files::portable::{OsStrExt, may_run};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::attach::{Link, Shared};
use crate::capture::CapturedOutput;
use crate::child::Child;
#[cfg(target_os = "linux")]
use crate::hiding::Namespace;
use crate::image::Image;
use crate::mark::MARK_VARIABLE;
use crate::streams::{ChildEnds, Progress, Streams};
use crate::system::{id_of, spawn};
use crate::tree::Tree;
use crate::{ChildSpec, ExecError};

/// Longest wait for a killed program to vanish. It takes longer only if a system call of it hangs in the kernel.
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

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// What it and its descendants printed until then, in the order of printing.
    pub output: CapturedOutput,
    /// What they printed to standard error, if that was asked for [`Apart`](crate::ErrorOutput::Apart).
    pub errors: CapturedOutput,
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

/// Runs a program to its end. `on_output` gets every piece of output as it arrives, but not standard error if that is
/// kept apart.
///
/// If the returned future is dropped, the program is killed at once with everything it started.
///
/// # Errors
/// [`ExecError`] if it could not be started, or if it cannot be known how it ended. A failing program is not an error;
/// its result is in [`Finished`].
pub async fn run(
    spec: ChildSpec,
    cancel: &CancellationToken,
    on_output: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Finished, ExecError> {
    run_attached(spec, Link::none(), cancel, on_output).await
}

/// Like [`run()`], for a program that is written to while it runs, or is to be found again: by the
/// [`Handle`](crate::Handle) at the other end of `link`. With a terminal, its errors are always among its output.
///
/// # Errors
/// As for [`run()`].
pub async fn run_attached(
    spec: ChildSpec,
    link: Link,
    cancel: &CancellationToken,
    on_output: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Finished, ExecError> {
    run_in(Place::Here, spec, link, cancel, on_output).await
}

/// Where a program runs.
pub(crate) enum Place {
    /// Where this process does.
    Here,
    /// In a mount namespace.
    #[cfg(target_os = "linux")]
    Namespace(Arc<Namespace>),
}

/// [`run_attached`] for a program in `place`.
pub(crate) async fn run_in(
    place: Place,
    mut spec: ChildSpec,
    mut link: Link,
    cancel: &CancellationToken,
    on_output: &mut (dyn FnMut(&[u8]) + Send),
) -> Result<Finished, ExecError> {
    let started = Instant::now();
    let (mut streams, ends) = Streams::open(&mut spec, &mut link, on_output)?;
    let running = Running::start(&place, &spec, &ends, &link.shared)?;
    // The output ends when no process can write to it any more, so this process must close its copies.
    drop(ends);
    let (exit, left_running) = attend(running, &mut streams, cancel, spec.timeout).await;
    let exit = exit.ok_or(ExecError::StatusLost { program: spec.program })?;
    let (output, errors) = streams.finish().await;
    Ok(Finished { exit, output, errors, duration: started.elapsed(), left_running })
}

/// A started child; dropped before its end, it is killed with everything it started.
struct Running {
    child: Child,
    tree: Tree,
}

/// What happens next to a running child.
enum Event {
    Cancelled,
    OutOfTime,
    Streamed(Progress),
    Exited,
}

/// Attends to a run until its end. `None` as the exit means that the exit status was lost.
async fn attend(
    mut running: Running,
    streams: &mut Streams<'_>,
    cancel: &CancellationToken,
    limit: Option<Duration>,
) -> (Option<Exit>, Vec<LeftRunning>) {
    let mut cancelled = pin!(cancel.cancelled());
    let mut out_of_time = pin!(sleep_up_to(limit));
    while streams.may_print() || !running.child.has_exited() {
        let event = tokio::select! {
            biased;
            () = &mut cancelled => Event::Cancelled,
            () = &mut out_of_time => Event::OutOfTime,
            progress = streams.next() => Event::Streamed(progress),
            () = running.child.exited(), if !running.child.has_exited() => Event::Exited,
        };
        match event {
            Event::Cancelled => {
                running.end(streams).await;
                return (Some(Exit::Aborted), Vec::new());
            }
            Event::OutOfTime => {
                running.end(streams).await;
                return (Some(Exit::TimedOut), Vec::new());
            }
            Event::Streamed(progress) => streams.take(progress).await,
            Event::Exited => {
                streams.drain().await;
                break;
            }
        }
    }
    let exit = running.child.collect();
    let mut left_running = Vec::new();
    if streams.may_print() || running.tree.group_is_alive() {
        left_running = running.left_running().await;
        streams.leave_to_themselves();
    }
    (exit, left_running)
}

async fn sleep_up_to(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

impl Running {
    fn start(
        place: &Place,
        spec: &ChildSpec,
        ends: &ChildEnds,
        link: &Shared,
    ) -> Result<Self, ExecError> {
        let path = spec.resolve_program()?;
        let mark = link.mark.clone();
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
            streams: ends.streams(),
        };
        let spawned = match place {
            Place::Here => spawn(&image),
            #[cfg(target_os = "linux")]
            Place::Namespace(namespace) => namespace.spawn(&image),
        };
        let started = spawned.map_err(|source| start_failure(spec, path.clone(), source))?;
        let id = id_of(&started);
        link.started(id);
        Ok(Self { child: Child::new(started), tree: Tree::new(id, mark) })
    }

    /// Ends the child with everything it started, and takes what is printed meanwhile.
    async fn end(mut self, streams: &mut Streams<'_>) {
        let tree = self.tree.clone();
        let mut ending = pin!(tree.terminate());
        loop {
            tokio::select! {
                biased;
                () = &mut ending => break,
                progress = streams.next() => streams.take(progress).await,
            }
        }
        // The wait is over: a thread collects the child whenever it ends.
        drop(timeout(VANISH_GRACE, self.child.exited()).await);
        streams.drain().await;
        self.child.collect();
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
    /// A dropped future cannot wait, so the tree is ended by force at once; this takes some milliseconds.
    fn drop(&mut self) {
        if !self.child.is_collected() {
            self.tree.kill_now();
        }
    }
}

fn c_string(text: &OsStr, what: impl FnOnce() -> String) -> Result<CString, ExecError> {
    CString::new(text.as_bytes()).map_err(|_| ExecError::NulByte { what: what() })
}

/// The system gives one error number for several causes; the directory is the one it cannot name.
fn start_failure(spec: &ChildSpec, program: PathBuf, source: io::Error) -> ExecError {
    let directory_failure = match spec.directory.metadata() {
        Ok(metadata) if !metadata.is_dir() => Some(ErrorKind::NotADirectory.into()),
        Ok(_) => may_run(&spec.directory).err(),
        Err(error) => Some(error),
    };
    match directory_failure {
        Some(source) => ExecError::Directory { directory: spec.directory.clone(), source },
        None => ExecError::Spawn { program, source },
    }
}

#[cfg(test)]
mod tests;
