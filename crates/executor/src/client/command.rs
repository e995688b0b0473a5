//! Commands that run in the sandbox while this program looks after them.
//!
//! The helper runs them and reports what they print and how they end. At the level `landlock` the sandbox has no
//! terminals to open, since those of the user are in the same directory: there a command with a terminal is confined by
//! itself, with the same rules, and the terminal is this program's.

use std::pin::pin;
use std::sync::Arc;

use myclaw_exec::{
    Attachment, ChildSpec, ExecError, Exit, Finished, Link, OutputPiece, Piece, Runner, Running,
    end_traced,
};
use myclaw_sandbox::{Level, SandboxError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::helper::{CommandEvents, Helper, Place, Waiting};
use super::{Executor, Launch};
use crate::backlog::{Backlog, Chunk};
use crate::protocol::{CommandEnd, CommandRequest, Request, encode};

/// Receives output of a command.
type TakeOutput<'a> = &'a mut (dyn FnMut(OutputPiece<'_>) + Send);

impl Runner for Executor {
    /// `spec.directory` and the directory of `spec.output.side_file` are named as in the sandbox.
    fn run<'a>(
        &'a self,
        spec: ChildSpec,
        link: Link,
        cancel: &'a CancellationToken,
        on_output: TakeOutput<'a>,
    ) -> Running<'a> {
        Box::pin(async move {
            let cell = self.current();
            let started = cell.get_or_try_init(|| Helper::start(&self.launch)).await;
            let helper = started
                .map_err(|error| elsewhere(format!("{error}. Nothing was run. Tell the user")))?;
            let has_terminal = matches!(link.attachment(), Attachment::Terminal(_));
            match self.launch.confinement.level {
                Level::Landlock if has_terminal => {
                    run_beside(&self.launch, helper, spec, link, cancel, on_output).await
                }
                _ => run_inside(helper, &spec, link, cancel, on_output).await,
            }
        })
    }
}

/// A command on its way to its end in the helper.
struct Inside<'a> {
    helper: &'a Helper,
    place: Place<'a>,
    link: Link,
    /// What is written to the command, if anything can be.
    input: Option<mpsc::Receiver<Piece>>,
    /// Whether the helper has taken the piece before.
    may_write: bool,
    output: Arc<Backlog>,
    took: mpsc::Receiver<bool>,
}

async fn run_inside(
    helper: &Helper,
    spec: &ChildSpec,
    mut link: Link,
    cancel: &CancellationToken,
    on_output: TakeOutput<'_>,
) -> Result<Finished, ExecError> {
    let began = Instant::now();
    let trace = link.trace();
    let output = Arc::<Backlog>::default();
    let (sender, took) = mpsc::channel(1);
    let (end, ended) = oneshot::channel();
    let events = CommandEvents { output: Arc::clone(&output), took: sender, end };
    let Some(place) = helper.begin(Waiting::Command(events), Some(trace.clone())) else {
        return Err(lost(helper));
    };
    let request = CommandRequest::new(place.number(), trace.mark.clone(), spec, link.attachment());
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            place.free();
            return Err(error);
        }
    };
    let input = link.take_input();
    let inside = Inside { helper, place, link, input, may_write: true, output, took };
    let attending = async {
        helper.send(&Request::Run(Box::new(request))).await;
        inside.attend(ended, cancel, on_output).await
    };
    let ended = helper.in_time(attending, cancel, spec.timeout).await;
    let outcome = ended.and_then(|end| end.check(spec, began.elapsed()));
    let is_forced = match &outcome {
        Ok(finished) => matches!(finished.exit, Exit::TimedOut | Exit::Aborted),
        Err(_) => true,
    };
    if is_forced {
        // The helper may see no processes other than its children; this program sees those that left its session, too.
        end_traced(&trace).await;
    }
    outcome
}

impl Inside<'_> {
    async fn attend(
        mut self,
        mut ended: oneshot::Receiver<CommandEnd>,
        cancel: &CancellationToken,
        on_output: TakeOutput<'_>,
    ) -> Result<CommandEnd, ExecError> {
        let number = self.place.number();
        let (mut is_cancelled, mut keeps_output) = (false, false);
        let end = loop {
            tokio::select! {
                biased;
                end = &mut ended => break end,
                () = self.output.filled() => pass_on(self.output.take(), on_output),
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.helper.send(&Request::Cancel { number }).await;
                }
                () = self.link.all_output_wanted(), if !keeps_output => {
                    keeps_output = true;
                    self.helper.send(&Request::KeepOutput { number }).await;
                }
                piece = next_piece(&mut self.input), if self.may_write => self.write(piece).await,
                Some(is_closed) = self.took.recv() => {
                    self.may_write = true;
                    if is_closed {
                        self.input = None;
                    }
                }
            }
        };
        pass_on(self.output.take(), on_output);
        let lost = lost(self.helper);
        self.place.free();
        end.map_err(|_| lost)
    }

    async fn write(&mut self, piece: Option<Piece>) {
        let number = self.place.number();
        self.may_write = false;
        match piece {
            Some(Piece::Bytes(bytes)) => {
                let data = encode(&bytes);
                self.helper.send(&Request::Input { number, data }).await;
            }
            Some(Piece::End) => self.helper.send(&Request::EndInput { number }).await,
            // Nobody holds the other end any more.
            None => self.input = None,
        }
    }
}

/// The next piece of input; waits forever if there is no input.
async fn next_piece(input: &mut Option<mpsc::Receiver<Piece>>) -> Option<Piece> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

fn pass_on(chunk: Option<Chunk>, on_output: TakeOutput<'_>) {
    if let Some(Chunk { skipped_bytes, skipped_lines, bytes }) = chunk {
        on_output(OutputPiece { skipped_bytes, skipped_lines, bytes: &bytes });
    }
}

/// Runs a command in a sandbox of its own, which ends with the helper.
async fn run_beside(
    launch: &Launch,
    helper: &Helper,
    mut spec: ChildSpec,
    link: Link,
    cancel: &CancellationToken,
    on_output: TakeOutput<'_>,
) -> Result<Finished, ExecError> {
    let (sender, mut ended) = oneshot::channel();
    let Some(place) = helper.begin(Waiting::Beside { _lost: sender }, None) else {
        return Err(lost(helper));
    };
    let mut confinement = launch.confinement.clone();
    confinement.temporary = Some(helper.temporary.clone());
    let added = std::mem::replace(&mut spec.environment, launch.environment.clone());
    for (name, value) in added.iter() {
        spec.environment = spec.environment.with(name, value);
    }
    let mut take_output =
        |bytes: &[u8]| on_output(OutputPiece { skipped_bytes: 0, skipped_lines: 0, bytes });
    let stop = cancel.child_token();
    let mut is_lost = false;
    let outcome = {
        let running =
            launch.sandbox.run_attached(spec, link, &confinement, &stop, &mut take_output);
        let mut running = pin!(running);
        loop {
            tokio::select! {
                biased;
                outcome = &mut running => break outcome,
                _ = &mut ended, if !is_lost => {
                    is_lost = true;
                    stop.cancel();
                }
            }
        }
    };
    place.free();
    match outcome {
        _ if is_lost && !cancel.is_cancelled() => Err(lost(helper)),
        Ok(finished) => Ok(finished),
        Err(SandboxError::Exec(error)) => Err(error),
        Err(error) => Err(elsewhere(error.to_string())),
    }
}

fn lost(helper: &Helper) -> ExecError {
    elsewhere(format!(
        "the sandboxed helper process ended ({}), and the command with it; the next command starts a new helper",
        helper.reason()
    ))
}

fn elsewhere(reason: String) -> ExecError {
    ExecError::Elsewhere { reason }
}
