//! `myclaw acp`: the Agent Client Protocol, by which editors talk to agents. One JSON-RPC message per line.
//!
//! The messages are types of the protocol's own crate. This module reads and writes them, and translates between them
//! and a session. Requests are handled one after the other, except for prompts, which are answered when their turn is
//! over. `docs/use/acp.md` describes the mapping.

mod agent;
mod client_sessions;
mod editor;
mod failure;
mod hunks;
mod markdown;
mod message;
mod opening;
mod options;
mod permission;
mod plan;
mod prompt;
mod prompts;
mod replay;
mod requests;
mod stored_sessions;
mod terminal;
mod tools;
mod translator;
mod wire;

use std::sync::Arc;

use myclaw_agent::subagents::SubagentTools;
use myclaw_agent::{SessionConfig, engine};
use myclaw_gateway_client::RemoteTools;
use tokio_util::sync::CancellationToken;

use super::lines::standard_input;
use super::serve_until_over;
use crate::args::AcpArgs;
use agent::Agent;
use client_sessions::ClientSessions;
use editor::EditorTools;
use myclaw_front::args::SessionArgs;
use myclaw_front::exit::CliError;
use myclaw_front::home::{begin_to_write, refuse_shared, session_config};
use permission::Permissions;
use requests::Requests;
use wire::Wire;

/// Serves the editor until it closes standard input or sends a signal.
pub fn run(args: AcpArgs) -> Result<(), CliError> {
    let args = SessionArgs::from(args);
    // Mistakes in the config file are reported now rather than with the first session.
    let session_config = session_config(&args)?;
    refuse_shared(&session_config)?;
    begin_to_write(&session_config.home)?;
    let stop = CancellationToken::new();
    let wire = Wire::new(stop.clone());
    serve_until_over(wire.output(), stop.clone(), serve(args, &session_config, &wire, stop))
}

async fn serve(
    args: SessionArgs,
    session_config: &SessionConfig,
    wire: &Wire,
    stop: CancellationToken,
) -> Result<(), CliError> {
    let client_sessions = Arc::new(ClientSessions::new(wire.clone()));
    let listener = Arc::clone(&client_sessions);
    let requests = Arc::new(Requests::new(wire.clone()));
    let permissions =
        Permissions { requests: Arc::clone(&requests), sessions: Arc::clone(&client_sessions) };
    let editor = EditorTools::new(Arc::clone(&requests), Arc::clone(&client_sessions));
    let (driver, subagents) = SubagentTools::drive(
        engine(session_config.home.http_options()),
        stop.clone(),
        Arc::new(move |key, event| listener.on_event(key, &event)),
        Some(Arc::new(permissions)),
        Some(RemoteTools::with(Some(Arc::new(editor)))),
    );
    client_sessions.await_results_of(&subagents);
    let mut lines = standard_input()
        .map_err(|error| CliError::failure(format!("cannot read standard input: {error}")))?;
    let mut agent = Agent::new(
        args,
        session_config,
        Arc::clone(&driver),
        client_sessions,
        wire.clone(),
        requests,
    );
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
    // The editor has closed the connection or is about to: running turns are aborted in good order.
    stop.cancel();
    driver.finish().await;
    Ok(())
}
