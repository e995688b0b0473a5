//! `myclaw rpc`: one JSON object per line in, replies and events out.
//!
//! Commands are executed one after the other and answered at once; long work runs concurrently with them. `docs/develop/rpc.md` is
//! the protocol.

mod approvals;
mod bash;
mod choices;
mod command;
mod reply;
mod request;
mod stats;
mod through_gateway;

use std::sync::Arc;

use myclaw_agent::subagents::SubagentTools;
use myclaw_agent::{JobWake, SessionCallback, SessionConfig, SessionEvent, engine};
use myclaw_engine::{AgentRunEvent, RunEvent};
use myclaw_gateway_client::RemoteTools;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::lines::{Line, standard_input};
use super::serve_until_over;
use crate::args::RpcArgs;
use approvals::Approvals;
use command::Controller;
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::gateway::Worker;
use myclaw_front::home::find_home;
use myclaw_front::model::announce;
use myclaw_front::print::note;
use myclaw_front::report::Verbosity;
use myclaw_front::start::{Start, Wanted};
use myclaw_front::terminal::{Destination, JsonMode, Output, escaped};
use reply::{Event, NotReady, Ready, Reply};
use request::{BadRequest, Request};

/// Serves the client program until it closes standard input and everything is answered.
pub fn run(args: &RpcArgs) -> Result<(), CliError> {
    let stop = CancellationToken::new();
    let wire = Wire::new(stop.clone());
    let place = find_home().and_then(|home| Ok((args.gateway.worker(&home)?, home)));
    let (worker, home) = place.inspect_err(|error| wire.not_ready(error))?;
    let config = match worker {
        Worker::Here(config) => config,
        Worker::Gateway(gateway) => {
            let served = through_gateway::serve(args, gateway, &wire, stop.clone());
            return serve_until_over(&wire.output, stop, served);
        }
    };
    let RpcArgs { last, session: args, .. } = args;
    let start = Start::find(home, config, args, Wanted::from(*last))
        .inspect_err(|error| wire.not_ready(error))?;
    if let Some(line) = start.line() {
        note(format_args!("myclaw: {}", escaped(&line)));
    }
    serve_until_over(&wire.output, stop.clone(), serve(args, start.config, &wire, stop))
}

/// Standard output, a line at a time.
#[derive(Clone)]
struct Wire {
    output: Arc<Output>,
    mode: JsonMode,
}

impl Wire {
    fn new(on_closed: CancellationToken) -> Self {
        let mode = JsonMode::for_destination(Destination::of_stdout());
        Self { output: Arc::new(Output::stdout(on_closed)), mode }
    }

    /// A reply is written at once; events may be buffered.
    fn reply(&self, reply: &Reply<'_>) {
        self.output.push_json(reply, self.mode);
        self.output.flush();
    }

    /// Says why the program cannot begin.
    fn not_ready(&self, error: &CliError) {
        self.output.push_json(&NotReady::from(error), self.mode);
        self.output.flush();
    }

    /// Writes all events of the sessions.
    fn callback(&self) -> SessionCallback {
        let Self { output, mode } = self.clone();
        Arc::new(move |key, event| {
            let session = key.as_str();
            match &event {
                // `run_start`, `run_end` and the question of `Approvals` carry the same information and more.
                SessionEvent::Run(RunEvent {
                    kind:
                        AgentRunEvent::RunStart { .. }
                        | AgentRunEvent::RunEnd { .. }
                        | AgentRunEvent::ApprovalRequested { .. },
                    ..
                }) => {}
                SessionEvent::Run(event) => output.push_json(event, mode),
                SessionEvent::Begin(work) => {
                    output.push_json(&Event::begin(session, *work), mode);
                }
                SessionEvent::End(outcome, next) => {
                    output.push_json(&Event::end(session, outcome, *next), mode);
                    output.flush();
                }
            }
        })
    }
}

async fn serve(
    args: &SessionArgs,
    session_config: SessionConfig,
    wire: &Wire,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let approvals = Approvals::new(wire.clone());
    let engine = engine(session_config.home.http_options());
    let approver = Some(Arc::new(approvals.clone()) as _);
    let (driver, subagents) = SubagentTools::drive(
        engine,
        stop.clone(),
        wire.callback(),
        approver,
        Some(RemoteTools::with(None)),
    );
    let mut lines = standard_input()
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    session_config.wake_for_jobs(JobWake::StartTurn);
    let mut controller =
        Controller::begin(Arc::clone(&driver), session_config, args, approvals, stop.clone());
    let selected = controller.current().selection().await.map_err(CliError::from);
    let model = selected.inspect_err(|error| wire.not_ready(error))?;
    announce(&model, Verbosity::Normal);
    let ready = Ready {
        version: env!("CARGO_PKG_VERSION"),
        session: controller.current().key().as_str(),
        model: model.reference.to_string(),
    };
    wire.output.push_json(&ready, wire.mode);
    wire.output.flush();
    subagents.take_up(&controller.current().config());
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = stop.cancelled() => break,
        };
        match line {
            Some(line) => take(line, &mut controller, wire).await,
            None => break,
        }
    }
    // At the end of its input the program still waits for the answers to its messages.
    driver.finish().await;
    if stop.is_cancelled() { Err(CliError::aborted()) } else { Ok(()) }
}

/// Executes the command of a line, and replies.
async fn take(line: Line, controller: &mut Controller, wire: &Wire) {
    let (id, request) = match line {
        Line::Text(text) => Request::parse(&text),
        Line::Unusable(why) => (None, Err(BadRequest::unreadable(&why))),
    };
    match request {
        Ok(request) => {
            let name = request.name;
            let wire = wire.clone();
            let answer = move |outcome: Result<Value, CliError>| {
                wire.reply(&Reply::to(id.as_ref(), name, &outcome));
            };
            controller.obey(request, answer).await;
        }
        Err(bad) => wire.reply(&Reply::to_bad_request(id.as_ref(), &bad)),
    }
}
