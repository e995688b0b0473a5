//! `myclaw approvals`: the calls that are always approved, and those that wait for an answer.

use myclaw_agent::approvals::{ApprovalStore, Grant, WaitingApproval};
use serde_json::json;

use crate::args::{ApprovalsArgs, ApprovalsCommand};
use crate::commands::cluster::home_of_sessions;
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, columns};
use myclaw_front::time::local_minute;

/// Digits of a digest that a list shows: enough to be unique among a thousand.
const SHOWN_DIGITS: usize = 12;
/// Fewest digits that name an approval.
const FEWEST_DIGITS: usize = 4;

/// Runs one of the commands.
pub(crate) fn run(args: &ApprovalsArgs) -> Result<(), CliError> {
    let store = home_of_sessions()?.stores().approvals.clone();
    match &args.command {
        ApprovalsCommand::List { json } => {
            let (always, waiting) =
                store.list().map_err(|error| CliError::failure(error.to_string()))?;
            if *json { list_as_json(&always, &waiting) } else { list(&always, &waiting) }
        }
        ApprovalsCommand::Revoke { id: Some(id), .. } => revoke(&store, id),
        ApprovalsCommand::Revoke { id: None, .. } => {
            let count = store.clear().map_err(|error| CliError::failure(error.to_string()))?;
            say(&format!("revoked: {count}"))
        }
    }
}

fn list(always: &[Grant], waiting: &[WaitingApproval]) -> Result<(), CliError> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for waiting in waiting {
        let since = local_minute(waiting.ts);
        let call = format!("{} {}", waiting.tool, waiting.call);
        rows.push(vec!["waiting".to_owned(), since, waiting.session.clone(), call]);
    }
    for grant in always {
        let old = if grant.is_old() { " (of an older version: asked about again)" } else { "" };
        let call = format!("{} {}: {}{old}", grant.tool, grant.call, grant.covers);
        rows.push(vec![
            short(grant).to_owned(),
            local_minute(grant.ts),
            grant.audience.clone(),
            call,
        ]);
    }
    let mut printer = Printer::stdout();
    if rows.is_empty() {
        printer.line("no approvals; they are given when a call is asked about")?;
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn list_as_json(always: &[Grant], waiting: &[WaitingApproval]) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    for waiting in waiting {
        printer.json(&json!({"state": "waiting", "approval": waiting}))?;
    }
    for grant in always {
        printer.json(&json!({"state": if grant.is_old() { "old" } else { "always" }, "id": short(grant), "approval": grant}))?;
    }
    printer.finish()
}

fn revoke(store: &ApprovalStore, id: &str) -> Result<(), CliError> {
    let id = id.trim().to_ascii_lowercase();
    if id.len() < FEWEST_DIGITS {
        return Err(CliError::usage(format!(
            "`{id}` is too short to name an approval; give at least {FEWEST_DIGITS} digits of what `myclaw approvals list` \
             prints"
        )));
    }
    let revoked = store.revoke(&id).map_err(|error| CliError::failure(error.to_string()))?;
    if revoked.is_empty() {
        return Err(CliError::usage(format!(
            "there is no approval `{id}`; `myclaw approvals list` lists them"
        )));
    }
    for grant in &revoked {
        say(&format!("revoked: {} {}", grant.tool, grant.call))?;
    }
    Ok(())
}

fn short(grant: &Grant) -> &str {
    grant.digest.get(..SHOWN_DIGITS).unwrap_or(&grant.digest)
}

fn say(line: &str) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    printer.safe_lines([line])?;
    printer.finish()
}
