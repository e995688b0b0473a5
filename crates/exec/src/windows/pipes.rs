//! This process's ends of pipes to a child: a thread waits at each.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use crate::terminal::Side;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Pieces that wait in memory.
const MOST_PIECES: usize = 4;

/// The reading end.
pub(crate) struct Receiver {
    pieces: AsyncMutex<mpsc::Receiver<Vec<u8>>>,
    /// What was read and not taken; `None` after the end.
    ready: Mutex<Option<Vec<u8>>>,
}

impl Receiver {
    /// Waits until there is something to read, or the end. May be dropped and called again.
    ///
    /// # Errors
    /// None.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        let mut pieces = self.pieces.lock().await;
        if self.ready.lock().as_ref().is_some_and(Vec::is_empty) {
            let piece = pieces.recv().await;
            *self.ready.lock() = piece;
        }
        Ok(())
    }

    /// Takes what is there; 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.ready.lock();
        let Some(bytes) = ready.as_mut() else { return Ok(0) };
        if bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        bytes.drain(..length);
        Ok(length)
    }
}

/// The writing end.
pub(crate) struct Sender(mpsc::Sender<Vec<u8>>);

impl Sender {
    /// Waits until there is room.
    ///
    /// # Errors
    /// Nobody reads any more.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.0.reserve().await.map(drop).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Passes all bytes on.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The writing end.
///
/// # Errors
/// The system allows no more threads.
pub(crate) fn sender(mut pipe: PipeWriter) -> io::Result<Sender> {
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(MOST_PIECES);
    std::thread::Builder::new().spawn(move || {
        while let Some(piece) = pieces.blocking_recv() {
            if pipe.write_all(&piece).is_err() {
                return;
            }
        }
    })?;
    Ok(Sender(sender))
}

/// The reading end.
///
/// # Errors
/// The system allows no more threads.
pub(crate) fn receiver(mut pipe: PipeReader) -> io::Result<Receiver> {
    let (sender, pieces) = mpsc::channel(MOST_PIECES);
    std::thread::Builder::new().spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(length @ 1..) = pipe.read(&mut buffer) {
            if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(Receiver { pieces: AsyncMutex::new(pieces), ready: Mutex::new(Some(Vec::new())) })
}

/// A terminal to write to, of which there is none.
///
/// # Errors
/// None.
pub(crate) fn keyboard(side: Side) -> io::Result<Sender> {
    match side {}
}

/// A terminal to read from, of which there is none.
///
/// # Errors
/// None.
pub(crate) fn screen(side: Side) -> io::Result<Receiver> {
    match side {}
}

/// A pipe: the end that this process reads, and the one for a program that prints.
///
/// # Errors
/// No handle is free.
pub fn output_pipe() -> io::Result<(tokio::fs::File, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    let reader = std::fs::File::from(std::os::windows::io::OwnedHandle::from(reader));
    Ok((tokio::fs::File::from_std(reader), writer))
}
