//! Writing an event to a client from the task in which it comes.
//!
//! **What arrives** is the newest event of a session, from the hub, in the task of the run ([`Watcher::take`]). **What
//! leaves** is its frame on the WebSocket of a client, or a wake-up of the client's own task, which then writes it.
//!
//! A client's own task waits most of the time. While it does, its connection lies here, and a new event is written at once
//! by the task that publishes it, if the client has all earlier ones, has got none a moment before, and the connection
//! takes it without waiting. In all other cases the client's task is woken and does the rest.
//!
//! **What may fail:** the lock is held, the connection is full or broken, an event is missing in between. Each of these
//! means "not written" and wakes the client's task; the publisher never waits and never sees an error. The number of the
//! last event that was written decides what is next, so no event is written twice or left out.
//!
//! **Why this shape:** to wake a task for each delta costs more than to write it, and nearly all events are deltas.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use axum::extract::ws::Message;
use futures_util::{Sink, Stream as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{BREATH, Client, Watched};
use crate::hub::{Joined, Watcher};

/// What the next frame of a client is: none at the end of the connection.
pub(super) type Received = Option<Result<Message, axum::Error>>;

/// Where a client is while its task waits.
pub(super) struct Line {
    is_gateway: bool,
    waiting: Mutex<Option<Box<Client>>>,
    /// Notified of events that were not written, and of late answers.
    pub(super) wake: Notify,
    /// Answers to requests that took long, to be written.
    late: Mutex<Vec<String>>,
}

impl Line {
    /// `is_gateway` says that the client is another gateway on the store.
    pub(super) fn new(is_gateway: bool) -> Self {
        Self { is_gateway, waiting: Mutex::default(), wake: Notify::new(), late: Mutex::default() }
    }

    /// Has the client's task write an answer.
    pub(super) fn answer_late(&self, response: String) {
        self.late.lock().push(response);
        self.wake.notify_one();
    }

    /// The answers that came late.
    pub(super) fn take_late(&self) -> Vec<String> {
        std::mem::take(&mut *self.late.lock())
    }

    /// Parks the client while its task waits.
    pub(super) fn park(&self, client: Box<Client>) {
        *self.waiting.lock() = Some(client);
    }

    /// Takes the client up again.
    pub(super) fn unpark(&self) -> Option<Box<Client>> {
        self.waiting.lock().take()
    }

    /// The next frame of the client that waits here.
    pub(super) async fn frame(&self) -> Received {
        let next = |context: &mut Context<'_>| match &mut *self.waiting.lock() {
            Some(client) => Pin::new(&mut client.socket).poll_next(context),
            None => Poll::Pending,
        };
        std::future::poll_fn(next).await
    }
}

impl Watcher for Line {
    fn is_gateway(&self) -> bool {
        self.is_gateway
    }

    fn wake(&self) {
        self.wake.notify_one();
    }

    fn take(&self, session: &str, event: &Joined) -> bool {
        // The holder of the connection at this moment does not know of the event, so the client's task is woken.
        let Some(mut waiting) = self.waiting.try_lock() else { return false };
        waiting.as_mut().is_some_and(|client| client.write_now(session, event))
    }
}

impl Client {
    /// As [`Watched::write_now`], if nothing was written a moment before.
    fn write_now(&mut self, session: &str, event: &Joined) -> bool {
        let now = Instant::now();
        if self.wrote.is_some_and(|wrote| now.saturating_duration_since(wrote) < BREATH) {
            return false;
        }
        let Some(watched) = self.watched.get_mut(session) else { return false };
        let before = watched.sent;
        let is_done = watched.write_now(&mut self.socket, event);
        if watched.sent != before {
            self.wrote = Some(now);
        }
        is_done
    }
}

impl Watched {
    /// Writes an event without waiting. False if something is left to do: then the client's own task does it.
    fn write_now(&mut self, socket: &mut (impl Sink<Message> + Unpin), event: &Joined) -> bool {
        if self.sent + 1 != *event.numbers.start() {
            return false;
        }
        // Nobody is woken when the connection can take more: the client's own task asks again.
        let mut context = Context::from_waker(Waker::noop());
        let mut socket = Pin::new(socket);
        if !matches!(socket.as_mut().poll_ready(&mut context), Poll::Ready(Ok(()))) {
            return false;
        }
        let Some(frame) = self.frame(event) else {
            self.sent = *event.numbers.end();
            return true;
        };
        let frame = Message::text(frame);
        if socket.as_mut().start_send(frame).is_err() {
            return false;
        }
        self.sent = *event.numbers.end();
        matches!(socket.poll_flush(&mut context), Poll::Ready(Ok(())))
    }
}

#[cfg(test)]
mod tests;
