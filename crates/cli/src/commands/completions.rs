//! `myclaw completions`.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::CliError;
use crate::print::Printer;

/// Prints the completion script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    // Composed in memory, because the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "myclaw", &mut script);
    let mut printer = Printer::stdout();
    printer.raw(&script)?;
    printer.finish()
}
