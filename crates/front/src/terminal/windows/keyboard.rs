//! On Windows no keys are read while something is drawn: Ctrl-C still aborts a turn.

use std::convert::Infallible;
use std::io;

/// The keys, which there are not.
#[derive(Debug)]
pub struct Keyboard(Infallible);

impl Keyboard {
    /// # Errors
    /// Always.
    pub fn listen() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "MyClaw reads no single keys on Windows"))
    }

    /// # Errors
    /// Always.
    pub fn listen_after_editor() -> io::Result<Self> {
        Self::listen()
    }

    /// It is never called.
    pub fn take_begun(&mut self) -> Vec<u8> {
        match self.0 {}
    }

    /// It is never called.
    pub fn lend(&self, _work: impl FnOnce()) {
        match self.0 {}
    }

    /// # Errors
    /// It is never called.
    pub async fn read_keys(&mut self) -> io::Result<Vec<u8>> {
        match self.0 {}
    }

    /// # Errors
    /// It is never called.
    pub async fn read(&mut self) -> io::Result<Vec<u8>> {
        match self.0 {}
    }
}

/// Does nothing.
///
/// # Errors
/// None.
pub fn forget_typed() -> io::Result<()> {
    Ok(())
}

/// Does nothing.
pub(super) fn restore_own_mode() {}
