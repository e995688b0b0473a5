//! Unix sockets, of which there are none: they are refused where one is to be opened.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

fn refusal() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "MyClaw has no Unix sockets on Windows")
}

/// Takes connections.
#[derive(Debug)]
pub enum UnixListener {}

impl UnixListener {
    /// # Errors
    /// Always.
    pub fn bind(_path: impl AsRef<Path>) -> io::Result<Self> {
        Err(refusal())
    }

    /// # Errors
    /// It does not return.
    pub async fn accept(&self) -> io::Result<(UnixStream, ())> {
        match *self {}
    }
}

/// A connection.
#[derive(Debug)]
pub enum UnixStream {}

impl UnixStream {
    /// # Errors
    /// Always.
    pub async fn connect(_path: impl AsRef<Path>) -> io::Result<Self> {
        Err(refusal())
    }

    /// Its two directions.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        match self {}
    }
}

/// The direction from the other side.
#[derive(Debug)]
pub enum OwnedReadHalf {}

/// The direction to the other side.
#[derive(Debug)]
pub enum OwnedWriteHalf {}

macro_rules! reads {
    ($name:ident) => {
        impl AsyncRead for $name {
            fn poll_read(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
                _buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match *self {}
            }
        }
    };
}

macro_rules! writes {
    ($name:ident) => {
        impl AsyncWrite for $name {
            fn poll_write(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
                _bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                match *self {}
            }

            fn poll_flush(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                match *self {}
            }

            fn poll_shutdown(
                self: Pin<&mut Self>,
                _context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                match *self {}
            }
        }
    };
}

reads!(UnixStream);
reads!(OwnedReadHalf);
writes!(UnixStream);
writes!(OwnedWriteHalf);
