//! What front-ends say of the permission mode of a session, and how they change it.

use myclaw_agent::Session;
use myclaw_engine::Mode;

use crate::exit::CliError;
use crate::print::columns;

/// The reply to `/mode`: the modes and what they mean, `now` marked.
pub fn list_modes(now: Mode) -> String {
    let rows: Vec<Vec<String>> = Mode::ALL
        .iter()
        .map(|mode| {
            let mark = if *mode == now { "*" } else { " " };
            vec![format!("{mark} {mode}"), mode.meaning().to_owned()]
        })
        .collect();
    format!("{}\n/mode NAME changes it, and Shift-Tab to the next", columns(&rows).join("\n"))
}

/// Sets the mode that the user names; returns the message to show.
///
/// # Errors
/// There is no such mode, or it cannot be stored.
pub async fn change_mode(session: &Session, name: &str) -> Result<String, CliError> {
    let mode: Mode = name.parse().map_err(|error| CliError::usage(format!("{error}")))?;
    set_mode(session, mode).await
}

/// Sets the next mode; returns the message to show.
///
/// # Errors
/// It cannot be stored.
pub async fn next_mode(session: &Session) -> Result<String, CliError> {
    set_mode(session, session.mode().next()).await
}

async fn set_mode(session: &Session, mode: Mode) -> Result<String, CliError> {
    let before = session.mode();
    session.set_mode(mode).await?;
    let later =
        [mode, before].contains(&Mode::Sandbox) && mode != before && session.work().is_some();
    let when = if later { "; the sandbox begins and ends with the next message" } else { "" };
    Ok(format!("mode {mode}: {}{when}", mode.meaning()))
}
