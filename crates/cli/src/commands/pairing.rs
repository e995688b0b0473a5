//! `myclaw pairing`: who may write to the agent through a channel.

use myclaw_agent::SessionOptions;
use myclaw_delivery::routing::PairingChange;
use myclaw_gateway::{change_pairing, list_pairings};
use serde_json::Value;

use super::gateway::failure;
use crate::args::{PairingArgs, PairingCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};
use myclaw_front::runtime;

/// Runs one of the commands.
pub(crate) fn run(args: &PairingArgs) -> Result<(), CliError> {
    match &args.command {
        PairingCommand::List { json } => list(*json),
        PairingCommand::Approve { code } => change(PairingChange::Approve, code),
        PairingCommand::Deny { code_or_person } => change(PairingChange::Deny, code_or_person),
    }
}

fn list(as_json: bool) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let asking = list_pairings(&session.home, &session.config);
    let state = runtime::block_on(asking)?.map_err(failure)?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&state)?;
        return printer.finish();
    }
    let pairings = state["pairings"].as_array().cloned().unwrap_or_default();
    if pairings.is_empty() {
        printer.line("nobody has asked to write")?;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |pairing: &Value| {
        ["state", "sender", "account", "code", "name"].map(|key| text(&pairing[key])).to_vec()
    };
    let rows: Vec<Vec<String>> = pairings.iter().map(row).collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn change(change: PairingChange, name: &str) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let changing = change_pairing(&session.home, &session.config, change, name);
    let changed = runtime::block_on(changing)?.map_err(failure)?;
    let (sender, name) = (&changed["sender"], &changed["name"]);
    let sender = sender.as_str().unwrap_or_default();
    let name = name.as_str().map(|name| format!(" ({name})")).unwrap_or_default();
    let what = match change {
        PairingChange::Approve => "may write now",
        PairingChange::Deny => "may not write",
    };
    let mut printer = Printer::stdout();
    printer.safe_lines([format!("{sender}{name} {what}")])?;
    printer.finish()
}
