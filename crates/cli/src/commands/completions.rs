//! `myclaw completions`.

mod dynamic;
mod values;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs};
use myclaw_front::exit::CliError;
use myclaw_front::print::Printer;

/// Prints the completion script, or the values that a script asks for.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut printer = Printer::stdout();
    if let Some(kind) = args.values {
        printer.safe_lines(values::of(kind)?.iter().map(String::as_str))?;
        return printer.finish();
    }
    let shell = args.shell.unwrap_or(Shell::Bash);
    // Composed in memory, because the generator panics when it cannot write.
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(shell, &mut command, "myclaw", &mut script);
    let script = match String::from_utf8(script) {
        Ok(script) => dynamic::completed(shell, &script, &command).into_bytes(),
        Err(error) => error.into_bytes(),
    };
    printer.raw(&script)?;
    printer.finish()
}
