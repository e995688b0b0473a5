//! `/mcp` in the chat and for editors: lists the MCP servers, shows the tools of one, and approves them.

use myclaw_agent::mcp::ConfiguredServer;
use myclaw_agent::{FailureClass, SessionConfig, did_you_mean};

use crate::exit::CliError;
use crate::print::columns;
use crate::report::first_line;

/// What is printed if there are no servers.
pub const NONE: &str =
    "no MCP servers; `myclaw mcp add` adds one, and `myclaw mcp import` those of other programs";

/// What is done.
#[derive(Debug, PartialEq, Eq)]
pub enum ServerCommand {
    /// Lists the servers.
    List,
    /// Shows the tools of one.
    Tools(String),
    /// With the code of the tools that were shown, once they were.
    Approve(String, Option<String>),
}

impl ServerCommand {
    /// What to say about other words.
    pub const USAGE: &str =
        "/mcp lists the MCP servers; /mcp tools NAME shows tools; /mcp approve NAME approves them";

    /// Reads what follows `/mcp`.
    pub fn parse(argument: &str) -> Option<Self> {
        let words: Vec<&str> = argument.split_whitespace().collect();
        match words[..] {
            [] | ["list"] => Some(Self::List),
            ["tools", name] => Some(Self::Tools(name.to_owned())),
            ["approve", name] => Some(Self::Approve(name.to_owned(), None)),
            ["approve", name, code] => Some(Self::Approve(name.to_owned(), Some(code.to_owned()))),
            _ => None,
        }
    }

    /// Does it; what to say.
    pub async fn run(self, config: &SessionConfig) -> String {
        let servers = config.mcp_servers();
        let find = |name: &str| {
            let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
            servers
                .iter()
                .find(|server| server.name == name)
                .ok_or_else(|| unknown(name, &names).message)
        };
        let done = match self {
            Self::List => Ok(list(&servers)),
            Self::Tools(name) => find(&name).and_then(tools),
            Self::Approve(name, code) => match find(&name) {
                Ok(server) => approve(server, code.as_deref()).await,
                Err(message) => Err(message),
            },
        };
        done.unwrap_or_else(|message| message)
    }
}

fn list(servers: &[ConfiguredServer]) -> String {
    if servers.is_empty() {
        return "no MCP servers; `myclaw mcp add` adds one".to_owned();
    }
    let row = |server: &ConfiguredServer| vec![server.name.clone(), state(server), server.shown()];
    columns(&servers.iter().map(row).collect::<Vec<_>>()).join("\n")
}

fn tools(server: &ConfiguredServer) -> Result<String, String> {
    let Some(approved) = server.approved().map_err(|error| error.message)? else {
        return Err(format!("nothing of {0} was approved yet: /mcp approve {0}", server.name));
    };
    let offered = approved.tools.iter().filter(|tool| server.offers(&tool.name));
    let rows: Vec<Vec<String>> = offered
        .map(|tool| vec![tool.offered_name(&server.name), first_line(&tool.description)])
        .collect();
    Ok(columns(&rows).join("\n"))
}

/// Shows what there is to approve, with a code for exactly that; with the code, approves it.
async fn approve(server: &ConfiguredServer, code: Option<&str>) -> Result<String, String> {
    let name = &server.name;
    if let Some(code) = code {
        server.approve_shown(code).await.map_err(|error| match error.class {
            FailureClass::Usage => format!("{}: /mcp approve {name}", error.message),
            _ => error.message,
        })?;
        return Ok("approved; the agent has the tools from your next message on".to_owned());
    }
    let Some(found) = server.to_approve().await.map_err(|error| error.message)? else {
        return Ok("all of it was approved before; nothing has changed".to_owned());
    };
    let mut lines = vec![format!("{name}: {}", found.server)];
    lines.extend(found.lines);
    lines.push(format!("/mcp approve {name} {} approves these tools", found.code));
    Ok(lines.join("\n"))
}

/// Refuses a name that is none of `names`.
pub fn unknown(name: &str, names: &[String]) -> CliError {
    if names.is_empty() {
        return CliError::usage(format!("there is no MCP server `{name}`: {NONE}"));
    }
    let suggestion = did_you_mean(name, names.iter().map(String::as_str));
    CliError::usage(format!(
        "there is no MCP server `{name}`{suggestion} `myclaw mcp list` lists them"
    ))
}

/// A number of tools, in words.
pub fn counted_tools(count: usize) -> String {
    if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") }
}

/// What was approved of a server, in words.
pub fn state(server: &ConfiguredServer) -> String {
    if !server.config.is_enabled() {
        return "disabled".to_owned();
    }
    match server.approved() {
        Ok(None) => format!("not approved: `myclaw mcp approve {}`", server.name),
        Ok(Some(approved)) => {
            let offered = approved.tools.iter().filter(|tool| server.offers(&tool.name)).count();
            match approved.tools.len() - offered {
                0 => counted_tools(offered),
                hidden => format!("{}, {hidden} not offered", counted_tools(offered)),
            }
        }
        Err(error) => error.message,
    }
}
