//! One command that the helper runs for the other side.

use std::convert::Infallible;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use myclaw_exec::{ExecError, Finished, Handle, Link, Piece, attach_marked, run_attached};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::send;
use crate::backlog::{Backlog, Chunk};
use crate::frames;
use crate::protocol::{CallNumber, CommandEnd, CommandRequest, Reply, encode};

/// Pieces of input that wait here. The other side sends the next one when the last one was taken.
const MAX_WAITING_PIECES: usize = 4;
/// Shortest time between two pieces of output, so that a program that prints without an end costs little.
const PACE: Duration = Duration::from_millis(5);

/// A command that is about to run.
pub(super) struct Command {
    request: CommandRequest,
    link: Link,
    handle: Handle,
    input: mpsc::Receiver<Piece>,
    /// Ends it.
    pub(super) cancel: CancellationToken,
}

/// How a running command is reached.
pub(super) struct CommandHold {
    input: mpsc::Sender<Piece>,
    handle: Handle,
}

impl Command {
    /// `None` if the request cannot be one of the other side.
    pub(super) fn new(request: CommandRequest) -> Option<(Self, CommandHold)> {
        let (handle, link) = attach_marked(request.attachment(), &request.mark)?;
        let (sender, input) = mpsc::channel(MAX_WAITING_PIECES);
        let hold = CommandHold { input: sender, handle: handle.clone() };
        let cancel = CancellationToken::new();
        Some((Self { request, link, handle, input, cancel }, hold))
    }

    /// Runs the command, and reports what it prints and how it ends.
    pub(super) async fn run(self, replies: mpsc::Sender<Vec<u8>>) {
        let number = self.request.number;
        let backlog = Backlog::default();
        let running = AssertUnwindSafe(self.run_to_end(&backlog, &replies)).catch_unwind();
        let end = running.await.map_or_else(
            |_| CommandEnd::Failed {
                text: "the helper failed inside; how the command ended is not known".to_owned(),
            },
            CommandEnd::from,
        );
        if let Some(chunk) = backlog.take() {
            send(&replies, &output(number, &chunk)).await;
        }
        send(&replies, &Reply::Ended { number, end: Box::new(end) }).await;
    }

    async fn run_to_end(
        self,
        backlog: &Backlog,
        replies: &mpsc::Sender<Vec<u8>>,
    ) -> Result<Finished, ExecError> {
        let Self { request, link, handle, input, cancel } = self;
        let number = request.number;
        let mut take_output = |piece: &[u8]| backlog.push(piece);
        let mut running = pin!(run_attached(request.into_spec(), link, &cancel, &mut take_output));
        let mut passing = pin!(pass_output_on(number, backlog, replies));
        let mut feeding = pin!(feed(number, handle, input, replies));
        tokio::select! {
            biased;
            ended = &mut running => ended,
            never = &mut passing => match never {},
            never = &mut feeding => match never {},
        }
    }
}

impl CommandHold {
    pub(super) fn pass_on(&self, piece: Piece) {
        // The other side waits for each piece to be taken, so there is room.
        let _ = self.input.try_send(piece);
    }

    pub(super) fn keep_all_output(&self) {
        self.handle.keep_all_output();
    }
}

/// Sends output as long as it is polled. Dropped at any point, it loses nothing of the backlog.
async fn pass_output_on(
    number: CallNumber,
    backlog: &Backlog,
    replies: &mpsc::Sender<Vec<u8>>,
) -> Infallible {
    loop {
        backlog.filled().await;
        let Ok(place) = replies.reserve().await else { return pending().await };
        if let Some(chunk) = backlog.take()
            && let Ok(bytes) = frames::encode(&output(number, &chunk))
        {
            place.send(bytes);
        }
        sleep(PACE).await;
    }
}

/// Passes input on as the program takes it.
async fn feed(
    number: CallNumber,
    handle: Handle,
    mut input: mpsc::Receiver<Piece>,
    replies: &mpsc::Sender<Vec<u8>>,
) -> Infallible {
    while let Some(piece) = input.recv().await {
        let is_closed = handle.pass_on(piece).await.is_err();
        send(replies, &Reply::Took { number, is_closed }).await;
    }
    pending().await
}

fn output(number: CallNumber, chunk: &Chunk) -> Reply {
    Reply::Output {
        number,
        skipped_bytes: chunk.skipped_bytes,
        skipped_lines: chunk.skipped_lines,
        data: encode(&chunk.bytes),
    }
}
