//! Attends to a command until it ends or becomes a background job.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use myclaw_engine::ToolInvocation;
use myclaw_exec::{
    Attachment, ChildSpec, ExecError, Finished, OutputPiece, Runner, TerminalSize, attach,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use crate::jobs::{BackgroundJob, Candidate, JobRefused, Jobs, LiveOutput, NewJob, Running};

/// The interval at which user interfaces get new output, and the time after which a command is written to the journal,
/// so that it can be ended if MyClaw is killed. Most commands have ended by then.
const UPDATE_PERIOD: Duration = Duration::from_millis(250);
/// Size of the terminal of a command: as wide as programs expect, and no wider than models read well.
const TERMINAL_SIZE: TerminalSize = TerminalSize { columns: 120, rows: 40 };

/// A command to run.
pub(super) struct Plan<'a> {
    pub(super) command: &'a str,
    pub(super) spec: ChildSpec,
    /// Runs it.
    pub(super) runner: Arc<dyn Runner>,
    /// Where commands can become jobs.
    pub(super) jobs: Option<&'a Arc<Jobs>>,
    /// When it becomes one; `None` means never.
    pub(super) yield_after: Option<Duration>,
    pub(super) input: Attachment,
}

/// The outcome of a command.
pub(super) enum Outcome {
    Finished(Box<Finished>),
    Job(Arc<BackgroundJob>),
    /// It was requested as a background job but cannot become one.
    Refused(JobRefused),
}

/// What a command can be attached to.
pub(super) fn attachment(pty: bool, background: bool) -> Attachment {
    match (pty, background) {
        (true, _) => Attachment::Terminal(TERMINAL_SIZE),
        (false, true) => Attachment::Pipe,
        // Programs that read an input without a writer would wait forever.
        (false, false) => Attachment::None,
    }
}

/// Runs a command and reports its output as it arrives.
pub(super) async fn attend(
    plan: Plan<'_>,
    invocation: &ToolInvocation<'_>,
) -> Result<Outcome, ExecError> {
    let Plan { command, spec, runner, jobs, mut yield_after, input } = plan;
    let (directory, output) = (spec.directory.clone(), spec.output.side_file.clone());
    let progress = Arc::new(Progress::default());
    let (candidate, mut running) = start(spec, runner, input, Arc::clone(&progress));
    let is_background = yield_after == Some(Duration::ZERO);
    // A background command may be killed with MyClaw at any moment after its start.
    let mut noted = jobs.filter(|_| is_background).and_then(|jobs| jobs.note(&candidate.handle));
    let cancel = candidate.cancel.clone();
    let mut candidate = Some(candidate);
    let mut yields = pin!(sleep(yield_after.unwrap_or_default()));
    let mut ticks = interval_at(Instant::now() + UPDATE_PERIOD, UPDATE_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            finished = &mut running => return finished.map(|finished| Outcome::Finished(Box::new(finished))),
            () = invocation.cancel.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
            () = &mut yields, if yield_after.is_some() && !cancel.is_cancelled() => {
                yield_after = None;
                let (Some(jobs), Some(offered)) = (jobs, candidate.take()) else { continue };
                let new = NewJob {
                    command,
                    directory: directory.clone(),
                    output: output.clone().unwrap_or_default(),
                };
                offered.handle.keep_all_output();
                match jobs.adopt(new, offered, running).await {
                    Ok(job) => return Ok(Outcome::Job(job)),
                    Err((refused, given_back, _)) if is_background => {
                        cancel.cancel();
                        given_back.await?;
                        return Ok(Outcome::Refused(refused));
                    }
                    // The call waits for the command instead.
                    Err((_, given_back, offered)) => {
                        running = given_back;
                        candidate = Some(offered);
                    }
                }
            }
            _ = ticks.tick() => {
                if let Some(update) = progress.take() {
                    (invocation.on_update)(update);
                }
                if let (None, Some(jobs), Some(candidate)) = (&noted, jobs, &candidate) {
                    noted = jobs.note(&candidate.handle);
                }
            }
        }
    }
}

/// Prepares a command; it starts when it is first polled.
fn start(
    spec: ChildSpec,
    runner: Arc<dyn Runner>,
    input: Attachment,
    progress: Arc<Progress>,
) -> (Candidate, Running) {
    let live = Arc::new(match input {
        Attachment::Terminal(_) => LiveOutput::of_terminal(),
        Attachment::None | Attachment::Pipe => LiveOutput::default(),
    });
    let (handle, link) = attach(input);
    let cancel = CancellationToken::new();
    let (output, cancelled) = (Arc::clone(&live), cancel.clone());
    let running: Running = Box::pin(async move {
        let mut take_output = |piece: OutputPiece<'_>| {
            if piece.skipped_bytes > 0 {
                output.skip(piece.skipped_bytes, piece.skipped_lines);
            }
            progress.push(piece.bytes);
            output.push(piece.bytes);
        };
        runner.run(spec, link, &cancelled, &mut take_output).await
    });
    (Candidate { live, handle, cancel }, running)
}
