//! `myclaw devices`: who else may use the gateway, and for what.

use myclaw_agent::SessionOptions;
use myclaw_gateway::{DeviceChange, Scope, change_device, list_devices, new_device_code};
use serde_json::Value;

use super::gateway::failure;
use crate::args::{DeviceScope, DevicesArgs, DevicesCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::runtime;
use myclaw_front::time::local_second;

/// Runs one of the commands.
pub(crate) fn run(args: &DevicesArgs) -> Result<(), CliError> {
    match &args.command {
        DevicesCommand::List { json } => list(*json),
        DevicesCommand::Code { scope, json } => code(*scope, *json),
        DevicesCommand::Approve { device } => {
            change(DeviceChange::Approve, device, "may connect now")
        }
        DevicesCommand::Deny { device } => change(DeviceChange::Deny, device, "may not connect"),
        DevicesCommand::Revoke { device } => {
            change(DeviceChange::Revoke, device, "has no access any more")
        }
        DevicesCommand::Rotate { device } => {
            change(DeviceChange::Rotate, device, "has a new token; the old one no longer holds")
        }
    }
}

fn list(as_json: bool) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let state =
        runtime::block_on(list_devices(&session.home, &session.config))?.map_err(failure)?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&state)?;
        return printer.finish();
    }
    let devices = state["devices"].as_array().cloned().unwrap_or_default();
    if devices.is_empty() {
        printer.line("no other device has access")?;
    }
    let row = |device: &Value| {
        let mut row = ["id", "state", "scope", "name"].map(|key| text(&device[key])).to_vec();
        row.push(match device["lastSeenAt"].as_u64() {
            Some(time) => format!("seen {}", local_second(time)),
            None => "never seen".to_owned(),
        });
        row
    };
    let rows: Vec<Vec<String>> = devices.iter().map(row).collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn code(scope: DeviceScope, as_json: bool) -> Result<(), CliError> {
    let scope = match scope {
        DeviceScope::Owner => Scope::Owner,
        DeviceScope::Operator => Scope::Operator,
        DeviceScope::Node => Scope::Node,
        DeviceScope::Webhook => Scope::Webhook,
        DeviceScope::ReadOnly => Scope::ReadOnly,
    };
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let making = new_device_code(&session.home, &session.config, scope);
    let made = runtime::block_on(making)?.map_err(failure)?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&made)?;
        return printer.finish();
    }
    printer.safe_lines([text(&made["code"])])?;
    note(
        "the code works once and for ten minutes; then approve the device with `myclaw devices approve`",
    );
    printer.finish()
}

pub(super) fn change(change: DeviceChange, name: &str, what: &str) -> Result<(), CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let changing = change_device(&session.home, &session.config, change, name);
    let changed = runtime::block_on(changing)?.map_err(failure)?;
    let mut printer = Printer::stdout();
    let (id, name) = (text(&changed["id"]), text(&changed["name"]));
    match changed["token"].as_str() {
        Some(token) => {
            note(format!("{name} ({id}) {what}"));
            printer.safe_lines([token.to_owned()])?;
        }
        None => printer.safe_lines([format!("{name} ({id}) {what}")])?,
    }
    printer.finish()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
