//! The program of a server while it runs.

use std::any::Any;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use myclaw_sandbox::{Confined, Network};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::exchange::{Exchange, Outgoing};
use crate::failure::{Failure, Kind};
use crate::lines::{Line, Lines, MAX_LINE};
use crate::log::ServerLog;
use crate::spec::{PrepareProgram, Program};

/// Longest line of a server's errors, in bytes.
const MAX_ERROR_LINE: usize = 8 << 10;
/// How long the last errors of a program that has ended may take to be read.
const LAST_ERRORS: Duration = Duration::from_millis(500);

/// A running program. Dropping it ends the program with everything it started.
pub(crate) struct Process {
    pub(crate) exchange: Arc<Exchange>,
    _attending: AbortOnDropHandle<()>,
}

impl Process {
    /// Starts the program of a server.
    ///
    /// # Errors
    /// It cannot be started; why.
    pub(crate) async fn start(
        prepare: &Arc<PrepareProgram>,
        log: &Arc<ServerLog>,
    ) -> Result<Self, Failure> {
        log.begin();
        let (prepare, log) = (Arc::clone(prepare), Arc::clone(log));
        // The sandbox asks the file system.
        let runtime = tokio::runtime::Handle::current();
        let started = tokio::task::spawn_blocking(move || {
            let _entered = runtime.enter();
            let program = prepare().map_err(Failure::other)?;
            let spawned = spawn(&program).map_err(|problem| {
                Failure::other(format!("its program cannot be started: {problem}"))
            })?;
            Ok::<_, Failure>((spawned, program.advice))
        });
        let ((mut confined, kept), advice) =
            started.await.map_err(|error| Failure::other(error.to_string()))??;
        let (Some(input), Some(output), Some(errors)) =
            (confined.take_input(), confined.take_output(), confined.take_errors())
        else {
            return Err(Failure::other("its program has no pipes"));
        };
        let (exchange, queue) = Exchange::new();
        let writing = AbortOnDropHandle::new(tokio::spawn(write_all(queue, input)));
        let reading = tokio::spawn(read_errors(errors, Arc::clone(&log)));
        let attendant = Attendant {
            exchange: Arc::clone(&exchange),
            log,
            advice,
            reading: AbortOnDropHandle::new(reading),
            _writing: writing,
            _kept: kept,
        };
        let attending = tokio::spawn(attendant.attend(confined, output));
        Ok(Self { exchange, _attending: AbortOnDropHandle::new(attending) })
    }
}

type Kept = Option<Box<dyn Any + Send + Sync>>;

fn spawn(program: &Program) -> Result<(Confined, Kept), String> {
    let mut confinement = program.confinement.clone();
    let mut kept = None;
    if let Some(set_up) = &program.network {
        let (network, keep): (Network, _) = set_up()?;
        confinement.network = network;
        kept = Some(keep);
    }
    let confined = program.sandbox.spawn(program.child.clone(), &confinement);
    Ok((confined.map_err(|error| error.to_string())?, kept))
}

async fn write_all(mut queue: mpsc::Receiver<Outgoing>, mut input: ChildStdin) {
    while let Some(message) = queue.recv().await {
        if input.write_all(&message.line()).await.is_err() || input.flush().await.is_err() {
            // Its end is noticed where its output is read.
            break;
        }
    }
}

async fn read_errors(errors: impl AsyncRead + Unpin, log: Arc<ServerLog>) {
    let mut lines = Lines::new(errors, MAX_ERROR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong { head, .. } => head,
        };
        log.add(vec![String::from_utf8_lossy(&bytes).into_owned()]).await;
    }
}

/// Attends to a program until it ends.
struct Attendant {
    exchange: Arc<Exchange>,
    log: Arc<ServerLog>,
    advice: String,
    reading: AbortOnDropHandle<()>,
    _writing: AbortOnDropHandle<()>,
    _kept: Kept,
}

impl Attendant {
    async fn attend(mut self, mut confined: Confined, output: ChildStdout) {
        let mut lines = Lines::new(output, MAX_LINE);
        let mut problem = None;
        loop {
            match lines.next().await {
                Ok(Some(line)) => {
                    if let Err(failure) = self.exchange.take(line) {
                        problem = Some(failure);
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let what = format!("the output of the server cannot be read: {error}");
                    problem = Some(Failure::new(Kind::Ended, what));
                    break;
                }
            }
        }
        let ended = confined.end().await;
        let _ = timeout(LAST_ERRORS, pin!(&mut self.reading)).await;
        let failure = problem.unwrap_or_else(|| self.ended(&confined, ended.ok()));
        self.exchange.end(failure);
    }

    fn ended(&self, confined: &Confined, status: Option<ExitStatus>) -> Failure {
        let said = self.log.newest();
        if let Some(why) = status.and_then(|status| confined.setup_failure(status, &said)) {
            let what = format!("its program could not be started: {}", why.trim());
            return Failure::new(Kind::Ended, what);
        }
        let how = match status.and_then(|status| status.code()) {
            Some(code) => format!("the server has ended (exit code {code})"),
            None => "the server has ended".to_owned(),
        };
        let what = match self.advice.as_str() {
            "" => how,
            advice => format!("{how}. {advice}"),
        };
        Failure::new(Kind::Ended, what).saying(said)
    }
}
