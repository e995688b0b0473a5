//! `myclaw mcp`: the MCP servers of the config, and what was approved of them.

mod call;
mod change;
mod login;
mod project;

use std::time::Instant;

use myclaw_agent::mcp::{
    ConfiguredServer, Difference, Listing, Revision, ToolDefinition, difference_lines,
};
use myclaw_agent::{SessionConfig, SessionOptions};
use serde_json::json;

use super::confirm;
use crate::args::{McpArgs, McpCommand};
use crate::commands::cluster::home_of_sessions;
use myclaw_front::exit::CliError;
use myclaw_front::home::load_session;
use myclaw_front::print::{Printer, columns, note};
use myclaw_front::report::first_line;
use myclaw_front::runtime;
use myclaw_front::servers::{NONE, counted_tools, state, unknown};

pub(super) use login::{open_browser, pasted};

/// Runs one of the commands.
pub(crate) fn run(args: &McpArgs) -> Result<(), CliError> {
    match &args.command {
        McpCommand::Add(args) => change::add(args),
        McpCommand::Approve { name: Some(name), yes, agent } => {
            approve(&find(agent.as_deref(), name)?, Answer::of(*yes))
        }
        McpCommand::Approve { name: None, yes, agent } => {
            project::approve(&session(agent.as_deref())?, Answer::of(*yes))
        }
        McpCommand::List { agent, json } => list(agent.as_deref(), *json),
        McpCommand::Test { name, agent } => test(agent.as_deref(), name.as_deref()),
        McpCommand::Tools { name, agent, json } => tools(&find(agent.as_deref(), name)?, *json),
        McpCommand::Login { name, scope, agent } => {
            login::log_in(&find(agent.as_deref(), name)?, scope.clone())
        }
        McpCommand::Logout { name, agent } => login::log_out(&find(agent.as_deref(), name)?),
        McpCommand::Logs { name, lines } => logs(name, *lines),
        McpCommand::Remove { name } => change::remove(name),
        McpCommand::Import(args) => change::import(args),
        McpCommand::Call { server, tool, arguments } => call::call(server, tool, arguments),
        McpCommand::Serve(args) => myclaw_protocols::run_mcp(args.clone()),
    }
}

/// Who says whether tools are approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The option `--yes`.
    Given,
    /// The person at the terminal, if there is one.
    Asked,
}

impl Answer {
    fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Asked }
    }
}

fn session(agent: Option<&str>) -> Result<SessionConfig, CliError> {
    let options = SessionOptions { agent: agent.map(str::to_owned), ..SessionOptions::default() };
    let mut session = load_session(home_of_sessions()?, &options)?;
    session.directory = session.project_here();
    Ok(session)
}

fn find(agent: Option<&str>, name: &str) -> Result<ConfiguredServer, CliError> {
    let session = session(agent)?;
    let servers = session.mcp_servers();
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    servers.into_iter().find(|server| server.name == name).ok_or_else(|| {
        // The name may be that of a server in a file which does not count yet.
        project::remark(&session);
        unknown(name, &names)
    })
}

fn list(agent: Option<&str>, as_json: bool) -> Result<(), CliError> {
    let session = session(agent)?;
    let servers = session.mcp_servers();
    project::remark(&session);
    let mut printer = Printer::stdout();
    if as_json {
        for server in &servers {
            let approved = server.approved()?;
            printer.json(&json!({
                "name": server.name,
                "enabled": server.config.is_enabled(),
                "server": server.shown(),
                "approved": approved.is_some(),
                "revision": approved.as_ref().map(|approved| &approved.revision),
                "tools": approved.iter().flat_map(|approved| &approved.tools)
                    .filter(|tool| server.offers(&tool.name))
                    .map(|tool| tool.offered_name(&server.name)).collect::<Vec<_>>(),
            }))?;
        }
        return printer.finish();
    }
    if servers.is_empty() {
        printer.line(NONE)?;
    }
    let rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| vec![server.name.clone(), state(server), server.shown()])
        .collect();
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

/// Starts a server and asks for its tools.
fn listing(server: &ConfiguredServer) -> Result<(Listing, Revision, String), CliError> {
    runtime::block_on(server.listing())?.map_err(CliError::from)
}

fn test(agent: Option<&str>, name: Option<&str>) -> Result<(), CliError> {
    let servers = match name {
        Some(name) => vec![find(agent, name)?],
        None => {
            let all = session(agent)?.mcp_servers().into_iter();
            all.filter(|server| server.config.is_enabled()).collect()
        }
    };
    let mut printer = Printer::stdout();
    if servers.is_empty() {
        printer.line(NONE)?;
    }
    let mut failed = 0;
    for server in &servers {
        let started = Instant::now();
        match listing(server) {
            Ok((listing, revision, own_name)) => {
                let took = started.elapsed().as_millis();
                let approved = server.approved()?;
                let difference = Difference::between(approved.as_ref(), &listing.tools);
                let differs = match (approved.is_some(), difference.is_empty()) {
                    (false, _) => format!("; not approved: `myclaw mcp approve {}`", server.name),
                    (true, false) => format!(
                        "; they differ from those that were approved: `myclaw mcp approve {}`",
                        server.name
                    ),
                    (true, true) => String::new(),
                };
                printer.safe_lines([format!(
                    "ok      {}: {own_name}, revision {revision}, {}, {took} ms{differs}",
                    server.name,
                    counted_tools(listing.tools.len())
                )])?;
                printer.safe_lines(
                    listing.problems.iter().map(|problem| format!("        {problem}")),
                )?;
            }
            Err(error) => {
                failed += 1;
                printer
                    .safe_lines(format!("failed  {}: {}", server.name, error.message).lines())?;
            }
        }
    }
    printer.finish()?;
    match failed {
        0 => Ok(()),
        _ => Err(CliError::failure_of_class("mcp", "not every MCP server can be used")),
    }
}

fn tools(server: &ConfiguredServer, as_json: bool) -> Result<(), CliError> {
    let Some(approved) = server.approved()? else {
        return Err(CliError::failure_of_class(
            "mcp",
            format!(
                "nothing of {0} was approved yet; see its tools with `myclaw mcp approve {0}`",
                server.name
            ),
        ));
    };
    if approved.tools.is_empty() {
        note(format_args!("the server {} has no tools", server.name));
    }
    let mut printer = Printer::stdout();
    for tool in &approved.tools {
        let name = tool.offered_name(&server.name);
        let is_offered = server.offers(&tool.name);
        if as_json {
            printer.json(&json!({
                "name": name, "offered": is_offered, "description": tool.description,
                "inputSchema": tool.input_schema,
            }))?;
            continue;
        }
        let note = if is_offered { "" } else { " (not offered: `tools` of its config)" };
        printer.safe_lines([format!("{name}{note}")])?;
        printer.safe_lines(tool.description.lines().map(|line| format!("    {line}")))?;
        printer.safe_lines(arguments(tool).into_iter().map(|line| format!("    {line}")))?;
    }
    printer.finish()
}

/// The arguments of a tool, one line each.
fn arguments(tool: &ToolDefinition) -> Vec<String> {
    let required = tool.input_schema["required"].as_array().cloned().unwrap_or_default();
    let fields = tool.input_schema["properties"].as_object().into_iter().flatten();
    let line = |(name, about): (&String, &serde_json::Value)| {
        let kind = about["type"].as_str().unwrap_or("any");
        let needed = if required.iter().any(|needed| needed == name) { ", required" } else { "" };
        let text = first_line(about["description"].as_str().unwrap_or_default());
        format!("- {name} ({kind}{needed}) {text}").trim_end().to_owned()
    };
    fields.map(line).collect()
}

fn logs(name: &str, lines: usize) -> Result<(), CliError> {
    let session = session(None)?;
    let text = session
        .home
        .server_log(name)
        .map_err(|error| CliError::failure(format!("the log of {name} cannot be read: {error}")))?;
    if text.is_empty() {
        let names: Vec<String> =
            session.mcp_servers().into_iter().map(|server| server.name).collect();
        if !names.iter().any(|known| known == name) {
            return Err(unknown(name, &names));
        }
        note(format_args!("the server {name} has printed nothing to its errors"));
    }
    let all: Vec<&str> = text.lines().collect();
    let mut printer = Printer::stdout();
    printer.safe_lines(&all[all.len().saturating_sub(lines)..])?;
    printer.finish()
}

/// Shows how the tools of a server differ from what was approved, and asks for an approval.
fn approve(server: &ConfiguredServer, answer: Answer) -> Result<(), CliError> {
    let (listing, revision, own_name) = listing(server)?;
    let approved = server.approved()?;
    let difference = Difference::between(approved.as_ref(), &listing.tools);
    let mut printer = Printer::stdout();
    printer.safe_lines([format!(
        "{}: {own_name}, revision {revision}, {}",
        server.name,
        counted_tools(listing.tools.len())
    )])?;
    printer.safe_lines(listing.problems.iter().map(|problem| format!("left out: {problem}")))?;
    if approved.is_some() && difference.is_empty() {
        // The lists for completion may be others.
        server.approve(listing, &revision)?;
        printer.line("All of it was approved before; nothing has changed.")?;
        return printer.finish();
    }
    printer.safe_lines(difference_lines(server, &difference, approved.is_some()))?;
    printer.finish()?;
    let is_approved = match answer {
        Answer::Given => true,
        Answer::Asked => confirm("Approve these tools?")?,
    };
    let mut printer = Printer::stdout();
    if is_approved {
        server.approve(listing, &revision)?;
        printer.line(format_args!("approved; the agent has the tools from its next message on"))?;
    } else {
        printer
            .line(format_args!("not approved; `myclaw mcp approve {}` asks again", server.name))?;
    }
    printer.finish()
}
