//! `myclaw mcp call`: a call of a script of code mode.

use myclaw_agent::mcp::call_from_script;
use myclaw_front::exit::CliError;
use myclaw_front::print::{Printer, note};

/// Prints the result. The script runs in a sandbox, so nothing of the config is read.
pub(super) fn call(server: &str, tool: &str, arguments: &str) -> Result<(), CliError> {
    let answer = call_from_script(server, tool, arguments).map_err(CliError::usage)?;
    if !answer.note.is_empty() {
        note(format_args!("{}", answer.note));
    }
    if answer.is_error {
        return Err(CliError::failure(answer.text));
    }
    let mut printer = Printer::stdout();
    printer.line(format_args!("{}", answer.text))?;
    printer.finish()
}
