//! `myclaw node` makes this machine a node; `myclaw nodes` looks after those of the gateway.

use std::sync::Arc;

use myclaw_agent::SessionOptions;
use myclaw_gateway::{DeviceChange, GatewayError, list_devices};
use myclaw_gateway_client::{AskedGateway, NodeOptions, PlainLink, Say, ask, serve_node};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::devices::change;
use super::gateway::failure;
use crate::args::{NodeArgs, NodesArgs, NodesCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::interrupt::Interrupts;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::runtime;

/// The session whose rules hold for what a gateway asks for. It is not the owner's main session, so a sandbox for other
/// sessions holds for it.
const SESSION: &str = "node";

/// Serves a gateway until a signal.
pub(crate) fn serve(args: &NodeArgs) -> Result<(), CliError> {
    let options = SessionOptions { session: Some(SESSION.to_owned()), ..SessionOptions::default() };
    let session = load_session(find_home()?, &options)?;
    let interrupts = Interrupts::install()?;
    let stop = CancellationToken::new();
    let armed = interrupts.arm(stop.clone());
    let say: Say = Arc::new(|line| note(format_args!("myclaw: {line}")));
    let options = NodeOptions {
        url: args.url.clone(),
        ca: args.ca.clone(),
        link: PlainLink::of_option(args.protected_link),
        code: args.pair.clone(),
        name: args.name.clone(),
    };
    let serving = async {
        serve_node(session, options, say, stop).await.map_err(failure)?;
        note("myclaw: the node has stopped");
        Ok(())
    };
    runtime::block_on_threads(armed.unless_quit(serving))?
}

/// Runs one of the commands.
pub(crate) fn run(args: &NodesArgs) -> Result<(), CliError> {
    match &args.command {
        NodesCommand::List { json } => list(*json),
        NodesCommand::Describe { node } => describe(node),
        NodesCommand::Approve { node } => change(DeviceChange::Approve, node, "may connect now"),
        NodesCommand::Reject { node } => change(DeviceChange::Deny, node, "may not connect"),
    }
}

/// The nodes: of the running gateway, else those that are paired.
fn nodes() -> Result<Value, CliError> {
    let session = load_session(find_home()?, &SessionOptions::default())?;
    let asking = async {
        match ask(&session.home, &session.config, "GET", "/api/nodes", None).await? {
            AskedGateway::Answer(nodes) => Ok::<_, GatewayError>(nodes),
            AskedGateway::NotRunning => {
                let devices = list_devices(&session.home, &session.config).await?;
                let mut nodes = devices["devices"].as_array().cloned().unwrap_or_default();
                nodes.retain(|device| device["scope"] == "node");
                Ok(json!({"nodes": nodes}))
            }
        }
    };
    runtime::block_on(asking)?.map_err(failure)
}

fn list(as_json: bool) -> Result<(), CliError> {
    let state = nodes()?;
    let mut printer = Printer::stdout();
    if as_json {
        printer.json(&state)?;
        return printer.finish();
    }
    let nodes = state["nodes"].as_array().cloned().unwrap_or_default();
    if nodes.is_empty() {
        printer.line("no other machine is a node")?;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |node: &Value| {
        let mut row = ["id", "state", "name", "platform"].map(|key| text(&node[key])).to_vec();
        let is_connected = node["connected"] == true;
        row.insert(2, if is_connected { "connected" } else { "not connected" }.to_owned());
        row
    };
    let rows: Vec<Vec<String>> = nodes.iter().map(row).collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

fn describe(name: &str) -> Result<(), CliError> {
    let state = nodes()?;
    let nodes = state["nodes"].as_array().cloned().unwrap_or_default();
    let found = nodes.into_iter().find(|node| node["id"] == name || node["name"] == name);
    let found = found.ok_or_else(|| {
        CliError::failure(format!("there is no node `{name}`; `myclaw nodes list` shows all"))
    })?;
    let mut printer = Printer::stdout();
    printer.json(&found)?;
    printer.finish()
}
