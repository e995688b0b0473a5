//! `myclaw channels`.

mod needs;
mod setup;

use myclaw_agent::SessionOptions;
use myclaw_delivery::channels::ChannelSetup;
use myclaw_gateway::channels_of;
use myclaw_gateway_client::{AskedGateway, ask};
use serde_json::{Value, json};

use super::gateway::failure;
use crate::args::{ChannelsArgs, ChannelsCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};
use myclaw_front::runtime;
use setup::Mode;

pub(super) use setup::linked_account;

/// What is printed if there are no channels.
const NONE: &str = "no channels; `myclaw channels add telegram` adds one";

/// Runs one of the commands.
pub(crate) fn run(args: &ChannelsArgs) -> Result<(), CliError> {
    match &args.command {
        ChannelsCommand::List { json } => list(*json),
        ChannelsCommand::Add(args) => setup::add(args),
        ChannelsCommand::Status { all, json } => {
            status(if *all { Shown::All } else { Shown::Newest }, *json)
        }
        ChannelsCommand::Probe { channel } => probe(channel.as_deref()),
        ChannelsCommand::Remove { channel, account, dry_run } => {
            setup::remove(channel, account, if *dry_run { Mode::Show } else { Mode::Change })
        }
    }
}

fn configured() -> Result<Vec<ChannelSetup>, CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    Ok(channels_of(&session.home, &session.config))
}

fn list(as_json: bool) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    let setups = configured()?;
    if as_json {
        for setup in &setups {
            let problem = setup.made.as_ref().err();
            printer.json(
                &json!({"channel": setup.channel, "account": setup.account, "problem": problem}),
            )?;
        }
        return printer.finish();
    }
    if setups.is_empty() {
        printer.line(NONE)?;
    }
    let row = |setup: &ChannelSetup| {
        let problem = setup.made.as_ref().err().cloned().unwrap_or_default();
        vec![setup.channel.to_owned(), setup.account.clone(), problem]
    };
    let rows: Vec<Vec<String>> = setups.iter().map(row).collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn unknown(setups: &[ChannelSetup], channel: &str) -> CliError {
    let known: Vec<String> =
        setups.iter().map(|setup| format!("{} {}", setup.channel, setup.account)).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    CliError::usage(format!("the config has no such channel `{channel}`; it has: {known}"))
}

fn probe(only: Option<&str>) -> Result<(), CliError> {
    let mut setups = configured()?;
    if let Some(only) = only {
        if !setups.iter().any(|setup| setup.channel == only) {
            return Err(unknown(&setups, only));
        }
        setups.retain(|setup| setup.channel == only);
    }
    let mut printer = Printer::stdout();
    if setups.is_empty() {
        printer.line(NONE)?;
    }
    let mut failed = 0;
    let probed = runtime::block_on(async {
        let mut lines = Vec::new();
        for setup in &setups {
            let outcome = match &setup.made {
                Ok(channel) => channel.probe().await.map_err(|failure| failure.to_string()),
                Err(reason) => Err(reason.clone()),
            };
            lines.push((format!("{} {}", setup.channel, setup.account), outcome));
        }
        lines
    })?;
    for (name, outcome) in probed {
        let line = match outcome {
            Ok(found) => format!("ok      {name}: {found}"),
            Err(reason) => {
                failed += 1;
                format!("failed  {name}: {reason}")
            }
        };
        printer.safe_lines([line])?;
    }
    printer.finish()?;
    match failed {
        0 => Ok(()),
        _ => Err(CliError::failure_of_class("channel", "not every channel can be used")),
    }
}

/// How much of what could not be delivered is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Newest,
    All,
}

/// Asks the running gateway how its channels are. `All` asks page by page.
fn ask_state(shown: Shown) -> Result<Value, CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let page = |path: &str| {
        let asking = ask(&session.home, &session.config, "GET", path, None);
        match runtime::block_on(asking)?.map_err(failure)? {
            AskedGateway::Answer(state) => Ok(state),
            _ => {
                let message = "no gateway runs; start one with `myclaw gateway`";
                Err(CliError::failure_of_class("not_running", message))
            }
        }
    };
    let mut state = page("/api/channels")?;
    while shown == Shown::All
        && let Some(parts) = state["undelivered"].as_array_mut()
        && let Some(last) = parts.last().and_then(|part| part["part"].as_str())
    {
        let mut older = page(&format!("/api/channels?before={last}"))?;
        match older["undelivered"].as_array_mut() {
            Some(older) if !older.is_empty() => parts.append(older),
            _ => break,
        }
    }
    Ok(state)
}

fn status(shown: Shown, as_json: bool) -> Result<(), CliError> {
    let state = ask_state(shown)?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&state)?;
        return printer.finish();
    }
    let text = |value: &Value, key: &str| match &value[key] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let list = |key: &str| state[key].as_array().cloned().unwrap_or_default();
    let row = |channel: &Value| {
        ["channel", "account", "state", "reason"].map(|key| text(channel, key)).to_vec()
    };
    let rows: Vec<Vec<String>> = list("channels").iter().map(row).collect();
    if rows.is_empty() {
        printer.line(NONE)?;
    }
    printer.safe_lines(columns(&rows))?;
    for part in list("undelivered") {
        let (route, how) = (&part["route"], &part["state"]);
        printer.safe_lines([format!(
            "not delivered  {} {} to {}: {} {}",
            text(route, "channel"),
            text(route, "account"),
            text(route, "chat"),
            text(how, "state"),
            text(how, "reason"),
        )])?;
    }
    let parts = list("undelivered").len() as u64;
    let more = state["undeliveredCount"].as_u64().unwrap_or_default().saturating_sub(parts);
    if more > 0 {
        printer.safe_lines([format!(
            "not delivered  {more} more; `myclaw channels status --all` shows them"
        )])?;
    }
    for message in list("dropped") {
        printer.safe_lines([format!(
            "dropped  {} {}, chat {} {}, from {} {}: {}",
            text(&message, "channel"),
            text(&message, "account"),
            text(&message, "chat"),
            text(&message, "title"),
            text(&message, "sender"),
            text(&message, "name"),
            text(&message, "reason"),
        )])?;
    }
    printer.finish()
}
