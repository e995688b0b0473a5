//! `myclaw acp`: the Agent Client Protocol, by which editors talk to agents. One JSON-RPC message per line.
//!
//! The messages are types of the protocol's own crate; what is here reads and writes them, and translates between them
//! and a session. Requests are done one after the other, but for prompts, which are answered when their turn is over.
//! `docs/acp.md` says what maps to what.

mod agent;
mod board;
mod failure;
mod hunks;
mod markdown;
mod message;
mod opening;
mod options;
mod prompt;
mod replay;
mod say;
mod shelf;
mod tools;
mod translator;
mod wire;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::args::{AcpArgs, ConversationArgs};
use crate::exit::CliError;
use crate::home::session_config;
use myclaw_agent::{Driver, SessionConfig, engine};

use super::lines::standard_input;
use super::serve_until_over;
use agent::Agent;
use board::Board;
use wire::Wire;

/// Serves the editor at the other end until it closes standard input, or sends a signal.
pub(crate) fn run(args: AcpArgs) -> Result<(), CliError> {
    let args = ConversationArgs::from(args);
    // What is wrong with the config file is better said now than with the first session.
    let settings = session_config(&args)?;
    let stop = CancellationToken::new();
    let wire = Wire::new(stop.clone());
    serve_until_over(wire.output(), stop.clone(), serve(args, &settings, &wire, stop))
}

async fn serve(
    args: ConversationArgs,
    settings: &SessionConfig,
    wire: &Wire,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let board = Arc::new(Board::new(wire.clone()));
    let listener = Arc::clone(&board);
    let driver = Driver::new(
        engine(settings.home.http_options()),
        stop.clone(),
        Arc::new(move |key, event| listener.hear(key, &event)),
    );
    let mut lines = standard_input()
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    let mut agent = Agent::new(args, settings, Arc::clone(&driver), board, wire.clone());
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = stop.cancelled() => break,
        };
        match line {
            Some(line) => agent.take(line).await,
            None => break,
        }
    }
    // The editor is gone or wants to go: nobody reads what would still be said. What goes on is aborted in good order.
    stop.cancel();
    driver.finish().await;
    Ok(())
}
