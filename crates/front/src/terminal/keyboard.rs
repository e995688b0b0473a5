//! The keyboard while something is drawn: keys arrive one by one, are not echoed, and Ctrl-C is still a signal.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use myclaw_files::portable::{OpenOptionsExt, OsStrExt};
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::OFlags;
use rustix::io::ioctl_fionread;
use rustix::stdio::stdin;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcsetattr, ttyname,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::keys::{filter, translate_earlier};
use super::relay;

/// Bytes that are read at once.
const READ_BYTES: usize = 1024;

/// The character that the Escape key sends, and with which the sequences of other keys begin.
const ESCAPE: u8 = 0x1b;

/// The terminal's own mode while a [`Keyboard`] has changed it.
static OWN_MODE: Mutex<Option<Termios>> = Mutex::new(None);

/// Standard input, key by key. Dropping it gives the terminal its own mode back.
#[derive(Debug)]
pub struct Keyboard {
    /// The terminal, opened again, so that the non-blocking mode is not shared with other programs.
    input: pipe::Receiver,
    /// Keys that were read and not returned yet.
    begun: Vec<u8>,
    /// Bytes to come that were sent in the terminal's own mode.
    before: u64,
}

impl Keyboard {
    /// Begins to listen. Must be called within the runtime.
    ///
    /// # Errors
    /// Standard input is not a terminal, or one that cannot be polled.
    pub fn listen() -> io::Result<Self> {
        let own = tcgetattr(stdin())?;
        let name = ttyname(stdin(), Vec::new())?;
        let terminal = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32)
            .open(OsStr::from_bytes(name.to_bytes()))?;
        // A terminal is polled like a pipe.
        let input = pipe::Receiver::from_file_unchecked(terminal)?;
        let mode = key_mode(&own);
        *own_mode() = Some(own);
        let mut keyboard = Self { input, begun: Vec::new(), before: 0 };
        tcsetattr(stdin(), OptionalActions::Now, &mode)?;
        keyboard.before = ioctl_fionread(stdin()).unwrap_or(0);
        Ok(keyboard)
    }

    /// As [`Keyboard::listen`]; begins with the keys that the line editor read and did not handle.
    ///
    /// # Errors
    /// As those of [`Keyboard::listen`].
    pub fn listen_after_editor() -> io::Result<Self> {
        let mut keyboard = Self::listen()?;
        keyboard.begun = relay::rest(unhandled);
        Ok(keyboard)
    }

    /// Takes the keys that were read and not returned yet.
    pub fn take_begun(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }

    /// Lends the terminal, in its own mode, to `work`.
    pub fn lend(&self, work: impl FnOnce()) {
        restore_own_mode();
        work();
        // The error is ignored: the terminal is gone.
        if let Ok(own) = tcgetattr(stdin()) {
            let mode = key_mode(&own);
            *own_mode() = Some(own);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &mode);
        }
    }

    /// Waits for keys, each of which is returned in one piece; reports of the terminal are none. What is returned as `ESC`
    /// alone is the Escape key. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// The terminal is gone.
    pub async fn read_keys(&mut self) -> io::Result<Vec<u8>> {
        while self.begun.is_empty() {
            let patience = filter().patience();
            let read = match patience {
                Some(patience) => tokio::time::timeout(patience, self.read()).await,
                None => Ok(self.read().await),
            };
            match read {
                Ok(bytes) => filter().push(&bytes?, &mut self.begun),
                Err(_) => filter().give_up(&mut self.begun),
            }
        }
        Ok(self.take_begun())
    }

    /// Waits for what the terminal sends: keys and reports. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    /// The terminal is gone.
    pub async fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; READ_BYTES];
        let count = self.input.read(&mut bytes).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(count);
        translate_earlier(&mut bytes, &mut self.before);
        Ok(bytes)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        restore_own_mode();
    }
}

/// The keys that the line editor read with the Enter of its line, as the terminal sent them.
fn unhandled() -> Vec<u8> {
    let mut bytes = Vec::new();
    while event::poll(Duration::ZERO).unwrap_or(false)
        && let Ok(event) = event::read()
    {
        match event {
            Event::Key(key) => push_key(key, &mut bytes),
            Event::Paste(text) => bytes.extend(format!("\x1b[200~{text}\x1b[201~").into_bytes()),
            Event::FocusGained => bytes.extend(b"\x1b[I"),
            Event::FocusLost => bytes.extend(b"\x1b[O"),
            _ => {}
        }
    }
    bytes
}

/// Appends the bytes of a key that writes, sends or is a command. Keys that move the cursor have none.
fn push_key(key: KeyEvent, bytes: &mut Vec<u8>) {
    let is_alt = key.modifiers.contains(KeyModifiers::ALT);
    let mut text = [0; 4];
    let sent: &[u8] = match key.code {
        KeyCode::Char(letter @ 'a'..='z') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            text[0] = letter as u8 & 0x1f;
            &text[..1]
        }
        KeyCode::Char(letter) => letter.encode_utf8(&mut text).as_bytes(),
        KeyCode::Enter => b"\r",
        KeyCode::Tab => b"\t",
        KeyCode::Backspace => b"\x7f",
        KeyCode::Esc => &[ESCAPE],
        _ => return,
    };
    bytes.extend(is_alt.then_some(ESCAPE));
    bytes.extend(sent);
}

/// The mode in which keys arrive one by one, without an echo.
fn key_mode(own: &Termios) -> Termios {
    let mut mode = own.clone();
    mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    // Enter is another key than Ctrl-J.
    mode.input_modes -= InputModes::ICRNL;
    // Ctrl-Z is a key: what is drawn must be ended before the shell continues.
    mode.special_codes[SpecialCodeIndex::VSUSP] = 0;
    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
    mode
}

/// Drops keys that were pressed and not read yet.
///
/// # Errors
/// Standard input is not a terminal.
pub fn forget_typed() -> io::Result<()> {
    Ok(tcflush(stdin(), QueueSelector::IFlush)?)
}

/// Restores the mode that the terminal had before the keyboard was opened.
pub(super) fn restore_own_mode() {
    if let Some(own) = own_mode().take() {
        // The error is ignored: the terminal is gone.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &own);
    }
}

fn own_mode() -> MutexGuard<'static, Option<Termios>> {
    OWN_MODE.lock()
}
