//! Child processes under a deadline: the real program, run, signalled, killed and measured.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};

/// How long a child may take where a test sets no deadline: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a child is checked while a test waits for it.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The signals that tests send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, what Ctrl-C sends.
    Interrupt,
    /// SIGHUP, what a closed terminal sends.
    HangUp,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGSTOP: the process stands still.
    Pause,
    /// SIGCONT: it continues.
    Continue,
}

/// The output and exit status of a child.
#[derive(Debug)]
pub struct ChildOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Everything it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// Everything it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// From the spawn until its end was noticed.
    pub elapsed: Duration,
    /// Its peak memory in bytes (`VmHWM`, read every 2 ms while a test waited for it). `None` if it ended before the
    /// first read, or if there is no `/proc`.
    pub peak_memory: Option<u64>,
}

/// A child process. It is killed when dropped.
#[derive(Debug)]
pub struct RunningChild {
    child: Child,
    spawned: Instant,
    stdin: Option<ChildStdin>,
    stdout: Collector,
    stderr: Collector,
    peak_memory: Option<u64>,
}

impl RunningChild {
    /// Starts `command` with nothing on its standard input.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> Self {
        Self::start(command, Stdio::null())
    }

    /// Starts `command` with a pipe as its standard input, for [`RunningChild::send`].
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn_piped(command: &mut Command) -> Self {
        Self::start(command, Stdio::piped())
    }

    /// Runs `command` to its end, with nothing on its standard input and a deadline of a minute.
    ///
    /// # Panics
    /// When it cannot be started or is not over in time.
    pub fn run(command: &mut Command) -> ChildOutput {
        Self::spawn(command).wait(PATIENCE)
    }

    /// Runs `command` to its end with `input` on its standard input and a deadline of a minute.
    ///
    /// # Panics
    /// When it cannot be started or is not over in time.
    pub fn run_with_input(command: &mut Command, input: impl Into<Vec<u8>>) -> ChildOutput {
        let mut child = Self::spawn_piped(command);
        let stdin = child.stdin.take();
        let input = input.into();
        // Apart, because a child may fill its output pipe before it reads all of its input.
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                // A child may end before it has read everything.
                let _ = stdin.write_all(&input);
            }
        });
        let output = child.wait(PATIENCE);
        let _ = writer.join();
        output
    }

    fn start(command: &mut Command, stdin: Stdio) -> Self {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawned = Instant::now();
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("starting {command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = Collector::start(child.stdout.take().expect("a piped stdout"));
        let stderr = Collector::start(child.stderr.take().expect("a piped stderr"));
        Self { child, spawned, stdin, stdout, stderr, peak_memory: None }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// When it was about to be started.
    pub fn spawned_at(&self) -> Instant {
        self.spawned
    }

    /// Sends a signal to the child alone, not to its group. Nothing happens if it is over.
    pub fn signal(&self, signal: Signal) {
        // Not yet waited for, so the id is still the child's even if it has ended.
        send_signal(self.id(), signal);
    }

    /// Writes to its standard input.
    ///
    /// # Panics
    /// When it has been closed.
    pub fn send(&mut self, text: &str) {
        let stdin =
            self.stdin.as_mut().expect("a child started with a piped stdin that is still open");
        stdin
            .write_all(text.as_bytes())
            .and_then(|()| stdin.flush())
            .expect("writing to the child");
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until its standard output contains `text`, and returns all of it so far.
    ///
    /// # Panics
    /// When the output ends without it, or after a minute.
    pub fn wait_for_stdout(&self, text: &str) -> String {
        self.stdout.wait_for(text, "stdout")
    }

    /// Waits until its standard output holds a whole line that contains `text`, and returns the first such line.
    ///
    /// # Panics
    /// As [`RunningChild::wait_for_stdout`].
    pub fn wait_for_stdout_line(&self, text: &str) -> String {
        let whole_line = |all: &str| {
            let lines = all.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            lines.map(str::trim_end).find(|line| line.contains(text)).map(str::to_owned)
        };
        self.stdout.wait_until(text, "stdout", whole_line)
    }

    /// As [`RunningChild::wait_for_stdout`], for its standard error.
    ///
    /// # Panics
    /// When the output ends without it, or after a minute.
    pub fn wait_for_stderr(&self, text: &str) -> String {
        self.stderr.wait_for(text, "stderr")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it is not over by then; it is killed and its output shown.
    pub fn wait(mut self, deadline: Duration) -> ChildOutput {
        self.close_stdin();
        let until = Instant::now() + deadline;
        let status = loop {
            if let Some(peak) = peak_memory(self.id()) {
                self.peak_memory = Some(peak);
            }
            if let Some(status) = self.child.try_wait().expect("waiting for a child") {
                break status;
            }
            if Instant::now() >= until {
                let _ = self.child.kill();
                panic!(
                    "the child was not over after {deadline:?}\n--- stdout\n{}\n--- stderr\n{}",
                    self.stdout.text(),
                    self.stderr.text()
                );
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        let elapsed = self.spawned.elapsed();
        ChildOutput {
            status,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            elapsed,
            peak_memory: self.peak_memory,
        }
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // Both fail harmlessly on a child that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ChildOutput {
    /// Standard output as text, with replacement characters where it is not UTF-8.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, with replacement characters where it is not UTF-8.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The exit code; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Checks the exit code and shows all output if it differs. Returns the output for more.
    ///
    /// # Panics
    /// When the code is another or a signal ended the child.
    pub fn assert_code(&self, expected: i32) -> &Self {
        assert!(
            self.code() == Some(expected),
            "expected exit code {expected}, got {}\n--- stdout\n{}\n--- stderr\n{}",
            self.status,
            self.stdout(),
            self.stderr()
        );
        self
    }
}

/// The peak resident memory of a process in bytes, as the kernel counts it; `None` once it is over.
pub fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Sends a signal to a process, not to its group. Nothing happens if there is no such process.
pub fn send_signal(pid: u32, signal: Signal) {
    let signal = match signal {
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::HangUp => rustix::process::Signal::HUP,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
        Signal::Pause => rustix::process::Signal::STOP,
        Signal::Continue => rustix::process::Signal::CONT,
    };
    if let Some(pid) = process_id(pid) {
        let _ = kill_process(pid, signal);
    }
}

fn process_id(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether a process runs; one that has ended but was not waited for does not.
pub fn is_running(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the command's name, which is in parentheses and may contain any character.
        Ok(stat) => !stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) if cfg!(target_os = "linux") => false,
        Err(_) => {
            process_id(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
        }
    }
}

/// Waits until a process is over.
///
/// # Panics
/// After a minute.
pub fn wait_until_gone(pid: u32) {
    let until = Instant::now() + PATIENCE;
    while is_running(pid) {
        assert!(Instant::now() < until, "process {pid} still runs");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Reads a stream on a thread of its own.
#[derive(Debug)]
struct Collector {
    shared: Arc<Collected>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Collected {
    /// The bytes so far and whether the stream is over.
    bytes: Mutex<(Vec<u8>, StreamState)>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum StreamState {
    #[default]
    Open,
    Over,
}

impl Collector {
    fn start(mut stream: impl Read + Send + 'static) -> Self {
        let shared = Arc::new(Collected::default());
        let writer = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = stream.read(&mut buffer).unwrap_or(0);
                let mut bytes = writer.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                bytes.0.extend_from_slice(&buffer[..count]);
                if count == 0 {
                    bytes.1 = StreamState::Over;
                }
                drop(bytes);
                writer.changed.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Self { shared, thread: Some(thread) }
    }

    fn text(&self) -> String {
        let bytes = self.shared.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes.0).into_owned()
    }

    fn wait_for(&self, text: &str, what: &str) -> String {
        self.wait_until(text, what, |all| all.contains(text).then(|| all.to_owned()))
    }

    /// Waits until `find` finds something in all that was written, which is `text` for people.
    fn wait_until<T>(&self, text: &str, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let found = |bytes: &[u8]| find(&String::from_utf8_lossy(bytes));
        let guard = self.shared.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let (guard, _) = self
            .shared
            .changed
            .wait_timeout_while(guard, PATIENCE, |(bytes, state)| {
                *state == StreamState::Open && found(bytes).is_none()
            })
            .unwrap_or_else(PoisonError::into_inner);
        let all = String::from_utf8_lossy(&guard.0).into_owned();
        drop(guard);
        find(&all).unwrap_or_else(|| panic!("{what} never held {text:?}; it is:\n{all}"))
    }

    /// The whole stream, after the end of the child. A grandchild may hold the stream open: after a short wait, the
    /// output so far is returned.
    fn finish(&mut self) -> Vec<u8> {
        const GRACE: Duration = Duration::from_secs(2);
        let guard = self.shared.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut guard, waited) = self
            .shared
            .changed
            .wait_timeout_while(guard, GRACE, |(_, state)| *state == StreamState::Open)
            .unwrap_or_else(PoisonError::into_inner);
        let bytes = std::mem::take(&mut guard.0);
        drop(guard);
        if !waited.timed_out()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        bytes
    }
}
