//! The `.mcp.json` of the current project.

use myclaw_agent::SessionConfig;

use super::{Answer, confirm};
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, note};

/// Says that the servers of the project do not count yet, if that is so.
pub(super) fn remark(session: &SessionConfig) {
    let found = session.project_servers().unwrap_or_else(|error| {
        note(format_args!("myclaw: {}", error.message));
        None
    });
    if let Some(servers) = found.filter(|servers| !servers.is_approved()) {
        let why = match servers.has_changed() {
            true => "has changed since you approved it",
            false => "was not approved",
        };
        note(format_args!(
            "myclaw: {} {why}, so its servers are not used; `myclaw mcp approve` shows it",
            servers.path.display()
        ));
    }
}

/// Shows the file, or what has changed in it, and asks for an approval.
pub(super) fn approve(session: &SessionConfig, answer: Answer) -> Result<(), CliError> {
    let Some(servers) = session.project_servers()? else {
        return Err(CliError::usage(
            "there is no `.mcp.json` in a project here; name a server, or go to the directory of the project",
        ));
    };
    let mut printer = Printer::stdout();
    printer.safe_lines([servers.path.display().to_string()])?;
    if servers.is_approved() {
        printer.line("It was approved as it is; nothing has changed.")?;
        return printer.finish();
    }
    printer.safe_lines(servers.shown().lines().map(|line| format!("  {line}")))?;
    printer.finish()?;
    let is_approved = match answer {
        Answer::Given => true,
        Answer::Asked => confirm("Use these servers in this project?")?,
    };
    let mut printer = Printer::stdout();
    if !is_approved {
        printer.line("not approved; `myclaw mcp approve` asks again")?;
        return printer.finish();
    }
    session.approve_project(&servers)?;
    printer.line("approved until the file changes; `myclaw mcp list` shows its servers, whose tools need an approval each")?;
    printer.finish()
}
