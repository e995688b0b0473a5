//! A terminal for programs that want one: a pseudo-terminal whose other end a test reads and types into.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::process::{Signal, send_signal};

/// How long an expected text may take: far above what a loaded machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a child is checked while a test waits for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The query for the cursor position: line editors send it before they draw.
const CURSOR_QUESTION: &str = "\x1b[6n";
/// Rows above the screen that are kept.
const SCROLLBACK_ROWS: usize = 1_000;

/// A program in a terminal of its own. It is killed when dropped.
///
/// [`Terminal::expect`] looks through the text as it was written, without escape sequences and carriage returns, from
/// where the last expectation ended. [`Terminal::expect_screen`] looks at what a user sees. Questions for the cursor's
/// position are answered.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    /// `None` once it was closed.
    keyboard: Option<File>,
    screen: Arc<Screen>,
    /// How much of the plain text earlier expectations have passed.
    passed: usize,
}

#[derive(Debug)]
struct Screen {
    output: Mutex<Output>,
    changed: Condvar,
    is_closing: AtomicBool,
}

struct Output {
    raw: Vec<u8>,
    plain: String,
    emulator: vt100::Parser,
    is_over: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Output").field("plain", &self.plain).finish_non_exhaustive()
    }
}

impl Terminal {
    /// Starts `command` as the session leader of a new terminal of 100 columns and 30 rows. Its environment is
    /// exactly the variables that were set on `command`, as [`crate::TempHome::command`] sets them.
    ///
    /// # Panics
    /// When there is no pseudo-terminal, or the program `setsid` (of util-linux), which makes the terminal the
    /// child's own, so that Ctrl-C arrives as a signal.
    pub fn spawn(command: &Command) -> Self {
        Self::spawn_sized(command, 100, 30)
    }

    /// As [`Terminal::spawn`], of another size.
    ///
    /// # Panics
    /// As [`Terminal::spawn`].
    pub fn spawn_sized(command: &Command, columns: u16, rows: u16) -> Self {
        let (keyboard, terminal) =
            open(columns, rows).unwrap_or_else(|error| panic!("opening a terminal: {error}"));
        let clone = || terminal.try_clone().expect("another handle of the terminal");
        let mut leader = Command::new("setsid");
        leader
            .arg("--ctty")
            .arg("--wait")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        leader.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            leader.current_dir(directory);
        }
        leader.stdin(clone()).stdout(clone()).stderr(clone());
        let child = leader
            .spawn()
            .unwrap_or_else(|error| panic!("starting {command:?} by setsid: {error}"));
        drop((leader, terminal));
        let screen = Arc::new(Screen {
            output: Mutex::new(Output {
                raw: Vec::new(),
                plain: String::new(),
                emulator: vt100::Parser::new(rows, columns, SCROLLBACK_ROWS),
                is_over: false,
            }),
            changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
        });
        let reader = keyboard.try_clone().expect("another handle of the keyboard");
        let shown = Arc::clone(&screen);
        thread::spawn(move || shown.show(reader));
        Self { child, keyboard: Some(keyboard), screen, passed: 0 }
    }

    /// The process id of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Types `text`.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn send(&mut self, text: &str) {
        let keyboard = self.keyboard.as_mut().expect("the terminal is open");
        keyboard.write_all(text.as_bytes()).expect("typing into the terminal");
    }

    /// Types `text` and presses Enter.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn send_line(&mut self, text: &str) {
        self.send(&format!("{text}\r"));
    }

    /// Presses Ctrl-C.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press_ctrl_c(&mut self) {
        self.send("\x03");
    }

    /// Presses Ctrl-D.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn press_ctrl_d(&mut self) {
        self.send("\x04");
    }

    /// Closes the terminal, as closing its window does: the kernel sends SIGHUP to the program, and the program's reads
    /// and writes there fail.
    pub fn hang_up(&mut self) {
        self.keyboard = None;
        self.screen.is_closing.store(true, Ordering::SeqCst);
        drop(self.screen.wait(|_| false));
    }

    /// Waits until `text` is written after the last expectation, and returns the output up to its end.
    ///
    /// # Panics
    /// When the program ends without it, or after a minute; what it wrote is shown.
    pub fn expect(&mut self, text: &str) -> String {
        let passed = self.passed;
        let output = self.screen.wait(|output| output.plain[passed..].contains(text));
        match output.plain[passed..].find(text) {
            Some(at) => {
                self.passed = passed + at + text.len();
                output.plain[passed..self.passed].to_owned()
            }
            None => panic!("the terminal never showed {text:?}; it showed:\n{}", output.plain),
        }
    }

    /// Waits until the screen is as `fits` wants it, and returns it: its rows without spaces at their ends.
    ///
    /// # Panics
    /// When the program ends without it, or after 30 s; the screen is shown.
    pub fn expect_screen(&mut self, fits: impl Fn(&str) -> bool) -> String {
        let output = self.screen.wait(|output| fits(&picture(&output.emulator)));
        let screen = picture(&output.emulator);
        assert!(fits(&screen), "the screen never was as expected; it shows:\n{screen}");
        screen
    }

    /// Changes the size of the terminal; the program gets SIGWINCH.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.lock().emulator.screen_mut().set_size(rows, columns);
        let keyboard = self.keyboard.as_ref().expect("the terminal is open");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(keyboard, size).expect("resizing the terminal");
    }

    /// Everything so far, without escape sequences and carriage returns.
    pub fn text(&self) -> String {
        self.screen.lock().plain.clone()
    }

    /// Everything so far, byte for byte.
    pub fn raw(&self) -> Vec<u8> {
        self.screen.lock().raw.clone()
    }

    /// Waits for the program's end.
    ///
    /// # Panics
    /// After a minute; what it wrote is shown.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("waiting for a child") {
                // What it wrote last may still be on the way.
                drop(self.screen.wait(|_| false));
                return status;
            }
            assert!(
                Instant::now() < until,
                "the program did not end; the terminal shows:\n{}",
                self.text()
            );
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            send_signal(self.id(), Signal::Kill);
            let _ = self.child.wait();
        }
    }
}

impl Screen {
    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `seen` holds, nothing more can come, or the time is up.
    fn wait(&self, seen: impl Fn(&Output) -> bool) -> MutexGuard<'_, Output> {
        let (output, _) = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, |output| !output.is_over && !seen(output))
            .unwrap_or_else(PoisonError::into_inner);
        output
    }

    /// Waits until there is something to read. Returns false once the terminal is to be closed.
    fn wait_for_output(&self, terminal: &File) -> bool {
        let interval = Timespec::try_from(POLL_INTERVAL).expect("a short time");
        while !self.is_closing.load(Ordering::SeqCst) {
            let mut wanted = [PollFd::new(terminal, PollFlags::IN)];
            if poll(&mut wanted, Some(&interval)) != Ok(0) {
                return true;
            }
        }
        false
    }

    /// Takes in what the program writes, until it is gone.
    fn show(&self, terminal: File) {
        // It is closed before waiters are notified that no more output can come.
        let mut terminal = Some(terminal);
        let mut buffer = vec![0; 16 * 1024];
        let mut plain = PlainText::default();
        loop {
            // The kernel says EIO, not end of file, when the last program has closed a terminal.
            let count = terminal
                .as_mut()
                .filter(|terminal| self.wait_for_output(terminal))
                .and_then(|terminal| terminal.read(&mut buffer).ok())
                .unwrap_or(0);
            if count == 0 {
                terminal = None;
            }
            let mut output = self.lock();
            output.raw.extend_from_slice(&buffer[..count]);
            let questions = plain.take(&buffer[..count], &mut output.plain);
            output.emulator.process(&buffer[..count]);
            output.is_over = count == 0;
            let (row, column) = output.emulator.screen().cursor_position();
            drop(output);
            self.changed.notify_all();
            if count == 0 {
                return;
            }
            let answer = format!("\x1b[{};{}R", row + 1, column + 1);
            for _ in 0..questions {
                let _ = terminal.as_mut().map(|terminal| terminal.write_all(answer.as_bytes()));
            }
        }
    }
}

/// The rows of the screen, without spaces at their ends and without empty rows at the end.
fn picture(emulator: &vt100::Parser) -> String {
    let (_, columns) = emulator.screen().size();
    let rows: Vec<String> =
        emulator.screen().rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
    rows.join("\n").trim_end().to_owned()
}

fn open(columns: u16, rows: u16) -> io::Result<(File, File)> {
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&keyboard)?;
    unlockpt(&keyboard)?;
    let name = ptsname(&keyboard, Vec::new())?;
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let mut options = OpenOptions::new();
    let terminal = std::os::unix::fs::OpenOptionsExt::custom_flags(
        options.read(true).write(true),
        OpenptFlags::NOCTTY.bits() as i32,
    )
    .open(path)?;
    tcsetwinsize(&terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((File::from(keyboard), terminal))
}

/// Removes escape sequences and carriage returns from a program's output, even if they are cut between two reads.
#[derive(Debug, Default)]
struct PlainText {
    state: EscapeState,
    sequence: Vec<u8>,
    /// Bytes of a character that is not whole yet.
    partial: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence: `ESC [ … final`.
    Control,
    /// In a string such as a window title, which BEL or `ESC \` ends.
    Title,
}

impl PlainText {
    /// Adds the text within `bytes` to `plain`, and counts the questions for the cursor's position.
    fn take(&mut self, bytes: &[u8], plain: &mut String) -> usize {
        let mut questions = 0;
        for &byte in bytes {
            self.sequence.push(byte);
            self.state = match (self.state, byte) {
                (EscapeState::Text, 0x1b) => EscapeState::Escape,
                (EscapeState::Text, _) => {
                    self.partial.push(byte);
                    EscapeState::Text
                }
                (EscapeState::Escape, b'[') => EscapeState::Control,
                (EscapeState::Escape, b']' | b'P' | b'_' | b'^') => EscapeState::Title,
                // Intermediate bytes, as in `ESC ( B`.
                (EscapeState::Escape, 0x20..=0x2f) => EscapeState::Escape,
                (EscapeState::Escape, _) => EscapeState::Text,
                (EscapeState::Control, 0x40..=0x7e) => {
                    if self.sequence.ends_with(CURSOR_QUESTION.as_bytes()) {
                        questions += 1;
                    }
                    EscapeState::Text
                }
                (EscapeState::Control, _) => EscapeState::Control,
                (EscapeState::Title, 0x07) => EscapeState::Text,
                (EscapeState::Title, b'\\') if self.sequence.ends_with(b"\x1b\\") => {
                    EscapeState::Text
                }
                (EscapeState::Title, _) => EscapeState::Title,
            };
            if self.state == EscapeState::Text {
                self.sequence.clear();
            }
        }
        self.partial.retain(|byte| *byte != b'\r');
        let whole = match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.len(),
            // A character cut at the end waits for its remaining bytes; invalid bytes are replaced.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.partial.len(),
        };
        let rest = self.partial.split_off(whole);
        plain.push_str(&String::from_utf8_lossy(&self.partial));
        self.partial = rest;
        questions
    }
}

#[cfg(test)]
mod tests;
