//! Connections that have not shown a token: how many there may be, and how much they may send.
//!
//! A newcomer always gets a place: where there is none, the oldest connection without a login ends. To log in takes
//! milliseconds, so an owner gets in however many connections others begin, also from the same address.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Most connections without a login.
const MOST: usize = 512;
/// Most of one client: a browser begins six at once, a vendor some dozens.
const MOST_OF_ONE_CLIENT: usize = 64;
/// Most of this machine or of a proxy, which stand for many programs and clients.
const MOST_OF_NEAR: usize = 384;
/// Bytes that are read at once where they are counted.
const SOME: usize = 4 * 1024;
/// The bytes that a connection may send are not counted.
const ANY: usize = usize::MAX;

/// The connections without a login, by client.
#[derive(Default)]
pub(super) struct Strangers(Mutex<State>);

#[derive(Default)]
struct State {
    /// By number, so that the oldest comes first.
    places: BTreeMap<u64, (IpAddr, CancellationToken)>,
    counts: HashMap<IpAddr, usize>,
    next: u64,
}

/// How far a client is from this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distance {
    /// This machine, or a trusted proxy.
    Near,
    Far,
}

/// The place of one connection.
pub(super) struct Place {
    strangers: Arc<Strangers>,
    number: u64,
    /// Fires when the connection has to end for another one.
    pub(super) ended: CancellationToken,
    /// How many bytes the client may still send.
    room: AtomicUsize,
}

impl Strangers {
    /// Makes a place for a connection of a client.
    pub(super) fn enter(self: &Arc<Self>, client: IpAddr, distance: Distance) -> Arc<Place> {
        let most = match distance {
            Distance::Near => MOST_OF_NEAR,
            Distance::Far => MOST_OF_ONE_CLIENT,
        };
        let mut state = self.lock();
        if state.counts.get(&client).is_some_and(|count| *count >= most) {
            state.end_oldest(Some(client));
        } else if state.places.len() >= MOST {
            let largest = state.counts.iter().max_by_key(|(_, count)| **count);
            let largest = largest.map(|(client, _)| *client);
            state.end_oldest(largest);
        }
        let (number, ended) = (state.next, CancellationToken::new());
        state.next += 1;
        state.places.insert(number, (client, ended.clone()));
        *state.counts.entry(client).or_default() += 1;
        let room = AtomicUsize::new(ANY);
        Arc::new(Place { strangers: Arc::clone(self), number, ended, room })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement that can fail.
        self.0.lock()
    }
}

impl State {
    fn end_oldest(&mut self, of: Option<IpAddr>) {
        let mut places = self.places.iter();
        let oldest = places.find(|(_, (client, _))| of.is_none_or(|of| of == *client));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(ended) = self.leave(number)
        {
            ended.cancel();
        }
    }

    fn leave(&mut self, number: u64) -> Option<CancellationToken> {
        let (client, ended) = self.places.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&client);
            }
        }
        Some(ended)
    }
}

impl Place {
    /// The client has shown a token: its connection is a stranger's no more.
    pub(super) fn is_known(&self) {
        self.room.store(ANY, Ordering::Relaxed);
        self.strangers.lock().leave(self.number);
    }

    /// From here on, the client may send no more than `bytes` before it has shown a token.
    pub(super) fn limit(&self, bytes: usize) {
        self.room.store(bytes, Ordering::Relaxed);
    }

    /// Whether the client has sent more.
    pub(super) fn is_used_up(&self) -> bool {
        self.room.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.lock().leave(self.number);
    }
}

/// A connection that reads no more than its place allows.
pub(super) struct Bounded<S> {
    pub(super) stream: S,
    pub(super) place: Arc<Place>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = self.place.room.load(Ordering::Relaxed);
        if room == ANY {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if room == 0 {
            return Poll::Ready(Err(io::ErrorKind::QuotaExceeded.into()));
        }
        let mut some = [0; SOME];
        let most = room.min(SOME).min(buffer.remaining());
        let mut part = ReadBuf::new(&mut some[..most]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        self.place.room.store(room - part.filled().len(), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests;
