//! `myclaw policy`: what a session may do, and which rule decides.

use myclaw_agent::did_you_mean;
use myclaw_agent::permissions::{
    Permissions, Verdict, alias_names, canonical_tool_name, known_tools,
};
use serde_json::json;

use crate::args::{ExplainArgs, PolicyArgs, PolicyCommand};
use myclaw_front::exit::CliError;
use myclaw_front::home::{find_home, load_session};
use myclaw_front::print::{Printer, columns};

/// The tool whose argument is a command.
const COMMAND_TOOL: &str = "bash";

/// Runs one of the commands.
pub(crate) fn run(args: &PolicyArgs) -> Result<(), CliError> {
    match &args.command {
        PolicyCommand::Explain(args) => explain(args),
    }
}

fn explain(args: &ExplainArgs) -> Result<(), CliError> {
    let session = load_session(find_home()?, &args.options())?;
    let model = args.model.clone().or_else(|| session.agent.model.clone()).unwrap_or_default();
    let permissions = Permissions::new(&session, Some(&model), &[])?;
    let tools: Vec<&str> = match (&args.tool, &args.command) {
        (Some(tool), _) => vec![known(tool)?],
        (None, Some(_)) => vec![COMMAND_TOOL],
        (None, None) => known_tools().to_vec(),
    };
    let subject = args.command.as_ref().map(|command| permissions.command(command));
    let subject = subject.unwrap_or_default();
    let mut printer = Printer::stdout();
    let mut rows = Vec::new();
    for tool in tools {
        let (verdict, reason) = match permissions.check_subject(tool, &subject, &model) {
            Verdict::Allowed => ("allowed", permissions.decide(tool).to_string()),
            Verdict::NeedsApproval(reason) => ("ask", reason),
            Verdict::Denied(reason) => ("denied", reason),
        };
        if args.json {
            let line = json!({
                "tool": tool, "verdict": verdict, "reason": reason, "offered": permissions.offers(tool),
                "session": session.session_key.to_string(), "scope": permissions.scope().to_string(),
            });
            printer.json(&line)?;
        } else {
            rows.push(vec![tool.to_owned(), verdict.to_owned(), reason]);
        }
    }
    printer.safe_lines(columns(&rows))?;
    printer.finish()
}

/// Checks that a tool of that name exists. A misspelt name would be allowed by every rule.
fn known(tool: &str) -> Result<&str, CliError> {
    if known_tools().contains(&canonical_tool_name(tool).as_str()) {
        return Ok(tool);
    }
    let suggestion = did_you_mean(tool, known_tools().iter().copied().chain(alias_names()));
    Err(CliError::usage(format!(
        "there is no tool `{tool}`{suggestion} `myclaw policy explain` lists them"
    )))
}
