//! The limits of one connection: how much it carries, and how long it may be idle.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;

/// Counts what goes through a connection.
#[derive(Debug, Clone)]
pub(super) struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    /// Bytes that may still go through.
    left: AtomicU64,
    has_moved: AtomicBool,
}

impl Meter {
    /// A meter that ends a connection after `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Arc::new(Counts { left: AtomicU64::new(bytes), has_moved: AtomicBool::new(false) }))
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.0.has_moved.store(true, Ordering::Relaxed);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let left = self.0.left.fetch_sub(bytes.min(self.left()), Ordering::Relaxed);
        if left < bytes {
            return Err(io::Error::other("the connection has carried all that it may"));
        }
        Ok(())
    }

    fn left(&self) -> u64 {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Returns when nothing has moved for `limit`, at the latest after twice that time.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            sleep(limit).await;
            if !self.0.has_moved.swap(false, Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// A stream whose bytes are counted.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, meter: Meter) -> Self {
        Self { stream, meter }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => Poll::Ready(self.meter.count(buffer.filled().len() - before)),
            other => other,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(Ok(written)) => Poll::Ready(self.meter.count(written).map(|()| written)),
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
