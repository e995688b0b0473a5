//! `myclaw agents`: the agents that are files, and the mistakes in such files.

use myclaw_agent::agent_files::{AgentFile, AgentFileOrigin};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};
use serde_json::json;

use crate::args::AgentsArgs;

/// Lists them.
pub(crate) fn run(args: &AgentsArgs) -> Result<(), CliError> {
    let mut session = load_session(find_home()?, &args.options())?;
    session.directory = session.directory.take().or_else(|| session.project_here());
    let found = session.agent_files();
    let mut printer = Printer::stdout();
    let mistake = |problem: &myclaw_agent::agent_files::BadAgentFile| {
        format!("{}:{}: {}", problem.path.display(), problem.line, problem.message)
    };
    if args.json {
        for agent in &found.agents {
            printer.json(&json!({
                "name": agent.name,
                "description": agent.description,
                "origin": origin(agent),
                "model": agent.model,
                "tools": agent.tools,
                "mode": agent.mode,
                "path": agent.path,
            }))?;
        }
        for problem in &found.problems {
            printer.json(&json!({
                "path": problem.path, "line": problem.line, "mistake": problem.message,
            }))?;
        }
    } else {
        if found.agents.is_empty() {
            printer.line("no agents yet; `myclaw agents --help` shows how to write one")?;
        }
        let row = |agent: &AgentFile| {
            let (name, description) = (agent.name.clone(), agent.description.clone());
            vec![name, origin(agent).to_owned(), description]
        };
        printer.safe_lines(columns(&found.agents.iter().map(row).collect::<Vec<_>>()))?;
        printer.safe_lines(found.problems.iter().map(mistake).collect::<Vec<_>>())?;
    }
    printer.finish()?;
    match found.problems.is_empty() {
        true => Ok(()),
        false => Err(CliError::failure("not every file of an agent can be used")),
    }
}

fn origin(agent: &AgentFile) -> &'static str {
    match agent.origin {
        AgentFileOrigin::Owner => "owner",
        AgentFileOrigin::Workspace => "workspace",
        AgentFileOrigin::Project => "project",
    }
}
